/*
 * Placement: passes of the allocator over the program until one repeats; see place.h.
 *
 * What a pass does is src/place_pass.c's. Here is which sections are walked, how often, and where
 * a buffer lies in a step that was not walked.
 */
#include "src/place.h"

#include <assert.h>

#include "src/hash.h"
#include "src/place_pass.h"

enum { MIN_STEPS = 3 }; /* the step that is reported is the third */

static bool place_instr(struct place_pass *pass, const struct instr *instr)
{
    if (instr_has_buffer(instr->op) && (instr->flags & INSTR_BY_BODY) != 0)
        return true;
    switch ((enum instr_op)instr->op) {
    case INSTR_ALLOC:
        return place_pass_alloc(pass, instr->id);
    case INSTR_LAUNCH:
        return place_pass_launch(pass, instr->id);
    case INSTR_FREE:
        place_pass_free(pass, instr->id);
        return true;
    case INSTR_RECORD_STREAM:
        place_pass_record_stream(pass, instr->id, (enum stream)instr->stream);
        return true;
    case INSTR_MARK:
        place_pass_mark(pass, (enum phase)instr->id, (instr->flags & INSTR_MARK_END) != 0);
        return true;
    default:
        pass->event++;
        return true;
    }
}

/* false: memory did not suffice. */
static bool place_section(struct place_pass *pass, enum section_id id, struct place_step *step)
{
    const struct section *section = &pass->program->sections[id];
    bool placed = true;

    place_pass_begin(pass, id, step);
    for (uint32_t i = section->begin; placed && i < section->end; i++) {
        pass->instr = i;
        placed = place_instr(pass, &pass->program->instrs[i]);
    }
    place_pass_end(pass);
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
static void place_steps(struct place_pass *pass, struct memory_curve *curve)
{
    struct placement *out = pass->out;
    uint64_t states[PLACE_MAX_STEPS];

    while (out->n_step < PLACE_MAX_STEPS && out->period == 0) {
        enum section_id section = out->n_step == 0 ? SECTION_FIRST : SECTION_STEADY;
        pass->curve = section == SECTION_STEADY && out->n_step < MIN_STEPS ? curve : NULL;
        if (pass->curve)
            memory_curve_begin(curve, pass->arena, pass->stats);
        if (!place_section(pass, section, &out->steps[out->n_step])) {
            out->oom_step = out->n_step + 1;
            return;
        }
        states[out->n_step++] = alloc_state_hash(pass->alloc);
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
    struct place_pass pass;

    place_pass_init(&pass, program, config, arena, out);
    if (place_section(&pass, SECTION_INIT, &out->init))
        place_steps(&pass, curve);
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
    assert(n > 0); /* memory sufficed, so that there is a first step */
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

uint64_t placement_reserved_bytes(const struct placement *placement, uint32_t step)
{
    const struct place_step *passes[] = {&placement->init, placement_step(placement, 1),
                                         placement_step(placement, step)};
    uint64_t most = 0;

    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (passes[i] && passes[i]->stats.peak_reserved > most)
            most = passes[i]->stats.peak_reserved;
    return most;
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
