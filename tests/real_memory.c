/*
 * Memory of a run: at its five marked points the bytes that the program's segment operations reserve
 * are those that the system has mapped, on every rank, for random plans and both allocators; and a
 * deliberate error in the account is found.
 */
#include "src/arch/arch.h"
#include "tests/make.h"
#include "tests/real_rig.h"
#include "tests/tap.h"

enum { PLANS = 40, STEPS = 4, MOST_RANKS = 4 };

/* Of an expandable segment's addresses; memory is taken as it is mapped. */
static const uint64_t CAPACITY_BYTES = UINT64_C(4) << 30;

struct counts {
    uint32_t n_failed, n_check, n_differ, n_short;
};

/* Of profile native, which can be run, and of few ranks. */
static void make_random(uint64_t *state, struct made *made)
{
    struct plan_options options;
    struct dims dims;
    const char *family;

    do {
        family = make_random_tied(state, &dims, &options);
        if (family[0] == 'l' && tap_below(state, 2)) {
            dims = make_random_dims(state);
            options = make_random_options(state, &dims);
        }
    } while (options.ops != OPS_NATIVE || options.gpus > MOST_RANKS);
    make_init_family(made, family, &dims, &options);
}

static void count_checks(const struct run_log *log, struct counts *counts)
{
    for (uint32_t r = 0; r < log->ranks; r++) {
        counts->n_short += log->rank[r].n_check != MEMORY_CHECKS;
        for (uint32_t i = 0; i < log->rank[r].n_check; i++) {
            const struct memory_check *check = &log->rank[r].checks[i];
            counts->n_differ += check->reserved_bytes != check->mapped_bytes;
            counts->n_check++;
        }
    }
}

static void run_random(uint64_t *state, bool expandable, int64_t bias_bytes, struct counts *counts)
{
    struct alloc_config config = alloc_config_default();
    struct made made;
    struct placement placement;
    struct real_numbers got;
    struct err err = {0};

    make_random(state, &made);
    config.expandable = expandable;
    config.capacity_bytes = CAPACITY_BYTES;
    place_program(&made.program, &config, &made.arena, &placement);
    const struct real_ask ask = {
        .program = &made.program,
        .placement = &placement,
        .steps = STEPS,
        .seeded = true,
        .max_norm = 1,
        .optimizer = {.adamw = made.plan.options.optimizer == OPTIMIZER_ADAMW,
                      .lr = 1e-3,
                      .eps = 1e-8},
        .alloc_bias_bytes = bias_bytes};
    if (real_run(&ask, &got, &err) != STATUS_OK) {
        tap_note("%s, %u ranks: %s", made.model.arch->name, (unsigned)made.plan.world, err.text);
        counts->n_failed++;
    }
    count_checks(got.log, counts);
    real_release(&got);
    make_release(&made);
}

static void check_allocator(const char *name, bool expandable, uint64_t seed)
{
    uint64_t state = seed + expandable;
    struct counts counts = {0};

    for (int i = 0; i < PLANS / 2; i++)
        run_random(&state, expandable, 0, &counts);
    is_int(counts.n_failed, 0, "%s: random plans run", name);
    is_int(counts.n_short, 0, "%s: each rank looks at five points", name);
    is_int(counts.n_differ, 0, "%s: what is reserved is mapped", name);
    tap_note("%u looks", counts.n_check);
}

static void check_bias(uint64_t seed)
{
    struct counts counts = {0};

    run_random(&seed, false, 1, &counts);
    run_random(&seed, true, 4096, &counts);
    ok(counts.n_check > 0, "with an error in the account runs still end");
    is_int(counts.n_differ, counts.n_check, "and each look finds it");
}

int main(void)
{
    const uint64_t seed = tap_seed(20261130);

    check_allocator("caching", false, seed);
    check_allocator("expandable", true, seed);
    check_bias(seed);
    return tap_done();
}
