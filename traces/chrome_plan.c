/*
 * Ranges of equal tasks in a row, and the checks that make every trace drawable.
 *
 * On the host a range holds launches of one unit and purpose, in order of issue, and lies inside a
 * range of one phase. A launch that takes no time is drawn 1 ns long, at the cost of the one before
 * it: a flow is bound to the slice that is open, and there has to be one. On the device it holds the tasks of one unit and purpose on one stream, and is
 * 1 ns wider on either side, as Kineto draws it, where the neighbours leave that much room.
 */
#include "traces/chrome_plan.h"

#include <inttypes.h>
#include <string.h>

#include "src/json_check.h"
#include "traces/chrome_groups.h"

#define TIME_NS_MAX (INT64_C(1) << 52) /* 52 days: sums stay exact in every reader's doubles */

static const char *const purposes[] = {
    [TASK_INIT] = "init",
    [TASK_COPY_INPUT] = "copy_input",
    [TASK_COPY_IN] = "FSDP::all_gather",
    [TASK_ALL_GATHER] = "FSDP::all_gather",
    [TASK_COPY_OUT] = "FSDP::all_gather_copy_out",
    [TASK_FORWARD] = "FSDP::forward",
    [TASK_BACKWARD] = "FSDP::backward",
    [TASK_KEEP] = "FSDP::post_forward",
    [TASK_ACCUMULATE] = "FSDP::post_backward_accumulate",
    [TASK_ZERO_FILL] = "FSDP::post_backward_reduce",
    [TASK_PRECAST] = "FSDP::post_backward_reduce",
    [TASK_PACK] = "FSDP::post_backward_reduce",
    [TASK_PRE_DIVIDE] = "FSDP::post_backward_reduce",
    [TASK_ALL_REDUCE] = "FSDP::post_backward_reduce",
    [TASK_REDUCE_SCATTER] = "FSDP::post_backward_reduce",
    [TASK_POST_REDUCE] = "FSDP::post_backward_reduce",
    [TASK_CAST] = "FSDP::cast",
    [TASK_UNSCALE] = "GradScaler.unscale_",
    [TASK_GRAD_NORM] = "clip_grad_norm_",
    [TASK_CLIP] = "clip_grad_norm_",
    [TASK_OPTIMIZER] = "Optimizer.step",
};
_Static_assert(sizeof(purposes) / sizeof(purposes[0]) == TASK_KIND_N, "a purpose for each kind");

/* The compute track shows whole units: what a phase does for one, its copies included. */
static const char *const unit_purposes[] = {
    [PHASE_INIT] = "init",       [PHASE_FORWARD] = "FSDP::forward",
    [PHASE_LOSS] = "loss",       [PHASE_BACKWARD] = "FSDP::backward",
    [PHASE_METRICS] = "metrics", [PHASE_OPTIMIZER] = "Optimizer.step",
};
_Static_assert(sizeof(unit_purposes) / sizeof(unit_purposes[0]) == PHASE_N,
               "a purpose for each phase");

static const char *purpose_of(const struct run_task *task, bool on_device)
{
    const bool whole_unit = on_device && task->stream == STREAM_C && task->unit != NO_UNIT;
    const bool of_logits = task->phase == PHASE_LOSS || task->phase == PHASE_METRICS;
    return whole_unit || of_logits ? unit_purposes[task->phase] : purposes[task->kind];
}

const char *chrome_text(struct arena *arena, const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t length, valid = 0;
    while ((length = json_utf8_length(text + valid)) > 0)
        valid += length;
    if (!text[valid])
        return text;

    char *clean = arena_take(arena, strlen(text) * strlen(replacement) + 1), *to = clean;
    while (*text) {
        length = json_utf8_length(text);
        memcpy(to, length ? text : replacement, length ? length : strlen(replacement));
        to += length ? length : strlen(replacement);
        text += length ? length : 1;
    }
    *to = '\0';
    return clean;
}

static bool in_range(int64_t begin_ns, int64_t end_ns)
{
    return begin_ns >= -TIME_NS_MAX && begin_ns <= end_ns && end_ns <= TIME_NS_MAX;
}

static const char *task_fault(const struct run *run, const struct run_task *task)
{
    if (task->kind >= TASK_KIND_N || task->stream >= STREAM_N || task->dtype >= DTYPE_N ||
        task->phase >= PHASE_N || task->reduction >= REDUCTION_N)
        return "has no known kind, stream, dtype, phase or reduction";
    if (task->unit != NO_UNIT && task->unit >= run->n_unit)
        return "belongs to a unit that the run does not have";
    if (task_kind_is_collective((enum task_kind)task->kind) &&
        (task->comm >= COMM_N || run->comm_ranks[task->comm] == 0))
        return "has a communicator that the run does not have";
    if (!in_range(task->launch_ns, task->launched_ns) || !in_range(task->start_ns, task->end_ns))
        return "ends before it begins, or lies more than 52 days from the step";
    return NULL;
}

static enum status check_tasks(const struct run *run, struct err *err)
{
    int64_t host_ns = -TIME_NS_MAX, free_ns[STREAM_N];
    for (int i = 0; i < STREAM_N; i++)
        free_ns[i] = -TIME_NS_MAX;
    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        const char *fault = task_fault(run, task);
        if (!fault && task->launch_ns < host_ns)
            fault = "is launched before the launch of the task before it is over";
        if (!fault && task->start_ns < free_ns[task->stream])
            fault = "overlaps an earlier task on its stream";
        if (fault)
            return err_set(err, STATUS_INPUT, "cannot draw the run: task %" PRIu32 " '%s' %s", i,
                           task->name, fault);
        host_ns = task->launched_ns;
        free_ns[task->stream] = task->end_ns;
    }
    return STATUS_OK;
}

static enum status check_groups(const struct run *run, struct err *err)
{
    const char *fault = chrome_groups_fault(run);
    return fault ? err_set(err, STATUS_INPUT, "cannot draw the run: %s", fault) : STATUS_OK;
}

static enum status check_samples(const struct run *run, struct err *err)
{
    for (uint32_t i = 0; i < run->n_sample; i++) {
        const int64_t at_ns = run->samples[i].at_ns;
        if (!in_range(i > 0 ? run->samples[i - 1].at_ns : at_ns, at_ns))
            return err_set(err, STATUS_INPUT,
                           "cannot draw the run: memory sample %" PRIu32 " is not in order of time",
                           i);
    }
    return STATUS_OK;
}

/* From the last to the first: each ends where the next begins, at the latest, and lasts 1 ns. */
static void add_launches(const struct run *run, struct chrome_plan *plan)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = run->n_task; i-- > 0;) {
        const struct run_task *task = &run->tasks[i];
        struct chrome_range *launch = &plan->ranges[i].launch;
        launch->end_ns = task->launched_ns < next_ns ? task->launched_ns : next_ns;
        launch->begin_ns = task->launch_ns < launch->end_ns ? task->launch_ns : launch->end_ns - 1;
        next_ns = launch->begin_ns;
    }
}

static int64_t earliest(const struct run *run, const struct chrome_plan *plan)
{
    int64_t first_ns = 0;
    for (uint32_t i = 0; i < run->n_task; i++)
        first_ns = run->tasks[i].start_ns < first_ns ? run->tasks[i].start_ns : first_ns;
    if (run->n_task > 0 && plan->ranges[0].launch.begin_ns < first_ns)
        first_ns = plan->ranges[0].launch.begin_ns;
    if (run->n_sample > 0 && run->samples[0].at_ns < first_ns)
        first_ns = run->samples[0].at_ns;
    return first_ns;
}

static bool same_range(const struct run_task *a, const struct run_task *b, bool on_device)
{
    return a->unit == b->unit && a->microbatch == b->microbatch && a->phase == b->phase &&
           purpose_of(a, on_device) == purpose_of(b, on_device);
}

static const char *range_name(const struct chrome_plan *plan, struct arena *arena,
                              const struct run_task *task, bool on_device)
{
    const char *purpose = purpose_of(task, on_device);
    return task->unit == NO_UNIT
               ? purpose
               : arena_printf(arena, "%s (%s)", purpose, plan->unit_names[task->unit]);
}

static void add_host_ranges(const struct run *run, struct arena *arena, struct chrome_plan *plan)
{
    struct chrome_range *phase = NULL, *range = NULL;
    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        struct chrome_ranges *own = &plan->ranges[i];
        if (i == 0 || task[-1].phase != task->phase) {
            phase = &own->phase;
            *phase = (struct chrome_range){.name = phase_name(task->phase),
                                           .begin_ns = own->launch.begin_ns};
        }
        if (i == 0 || !same_range(&task[-1], task, false)) {
            const char *name = range_name(plan, arena, task, false);
            range = &own->host;
            *range = (struct chrome_range){.name = strcmp(name, phase->name) ? name : NULL,
                                           .begin_ns = own->launch.begin_ns};
        }
        phase->end_ns = range->end_ns = own->launch.end_ns;
    }
}

/* Between two ranges of one track: each takes 1 ns of the gap, the first one goes first. */
static void widen(struct chrome_range *before, struct chrome_range *range)
{
    const int64_t gap_ns = range->begin_ns - before->end_ns;
    before->end_ns += gap_ns >= 1;
    range->begin_ns -= gap_ns >= 2;
}

static void add_device_ranges(const struct run *run, struct arena *arena, struct chrome_plan *plan)
{
    struct chrome_range *open[STREAM_N] = {0};
    const struct run_task *last[STREAM_N] = {0};
    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        struct chrome_range **range = &open[task->stream], *before = *range;
        if (!before || !same_range(last[task->stream], task, true)) {
            *range = &plan->ranges[i].device;
            **range = (struct chrome_range){.name = range_name(plan, arena, task, true),
                                            .begin_ns = task->start_ns};
            if (before)
                widen(before, *range);
            else
                (*range)->begin_ns -= task->start_ns > plan->origin_ns;
        }
        (*range)->end_ns = task->end_ns;
        last[task->stream] = task;
    }
    for (int i = 0; i < STREAM_N; i++) {
        if (open[i])
            open[i]->end_ns++;
    }
}

static void clean_names(const struct run *run, struct arena *arena, struct chrome_plan *plan)
{
    plan->task_names = arena_array(arena, const char *, run->n_task);
    plan->unit_names = arena_array(arena, const char *, run->n_unit);
    for (uint32_t i = 0; i < run->n_task; i++)
        plan->task_names[i] = chrome_text(arena, run->tasks[i].name);
    for (uint32_t i = 0; i < run->n_unit; i++)
        plan->unit_names[i] = chrome_text(arena, run->units[i].name);
}

enum status chrome_plan(const struct run *run, struct arena *arena, struct chrome_plan *out,
                        struct err *err)
{
    enum status status = check_tasks(run, err);
    if (!status)
        status = check_groups(run, err);
    if (!status)
        status = check_samples(run, err);
    if (status)
        return status;

    struct chrome_plan plan = {.ranges = arena_array(arena, struct chrome_ranges, run->n_task)};
    add_launches(run, &plan);
    plan.origin_ns = earliest(run, &plan);
    clean_names(run, arena, &plan);
    add_host_ranges(run, arena, &plan);
    add_device_ranges(run, arena, &plan);
    *out = plan;
    return STATUS_OK;
}
