/*
 * Bodies under the verifier: does the unit level say what the tapes do? See verify_inner.h.
 *
 * A body allocates, writes and frees in its stream's pool at a place of its tape that the unit
 * level does not show. So its LAUNCH and the ALLOCs and FREEs by body beside it are one act of the
 * host: nothing may stand between them, the launch must follow the uses of all that was freed in
 * the pool, and of what its tape frees, since it may itself write that memory again.
 */
#include <assert.h>

#include "src/verify_inner.h"

/* Once per body, not at each launch. */
static void find_acts(const struct body_table *bodies, const struct body_pair *pair,
                      const struct body *body, struct acts *acts)
{
    const struct tape *tape = &bodies->tape[body->tape];

    for (uint32_t i = 0; i < body->n_tape; i++) {
        if (tape[i].act == TAPE_OP || tape[i].id >= SLOT_GRAD + pair->n_grad)
            continue;
        if (tape[i].id >= SLOT_GRAD)
            acts->n_grad++; /* no tape frees one */
        else if (tape[i].act == TAPE_FREE)
            acts->frees |= (uint8_t)(1u << tape[i].id);
        else
            acts->allocs |= (uint8_t)(1u << tape[i].id);
    }
}

void verify_body_acts(struct verify *v)
{
    const struct body_table *bodies = v->program->bodies;

    for (uint32_t i = 0; i < bodies->n_pair; i++) {
        const struct body_pair *pair = &bodies->pairs[i];
        find_acts(bodies, pair, &bodies->bodies[pair->forward], &v->acts[pair->forward]);
        find_acts(bodies, pair, &bodies->bodies[pair->backward], &v->acts[pair->backward]);
        if (bodies->options.ops == OPS_NATIVE)
            verify_operands(bodies, pair, v->arena, v->acts);
    }
}

bool verify_body_alloc(struct verify *v, uint32_t buffer)
{
    if (v->n_alloc == v->cap_alloc)
        return verify_fault_of(v, FAULT_BODY, UINT32_MAX, buffer,
                               "is one more than a body allocates");
    v->allocs[v->n_alloc++] = buffer;
    v->beside = true;
    return true;
}

bool verify_body_free(struct verify *v, uint32_t buffer)
{
    const struct clock *clock = &v->streams[v->body_stream], *uses = &v->lives[buffer].uses;
    uint32_t i = 0;

    while (i < v->n_free && v->frees[i] != buffer)
        i++;
    if (i == v->n_free)
        return verify_fault_of(v, FAULT_BODY, UINT32_MAX, buffer, "is freed by no tape beside it");
    v->frees[i] = v->frees[--v->n_free];
    v->beside = v->n_free > 0;
    return clock_follows(clock, uses) ||
           verify_fault_use(v, FAULT_REUSE, clock, v->body_task, buffer);
}

bool verify_body_settle(struct verify *v, const struct instr *instr)
{
    const bool by_body = instr != NULL && (instr->flags & INSTR_BY_BODY) != 0;

    if (instr != NULL && instr->op == INSTR_MARK)
        return true;
    if (v->n_free > 0)
        return (by_body && instr->op == INSTR_FREE) ||
               verify_fault_of(v, FAULT_BODY, v->body_task, v->frees[0],
                               "is freed on the tape, by no instruction beside it");
    return (by_body && instr->op == INSTR_ALLOC) ||
           (instr != NULL && instr->op == INSTR_LAUNCH &&
            v->program->tasks[instr->id].body != NO_BODY) ||
           verify_fault_of(v, FAULT_BODY, UINT32_MAX, v->allocs[0],
                           "is allocated by no tape beside it");
}

/* The tape's births of one boundary slot: of a buffer that an ALLOC by body announced. */
static bool bear(struct verify *v, uint32_t task, uint32_t buffer, uint32_t n)
{
    if (buffer != NO_BUFFER && v->lives[buffer].flags == (ALIVE | BY_BODY)) {
        v->lives[buffer].born += n;
        if (v->lives[buffer].born <= v->program->buffers[buffer].n_member)
            return true;
    }
    return verify_fault_of(v, FAULT_BODY, task, buffer,
                           "is allocated on the tape, by no instruction beside it");
}

/* The same, which makes good what was announced: that moves to the front, behind *known others. */
static bool bear_announced(struct verify *v, uint32_t task, uint32_t buffer, uint32_t n,
                           uint32_t *known)
{
    if (!bear(v, task, buffer, n))
        return false;
    for (uint32_t i = *known; i < v->n_alloc; i++)
        if (v->allocs[i] == buffer) {
            v->allocs[i] = v->allocs[*known];
            v->allocs[(*known)++] = buffer;
        }
    return true;
}

/* How many gradients the backward body bears that belong to this part of the frame's units. */
static uint32_t count_grads(const struct program *program, const struct frame *frame,
                            const struct body *body, uint32_t part)
{
    const struct body_pair *pair = &program->bodies->pairs[frame->pair];
    const uint32_t first = program->plan->segments[frame->segment].grad;
    uint32_t n = 0;

    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &program->bodies->tape[body->tape + i];
        if (tape->act == TAPE_ALLOC && tape->id >= SLOT_GRAD && tape->id < SLOT_GRAD + pair->n_grad)
            n += program->plan->grad_places[first + tape->id - SLOT_GRAD].part == part;
    }
    return n;
}

/* Each unit's gradients are one group. */
static bool bear_grads(struct verify *v, uint32_t task, const struct frame *frame,
                       const struct acts *acts, uint32_t *known)
{
    const struct program *program = v->program;
    const struct body *body = &program->bodies->bodies[program->tasks[task].body];
    const uint32_t n_part = 1 + program->plan->segments[frame->segment].n_inner;

    for (uint32_t part = 0; part < n_part; part++) {
        const uint32_t n = n_part == 1 ? acts->n_grad : count_grads(program, frame, body, part);
        if (n > 0 && !bear_announced(v, task, program->frame_grads[frame->grads + part], n, known))
            return false;
    }
    return true;
}

/* A group is announced once, before the first of several bodies that bear its members. */
static bool bear_boundary(struct verify *v, uint32_t task, const struct frame *frame,
                          const uint32_t *boundary, const struct acts *acts)
{
    uint32_t known = 0; /* announcements that this tape makes good */

    for (uint32_t bits = acts->allocs; bits != 0; bits &= bits - 1) {
        const uint32_t slot = (uint32_t)__builtin_ctz(bits);
        if (!bear_announced(v, task, boundary[slot], 1, &known))
            return false;
    }
    if (acts->n_grad > 0 && !bear_grads(v, task, frame, acts, &known))
        return false;
    if (known < v->n_alloc)
        return verify_fault_of(v, FAULT_BODY, task, v->allocs[known],
                               "is not allocated on the tape");
    v->n_alloc = 0;
    return true;
}

/* Where nothing before or in a module is trained, its backward is empty and nobody runs it. */
static bool has_backward(const struct program *program, const struct task *task)
{
    const struct body_pair *pair = &program->bodies->pairs[program->frames[task->frame].pair];
    return program->bodies->bodies[pair->backward].n_tape > 0;
}

/* In each walk a frame goes forward once, then backward once, in order. */
static bool pass_frame(struct verify *v, const struct clock *clock, uint32_t stream, uint32_t id)
{
    const struct task *task = &v->program->tasks[id];
    struct frame_life *frame = &v->frames[task->frame];

    if (task->kind == TASK_FORWARD) {
        if (frame->walk == v->walk)
            return verify_fault_of(v, FAULT_BODY, id, NO_BUFFER,
                                   "its frame has gone forward before");
        *frame = (struct frame_life){.forward = clock->at[stream],
                                     .stream = (uint8_t)stream,
                                     .walk = (uint8_t)v->walk,
                                     .open = has_backward(v->program, task)};
        v->n_open += frame->open;
        return true;
    }
    if (!frame->open)
        return verify_fault_of(v, FAULT_BODY, id, NO_BUFFER, "its frame has not gone forward");
    if (clock->at[frame->stream] < frame->forward)
        return verify_fault_after(v, FAULT_BODY, frame->stream, frame->forward, id, NO_BUFFER,
                                  "its frame has not gone forward before it on the device");
    frame->open = false;
    v->n_open--;
    clock_join(&v->pools[frame->stream], clock); /* it frees what forward kept */
    return true;
}

bool verify_body_launch(struct verify *v, const struct clock *clock, const struct instr *instr)
{
    const struct program *program = v->program;
    const uint32_t stream = instr->stream, id = instr->id;
    const struct task *task = &program->tasks[id];
    const struct frame *frame = &program->frames[task->frame];
    const struct body_pair *pair = &program->bodies->pairs[frame->pair];
    const struct acts *acts = &v->acts[task->body];
    const uint32_t boundary[SLOT_GRAD] = {frame->in, frame->out, frame->d_out, frame->d_in};

    assert(task->frame < program->n_frame);
    if (task->body != (task->kind == TASK_FORWARD ? pair->forward : pair->backward))
        return verify_fault_of(v, FAULT_BODY, id, NO_BUFFER, "its body is not that of its frame");
    if (acts->wrong)
        return verify_fault_of(v, FAULT_BODY, id, NO_BUFFER, acts->wrong);
    if (!bear_boundary(v, id, frame, boundary, acts))
        return false;
    if (!clock_follows(clock, &v->pools[stream]))
        return verify_fault_reuse(v, clock, id, stream, NO_BUFFER);
    if (!pass_frame(v, clock, stream, id))
        return false;
    v->pools[stream] = *clock;
    for (uint32_t bits = acts->frees; bits != 0; bits &= bits - 1)
        v->frees[v->n_free++] = boundary[__builtin_ctz(bits)];
    v->beside = v->n_free > 0;
    v->body_task = id;
    v->body_stream = (uint8_t)stream;
    return true;
}

bool verify_body_end(struct verify *v)
{
    for (uint32_t f = 0; v->n_open > 0 && f < v->program->n_frame; f++)
        if (v->frames[f].open)
            return verify_fault_after(v, FAULT_BODY, v->frames[f].stream, v->frames[f].forward,
                                      UINT32_MAX, NO_BUFFER, "its frame never goes backward");
    return true;
}
