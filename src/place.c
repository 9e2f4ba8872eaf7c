/*
 * Placement: the allocator run over the expanded program; see place.h.
 *
 * One allocator lives through all passes, and one handle per expanded id: a section's ids are
 * allocated anew in each pass, ids that live on keep their handle. Streams and pools are the same
 * numbers. Nothing here decides an address.
 *
 * A pass is what expand_next() would walk, with events counted alike, but each body's tape is read
 * once and kept as the acts on memory in it: most passes over a body are repetitions.
 */
#include "src/place.h"

#include "src/hash.h"

#define NO_INSTR UINT32_MAX

enum { MIN_STEPS = 3 }; /* the step that is reported is the third */

struct memory_act {
    uint64_t bytes;
    uint32_t slot, event; /* event: index in the body's tape */
    uint8_t memory_class; /* of internal slots */
    bool frees, boundary;
};

struct body_acts {
    struct memory_act *acts; /* NULL: not read yet */
    uint32_t n;
};

struct placing {
    const struct program *program;
    struct alloc *alloc;
    const struct alloc_stats *stats; /* the allocator's, now */
    alloc_block *blocks;             /* by expanded id */
    struct body_acts *bodies;
    struct arena *arena;
    struct placement *out;
    struct memory_curve *curve; /* NULL: not of this pass */

    struct place_step *step; /* the current pass */
    uint32_t cap_op;
    uint32_t instr, event; /* where in it: at the unit level, and of the expanded walk */
    uint8_t phase;
    uint64_t peak_bytes;
    uint32_t peak_instr, driver_calls; /* as far as they are noted */
};

/* One ALLOC or FREE of the expanded walk. */
struct request {
    uint64_t bytes;
    uint32_t id;
    uint8_t pool;
    enum memory_class memory_class;
};

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

static void take_ops(struct placing *placing)
{
    struct place_step *step = placing->step;
    uint32_t n;
    const struct segment_op *ops = alloc_ops(placing->alloc, &n);
    step->ops =
        arena_grow(placing->arena, step->ops, &placing->cap_op, step->n_op + n, sizeof(*step->ops));
    for (uint32_t i = 0; i < n; i++)
        step->ops[step->n_op++] =
            (struct placed_op){.op = ops[i], .event = placing->event, .instr = placing->instr};
    alloc_clear_ops(placing->alloc);
    placing->driver_calls = placing->stats->driver_calls;
}

static void note_peak(struct placing *placing)
{
    placing->peak_bytes = placing->stats->peak_allocated;
    placing->peak_instr = placing->instr;
    placing->step->peak_phase = placing->phase;
}

/* The functions below return false where memory did not suffice. */

static inline bool place_alloc(struct placing *placing, const struct request *request)
{
    alloc_block *block = &placing->blocks[request->id];
    bool placed =
        alloc_malloc(placing->alloc, request->pool, request->bytes, request->memory_class, block);
    if (placing->stats->driver_calls != placing->driver_calls)
        take_ops(placing);
    if (!placed) {
        placing->out->out_of_memory = true;
        placing->out->oom_event = placing->event;
        placing->out->oom_bytes = request->bytes;
        return false;
    }
    if (placing->stats->peak_allocated != placing->peak_bytes)
        note_peak(placing);
    if (placing->curve)
        memory_curve_raise(placing->curve, placing->stats);

    struct place *place = &placing->step->places[request->id - placing->step->first_id];
    place->placed = true;
    place->segment = UINT32_MAX;
    if (*block != ALLOC_NO_BLOCK) {
        const struct alloc_address address = alloc_block_address(placing->alloc, *block);
        place->segment = address.segment;
        place->offset = address.offset;
    }
    return true;
}

static bool place_group(struct placing *placing, const struct instr *instr)
{
    const struct program *program = placing->program;
    const struct buffer *buffer = &program->buffers[instr->id];
    bool placed = true;

    if (instr->flags & INSTR_BY_BODY)
        return true;
    for (uint32_t i = 0; placed && i < buffer->n_member; i++, placing->event++) {
        const struct request request = {
            .bytes = buffer_member_bytes(program, buffer, i),
            .id = buffer->expanded + i,
            .pool = instr->stream,
            .memory_class = buffer_role_class(buffer->role),
        };
        if (instr->op == INSTR_ALLOC)
            placed = place_alloc(placing, &request);
        else
            alloc_free(placing->alloc, placing->blocks[request.id]);
    }
    return placed;
}

static const struct body_acts *read_body(struct placing *placing, uint32_t number,
                                         const struct body_pair *pair)
{
    const struct body_table *table = placing->program->bodies;
    const struct body *body = &table->bodies[number];
    struct body_acts *acts = &placing->bodies[number];

    if (acts->acts)
        return acts;
    acts->acts = arena_array(placing->arena, struct memory_act, body->n_tape + 1);
    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &table->tape[body->tape + i];
        if (tape->act == TAPE_OP)
            continue;
        const struct slot *slot = &table->slots[pair->slot + tape->id];
        acts->acts[acts->n++] = (struct memory_act){
            .bytes = slot->bytes,
            .slot = tape->id,
            .event = i,
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

static bool place_body(struct placing *placing, const struct task *task)
{
    const struct program *program = placing->program;
    const struct frame *frame = &program->frames[task->frame];
    const struct body_acts *acts =
        read_body(placing, task->body, &program->bodies->pairs[frame->pair]);
    const uint32_t first_event = placing->event;

    for (uint32_t i = 0; i < acts->n; i++) {
        const struct memory_act *act = &acts->acts[i];
        struct request request = {
            .bytes = act->bytes,
            .id = frame->expanded + act->slot,
            .pool = task->stream,
            .memory_class = act->memory_class,
        };
        if (act->boundary)
            resolve_boundary(program, frame, act->slot, &request);
        placing->event = first_event + act->event;
        if (act->frees)
            alloc_free(placing->alloc, placing->blocks[request.id]);
        else if (!place_alloc(placing, &request))
            return false;
    }
    placing->event = first_event + program->bodies->bodies[task->body].n_tape;
    return true;
}

static bool place_task(struct placing *placing, uint32_t id)
{
    const struct task *task = &placing->program->tasks[id];
    bool placed = true;

    if (task->body != NO_BODY)
        placed = place_body(placing, task);
    else
        placing->event++;
    if (placing->curve)
        memory_curve_launch(placing->curve, id, placing->stats);
    return placed;
}

static bool place_instr(struct placing *placing, const struct instr *instr)
{
    if (instr->op == INSTR_ALLOC || instr->op == INSTR_FREE)
        return place_group(placing, instr);
    if (instr->op == INSTR_LAUNCH)
        return place_task(placing, instr->id);
    if (instr->op == INSTR_MARK && !(instr->flags & INSTR_MARK_END))
        placing->phase = (uint8_t)instr->id;
    placing->event++;
    return true;
}

/* Whose the memory was that made the peak: of a body the running unit's, else the buffer's. */
static uint16_t unit_of(const struct program *program, uint32_t at)
{
    if (at == NO_INSTR)
        return NO_UNIT;
    const struct instr *instr = &program->instrs[at];
    return instr->op == INSTR_LAUNCH ? program->tasks[instr->id].unit
                                     : program->buffers[instr->id].unit;
}

static bool place_section(struct placing *placing, enum section_id id, struct place_step *step)
{
    const struct section *section = &placing->program->sections[id];
    const struct alloc_stats before = *placing->stats;
    bool placed = true;

    *step = (struct place_step){.peak_phase = id == SECTION_INIT ? PHASE_INIT : PHASE_FORWARD};
    find_ids(placing->program, section, step);
    step->places = arena_array(placing->arena, struct place, step->n_place);
    alloc_reset_peak(placing->alloc);

    placing->step = step;
    placing->cap_op = 0;
    placing->event = 0;
    placing->phase = step->peak_phase;
    placing->peak_bytes = placing->stats->peak_allocated;
    placing->peak_instr = NO_INSTR;
    for (uint32_t i = section->begin; placed && i < section->end; i++) {
        placing->instr = i;
        placed = place_instr(placing, &placing->program->instrs[i]);
    }
    step->peak_unit = unit_of(placing->program, placing->peak_instr);
    step->stats = *placing->stats;
    step->stats.retries -= before.retries;
    step->stats.ooms -= before.ooms;
    step->stats.driver_calls -= before.driver_calls;
    return placed;
}

/* How many steps back the newest state was already there; 0: it is new. */
static uint32_t find_period(const uint64_t *states, uint32_t n)
{
    for (uint32_t period = 1; period < n; period++)
        if (states[n - 1 - period] == states[n - 1])
            return period;
    return 0;
}

/*
 * Until the state is one that was there before, and at least to the third step. From then on passes
 * repeat, so that what is still missing is a copy; a curve is kept of the steady passes up to the
 * third step, and the last of these is or equals it.
 */
static void place_steps(struct placing *placing, struct memory_curve *curve)
{
    struct placement *out = placing->out;
    uint64_t states[PLACE_MAX_STEPS];

    while (out->n_step < PLACE_MAX_STEPS && out->period == 0) {
        enum section_id section = out->n_step == 0 ? SECTION_FIRST : SECTION_STEADY;
        placing->curve = section == SECTION_STEADY && out->n_step < MIN_STEPS ? curve : NULL;
        if (placing->curve)
            memory_curve_begin(curve, placing->arena, placing->stats);
        if (!place_section(placing, section, &out->steps[out->n_step])) {
            out->oom_step = out->n_step + 1;
            return;
        }
        states[out->n_step++] = alloc_state_hash(placing->alloc);
        out->n_walked = out->n_step;
        out->period = find_period(states, out->n_step);
    }
    for (; out->n_step < MIN_STEPS; out->n_step++)
        out->steps[out->n_step] = out->steps[out->n_step - out->period];
}

void place_program(const struct program *program, const struct alloc_config *config,
                   struct arena *arena, struct placement *out)
{
    place_with_curve(program, config, arena, out, NULL);
}

void place_with_curve(const struct program *program, const struct alloc_config *config,
                      struct arena *arena, struct placement *out, struct memory_curve *curve)
{
    struct alloc *alloc = alloc_new(config, arena);
    struct placing placing = {
        .program = program,
        .alloc = alloc,
        .stats = alloc_stats(alloc),
        .blocks = arena_array(arena, alloc_block, program->n_expanded),
        .bodies = arena_array(arena, struct body_acts, program->bodies->n_body),
        .arena = arena,
        .out = out,
    };
    *out = (struct placement){0};
    if (place_section(&placing, SECTION_INIT, &out->init))
        place_steps(&placing, curve);
}

const struct place_step *placement_step(const struct placement *placement, uint32_t step)
{
    uint32_t n = placement->n_step;
    if (step == 0)
        return placement->out_of_memory && placement->oom_step == 0 ? NULL : &placement->init;
    if (step <= n)
        return &placement->steps[step - 1];
    if (placement->out_of_memory)
        return NULL;
    if (placement->period == 0)
        return &placement->steps[n - 1];
    uint32_t first = n - placement->period; /* of the period, as an index */
    return &placement->steps[first + (step - 1 - first) % placement->period];
}

static const struct place *find_place(const struct place_step *step, uint32_t id)
{
    uint32_t i = id - step->first_id; /* wraps past n_place where the id is below */
    return i < step->n_place && step->places[i].placed ? &step->places[i] : NULL;
}

const struct place *placement_place(const struct placement *placement, uint32_t step, uint32_t id)
{
    const struct place_step *pass = placement_step(placement, step);
    const struct place *place = pass ? find_place(pass, id) : NULL;
    if (!place && pass && step > 1)
        place = find_place(&placement->steps[0], id);
    if (!place && pass)
        place = find_place(&placement->init, id);
    return place;
}

static uint64_t hash_step(uint64_t hash, const struct place_step *step)
{
    for (uint32_t i = 0; i < step->n_place; i++)
        hash = hash_add(hash_add(hash, step->places[i].segment), step->places[i].offset);
    for (uint32_t i = 0; i < step->n_op; i++) {
        const struct segment_op *op = &step->ops[i].op;
        hash = hash_add(hash, (uint64_t)op->segment << 32 | (uint64_t)op->act << 16 | op->pool);
        hash = hash_add(hash_add(hash, op->offset), op->bytes);
        hash = hash_add(hash, step->ops[i].event);
    }
    return hash;
}

uint64_t placement_hash(const struct placement *placement)
{
    uint64_t hash = hash_step(placement->n_step, &placement->init);
    for (uint32_t i = 0; i < placement->n_step; i++)
        hash = hash_step(hash, &placement->steps[i]);
    return hash;
}
