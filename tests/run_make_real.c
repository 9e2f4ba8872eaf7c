/*
 * What only a run of kind real has, in runs for tests; see run_make.h.
 */
#include <math.h>
#include <string.h>

#include "tests/run_make.h"
#include "tests/tap.h"

static const char *some_error(uint64_t *random)
{
    static const char *const errors[] = {NULL, "", "rank 1 hangs in 'all_gather x'", "two\nlines"};
    return errors[tap_below(random, sizeof(errors) / sizeof(errors[0]))];
}

static double some_loss(uint64_t *random)
{
    switch (tap_below(random, 4)) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    default:
        return ldexp((double)tap_random(random), -(int)tap_below(random, 80));
    }
}

static void make_ranks(struct run_real *real, struct arena *arena, uint64_t *random)
{
    static const char *const names[] = {NULL, "forward root", "all_gather layers.0"};
    real->n_rank = 1 + (uint32_t)tap_below(random, 4);
    real->ranks = arena_array(arena, struct run_rank, real->n_rank);
    for (uint32_t i = 0; i < real->n_rank; i++) {
        real->ranks[i] = (struct run_rank){
            .error = some_error(random), .step = tap_random(random) >> (1 + tap_below(random, 63))};
        for (int s = 0; s < STREAM_N; s++)
            real->ranks[i].last_task[s] = names[tap_below(random, 3)];
    }
}

void run_make_real(struct run_real *real, struct arena *arena, uint64_t *random)
{
    *real = (struct run_real){
        .device = tap_below(random, 2) ? "host" : "",
        .transport = tap_below(random, 2) ? "shm" : "none",
        .seed = tap_random(random) >> (1 + tap_below(random, 63)),
        .warmup = tap_below(random, 3),
        .error = some_error(random),
        .n_step = (uint32_t)tap_below(random, 6),
        .n_check = (uint32_t)tap_below(random, 6),
    };
    real->steps = arena_array(arena, struct run_step, real->n_step);
    for (uint32_t i = 0; i < real->n_step; i++)
        real->steps[i] = (struct run_step){
            .step_ns = tap_below(random, 3) ? (int64_t)(tap_random(random) >> 1) : 0,
            .loss = some_loss(random),
            .not_finite = tap_below(random, 2) ? tap_random(random) >> 1 : 0,
            .skipped = tap_below(random, 2),
        };
    make_ranks(real, arena, random);
    real->checks = arena_array(arena, struct run_check, real->n_check);
    for (uint32_t i = 0; i < real->n_check; i++)
        real->checks[i] = (struct run_check){
            .rank = tap_below(random, real->n_rank),
            .step = tap_below(random, 8),
            .reserved_bytes = tap_random(random) >> 1,
            .mapped_bytes = tap_random(random) >> 1,
        };
}

/*
 * Times on the streams; the window is 0 to 440:
 *
 *        -30   0  30  60  90     190 210 220     280      370  390 400   440
 *   AG    |=== root ===|    |= l.0 =|
 *   C                |=== root forward ===| |==== layers.0 ====|     |= opt. =|
 *   RS                                              |=== reduce ===|
 *
 * Exposed: 0 .. 30 and 370 .. 390.
 */
static void measure_by_hand(struct run *run)
{
    static const int64_t times_ns[][4] = {
        {-40, -33, -30, 60}, {-33, 12, 30, 210},   {12, 19, 90, 190},
        {19, 100, 220, 370}, {100, 107, 280, 390}, {107, 112, 400, 440},
    };
    static struct run_task tasks[sizeof(times_ns) / sizeof(times_ns[0])];
    for (uint32_t i = 0; i < run->n_task; i++) {
        tasks[i] = run->tasks[i];
        tasks[i].launch_ns = times_ns[i][0];
        tasks[i].launched_ns = times_ns[i][1];
        tasks[i].start_ns = times_ns[i][2];
        tasks[i].end_ns = times_ns[i][3];
    }
    run->tasks = tasks;
    run->metrics[RUN_METRIC_STEP_LOW] = 430;
    run->metrics[RUN_METRIC_STEP] = 440;
    run->metrics[RUN_METRIC_STEP_HIGH] = 470;
    run->metrics[RUN_METRIC_COMPUTE] = 370;
    run->metrics[RUN_METRIC_COMM] = 270;
    run->metrics[RUN_METRIC_EXPOSED_COMM] = 50;
    run->metrics[RUN_METRIC_CONTENTION] = RUN_NO_METRIC;
    run->metrics[RUN_METRIC_TOKENS_PER_S_PER_GPU] = 2273;
    run->metrics[RUN_METRIC_PEAK_RESERVED] = 2048;
}

void run_by_hand_real(struct run *run)
{
    static struct run_step steps[] = {
        {0, 6.5, 0, false}, {470, 6.25, 0, false}, {430, NAN, 3, true}, {440, 6.125, 0, false}};
    static struct run_rank ranks[] = {
        {NULL,
         {[STREAM_C] = "optimizer",
          [STREAM_AG] = "all_gather layers.0",
          [STREAM_RS] = "reduce_scatter layers.0"},
         4},
        {NULL, {[STREAM_C] = "optimizer"}, 4},
    };
    static struct run_check checks[] = {{0, 1, 1024, 1024}, {1, 1, 1024, 1024}};
    run_by_hand(run);
    run->kind = RUN_REAL;
    run->command = "unshard run tiny --ranks 2";
    run->plan_json = "{\"units\":\"block\",\"ranks\":2}";
    run->cluster = "host";
    run->cluster_json = "{\"name\":\"host\"}";
    measure_by_hand(run);
    run->real = (struct run_real){.device = "host",
                                  .transport = "shm",
                                  .seed = 7,
                                  .warmup = 1,
                                  .steps = steps,
                                  .ranks = ranks,
                                  .checks = checks,
                                  .n_step = 4,
                                  .n_rank = 2,
                                  .n_check = 2};
}

void run_by_hand_failed(struct run *run)
{
    static struct run_rank ranks[] = {
        {"hangs: no step ended in 5 s", {[STREAM_C] = "forward root"}, 1},
        {"ended by signal 9", {NULL}, 0},
    };
    run_by_hand_real(run);
    for (int i = 0; i < RUN_METRIC_N; i++) {
        if (i <= RUN_METRIC_HFU)
            run->metrics[i] = RUN_NO_METRIC;
    }
    run->n_task = run->n_sample = 0;
    run->real.error = "rank 1 was ended by signal 9";
    run->real.ranks = ranks;
    run->real.n_step = run->real.n_check = 0;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_rank(const struct run_rank *a, const struct run_rank *b)
{
    bool same = a->step == b->step && same_text(a->error, b->error);
    for (int s = 0; s < STREAM_N; s++)
        same = same && same_text(a->last_task[s], b->last_task[s]);
    return same;
}

static bool same_step(const struct run_step *a, const struct run_step *b)
{
    return a->step_ns == b->step_ns && a->not_finite == b->not_finite && a->skipped == b->skipped &&
           (isnan(a->loss) ? isnan(b->loss) : a->loss == b->loss);
}

const char *run_real_difference(const struct run_real *a, const struct run_real *b)
{
    if (!same_text(a->device, b->device) || !same_text(a->transport, b->transport) ||
        a->seed != b->seed || a->warmup != b->warmup)
        return "what a real run ran on";
    if (!same_text(a->error, b->error))
        return "how a real run ended";
    if (a->n_step != b->n_step || a->n_rank != b->n_rank || a->n_check != b->n_check)
        return "how many steps, ranks and checks there are";
    for (uint32_t i = 0; i < a->n_step; i++) {
        if (!same_step(&a->steps[i], &b->steps[i]))
            return "a step";
    }
    for (uint32_t i = 0; i < a->n_rank; i++) {
        if (!same_rank(&a->ranks[i], &b->ranks[i]))
            return "a rank";
    }
    if (a->n_check > 0 && memcmp(a->checks, b->checks, sizeof(a->checks[0]) * a->n_check))
        return "a check";
    return NULL;
}
