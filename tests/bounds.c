/*
 * Bounds are bounds: never above what is judged of a plan, whatever its units, options and cluster; and near
 * enough to it to be of use.
 */
#include "sim/bounds.h"

#include <inttypes.h>
#include <string.h>

#include "tests/make.h"
#include "tests/tap.h"

enum { N_RANDOM = 250, POINTS = 12 };

struct rig {
    struct made made;
    struct cluster cluster;
    struct space space;
    struct judge *judge, *of_bounds;
    struct bounds *bounds;
    struct judged least;
};

static void rig_open(struct rig *rig, const char *cluster, uint64_t host_percent)
{
    struct err err = {0};

    if (cluster_open(cluster, &rig->made.arena, &rig->cluster, NULL) != STATUS_OK)
        tap_bail("a built-in cluster is not there");
    rig->cluster.max_gpus_per_node = UINT64_MAX;
    for (unsigned i = 0; i < SPREAD_N; i++) {
        rig->cluster.host_launch_s.at[i] *= (double)host_percent / 100;
        rig->cluster.host_all_gather_s.at[i] *= (double)host_percent / 100;
    }
    if (space_init(&rig->made.plan, &rig->made.plan, AXES_ALL, &rig->made.arena, &rig->space,
                   &err) != STATUS_OK)
        tap_bail(err.text);
    rig->judge = judge_new(&rig->cluster, &rig->made.bodies);
    rig->of_bounds = judge_new(&rig->cluster, &rig->made.bodies);
    rig->bounds = bounds_new(&rig->space, rig->of_bounds, BOUNDS_ALL, &rig->made.arena);
    rig->least = bounds_of_space(rig->bounds);
}

static void rig_close(struct rig *rig)
{
    judge_free(rig->judge);
    judge_free(rig->of_bounds);
    make_release(&rig->made);
}

/* A walk of some moves from a seed. */
static void draw_point(uint64_t *state, const struct space *space, struct arena *arena,
                       uint8_t *point)
{
    uint8_t *points;
    uint32_t n = space_seeds(space, arena, &points);

    for (uint64_t moves = tap_below(state, 6) + 1; moves > 0; moves--) {
        memcpy(point, points + tap_below(state, n) * space->point_bytes, space->point_bytes);
        n = space_neighbours(space, point, arena, &points);
    }
}

/* Of the points since it was cleared: what is known of them, as shares of what they are. */
static struct {
    double time, bytes, least_time;
    unsigned n;
} known;

static struct judged judge_point(struct rig *rig, const uint8_t *point)
{
    struct judged judged;
    struct plan plan;
    struct err err = {0};

    arena_reset(judge_arena(rig->judge));
    space_plan(&rig->space, point, judge_arena(rig->judge), &plan);
    if (judge_plan(rig->judge, &plan, &judged, &err) != STATUS_OK)
        tap_bail(err.text);
    return judged;
}

static void compare(struct rig *rig, const uint8_t *point, const char *what)
{
    const struct judged is = judge_point(rig, point), least = bounds_of(rig->bounds, point);
    const double share = (double)least.step_ns / (double)is.step_ns;

    ok(least.step_ns <= is.step_ns && rig->least.step_ns <= is.step_ns,
       "%s: %" PRIi64 " ns is not below %" PRIi64 ", nor %" PRIi64, what, is.step_ns, least.step_ns,
       rig->least.step_ns);
    ok(least.peak_bytes <= is.peak_bytes && rig->least.peak_bytes <= is.peak_bytes,
       "%s: %" PRIu64 " bytes are not below %" PRIu64 ", nor %" PRIu64, what, is.peak_bytes,
       least.peak_bytes, rig->least.peak_bytes);
    known.least_time = known.n == 0 || share < known.least_time ? share : known.least_time;
    known.time += share;
    known.bytes += (double)least.peak_bytes / (double)is.peak_bytes;
    known.n++;
}

static void test_random(uint64_t seed)
{
    static const char *const clusters[] = {"toy", "h100-sxm", "a100-sxm-80g"};
    static const uint64_t percents[] = {0, 10, 100};

    for (unsigned i = 0; i < N_RANDOM; i++) {
        uint64_t state = seed + i;
        struct dims dims = make_random_dims(&state);
        struct plan_options options = make_random_options(&state, &dims);
        const char *family = "llama";
        uint8_t point[128];
        struct rig rig;

        if (tap_below(&state, 4) == 0)
            family = make_random_tied(&state, &dims, &options);
        options.units = options.ac == AC_NONE && tap_below(&state, 2) ? "half" : "piece";
        options.no_reshard = options.no_unshard_backward = options.host_sync = NULL;
        options.policy.second_mesh = NULL;
        options.policy.param = DTYPE_BF16;
        options.scaler = options.linear_fp8 = false;
        options.output_dtype = DTYPE_N;
        make_init_family(&rig.made, family, &dims, &options);
        rig_open(&rig, clusters[tap_below(&state, 3)], percents[tap_below(&state, 3)]);
        for (unsigned p = 0; p < POINTS; p++) {
            draw_point(&state, &rig.space, &rig.made.arena, point);
            compare(&rig, point,
                    arena_printf(&rig.made.arena, "seed %" PRIu64 ", point %u", seed + i, p));
        }
        rig_close(&rig);
    }
}

/* Where compute is most of a step, most of it is known before anything is simulated. */
static void test_models(uint64_t seed)
{
    static const struct {
        const char *model;
        uint64_t layers, gpus;
        enum checkpointing ac;
        double near;
    } cases[] = {
        {"llama3-8b", 0, 8, AC_NONE, 0.95},
        {"llama3-70b", 20, 64, AC_FULL, 0.95},
        {"llama3-8b", 8, 512, AC_OP, 0.9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        uint64_t state = seed + i;
        uint8_t point[128];
        struct rig rig;
        options.units = "piece";
        options.gpus = cases[i].gpus;
        options.ac = cases[i].ac;
        make_init(&rig.made, cases[i].model, cases[i].layers, &options);
        rig_open(&rig, "h100-sxm", 100);
        memset(&known, 0, sizeof known);
        for (unsigned p = 0; p < POINTS; p++) {
            draw_point(&state, &rig.space, &rig.made.arena, point);
            compare(&rig, point, arena_printf(&rig.made.arena, "%s, point %u", cases[i].model, p));
        }
        ok(known.time / known.n > cases[i].near, "%s on %u: %.3f of the time, %.3f at least",
           cases[i].model, (unsigned)cases[i].gpus, known.time / known.n, known.least_time);
        ok(known.bytes / known.n > 0.4, "%s: %.3f of the bytes", cases[i].model,
           known.bytes / known.n);
        rig_close(&rig);
    }
}

int main(void)
{
    const uint64_t seed = tap_seed(5);
    test_random(seed);
    test_models(seed);
    return tap_done();
}
