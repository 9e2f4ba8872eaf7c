/*
 * The acts of a pass; see place_pass.h. What is noted of each: addresses, driver operations and the
 * event that they come before, the peak and whose memory made it.
 */
#include "src/place_pass.h"

/* One ALLOC or FREE of the expanded walk. */
struct request {
    uint64_t bytes;
    uint32_t id;
    uint8_t pool;
    enum memory_class memory_class;
};

void place_pass_init(struct place_pass *pass, const struct program *program,
                     const struct alloc_config *config, struct arena *arena, struct placement *out)
{
    struct alloc *alloc = alloc_new(config, arena);

    *pass = (struct place_pass){
        .program = program,
        .alloc = alloc,
        .stats = alloc_stats(alloc),
        .blocks = arena_array(arena, alloc_block, program->n_expanded),
        .bodies = arena_array(arena, struct body_acts, program->bodies->n_body),
        .arena = arena,
        .out = out,
    };
    *out = (struct placement){0};
}

/* Expanded ids that the buffers and frames of a section have. */
static void find_ids(const struct program *program, const struct section *section,
                     struct place_step *step)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t i = section->begin; i < section->end; i++) {
        const struct instr *instr = &program->instrs[i];
        uint32_t first, n;
        if (instr->op == INSTR_ALLOC) {
            first = program->buffers[instr->id].expanded;
            n = program->buffers[instr->id].n_member;
        } else if (instr->op == INSTR_LAUNCH && program->tasks[instr->id].frame != NO_FRAME) {
            const struct frame *frame = &program->frames[program->tasks[instr->id].frame];
            first = frame->expanded;
            n = program->bodies->pairs[frame->pair].n_slot;
        } else {
            continue;
        }
        if (first < low)
            low = first;
        if (first + n > high)
            high = first + n;
    }
    step->first_id = low < high ? low : 0;
    step->n_place = low < high ? high - low : 0;
}

void place_pass_begin(struct place_pass *pass, enum section_id section, struct place_step *step)
{
    *step = (struct place_step){.peak_phase = section == SECTION_INIT ? PHASE_INIT : PHASE_FORWARD,
                                .peak_unit = NO_UNIT};
    find_ids(pass->program, &pass->program->sections[section], step);
    step->places = arena_array(pass->arena, struct place, step->n_place);
    alloc_reset_peak(pass->alloc);
    pass->before = *pass->stats;
    pass->step = step;
    pass->cap_op = 0;
    pass->event = 0;
    pass->phase = step->peak_phase;
    pass->peak_bytes = pass->stats->peak_allocated;
}

void place_pass_end(struct place_pass *pass)
{
    struct alloc_stats *stats = &pass->step->stats;

    *stats = *pass->stats;
    stats->retries -= pass->before.retries;
    stats->ooms -= pass->before.ooms;
    stats->driver_calls -= pass->before.driver_calls;
}

static void take_ops(struct place_pass *pass)
{
    struct place_step *step = pass->step;
    uint32_t n;
    const struct segment_op *ops = alloc_ops(pass->alloc, &n);
    step->ops =
        arena_grow(pass->arena, step->ops, &pass->cap_op, step->n_op + n, sizeof(*step->ops));
    for (uint32_t i = 0; i < n; i++)
        step->ops[step->n_op++] =
            (struct placed_op){.op = ops[i], .event = pass->event, .instr = pass->instr};
    alloc_clear_ops(pass->alloc);
    pass->driver_calls = pass->stats->driver_calls;
}

static void note_peak(struct place_pass *pass)
{
    pass->peak_bytes = pass->stats->peak_allocated;
    pass->step->peak_unit = pass->unit;
    pass->step->peak_phase = pass->phase;
    pass->step->peak_event = pass->event;
}

static void note_place(struct place_pass *pass, uint32_t id)
{
    const alloc_block block = pass->blocks[id];
    struct place *place = &pass->step->places[id - pass->step->first_id];

    *place = (struct place){.placed = true, .segment = UINT32_MAX};
    if (block == ALLOC_NO_BLOCK)
        return;
    const struct alloc_address address = alloc_block_address(pass->alloc, block);
    place->segment = address.segment;
    place->offset = address.offset;
}

/* false: memory did not suffice. */
static inline bool take(struct place_pass *pass, const struct request *request)
{
    if (pass->clock)
        pass->clock->before_alloc(pass->clock->self, pass->kernels);
    const bool placed = alloc_malloc(pass->alloc, request->pool, request->bytes,
                                     request->memory_class, &pass->blocks[request->id]);
    if (pass->stats->driver_calls != pass->driver_calls)
        take_ops(pass);
    if (!placed) {
        pass->out->out_of_memory = true;
        pass->out->oom_event = pass->event;
        pass->out->oom_bytes = request->bytes;
        return false;
    }
    if (pass->stats->peak_allocated != pass->peak_bytes)
        note_peak(pass);
    if (pass->curve)
        memory_curve_raise(pass->curve, pass->stats);
    note_place(pass, request->id);
    return true;
}

static inline void give(struct place_pass *pass, uint32_t id)
{
    const uint32_t streams = alloc_free(pass->alloc, pass->blocks[id]);

    if (streams != 0)
        pass->clock->deferred(pass->clock->self, streams);
}

bool place_pass_alloc(struct place_pass *pass, uint32_t id)
{
    const struct program *program = pass->program;
    const struct buffer *buffer = &program->buffers[id];

    pass->unit = buffer->unit;
    for (uint32_t i = 0; i < buffer->n_member; i++, pass->event++) {
        const struct request request = {
            .bytes = buffer_member_bytes(program, buffer, i),
            .id = buffer->expanded + i,
            .pool = buffer->pool,
            .memory_class = buffer_role_class(buffer->role),
        };
        if (!take(pass, &request))
            return false;
    }
    return true;
}

void place_pass_free(struct place_pass *pass, uint32_t id)
{
    const struct buffer *buffer = &pass->program->buffers[id];

    for (uint32_t i = 0; i < buffer->n_member; i++, pass->event++)
        give(pass, buffer->expanded + i);
}

void place_pass_record_stream(struct place_pass *pass, uint32_t id, enum stream user)
{
    const struct buffer *buffer = &pass->program->buffers[id];

    for (uint32_t i = 0; i < buffer->n_member && pass->clock; i++)
        alloc_record_stream(pass->alloc, pass->blocks[buffer->expanded + i], (uint8_t)user);
    pass->event += buffer->n_member;
}

static const struct body_acts *read_body(struct place_pass *pass, uint32_t number,
                                         const struct body_pair *pair)
{
    const struct body_table *table = pass->program->bodies;
    const struct body *body = &table->bodies[number];
    struct body_acts *acts = &pass->bodies[number];
    uint32_t kernels = 0;

    if (acts->acts)
        return acts;
    acts->acts = arena_array(pass->arena, struct memory_act, body->n_tape + 1);
    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &table->tape[body->tape + i];
        if (tape->act == TAPE_OP) {
            kernels += table->ops[tape->id].kernels;
            continue;
        }
        const struct slot *slot = &table->slots[pair->slot + tape->id];
        acts->acts[acts->n++] = (struct memory_act){
            .bytes = slot->bytes,
            .slot = tape->id,
            .event = i,
            .kernels = kernels,
            .memory_class = slot->memory_class,
            .frees = tape->act == TAPE_FREE,
            .boundary = tape->id < SLOT_GRAD + pair->n_grad,
        };
    }
    return acts;
}

/* A boundary slot is a buffer of the unit level, of that buffer's class. */
static void resolve_boundary(const struct program *program, const struct frame *frame,
                             uint32_t slot, struct request *request)
{
    const uint32_t outside[] = {frame->in, frame->out, frame->d_out, frame->d_in};
    request->id = expand_slot_id(program, frame, slot);
    if (slot < SLOT_GRAD) /* a gradient's class is the slot's */
        request->memory_class = buffer_role_class(program->buffers[outside[slot]].role);
}

static bool walk_body(struct place_pass *pass, const struct task *task)
{
    const struct program *program = pass->program;
    const struct frame *frame = &program->frames[task->frame];
    const struct body_acts *acts =
        read_body(pass, task->body, &program->bodies->pairs[frame->pair]);
    const uint32_t first_event = pass->event;
    bool placed = true;

    for (uint32_t i = 0; placed && i < acts->n; i++) {
        const struct memory_act *act = &acts->acts[i];
        struct request request = {
            .bytes = act->bytes,
            .id = frame->expanded + act->slot,
            .pool = task->stream,
            .memory_class = act->memory_class,
        };
        if (act->boundary)
            resolve_boundary(program, frame, act->slot, &request);
        pass->event = first_event + act->event;
        pass->kernels = act->kernels;
        if (act->frees)
            give(pass, request.id);
        else
            placed = take(pass, &request);
    }
    pass->kernels = 0;
    if (placed)
        pass->event = first_event + program->bodies->bodies[task->body].n_tape;
    return placed;
}

bool place_pass_launch(struct place_pass *pass, uint32_t id)
{
    const struct task *task = &pass->program->tasks[id];
    bool placed = true;

    pass->unit = task->unit;
    if (task->body != NO_BODY)
        placed = walk_body(pass, task);
    else
        pass->event++;
    if (pass->curve)
        memory_curve_launch(pass->curve, id, pass->stats);
    return placed;
}

void place_pass_mark(struct place_pass *pass, enum phase phase, bool end)
{
    if (!end)
        pass->phase = (uint8_t)phase;
    pass->event++;
}
