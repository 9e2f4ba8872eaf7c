/*
 * Placement of random programs against the plainest way to do it: the cursor over the expanded
 * level and one allocator that never stops.
 *
 * For each program, allocator and capacity every pass is compared: addresses, driver operations and
 * their events, statistics, phase and unit of the peak; also steps past the placed ones, which are
 * told from the period, and addresses of what lives on from earlier sections.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/place.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { N_PROGRAM = 40, EXTRA_STEPS = 3, PERCENTS = 5 };

struct plain {
    const struct program *program;
    const struct placement *placement;
    struct alloc *alloc;
    alloc_block *blocks;
    bool *live; /* by expanded id */
    uint32_t step, event, n_op;
    uint8_t phase, peak_phase;
    uint16_t peak_unit;
    char what[200]; /* the first difference, or empty */
};

/* What has been met, so that the comparison is known to have seen it. */
static struct {
    uint32_t placed, ooms, ooms_later, retried, transient, longer;
} met;

static void same(struct plain *plain, const char *what, uint64_t got, uint64_t want)
{
    if (got != want && !plain->what[0])
        snprintf(plain->what, sizeof(plain->what),
                 "step %u, event %u, %s: %" PRIu64 ", plainly %" PRIu64, plain->step, plain->event,
                 what, got, want);
}

static void compare_place(struct plain *plain, uint32_t id)
{
    const struct place *place = placement_place(plain->placement, plain->step, id);
    alloc_block block = plain->blocks[id];
    if (!place) {
        same(plain, "a place where there is none", 0, 1);
    } else if (block == ALLOC_NO_BLOCK) {
        same(plain, "segment of nothing", place->segment, UINT32_MAX);
    } else {
        const struct alloc_address address = alloc_block_address(plain->alloc, block);
        same(plain, "segment", place->segment, address.segment);
        same(plain, "offset", place->offset, address.offset);
    }
}

static void compare_ops(struct plain *plain, const struct place_step *step)
{
    uint32_t n;
    const struct segment_op *ops = alloc_ops(plain->alloc, &n);
    for (uint32_t i = 0; i < n; i++, plain->n_op++) {
        const struct placed_op *placed = &step->ops[plain->n_op];
        if (plain->n_op >= step->n_op) {
            same(plain, "driver operations", step->n_op, plain->n_op + 1);
            continue;
        }
        same(plain, "event of a driver operation", placed->event, plain->event);
        same(plain, "driver operation", placed->op.act, ops[i].act);
        same(plain, "its segment", placed->op.segment, ops[i].segment);
        same(plain, "its offset", placed->op.offset, ops[i].offset);
        same(plain, "its bytes", placed->op.bytes, ops[i].bytes);
    }
    alloc_clear_ops(plain->alloc);
}

/* The pass that should be compared: also the one that memory did not suffice for. */
static const struct place_step *pass_of(const struct placement *placement, uint32_t step)
{
    if (placement->out_of_memory && placement->oom_step == step)
        return step == 0 ? &placement->init : &placement->steps[step - 1];
    return placement_step(placement, step);
}

/* False where memory did not suffice. */
static bool plain_alloc(struct plain *plain, const struct expanded *at)
{
    const struct place_step *pass = pass_of(plain->placement, plain->step);
    uint64_t peak = alloc_stats(plain->alloc)->peak_allocated;
    bool placed = alloc_malloc(plain->alloc, at->stream, at->bytes,
                               (enum memory_class)at->memory_class, &plain->blocks[at->id]);

    compare_ops(plain, pass);
    if (!placed) {
        same(plain, "out of memory", plain->placement->out_of_memory, true);
        same(plain, "its step", plain->placement->oom_step, plain->step);
        same(plain, "its event", plain->placement->oom_event, plain->event);
        same(plain, "its bytes", plain->placement->oom_bytes, at->bytes);
        return false;
    }
    if (alloc_stats(plain->alloc)->peak_allocated > peak) {
        const struct instr *instr = &plain->program->instrs[at->instr];
        plain->peak_phase = plain->phase;
        plain->peak_unit = instr->op == INSTR_LAUNCH ? plain->program->tasks[instr->id].unit
                                                     : plain->program->buffers[instr->id].unit;
    }
    plain->live[at->id] = true;
    if (placement_step(plain->placement, plain->step))
        compare_place(plain, at->id);
    return true;
}

static void compare_end(struct plain *plain, const struct alloc_stats *before)
{
    const struct place_step *pass = pass_of(plain->placement, plain->step);
    struct alloc_stats stats = *alloc_stats(plain->alloc);

    stats.retries -= before->retries;
    stats.ooms -= before->ooms;
    stats.driver_calls -= before->driver_calls;
    same(plain, "statistics", memcmp(&stats, &pass->stats, sizeof(stats)) == 0, true);
    same(plain, "driver operations", pass->n_op, plain->n_op);
    same(plain, "phase of the peak", pass->peak_phase, plain->peak_phase);
    same(plain, "unit of the peak", pass->peak_unit, plain->peak_unit);
    if (!placement_step(plain->placement, plain->step))
        return;
    for (uint32_t id = 0; id < plain->program->n_expanded; id++)
        if (plain->live[id])
            compare_place(plain, id);
}

/* One pass. False where memory did not suffice. */
static bool plain_step(struct plain *plain)
{
    const enum section_id section = plain->step < SECTION_STEADY ? plain->step : SECTION_STEADY;
    const struct alloc_stats before = *alloc_stats(plain->alloc);
    struct expand walk;
    struct expanded at;
    bool placed = true;

    alloc_reset_peak(plain->alloc);
    plain->n_op = 0;
    plain->peak_unit = NO_UNIT;
    plain->phase = plain->peak_phase = plain->step == 0 ? PHASE_INIT : PHASE_FORWARD;
    expand_begin(&walk, plain->program, section);
    for (plain->event = 0; placed && expand_next(&walk, &at); plain->event++) {
        if (at.op == INSTR_ALLOC) {
            placed = plain_alloc(plain, &at);
        } else if (at.op == INSTR_FREE) {
            alloc_free(plain->alloc, plain->blocks[at.id]);
            plain->live[at.id] = false;
        } else if (at.op == INSTR_MARK && !(at.flags & INSTR_MARK_END)) {
            plain->phase = (uint8_t)at.id;
        }
    }
    compare_end(plain, &before);
    return placed;
}

static void note_met(const struct placement *placement)
{
    met.placed += !placement->out_of_memory;
    met.ooms += placement->out_of_memory;
    met.ooms_later += placement->out_of_memory && placement->oom_step > 1;
    if (placement->out_of_memory || placement->period == 0)
        return;
    const struct place_step *last = &placement->steps[placement->n_step - 1];
    met.retried += last->stats.retries > 0;
    met.transient += placement->n_step > 3;
    met.longer += placement->period > 1;
}

/* Returns the reserved peak over all passes. */
static uint64_t compare(const struct program *program, const struct alloc_config *config,
                        struct arena *arena, bool *good)
{
    struct placement *placement = arena_array(arena, struct placement, 1);
    place_program(program, config, arena, placement);
    struct plain plain = {
        .program = program,
        .placement = placement,
        .alloc = alloc_new(config, arena),
        .blocks = arena_array(arena, alloc_block, program->n_expanded),
        .live = arena_array(arena, bool, program->n_expanded),
    };
    uint32_t last = placement->n_step + (placement->period > 0 ? EXTRA_STEPS : 0);
    if (placement->out_of_memory)
        last = placement->oom_step;
    uint64_t reserved = 0;

    while (plain.step <= last && plain_step(&plain)) {
        if (alloc_stats(plain.alloc)->peak_reserved > reserved)
            reserved = alloc_stats(plain.alloc)->peak_reserved;
        plain.step++;
    }
    same(&plain, "steps", plain.step, placement->out_of_memory ? last : last + 1);
    if (plain.what[0])
        tap_note("%s: %s", config->expandable ? "expandable" : "caching", plain.what);
    *good = !plain.what[0];
    note_met(placement);
    return reserved;
}

/* Without a limit, then with less and less of what that needed. */
static bool compare_capacities(const struct program *program, bool expandable, struct arena *arena)
{
    static const uint32_t percents[PERCENTS] = {100, 99, 96, 90, 75};
    struct alloc_config config = alloc_config_default();
    bool all_good, good;

    config.expandable = expandable;
    uint64_t reserved = compare(program, &config, arena, &all_good);
    for (uint32_t i = 0; i < PERCENTS; i++) {
        config.capacity_bytes = reserved / 100 * percents[i];
        compare(program, &config, arena, &good);
        all_good = all_good && good;
    }
    return all_good;
}

/* One random program. Sequences are long, so that many tensors are large for the allocator. */
static bool compare_program(uint64_t seed)
{
    uint64_t random = seed;
    struct dims dims = make_random_dims(&random);
    struct plan_options options = make_random_options(&random, &dims);
    struct arena arena;
    struct made made;

    options.seq = UINT64_C(1) << (6 + tap_below(&random, 8));
    make_init_dims(&made, &dims, &options);
    arena_init(&arena);
    bool caching = compare_capacities(&made.program, false, &arena);
    bool expandable = compare_capacities(&made.program, true, &arena);
    arena_release(&arena);
    make_release(&made);
    return caching && expandable;
}

int main(void)
{
    uint64_t seed = tap_seed(20250609);
    uint32_t good = 0;
    for (uint32_t i = 0; i < N_PROGRAM; i++) {
        bool same_as_plain = compare_program(seed + i);
        if (!same_as_plain)
            tap_note("that was UNSHARD_SEED=%" PRIu64, seed + i);
        good += same_as_plain;
    }
    is_int(good, N_PROGRAM, "placement is what a plain walk over the expanded program gives");
    ok(met.placed > N_PROGRAM, "programs were placed (%" PRIu32 ")", met.placed);
    ok(met.ooms > 0, "some did not fit (%" PRIu32 ")", met.ooms);
    ok(met.ooms_later > 0, "some not in a later step (%" PRIu32 ")", met.ooms_later);
    ok(met.retried > 0, "some retry in each step (%" PRIu32 ")", met.retried);
    tap_note("%" PRIu32 " have a transient, %" PRIu32 " a longer period", met.transient,
             met.longer);
    return tap_done();
}
