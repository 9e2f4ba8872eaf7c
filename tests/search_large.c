/*
 * Where a space is too large to be gone through a search is still within 1 % of the best plan, and the
 * gap that it reports is not smaller than the true one: against the best of all plans, which were gone
 * through once and are written down here.
 *
 * The cluster repeats all rates of its preset (search_large.json), so that new ones make nothing of it
 * wrong.
 * Where prices or programs change all the same the usual plan's numbers say so; UNSHARD_EXHAUSTIVE=1
 * goes through all plans again, which takes some minutes, and says what has to be written here.
 */
#include "sim/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/judge_pool.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { MAX_LIMITS = 4, BATCH = 4096, MAX_POINT = 64 };

/* What is true of all plans. */
struct record {
    uint64_t n_plan;
    struct judged usual; /* torchtitan's units */
    struct best {        /* a limit of requested bytes, and the fastest step within it */
        uint64_t limit_bytes;
        int64_t step_ns;
    } best[MAX_LIMITS];
};
static const struct record of_reshard = {4251528,
                                         {245284353, 21871348192},
                                         {{23425000000, 242491758},
                                          {26535000000, 238063429},
                                          {27312000000, 236794286},
                                          {UINT64_MAX, 233676480}}};
static const struct record of_tail = {786432,
                                      {518927206, 37301052748},
                                      {{37400000000, 515976705},
                                       {38000000000, 515971790},
                                       {39000000000, 514945254},
                                       {UINT64_MAX, 514915178}}};
static const struct record of_prefetch = {147456,
                                          {635177014, 10859581736},
                                          {{11000000000, 635177014},
                                           {21400000000, 631319631},
                                           {34500000000, 629344547},
                                           {UINT64_MAX, 629329619}}};

static const struct large {
    const char *model;
    uint64_t layers, gpus, batch, seq;
    enum checkpointing ac;
    enum axis axis; /* beside grouping */
    const struct record *record;
} cases[] = {
    {"llama3-8b", 13, 8, 1, 4096, AC_NONE, AXIS_RESHARD, &of_reshard},
    {"llama3-8b", 16, 64, 2, 4096, AC_NONE, AXIS_TAIL, &of_tail},
    {"llama3-70b", 15, 256, 1, 2048, AC_FULL, AXIS_PREFETCH, &of_prefetch},
};

struct rig {
    struct made made;
    struct cluster cluster;
    struct space space;
};

static void rig_open(struct rig *rig, const struct large *c)
{
    struct plan_options options = plan_options_default();
    const char *top = getenv("top_srcdir");
    struct plan start;
    struct err err = {0};

    options.gpus = c->gpus;
    options.batch = c->batch;
    options.seq = c->seq;
    options.ac = c->ac;
    options.units = "piece";
    make_init(&rig->made, c->model, c->layers, &options);
    options.units = "torchtitan";
    const char *path =
        arena_printf(&rig->made.arena, "%s/tests/search_large.json", top ? top : ".");
    if (plan_resolve(&rig->made.model, &options, &rig->made.arena, &start, &err) != STATUS_OK ||
        cluster_open(path, &rig->made.arena, &rig->cluster, &err) != STATUS_OK ||
        space_init(&rig->made.plan, &start, 1u << AXIS_GROUPING | 1u << c->axis, &rig->made.arena,
                   &rig->space, &err) != STATUS_OK)
        tap_bail(err.text);
}

/* Up to a batch of points from this one on; false where these are the last. */
static bool next_points(const struct space *space, uint8_t *point, uint8_t points[BATCH][MAX_POINT],
                        uint32_t *n)
{
    bool more = true;

    for (*n = 0; *n < BATCH && more; ++*n) {
        memcpy(points[*n], point, space->point_bytes);
        more = space_next(space, point);
    }
    return more;
}

/* All plans, without a search. */
static void go_through(const struct rig *rig, struct best best[MAX_LIMITS])
{
    static uint8_t points[BATCH][MAX_POINT];
    static const uint8_t *at[BATCH];
    static struct judged judged[BATCH];
    struct judge_pool *pool = judge_pool_new(&rig->space, &rig->cluster, &rig->made.bodies, 2);
    uint8_t point[MAX_POINT];
    bool more = true;
    uint32_t n;

    for (uint32_t i = 0; i < BATCH; i++)
        at[i] = points[i];
    space_first(&rig->space, point);
    while (more) {
        more = next_points(&rig->space, point, points, &n);
        judge_pool_run(pool, OBJECTIVE_EVENTS, at, n, judged);
        for (uint32_t i = 0; i < n; i++)
            for (unsigned l = 0; l < MAX_LIMITS; l++)
                if (judged[i].peak_bytes <= best[l].limit_bytes &&
                    judged[i].step_ns < best[l].step_ns)
                    best[l].step_ns = judged[i].step_ns;
    }
    judge_pool_free(pool);
}

static void test_recorded(const struct rig *rig, const struct large *c)
{
    struct best best[MAX_LIMITS];

    for (unsigned l = 0; l < MAX_LIMITS; l++)
        best[l] = (struct best){c->record->best[l].limit_bytes, INT64_MAX};
    go_through(rig, best);
    for (unsigned l = 0; l < MAX_LIMITS; l++)
        is_int(best[l].step_ns, c->record->best[l].step_ns,
               "%s: the fastest of all within %" PRIu64, c->model, best[l].limit_bytes);
}

static void test_usual(const struct rig *rig, const struct large *c)
{
    struct judge_pool *pool = judge_pool_new(&rig->space, &rig->cluster, &rig->made.bodies, 1);
    const uint8_t *start = rig->space.start;
    struct judged judged;

    judge_pool_run(pool, OBJECTIVE_EVENTS, &start, 1, &judged);
    ok(judged.step_ns == c->record->usual.step_ns &&
           judged.peak_bytes == c->record->usual.peak_bytes,
       "%s: prices are those of the record: %" PRIi64 " ns, %" PRIu64 " bytes", c->model,
       judged.step_ns, judged.peak_bytes);
    judge_pool_free(pool);
}

static void test_limit(struct rig *rig, const char *model, const struct best *best)
{
    struct search_options options = search_options_default();
    struct search_result result;
    struct err err = {0};

    options.exact_points = 1;
    options.limit_bytes = best->limit_bytes;
    if (search_run(&rig->space, &rig->cluster, &rig->made.bodies, &options, &rig->made.arena,
                   &result, &err) != STATUS_OK)
        tap_bail(err.text);
    const struct judged *found = &result.found[0].judged;
    const double gap = (double)(found->step_ns - best->step_ns) / (double)best->step_ns;
    ok(!result.whole && found->peak_bytes <= best->limit_bytes && gap >= 0 && gap <= 0.01,
       "%s within %" PRIu64 " bytes: %.3f %% above the best, of %" PRIu64 " plans", model,
       best->limit_bytes, 100 * gap, result.progress.judged);
    ok(result.least.step_ns > 0 && result.least.step_ns <= best->step_ns,
       "and the gap that is reported, up to %.1f %%, has room for it",
       100 * ((double)found->step_ns / (double)result.least.step_ns - 1));
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct large *c = &cases[i];
        struct rig rig;

        rig_open(&rig, c);
        is_int((int64_t)space_size(&rig.space), (int64_t)c->record->n_plan, "%s: so many plans",
               c->model);
        test_usual(&rig, c);
        if (getenv("UNSHARD_EXHAUSTIVE"))
            test_recorded(&rig, c);
        for (unsigned l = 0; l < MAX_LIMITS; l++)
            test_limit(&rig, c->model, &c->record->best[l]);
        make_release(&rig.made);
    }
    return tap_done();
}
