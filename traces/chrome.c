/*
 * The events of a run, in the shape of a PyTorch profiler trace of one rank.
 *
 * Per task: the launch on the host, the kernel on its stream, and a flow from one to the other, all
 * with one correlation id. A range is written before what lies in it, and a flow after its slice:
 * readers that sort by time keep this order where times are equal. Kernels carry the names by which
 * readers know communication; the unit is in the ranges and in the arguments.
 */
#include "traces/chrome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "traces/chrome_inner.h"

enum { CPU_PID_BASE = 1000, GPU_PID_BASE = 1, CBID_LAUNCH_KERNEL = 211 };

static const struct {
    uint8_t tid;
    const char *name;
} tracks[] = {
    [STREAM_C] = {7, "stream 7 compute"},       [STREAM_AGI] = {16, "stream 16 copy-in"},
    [STREAM_AG] = {20, "stream 20 all-gather"}, [STREAM_RS] = {24, "stream 24 reduce-scatter"},
    [STREAM_AR] = {28, "stream 28 all-reduce"},
};
_Static_assert(sizeof(tracks) / sizeof(tracks[0]) == STREAM_N, "a track for each stream");

/* How NCCL and PyTorch spell an element type. */
static const struct {
    const char *kernel, *args;
} dtype_words[] = {
    [DTYPE_FP32] = {"f32", "Float"},
    [DTYPE_BF16] = {"bf16", "BFloat16"},
    [DTYPE_FP16] = {"f16", "Half"},
    [DTYPE_U8] = {"u8", "Byte"},
};
_Static_assert(sizeof(dtype_words) / sizeof(dtype_words[0]) == DTYPE_N, "words for each dtype");

static const char *const class_counters[] = {
#define X(id, name) "memory." name,
    MEMORY_CLASSES(X)
#undef X
};

void chrome_put_text(struct chrome *chrome, const char *text, size_t length)
{
    if (!chrome->status)
        chrome->status = out_write(&chrome->out, text, length, chrome->err);
}

/* Each event begins on a line of its own. */
static void emit(struct chrome *chrome)
{
    size_t length;
    const char *text = event_print(&chrome->event, &length);
    chrome_put_text(chrome, chrome->separator, strlen(chrome->separator));
    chrome_put_text(chrome, text, length);
    chrome->separator = ",\n";
}

static void begin(struct chrome *chrome, const char *phase, const char *category, const char *name,
                  uint64_t pid, uint64_t tid)
{
    struct chrome_event *event = &chrome->event;
    event_begin(event);
    event_string(event, "ph", phase);
    if (category)
        event_string(event, "cat", category);
    event_string(event, "name", name);
    event_u64(event, "pid", pid);
    event_u64(event, "tid", tid);
}

static void begin_slice(struct chrome *chrome, const char *category, const char *name, uint64_t pid,
                        uint64_t tid, const struct chrome_range *at)
{
    begin(chrome, "X", category, name, pid, tid);
    event_us(&chrome->event, "ts", at->begin_ns - chrome->plan.origin_ns);
    event_us(&chrome->event, "dur", at->end_ns - at->begin_ns);
}

static void put_range(struct chrome *chrome, const char *category, uint64_t pid, uint64_t tid,
                      const struct chrome_range *range)
{
    if (!range->name)
        return;
    begin_slice(chrome, category, range->name, pid, tid, range);
    emit(chrome);
}

static void put_flow(struct chrome *chrome, const char *phase, uint64_t pid, uint64_t tid,
                     uint32_t correlation, int64_t at_ns)
{
    struct chrome_event *event = &chrome->event;
    begin(chrome, phase, "ac2g", "ac2g", pid, tid);
    event_u64(event, "id", correlation);
    event_us(event, "ts", at_ns - chrome->plan.origin_ns);
    if (*phase == 'f')
        event_string(event, "bp", "e");
    emit(chrome);
}

static void put_launch(struct chrome *chrome, const struct chrome_range *at, uint32_t correlation)
{
    struct chrome_event *event = &chrome->event;
    begin_slice(chrome, "cuda_runtime", "cudaLaunchKernel", chrome->cpu_pid, chrome->cpu_pid, at);
    event_open(event, "args");
    event_u64(event, "External id", correlation);
    event_u64(event, "cbid", CBID_LAUNCH_KERNEL);
    event_u64(event, "correlation", correlation);
    event_close(event);
    emit(chrome);
    put_flow(chrome, "s", chrome->cpu_pid, chrome->cpu_pid, correlation, at->begin_ns);
}

static const char *collective_name(const struct run_task *task)
{
    if (task->kind == TASK_ALL_GATHER)
        return "_allgather_base";
    return task->kind == TASK_REDUCE_SCATTER ? "_reduce_scatter_base" : "allreduce";
}

/* What goes in and comes out per rank differs by the group's size, as NCCL's own traces have it. */
static void add_collective_args(struct chrome *chrome, const struct run_task *task)
{
    struct chrome_event *event = &chrome->event;
    const struct chrome_group *group = &chrome->groups.of[task->comm];
    const uint64_t full = task->elements, shard = full / group->ranks;
    event_string(event, "Collective name", collective_name(task));
    event_u64(event, "In msg nelems", task->kind == TASK_ALL_GATHER ? shard : full);
    event_u64(event, "Out msg nelems", task->kind == TASK_REDUCE_SCATTER ? shard : full);
    event_u64(event, "Group size", group->ranks);
    event_string(event, "dtype", dtype_words[task->dtype].args);
    event_string(event, "In split size", "[]");
    event_string(event, "Out split size", "[]");
    event_string(event, "Process Group Name", group->name);
    event_string(event, "Process Group Description", group->description);
    event_string(event, "Process Group Ranks", group->shown);
    if (task->reduction != REDUCE_NONE)
        event_string(event, "reduction", reduction_name((enum reduction)task->reduction));
}

static void put_kernel(struct chrome *chrome, uint32_t index)
{
    struct chrome_event *event = &chrome->event;
    const struct run_task *task = &chrome->run->tasks[index];
    const uint32_t correlation = index + 1;
    const uint64_t tid = tracks[task->stream].tid;
    const struct chrome_range at = {.begin_ns = task->start_ns, .end_ns = task->end_ns};
    begin_slice(chrome, "kernel", chrome->kernel_names[task->kind][task->dtype], chrome->gpu_pid,
                tid, &at);
    event_open(event, "args");
    event_u64(event, "External id", correlation);
    event_u64(event, "device", chrome->device);
    event_u64(event, "context", 1);
    event_u64(event, "stream", tid);
    event_u64(event, "correlation", correlation);
    event_string(event, "task", chrome->plan.task_names[index]);
    if (task->unit != NO_UNIT)
        event_string(event, "unit", chrome->plan.unit_names[task->unit]);
    event_u64(event, "microbatch", task->microbatch);
    event_u64(event, "kernels", task->kernels);
    event_u64(event, "elements", task->elements);
    if (task_kind_is_collective(task->kind))
        add_collective_args(chrome, task);
    event_close(event);
    emit(chrome);
    put_flow(chrome, "f", chrome->gpu_pid, tid, correlation, task->start_ns);
}

static void put_tasks(struct chrome *chrome)
{
    for (uint32_t i = 0; i < chrome->run->n_task && !chrome->status; i++) {
        const struct run_task *task = &chrome->run->tasks[i];
        const struct chrome_ranges *ranges = &chrome->plan.ranges[i];
        put_range(chrome, "user_annotation", chrome->cpu_pid, chrome->cpu_pid, &ranges->phase);
        put_range(chrome, "user_annotation", chrome->cpu_pid, chrome->cpu_pid, &ranges->host);
        put_launch(chrome, &ranges->launch, i + 1);
        put_range(chrome, "gpu_user_annotation", chrome->gpu_pid, tracks[task->stream].tid,
                  &ranges->device);
        put_kernel(chrome, i);
    }
}

static void put_counter(struct chrome *chrome, const char *name, int64_t at_ns, uint64_t bytes)
{
    struct chrome_event *event = &chrome->event;
    begin(chrome, "C", "memory", name, chrome->gpu_pid, tracks[STREAM_C].tid);
    event_us(event, "ts", at_ns - chrome->plan.origin_ns);
    event_open(event, "args");
    event_u64(event, "bytes", bytes);
    event_close(event);
    emit(chrome);
}

/* A counter keeps its value until it is given another one, so that only changes are written. */
static void put_counters(struct chrome *chrome)
{
    const struct run_sample *before = NULL;
    for (uint32_t i = 0; i < chrome->run->n_sample && !chrome->status; i++) {
        const struct run_sample *sample = &chrome->run->samples[i];
        if (!before || before->allocated != sample->allocated)
            put_counter(chrome, "memory.allocated", sample->at_ns, sample->allocated);
        if (!before || before->reserved != sample->reserved)
            put_counter(chrome, "memory.reserved", sample->at_ns, sample->reserved);
        for (int c = 0; c < CLASS_N; c++) {
            if (!before || before->by_class[c] != sample->by_class[c])
                put_counter(chrome, class_counters[c], sample->at_ns, sample->by_class[c]);
        }
        before = sample;
    }
}

static void put_name(struct chrome *chrome, const char *what, uint64_t pid, uint64_t tid,
                     const char *name)
{
    begin(chrome, "M", NULL, what, pid, tid);
    event_open(&chrome->event, "args");
    event_string(&chrome->event, "name", name);
    event_close(&chrome->event);
    emit(chrome);
}

static void put_sort(struct chrome *chrome, const char *what, uint64_t pid, uint64_t tid,
                     uint64_t index)
{
    begin(chrome, "M", NULL, what, pid, tid);
    event_open(&chrome->event, "args");
    event_u64(&chrome->event, "sort_index", index);
    event_close(&chrome->event);
    emit(chrome);
}

static void put_names(struct chrome *chrome)
{
    const uint64_t cpu = chrome->cpu_pid, gpu = chrome->gpu_pid;
    const char *cpu_name = arena_printf(&chrome->arena, "rank %" PRIu64 " host", chrome->rank);
    const char *gpu_name =
        arena_printf(&chrome->arena, "rank %" PRIu64 " GPU %" PRIu64, chrome->rank, chrome->device);
    put_name(chrome, "process_name", cpu, cpu, cpu_name);
    put_sort(chrome, "process_sort_index", cpu, cpu, 2 * chrome->rank);
    put_name(chrome, "thread_name", cpu, cpu, "host thread");
    put_name(chrome, "process_name", gpu, tracks[STREAM_C].tid, gpu_name);
    put_sort(chrome, "process_sort_index", gpu, tracks[STREAM_C].tid, 2 * chrome->rank + 1);
    for (int i = 0; i < STREAM_N; i++) {
        put_name(chrome, "thread_name", gpu, tracks[i].tid, tracks[i].name);
        put_sort(chrome, "thread_sort_index", gpu, tracks[i].tid, (uint64_t)i);
    }
}

/* One step name in the file: with two or more, readers drop the last step. */
static void put_step(struct chrome *chrome)
{
    if (chrome->run->n_task == 0)
        return;
    const struct chrome_ranges *first = chrome->plan.ranges;
    const struct chrome_ranges *last = &first[chrome->run->n_task - 1];
    const struct chrome_range step = {.name = "ProfilerStep#1",
                                      .begin_ns = first->launch.begin_ns,
                                      .end_ns = last->launch.end_ns};
    put_range(chrome, "user_annotation", chrome->cpu_pid, chrome->cpu_pid, &step);
}

/* NCCL builds its kernels for sums alone; what they multiply with is an argument of theirs. A stand-in
   says that it is one there: readers know collectives by how their names begin. */
static void name_kernels(struct chrome *chrome)
{
    const bool emulated = chrome->run->kind == RUN_EMULATED;
    const char *argument = emulated ? "emulated" : "ncclDevKernelArgsStorage<4096ul>";

    for (int kind = 0; kind < TASK_KIND_N; kind++) {
        for (int dtype = 0; dtype < DTYPE_N; dtype++) {
            char *name = chrome->kernel_names[kind][dtype];
            const size_t size = sizeof(chrome->kernel_names[kind][dtype]);
            if (kind == TASK_ALL_GATHER)
                snprintf(name, size, "ncclDevKernel_AllGather_RING_LL(%s)", argument);
            else if (task_kind_is_collective((enum task_kind)kind))
                snprintf(name, size, "ncclDevKernel_%s_Sum_%s_RING_LL(%s)",
                         kind == TASK_ALL_REDUCE ? "AllReduce" : "ReduceScatter",
                         dtype_words[dtype].kernel, argument);
            else
                snprintf(name, size, "%s", task_kind_name((enum task_kind)kind));
        }
    }
}

static void put_all(struct chrome *chrome, const char *path)
{
    static const char tail[] = "\n]}\n";
    chrome_put_head(chrome, path);
    put_names(chrome);
    put_step(chrome);
    put_tasks(chrome);
    put_counters(chrome);
    chrome_put_text(chrome, tail, strlen(tail));
}

static void set_ids(struct chrome *chrome, uint32_t rank)
{
    const uint64_t per_node = chrome->run->gpus_per_node;
    chrome->rank = rank;
    chrome->device = per_node > 0 ? rank % per_node : 0;
    chrome->cpu_pid = CPU_PID_BASE + chrome->rank;
    chrome->gpu_pid = GPU_PID_BASE + chrome->device;
    name_kernels(chrome);
}

enum status chrome_write(const struct run *run, const struct chrome_options *options,
                         const char *path, struct err *err)
{
    struct chrome chrome = {.run = run, .err = err};
    if (options->rank >= run->world)
        return err_set(err, STATUS_USAGE, "no rank %" PRIu32 ": the run has %" PRIu64 " ranks",
                       options->rank, run->world);
    arena_init(&chrome.arena);
    event_init(&chrome.event);
    set_ids(&chrome, options->rank);
    chrome.status = chrome_plan(run, &chrome.arena, &chrome.plan, err);
    if (!chrome.status)
        chrome_groups(run, options->rank, &chrome.arena, &chrome.groups);
    if (!chrome.status)
        chrome.status = out_open(path, &chrome.out, err);
    if (!chrome.status) {
        put_all(&chrome, path);
        if (!chrome.status)
            chrome.status = out_commit(&chrome.out, err);
    }
    out_discard(&chrome.out);
    event_release(&chrome.event);
    arena_release(&chrome.arena);
    return chrome.status;
}
