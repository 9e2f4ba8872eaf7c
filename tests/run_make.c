/*
 * Making and comparing runs; see run_make.h. Knows no database and no trace.
 */
#include "tests/run_make.h"

#include <inttypes.h>
#include <string.h>

#include "src/plan.h"
#include "tests/tap.h"

/* Small, large, or at the very end of what a signed number holds. */
static uint64_t some_size(uint64_t *random)
{
    switch (tap_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return INT64_MAX;
    default:
        return tap_random(random) >> (1 + tap_below(random, 60));
    }
}

static const char *some_text(struct arena *arena, uint64_t *random)
{
    static const char *const texts[] = {
        "", "block 'one'", "sim \"x\" --units=a,b", "\xc3\xa9t\xc3\xa9", "line\nline", "%s;--"};
    if (tap_below(random, 2))
        return texts[tap_below(random, sizeof(texts) / sizeof(texts[0]))];
    return arena_printf(arena, "text %" PRIu64, tap_below(random, 50));
}

static const char *some_json(struct arena *arena, uint64_t *random)
{
    return arena_printf(arena, "{\"a\":%" PRIu64 ",\"b\":[]}", tap_below(random, 4));
}

static uint16_t some_unit(uint64_t *random, uint32_t n_unit)
{
    const uint64_t unit = tap_below(random, n_unit + 1);
    return unit == n_unit ? NO_UNIT : (uint16_t)unit;
}

static void make_units(struct run *run, struct arena *arena, uint64_t *random, uint32_t n)
{
    run->n_unit = n;
    run->units = arena_array(arena, struct run_unit, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t n_param = (uint32_t)tap_below(random, 4);
        const char **params = arena_array(arena, const char *, n_param);
        for (uint32_t p = 0; p < n_param; p++)
            params[p] = some_text(arena, random);
        run->units[i] = (struct run_unit){
            .name = some_text(arena, random),
            .elements = some_size(random),
            .padded_elements = some_size(random),
            .shard_elements = some_size(random),
            .reshard_after_forward = tap_below(random, 2),
            .params = params,
            .n_param = n_param,
        };
    }
}

/* One that the run has; all runs have the first. */
static uint8_t some_comm(const struct run *run, uint64_t *random)
{
    const uint8_t comm = (uint8_t)tap_below(random, COMM_N);
    return run->comm_ranks[comm] > 0 ? comm : COMM_SHARD;
}

static void make_tasks(struct run *run, struct arena *arena, uint64_t *random, uint32_t n)
{
    int64_t stream_ns[STREAM_N] = {-1000, -1000, -1000, -1000, -1000}, host_ns = -5000;
    run->n_task = n;
    run->tasks = arena_array(arena, struct run_task, n);
    for (uint32_t i = 0; i < n; i++) {
        struct run_task *task = &run->tasks[i];
        task->kind = (uint8_t)tap_below(random, TASK_KIND_N);
        task->unit = some_unit(random, run->n_unit);
        task->name = arena_printf(arena, "%s %u", task_kind_name(task->kind), task->unit);
        task->stream = (uint8_t)tap_below(random, STREAM_N);
        task->dtype = (uint8_t)tap_below(random, DTYPE_N);
        task->phase = (uint8_t)tap_below(random, PHASE_N);
        task->comm = task_kind_is_collective(task->kind) ? some_comm(run, random) : COMM_NONE;
        task->reduction = (uint8_t)tap_below(random, REDUCTION_N);
        task->microbatch = some_unit(random, 3);
        task->kernels = (uint32_t)tap_below(random, (uint64_t)UINT32_MAX + 1);
        task->elements = some_size(random);
        task->launch_ns = host_ns;
        task->launched_ns = host_ns += (int64_t)tap_below(random, 100);
        task->start_ns = stream_ns[task->stream] += (int64_t)tap_below(random, 200);
        task->end_ns = stream_ns[task->stream] += (int64_t)tap_below(random, 300);
    }
}

static void make_samples(struct run *run, struct arena *arena, uint64_t *random, uint32_t n)
{
    int64_t at_ns = -100;
    run->n_sample = n;
    run->samples = arena_array(arena, struct run_sample, n);
    for (uint32_t i = 0; i < n; i++) {
        struct run_sample *sample = &run->samples[i];
        sample->at_ns = at_ns += (int64_t)tap_below(random, 1000);
        for (int c = 0; c < CLASS_N; c++) {
            sample->by_class[c] = tap_random(random) >> (8 + tap_below(random, 56));
            sample->allocated += sample->by_class[c];
        }
        sample->reserved = some_size(random);
    }
}

static void make_collectives(struct run *run, struct arena *arena, uint64_t *random)
{
    run->n_collective = (uint32_t)tap_below(random, 5);
    run->collectives = arena_array(arena, struct run_collective, run->n_collective);
    for (uint32_t i = 0; i < run->n_collective; i++)
        run->collectives[i] = (struct run_collective){
            .kind = (uint8_t)tap_below(random, TASK_KIND_N),
            .comm = some_comm(run, random),
            .dtype = (uint8_t)tap_below(random, DTYPE_N),
            .reduction = (uint8_t)tap_below(random, REDUCTION_N),
            .elements = some_size(random),
            .bytes = some_size(random),
            .count = (uint32_t)tap_random(random),
        };
}

void run_make(struct run *run, struct arena *arena, uint64_t *random, uint32_t n_task,
              uint32_t n_unit)
{
    *run = (struct run){
        .kind = (enum run_kind)tap_below(random, RUN_KIND_N),
        .tool_version = some_text(arena, random),
        .environment = some_text(arena, random),
        .command = some_text(arena, random),
        .model = some_text(arena, random),
        .model_json = some_json(arena, random),
        .plan_json = some_json(arena, random),
        .cluster = some_text(arena, random),
        .cluster_json = some_json(arena, random),
        .program_hash = tap_random(random),
        .placement_hash = tap_random(random) >> tap_below(random, 64),
        .world = some_size(random),
        .gpus_per_node = some_size(random),
        .parameters = some_size(random),
        .group = some_size(random),
        .peak_phase = (uint8_t)tap_below(random, PHASE_N),
    };
    for (int i = 0; i < RUN_METRIC_N; i++)
        run->metrics[i] = tap_below(random, 4) ? (int64_t)tap_random(random) : RUN_NO_METRIC;
    for (int c = 0; c < CLASS_N; c++)
        run->peak_by_class[c] = some_size(random);
    run->comm_ranks[COMM_SHARD] = 1 + some_size(random) / 2;
    for (int i = COMM_SHARD + 1; i < COMM_N; i++)
        run->comm_ranks[i] = tap_below(random, 2) ? 1 + some_size(random) / 2 : 0;
    make_units(run, arena, random, (uint32_t)tap_below(random, n_unit + 1));
    run->peak_unit = some_unit(random, run->n_unit);
    make_tasks(run, arena, random, (uint32_t)tap_below(random, n_task + 1));
    make_samples(run, arena, random, (uint32_t)tap_below(random, n_task + 1));
    make_collectives(run, arena, random);
    if (run_kind_has_run(run->kind))
        run_make_real(&run->real, arena, random);
    if (run->real.error)
        run->n_task = (uint32_t)tap_below(random, 2) * run->n_task;
}

/*
 * Times on the streams; the window is 0 to 400:
 *
 *        -20   0  20  50  80 100   130      200     250 270  300   350 360   400
 *   AG    |=== root ===|      |==== layers.0 ====|
 *   C                |==== root forward ===|        |== layers.0 ==|      |= optimizer =|
 *   RS                                                      |==== reduce ====|
 *
 * all_gather root     -20 .. 50   counted 50 (from 0 on), hidden 20 .. 50: 30, exposed 20
 * all_gather layers.0  80 .. 200  counted 120, hidden 80 .. 160: 80, exposed 40
 * reduce_scatter      270 .. 350  counted 80, hidden 270 .. 340: 70, exposed 10
 */
void run_by_hand(struct run *run)
{
    static const char *const root_params[] = {"embed.weight", "head.weight"};
    static const char *const layer_params[] = {"layers.0.w"};
    static struct run_unit units[] = {
        {"root", 2000, 2048, 1024, true, root_params, 2},
        {"layers.0", 999, 1000, 500, false, layer_params, 1},
    };
    static struct run_task tasks[] = {
        {"all_gather root", TASK_ALL_GATHER, STREAM_AG, DTYPE_BF16, PHASE_FORWARD, COMM_SHARD,
         REDUCE_NONE, 0, 0, 1, 2048, -30, -25, -20, 50},
        {"forward root", TASK_FORWARD, STREAM_C, DTYPE_BF16, PHASE_FORWARD, COMM_NONE, REDUCE_NONE,
         0, 0, 7, 640, -25, 10, 20, 160},
        {"all_gather layers.0", TASK_ALL_GATHER, STREAM_AG, DTYPE_BF16, PHASE_FORWARD, COMM_SHARD,
         REDUCE_NONE, 1, 0, 1, 1000, 10, 15, 80, 200},
        {"backward layers.0", TASK_BACKWARD, STREAM_C, DTYPE_BF16, PHASE_BACKWARD, COMM_NONE,
         REDUCE_NONE, 1, 0, 9, 640, 15, 90, 210, 340},
        {"reduce_scatter layers.0", TASK_REDUCE_SCATTER, STREAM_RS, DTYPE_FP32, PHASE_BACKWARD,
         COMM_SHARD, REDUCE_AVG, 1, 0, 1, 1000, 90, 95, 270, 350},
        {"optimizer", TASK_OPTIMIZER, STREAM_C, DTYPE_FP32, PHASE_OPTIMIZER, COMM_NONE, REDUCE_NONE,
         NO_UNIT, NO_UNIT, 2, 1524, 95, 99, 360, 400},
    };
    static struct run_sample samples[] = {
        {0, 700, 1024, {[CLASS_SHARDED_PARAM] = 500, [CLASS_OPTIMIZER] = 200}},
        {100,
         900,
         1024,
         {[CLASS_SHARDED_PARAM] = 500, [CLASS_OPTIMIZER] = 200, [CLASS_ACTIVATION] = 200}},
    };
    static struct run_collective collectives[] = {
        {TASK_ALL_GATHER, COMM_SHARD, DTYPE_BF16, REDUCE_NONE, 2048, 4096, 1},
        {TASK_ALL_GATHER, COMM_SHARD, DTYPE_BF16, REDUCE_NONE, 1000, 2000, 1},
        {TASK_REDUCE_SCATTER, COMM_SHARD, DTYPE_FP32, REDUCE_AVG, 1000, 4000, 1},
    };
    *run = (struct run){
        .kind = RUN_SIM,
        .tool_version = "1.2.3",
        .environment = "{}",
        .command = "unshard sim tiny --gpus 2",
        .model = "tiny",
        .model_json = "{\"layers\":1}",
        .plan_json = "{\"units\":\"block\"}",
        .cluster = "toy",
        .cluster_json = "{\"name\":\"toy\"}",
        .program_hash = 0xfedcba9876543210,
        .placement_hash = 0x0123456789abcdef,
        .world = 2,
        .gpus_per_node = 2,
        .parameters = 2999,
        .comm_ranks = {[COMM_SHARD] = 2},
        .metrics = {[RUN_METRIC_STEP_LOW] = 390,
                    [RUN_METRIC_STEP] = 400,
                    [RUN_METRIC_STEP_HIGH] = 420,
                    [RUN_METRIC_COMPUTE] = 310,
                    [RUN_METRIC_COMM] = 250,
                    [RUN_METRIC_EXPOSED_COMM] = 70,
                    [RUN_METRIC_CONTENTION] = 0,
                    [RUN_METRIC_RETRY] = RUN_NO_METRIC,
                    [RUN_METRIC_TOKENS_PER_S_PER_GPU] = 2500,
                    [RUN_METRIC_MFU] = RUN_NO_METRIC,
                    [RUN_METRIC_HFU] = RUN_NO_METRIC,
                    [RUN_METRIC_PEAK_ALLOCATED] = 900,
                    [RUN_METRIC_PEAK_ACTIVE] = 900,
                    [RUN_METRIC_PEAK_RESERVED] = 1024,
                    [RUN_METRIC_FIRST_PEAK_ALLOCATED] = 900,
                    [RUN_METRIC_FIRST_PEAK_RESERVED] = 1024,
                    [RUN_METRIC_INIT_PEAK] = 500,
                    [RUN_METRIC_MEMORY_LIMIT] = 4096,
                    [RUN_METRIC_FITS] = 1,
                    [RUN_METRIC_WITHHELD] = RUN_NO_METRIC},
        .peak_phase = PHASE_BACKWARD,
        .peak_unit = 1,
        .peak_by_class =
            {[CLASS_SHARDED_PARAM] = 500, [CLASS_OPTIMIZER] = 200, [CLASS_ACTIVATION] = 200},
        .units = units,
        .tasks = tasks,
        .samples = samples,
        .collectives = collectives,
        .n_unit = 2,
        .n_task = 6,
        .n_sample = 2,
        .n_collective = 3,
    };
}

static const char *unit_difference(const struct run_unit *a, const struct run_unit *b)
{
    if (strcmp(a->name, b->name))
        return "a unit's name";
    if (a->elements != b->elements || a->padded_elements != b->padded_elements ||
        a->shard_elements != b->shard_elements ||
        a->reshard_after_forward != b->reshard_after_forward)
        return "a unit's sizes";
    if (a->n_param != b->n_param)
        return "how many parameters a unit has";
    for (uint32_t i = 0; i < a->n_param; i++) {
        if (strcmp(a->params[i], b->params[i]))
            return "a parameter's name";
    }
    return NULL;
}

static const char *task_difference(const struct run_task *a, const struct run_task *b)
{
    if (strcmp(a->name, b->name))
        return "a task's name";
    if (a->kind != b->kind || a->stream != b->stream || a->dtype != b->dtype ||
        a->phase != b->phase || a->comm != b->comm || a->reduction != b->reduction)
        return "what a task is";
    if (a->unit != b->unit || a->microbatch != b->microbatch || a->kernels != b->kernels ||
        a->elements != b->elements)
        return "a task's numbers";
    if (a->launch_ns != b->launch_ns || a->launched_ns != b->launched_ns ||
        a->start_ns != b->start_ns || a->end_ns != b->end_ns)
        return "a task's times";
    return NULL;
}

static const char *rows_difference(const struct run *a, const struct run *b)
{
    const char *what = NULL;
    if (a->n_unit != b->n_unit || a->n_task != b->n_task || a->n_sample != b->n_sample ||
        a->n_collective != b->n_collective)
        return "how many rows there are";
    for (uint32_t i = 0; i < a->n_unit && !what; i++)
        what = unit_difference(&a->units[i], &b->units[i]);
    for (uint32_t i = 0; i < a->n_task && !what; i++)
        what = task_difference(&a->tasks[i], &b->tasks[i]);
    for (uint32_t i = 0; i < a->n_sample && !what; i++) {
        if (memcmp(&a->samples[i], &b->samples[i], sizeof(a->samples[i])))
            what = "a sample";
    }
    for (uint32_t i = 0; i < a->n_collective && !what; i++) {
        const struct run_collective *x = &a->collectives[i], *y = &b->collectives[i];
        if (x->kind != y->kind || x->comm != y->comm || x->dtype != y->dtype ||
            x->reduction != y->reduction || x->elements != y->elements || x->bytes != y->bytes ||
            x->count != y->count)
            what = "a collective";
    }
    return what;
}

const char *run_difference(const struct run *a, const struct run *b)
{
    const char *const texts[][2] = {
        {a->tool_version, b->tool_version},
        {a->command, b->command},
        {a->model, b->model},
        {a->model_json, b->model_json},
        {a->plan_json, b->plan_json},
        {a->cluster, b->cluster},
        {a->cluster_json, b->cluster_json},
        {a->environment, b->environment},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i][0], texts[i][1]))
            return "a text of the run";
    }
    if (a->kind != b->kind || a->program_hash != b->program_hash ||
        a->placement_hash != b->placement_hash || a->world != b->world ||
        a->gpus_per_node != b->gpus_per_node || a->parameters != b->parameters ||
        a->group != b->group)
        return "a number of the run";
    if (memcmp(a->comm_ranks, b->comm_ranks, sizeof(a->comm_ranks)))
        return "the ranks of a communicator";
    if (memcmp(a->metrics, b->metrics, sizeof(a->metrics)))
        return "a metric";
    if (a->peak_phase != b->peak_phase || a->peak_unit != b->peak_unit ||
        memcmp(a->peak_by_class, b->peak_by_class, sizeof(a->peak_by_class)))
        return "the peak";
    const char *what = rows_difference(a, b);
    return what ? what : run_real_difference(&a->real, &b->real);
}
