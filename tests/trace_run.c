/*
 * A run is filled forward in time: the host launches one task after another, each stream takes them
 * in that order. Metrics come from one flag a ns, not from intervals.
 */
#include "tests/trace_run.h"

#include <stdio.h>

#include "tests/tap.h"

static struct run *new_run(struct arena *arena, uint32_t n_unit, uint32_t n_task, uint32_t n_sample)
{
    struct run *run = arena_array(arena, struct run, 1);
    *run = (struct run){
        .kind = RUN_SIM,
        .created_ns = INT64_C(1767189312000000000),
        .tool_version = "0.0",
        .command = "unshard sim tiny",
        .model = "tiny",
        .model_json = "{}",
        .plan_json = "{}",
        .cluster = "toy",
        .cluster_json = "{}",
        .program_hash = 0x0123456789abcdef,
        .placement_hash = 0xfedcba9876543210,
        .world = 2,
        .gpus_per_node = 2,
        .comm_ranks = {[COMM_SHARD] = 2},
        .peak_unit = NO_UNIT,
        .units = arena_array(arena, struct run_unit, n_unit),
        .tasks = arena_array(arena, struct run_task, n_task),
        .samples = arena_array(arena, struct run_sample, n_sample),
        .n_unit = n_unit,
        .n_task = n_task,
        .n_sample = n_sample,
    };
    for (int i = 0; i < RUN_METRIC_N; i++)
        run->metrics[i] = RUN_NO_METRIC;
    for (uint32_t i = 0; i < n_unit; i++)
        run->units[i].name = arena_printf(arena, "layers.%u", (unsigned)i);
    return run;
}

static void name_task(struct arena *arena, const struct run *run, struct run_task *task)
{
    task->name = arena_printf(arena, "%s %s", task_kind_name((enum task_kind)task->kind),
                              task->unit == NO_UNIT ? "" : run->units[task->unit].name);
}

/* Which ns of the step have a kernel on the compute stream, and which a collective. */
struct busy {
    bool compute[TRACE_RUN_NS], comm[TRACE_RUN_NS];
};

static void mark(bool *flags, const struct run_task *task)
{
    for (int64_t ns = task->start_ns > 0 ? task->start_ns : 0; ns < task->end_ns; ns++)
        flags[ns] = true;
}

static void measure(struct run *run)
{
    struct busy busy = {.compute = {false}};
    int64_t step_ns = 0, compute_ns = 0, comm_ns = 0, exposed_ns = 0;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        if (task->stream == STREAM_C)
            mark(busy.compute, task);
        if (task_kind_is_collective((enum task_kind)task->kind))
            mark(busy.comm, task);
        step_ns = task->end_ns > step_ns ? task->end_ns : step_ns;
    }
    for (int ns = 0; ns < TRACE_RUN_NS; ns++) {
        compute_ns += busy.compute[ns];
        comm_ns += busy.comm[ns];
        exposed_ns += busy.comm[ns] && !busy.compute[ns];
    }
    for (uint32_t i = 0; i < run->n_sample; i++)
        peak = run->samples[i].allocated > peak ? run->samples[i].allocated : peak;
    run->metrics[RUN_METRIC_STEP] = step_ns;
    run->metrics[RUN_METRIC_COMPUTE] = compute_ns;
    run->metrics[RUN_METRIC_COMM] = comm_ns;
    run->metrics[RUN_METRIC_EXPOSED_COMM] = exposed_ns;
    run->metrics[RUN_METRIC_PEAK_ALLOCATED] = (int64_t)peak;
}

static void add_sample(struct run_sample *sample, int64_t at_ns, enum memory_class memory_class,
                       uint64_t bytes)
{
    sample->at_ns = at_ns;
    sample->by_class[memory_class] = bytes;
    for (int c = 0; c < CLASS_N; c++)
        sample->allocated += sample->by_class[c];
    sample->reserved = (sample->allocated | 1023) + 1;
}

struct run *trace_run_small(struct arena *arena)
{
    static const struct run_task tasks[] = {
        /* name, kind, stream, dtype, phase, communicator, reduction, unit, microbatch, kernels,
           elements, launch, span */
        {"", TASK_COPY_IN, STREAM_AGI, DTYPE_BF16, PHASE_FORWARD, COMM_NONE, REDUCE_NONE, 0, 0, 1,
         500, -40, -30, -20, 0},
        {"", TASK_ALL_GATHER, STREAM_AG, DTYPE_BF16, PHASE_FORWARD, COMM_SHARD, REDUCE_NONE, 0, 0,
         1, 1000, -30, -30, 0, 100},
        {"", TASK_COPY_OUT, STREAM_C, DTYPE_BF16, PHASE_FORWARD, COMM_NONE, REDUCE_NONE, 0, 0, 1,
         1000, 10, 20, 100, 110},
        {"", TASK_FORWARD, STREAM_C, DTYPE_BF16, PHASE_FORWARD, COMM_NONE, REDUCE_NONE, 0, 0, 7, 64,
         20, 90, 110, 300},
        {"", TASK_ALL_GATHER, STREAM_AG, DTYPE_BF16, PHASE_FORWARD, COMM_SHARD, REDUCE_NONE, 1, 0,
         1, 2000, 95, 100, 100, 200},
        {"", TASK_FORWARD, STREAM_C, DTYPE_BF16, PHASE_FORWARD, COMM_NONE, REDUCE_NONE, 1, 0, 7, 64,
         100, 190, 300, 401},
        {"", TASK_BACKWARD, STREAM_C, DTYPE_BF16, PHASE_BACKWARD, COMM_NONE, REDUCE_NONE, 1, 0, 9,
         64, 190, 350, 402, 700},
        {"", TASK_PACK, STREAM_RS, DTYPE_FP32, PHASE_BACKWARD, COMM_NONE, REDUCE_NONE, 1, 0, 1,
         2000, 350, 360, 700, 710},
        {"", TASK_REDUCE_SCATTER, STREAM_RS, DTYPE_FP32, PHASE_BACKWARD, COMM_SHARD, REDUCE_AVG, 1,
         0, 1, 2000, 360, 360, 710, 900},
        {"", TASK_OPTIMIZER, STREAM_C, DTYPE_FP32, PHASE_OPTIMIZER, COMM_NONE, REDUCE_NONE, NO_UNIT,
         0, 2, 500, 400, 420, 900, 1000},
    };
    const uint32_t n = sizeof(tasks) / sizeof(tasks[0]);
    struct run *run = new_run(arena, 2, n, 3);
    for (uint32_t i = 0; i < n; i++) {
        run->tasks[i] = tasks[i];
        name_task(arena, run, &run->tasks[i]);
    }
    add_sample(&run->samples[0], -40, CLASS_SHARDED_PARAM, UINT64_C(3) << 40);
    add_sample(&run->samples[1], 100, CLASS_ACTIVATION, (UINT64_C(1) << 53) + 1);
    add_sample(&run->samples[2], 400, CLASS_ACTIVATION, 7);
    measure(run);
    return run;
}

struct run *trace_run_groups(struct arena *arena)
{
    struct run *run = trace_run_small(arena);
    struct run_task *reduce = &run->tasks[8], *all_reduce = &run->tasks[9];
    run->world = 16;
    run->gpus_per_node = 8;
    for (int i = 0; i < COMM_N; i++)
        run->comm_ranks[i] = 8;
    run->comm_ranks[COMM_REPLICATE] = 2;
    run->comm_ranks[COMM_KEPT] = 4;
    run->comm_ranks[COMM_WORLD] = 16;
    run->tasks[4].comm = COMM_KEPT;
    reduce->comm = COMM_REDUCE;
    reduce->reduction = REDUCE_PREMUL;
    all_reduce->kind = TASK_ALL_REDUCE;
    all_reduce->stream = STREAM_AR;
    all_reduce->comm = COMM_REPLICATE;
    all_reduce->reduction = REDUCE_SUM;
    all_reduce->unit = 1;
    name_task(arena, run, all_reduce);
    measure(run);
    return run;
}

/* Short and often nothing. */
static int64_t some_ns(uint64_t *state, uint64_t below)
{
    return tap_below(state, 3) ? (int64_t)tap_below(state, below) : 0;
}

static enum stream stream_of(enum task_kind kind)
{
    switch (kind) {
    case TASK_COPY_IN:
        return STREAM_AGI;
    case TASK_ALL_GATHER:
        return STREAM_AG;
    case TASK_PACK:
    case TASK_REDUCE_SCATTER:
    case TASK_POST_REDUCE:
        return STREAM_RS;
    case TASK_ALL_REDUCE:
        return STREAM_AR;
    default:
        return STREAM_C;
    }
}

static void random_purpose(const struct run *run, struct run_task *task, uint64_t *state)
{
    task->kind = (uint8_t)tap_below(state, TASK_KIND_N);
    task->stream = (uint8_t)stream_of((enum task_kind)task->kind);
    task->dtype = (uint8_t)tap_below(state, DTYPE_N);
    task->phase = (uint8_t)tap_below(state, PHASE_N);
    task->comm = task_kind_is_collective((enum task_kind)task->kind)
                     ? (uint8_t)tap_below(state, COMM_N)
                     : COMM_NONE;
    task->reduction = (uint8_t)tap_below(state, REDUCTION_N);
    task->unit = tap_below(state, 4) ? (uint16_t)tap_below(state, run->n_unit) : NO_UNIT;
    task->microbatch = (uint16_t)tap_below(state, 2);
    task->kernels = (uint32_t)tap_below(state, 20);
    task->elements = 2 * tap_below(state, 1000000);
}

static void random_times(struct run_task *task, uint64_t *state, int64_t *host_ns, int64_t *free_ns)
{
    task->launch_ns = *host_ns + some_ns(state, 8);
    task->launched_ns = task->launch_ns + some_ns(state, 8);
    *host_ns = task->launched_ns;
    task->start_ns = task->launch_ns > *free_ns ? task->launch_ns : *free_ns;
    task->start_ns += some_ns(state, 3);
    task->end_ns = task->start_ns + some_ns(state, 30);
    *free_ns = task->end_ns;
}

struct run *trace_run_random(struct arena *arena, uint64_t *state, uint32_t max_task)
{
    const uint32_t n_task = (uint32_t)tap_below(state, max_task + 1);
    struct run *run = new_run(arena, 3, n_task, (uint32_t)tap_below(state, 20));
    int64_t host_ns = -(int64_t)tap_below(state, 200), free_ns[STREAM_N];
    int64_t sample_ns = -(int64_t)tap_below(state, 200);
    for (int i = 0; i < STREAM_N; i++)
        free_ns[i] = -200;
    for (int i = 0; i < COMM_N; i++)
        run->comm_ranks[i] = run->world;
    for (uint32_t i = 0; i < n_task; i++) {
        if (i > 0 && tap_below(state, 2)) /* often the same purpose in a row */
            run->tasks[i] = run->tasks[i - 1];
        else
            random_purpose(run, &run->tasks[i], state);
        random_times(&run->tasks[i], state, &host_ns, &free_ns[run->tasks[i].stream]);
        name_task(arena, run, &run->tasks[i]);
    }
    for (uint32_t i = 0; i < run->n_sample; i++) {
        add_sample(&run->samples[i], sample_ns, (enum memory_class)tap_below(state, CLASS_N),
                   tap_random(state) >> 12);
        sample_ns += some_ns(state, 50);
    }
    measure(run);
    return run;
}
