/*
 * Random plans of FSDP1: each is proved safe, runs, and does so twice alike; the allocator beside the
 * clock changes no time that does not depend on it, and its numbers are sane. Where no memory depends
 * on times they are those of placement.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/simulate.h"
#include "src/verify.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { N_PLAN = 80 };

struct outcome {
    struct step_time time;
    struct placement placement;
    struct engine *engine;
    bool ran;
};

static struct outcome run(struct made *made, const struct prices *prices,
                          const struct alloc_config *config)
{
    struct outcome out = {0};
    struct err err = {0};

    out.ran = simulate_timed(&made->program, prices, config, &made->arena, &out.time,
                             &out.placement, NULL, &out.engine, &err) == STATUS_OK;
    if (!out.ran && !out.placement.out_of_memory)
        tap_note("%s", err.text);
    return out;
}

static bool same_spans(const struct engine *a, const struct engine *b)
{
    uint32_t n, m;
    const struct span *x = engine_spans(a, &n), *y = engine_spans(b, &m);

    return n == m && memcmp(x, y, n * sizeof *x) == 0;
}

static bool is_sane(const struct place_step *step)
{
    const struct alloc_stats *stats = &step->stats;
    uint64_t by_class = 0, by_pool = 0;

    for (int i = 0; i < CLASS_N; i++)
        by_class += stats->peak_by_class[i];
    for (int i = 0; i < ALLOC_MAX_POOLS; i++)
        by_pool += stats->peak_reserved_by_pool[i];
    return by_class == stats->peak_allocated && by_pool == stats->peak_reserved &&
           stats->peak_allocated <= stats->peak_active &&
           stats->peak_active <= stats->peak_reserved && stats->retries == 0;
}

/* What is live when a step is over is what was live before it, once the first is. */
static bool is_steady(const struct placement *placement)
{
    return placement->steps[1].stats.allocated == placement->steps[2].stats.allocated;
}

static bool is_placed(struct made *made, const struct alloc_config *config,
                      const struct placement *timed)
{
    struct placement placed;

    place_program(&made->program, config, &made->arena, &placed);
    return !memcmp(&placed.init.stats, &timed->init.stats, sizeof timed->init.stats) &&
           !memcmp(&placed.steps[2].stats, &timed->steps[2].stats, sizeof timed->steps[2].stats);
}

static void check_plan(uint64_t *state, const struct cluster *cluster)
{
    const struct dims dims = make_random_dims(state);
    const struct plan_options options = make_random_fsdp1(state);
    struct alloc_config config = alloc_config_default();
    struct step_time plain;
    struct engine *clock;
    struct prices prices;
    struct made made;
    struct fault fault;
    struct err err = {0};

    make_init_dims(&made, &dims, &options);
    bool good = ok(verify_program(&made.program, &made.arena, &fault, &err) == STATUS_OK,
                   "proved safe");
    config.expandable = tap_below(state, 2);
    if (cost_price(cluster, SPREAD_MID, &made.program, &made.arena, &prices, &err))
        tap_bail(err.text);
    prices.host_launch_ns = (int64_t)tap_below(state, 200);
    prices.contention_permille = (uint32_t)tap_below(state, 500);
    const struct outcome one = run(&made, &prices, &config), two = run(&made, &prices, &config);
    good &= ok(one.ran && two.ran, "it runs");
    good &= ok(good && same_spans(one.engine, two.engine) &&
                   !memcmp(&one.placement.steps[2].stats, &two.placement.steps[2].stats,
                           sizeof one.placement.steps[2].stats),
               "twice alike");
    if (simulate(&made.program, &prices, NULL, &made.arena, &plain, &clock, &err))
        tap_bail(err.text);
    good &= ok(good && same_spans(one.engine, clock), "as without memory beside it");
    good &= ok(good && is_sane(&one.placement.init) && is_sane(&one.placement.steps[0]) &&
                   is_sane(&one.placement.steps[2]) && is_steady(&one.placement),
               "and its memory is sane");
    if (!program_is_timed(&made.program))
        good &= ok(good && is_placed(&made, &config, &one.placement), "and that of placement");
    if (!good)
        tap_note("%s, strategy %d, %d GPUs, %d nodes, accum %d, ignore %s: %s", options.units,
                 (int)options.fsdp1.strategy, (int)options.gpus, (int)options.nodes,
                 (int)options.accum, options.policy.ignore ? options.policy.ignore : "none",
                 err.text);
    make_release(&made);
}

int main(void)
{
    uint64_t state = tap_seed(20260412);
    struct cluster cluster;
    struct arena arena;
    struct err err = {0};

    arena_init(&arena);
    if (cluster_open("toy", &arena, &cluster, &err))
        tap_bail(err.text);
    for (int i = 0; i < N_PLAN; i++)
        check_plan(&state, &cluster);
    arena_release(&arena);
    return tap_done();
}
