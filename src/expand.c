/*
 * The cursor over the expanded level; see expand.h.
 *
 * State is one instruction and how far one is inside it: the next member of a group, or the next
 * entry of a body's tape. An instruction is entered once, which finds what all its events share.
 */
#include "src/expand.h"

void expand_begin(struct expand *walk, const struct program *program, enum section_id section)
{
    *walk = (struct expand){
        .program = program,
        .next = program->sections[section].begin,
        .end = program->sections[section].end,
    };
}

uint32_t expand_slot_id(const struct program *program, const struct frame *frame, uint32_t slot)
{
    const struct buffer *buffers = program->buffers;
    const struct plan *plan = program->plan;
    const struct body_pair *pair = &program->bodies->pairs[frame->pair];

    if (slot >= SLOT_GRAD + pair->n_grad)
        return frame->expanded + slot;
    switch (slot) {
    case SLOT_IN:
        return buffers[frame->in].expanded;
    case SLOT_OUT:
        return buffers[frame->out].expanded;
    case SLOT_D_OUT:
        return buffers[frame->d_out].expanded;
    case SLOT_D_IN:
        return buffers[frame->d_in].expanded;
    default:
        break;
    }
    const struct grad_place *place =
        &plan->grad_places[plan->segments[frame->segment].grad + slot - SLOT_GRAD];
    return buffers[program->frame_grads[frame->grads + place->part]].expanded + place->member;
}

/* A boundary slot has the class of its buffer's role. */
static uint8_t boundary_class(const struct program *program, const struct frame *frame,
                              uint32_t slot)
{
    const uint32_t boundary[] = {frame->in, frame->out, frame->d_out, frame->d_in};
    if (slot >= SLOT_GRAD)
        return CLASS_UNSHARDED_GRAD;
    return (uint8_t)buffer_role_class(program->buffers[boundary[slot]].role);
}

static void expand_tape(const struct expand *walk, struct expanded *out)
{
    const struct tape *entry = &walk->tape[walk->step];

    if (entry->act == TAPE_OP) {
        out->body_op = entry->id;
        return;
    }
    out->op = entry->act == TAPE_ALLOC ? INSTR_ALLOC : INSTR_FREE;
    out->bytes = walk->slots[entry->id].bytes;
    if (entry->id >= walk->first_internal) {
        out->id = walk->frame->expanded + entry->id;
        out->memory_class = walk->slots[entry->id].memory_class;
    } else {
        out->id = expand_slot_id(walk->program, walk->frame, entry->id);
        out->memory_class = boundary_class(walk->program, walk->frame, entry->id);
    }
}

static void expand_member(const struct expand *walk, const struct instr *instr,
                          struct expanded *out)
{
    const struct buffer *buffer = &walk->program->buffers[instr->id];

    out->id = buffer->expanded + walk->step;
    out->bytes = buffer_member_bytes(walk->program, buffer, walk->step);
    out->memory_class = (uint8_t)buffer_role_class(buffer->role);
}

/* How many events the instruction becomes, and what they share. */
static void expand_enter(struct expand *walk, const struct instr *instr)
{
    const struct program *program = walk->program;

    walk->step = 0;
    walk->n_step = 1;
    walk->tape = NULL;
    if (instr_has_buffer(instr->op)) {
        const bool by_body = (instr->flags & INSTR_BY_BODY) != 0;
        walk->n_step = by_body ? 0 : program->buffers[instr->id].n_member;
    } else if (instr->op == INSTR_LAUNCH && program->tasks[instr->id].body != NO_BODY) {
        const struct task *task = &program->tasks[instr->id];
        const struct body *body = &program->bodies->bodies[task->body];
        const struct frame *frame = &program->frames[task->frame];
        const struct body_pair *pair = &program->bodies->pairs[frame->pair];
        walk->n_step = body->n_tape;
        walk->tape = &program->bodies->tape[body->tape];
        walk->slots = &program->bodies->slots[pair->slot];
        walk->frame = frame;
        walk->first_internal = SLOT_GRAD + pair->n_grad;
    }
}

bool expand_next(struct expand *walk, struct expanded *out)
{
    while (walk->step == walk->n_step) {
        if (walk->next == walk->end)
            return false;
        walk->instr = walk->next++;
        expand_enter(walk, &walk->program->instrs[walk->instr]);
    }
    const struct instr *instr = &walk->program->instrs[walk->instr];
    *out = (struct expanded){
        .op = instr->op,
        .stream = instr->stream,
        .flags = instr->flags,
        .instr = walk->instr,
        .id = instr->id,
        .body_op = NO_OP,
    };
    if (walk->tape != NULL)
        expand_tape(walk, out);
    else if (instr_has_buffer(instr->op))
        expand_member(walk, instr, out);
    walk->step++;
    return true;
}
