/*
 * What a log says; see run_report.h. Definitions are those of a simulated step (sim/simulate.h): a
 * step ends with its last task on any stream.
 */
#include "src/cli/run_report.h"

#include <math.h>
#include <stdlib.h>

#include "sim/interval_set.h"
#include "src/program_print.h"

static const struct program *program_of(const struct run_report *report)
{
    return &report->sim->prepared->program;
}

static bool was_run(const struct task_time *time)
{
    return time->stamp.end_ns > 0;
}

/* When a step ended on rank 0, with its last task or with stream C, which notes it also of steps whose
   tasks have no stamps; 0: it has not. */
static int64_t step_end_ns(const struct run_log *log, uint32_t step)
{
    int64_t end_ns = log->rank[0].ends[step].end_ns;
    for (uint32_t t = 0; t < log->n_task; t++) {
        const struct task_time *time = rank_log_time(log, 0, step, t);
        if (time->stamp.end_ns > end_ns)
            end_ns = time->stamp.end_ns;
    }
    return end_ns;
}

static bool is_stamped(const struct run_log *log, uint32_t step)
{
    for (uint32_t t = 0; t < log->n_task; t++)
        if (was_run(rank_log_time(log, 0, step, t)))
            return true;
    return false;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* What an emulated run computes means nothing. */
static void note_step(const struct run_log *log, uint32_t step, bool emulated, struct run_step *out)
{
    double loss = 0;
    bool ended = true;

    *out = (struct run_step){.step_ns = 0};
    for (uint32_t r = 0; r < log->ranks; r++) {
        ended &= log->rank[r].results[step].ended;
        loss += log->rank[r].results[step].loss / log->ranks;
        out->not_finite += log->rank[r].results[step].not_finite;
        out->skipped |= log->rank[r].results[step].skipped;
        ended &= log->rank[r].results[step].ended;
    }
    out->loss = ended && !emulated ? loss : NAN;
    if (emulated)
        out->not_finite = out->skipped = 0;
}

static void note_steps(struct run_report *report, struct arena *arena)
{
    const struct run_log *log = report->log;
    struct run_real *real = &report->real;

    real->n_step = log->steps;
    real->steps = arena_array(arena, struct run_step, log->steps);
    for (uint32_t step = 1; step <= log->steps; step++) {
        const int64_t end_ns = step_end_ns(log, step), before_ns = step_end_ns(log, step - 1);
        note_step(log, step, real->emulated, &real->steps[step - 1]);
        if (step > 1 && end_ns > 0 && before_ns > 0 && log->rank[0].results[step].ended)
            real->steps[step - 1].step_ns = end_ns - before_ns;
    }
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of steps behind the warm-up, with stamps or without, the first step of all never being one of them;
   in order. */
static uint32_t sort_times(const struct run_report *report, bool stamped, int64_t *out)
{
    const struct run_real *real = &report->real;
    uint32_t n = 0;

    for (uint32_t i = (uint32_t)real->warmup; i < real->n_step; i++)
        if (real->steps[i].step_ns > 0 && is_stamped(report->log, i + 1) == stamped)
            out[n++] = real->steps[i].step_ns;
    qsort(out, n, sizeof *out, compare_ns);
    return n;
}

/* Of steps with stamps; of those without where no step has any. */
static void find_median(struct run_report *report, struct arena *arena)
{
    const struct run_real *real = &report->real;
    int64_t *times_ns = arena_array(arena, int64_t, real->n_step + 1);

    report->min_ns = report->median_ns = report->max_ns = report->bare_ns = RUN_NO_METRIC;
    report->n_bare = sort_times(report, false, times_ns);
    if (report->n_bare > 0)
        report->bare_ns = times_ns[(report->n_bare - 1) / 2];
    uint32_t n = sort_times(report, true, times_ns);
    report->has_tasks = n > 0;
    if (!report->has_tasks)
        n = sort_times(report, false, times_ns);
    report->n_measured = n;
    if (n == 0)
        return;
    report->min_ns = times_ns[0];
    report->median_ns = times_ns[(n - 1) / 2];
    report->max_ns = times_ns[n - 1];
    for (uint32_t i = (uint32_t)real->warmup; i < real->n_step && report->median_step == 0; i++)
        if (real->steps[i].step_ns == report->median_ns &&
            is_stamped(report->log, i + 1) == report->has_tasks)
            report->median_step = i + 1;
    report->origin_ns = step_end_ns(report->log, report->median_step - 1);
}

/* ---- the measured step --------------------------------------------------------------------- */

struct timed_task {
    const struct task *task;
    struct stamp stamp;
};

static int compare_starts(const void *a, const void *b)
{
    const struct timed_task *x = a, *y = b;
    return compare_ns(&x->stamp.start_ns, &y->stamp.start_ns);
}

static void add_within(struct interval_set *set, struct arena *arena, struct stamp stamp,
                       int64_t begin_ns)
{
    interval_set_add(set, arena, stamp.start_ns > begin_ns ? stamp.start_ns : begin_ns,
                     stamp.end_ns);
}

static void measure(struct run_report *report, struct arena *arena)
{
    const struct program *program = program_of(report);
    struct timed_task *tasks = arena_array(arena, struct timed_task, program->n_task);
    struct interval_set comm = {0}, compute = {0};
    uint32_t n = 0;

    for (uint32_t t = 0; t < program->n_task; t++) {
        const struct task_time *time = rank_log_time(report->log, 0, report->median_step, t);
        if (was_run(time))
            tasks[n++] = (struct timed_task){.task = &program->tasks[t], .stamp = time->stamp};
    }
    qsort(tasks, n, sizeof *tasks, compare_starts);
    for (uint32_t i = 0; i < n; i++) {
        if (tasks[i].task->comm != COMM_NONE)
            add_within(&comm, arena, tasks[i].stamp, report->origin_ns);
        else if (tasks[i].task->stream == STREAM_C)
            add_within(&compute, arena, tasks[i].stamp, report->origin_ns);
    }
    const int64_t comm_ns = interval_set_ns(&comm);
    report->time = (struct step_time){
        .step_ns = report->median_ns,
        .comm_ns = comm_ns,
        .exposed_comm_ns = comm_ns - interval_set_common_ns(&comm, &compute),
        .compute_ns = interval_set_ns(&compute),
    };
}

/* ---- ranks, memory, dtypes ------------------------------------------------------------------ */

static void note_ranks(struct run_report *report, const struct err *why, struct arena *arena)
{
    const struct run_log *log = report->log;
    struct run_real *real = &report->real;
    char name[PROGRAM_NAME_MAX];

    real->n_rank = log->ranks;
    real->ranks = arena_array(arena, struct run_rank, log->ranks);
    for (uint32_t r = 0; r < log->ranks; r++) {
        struct rank_log *rank = &log->rank[r];
        real->ranks[r].step = rank->step > log->steps ? log->steps : rank->step;
        if (!rank->ended)
            real->ranks[r].error = "it ended without a word";
        else if (rank->status != STATUS_OK)
            real->ranks[r].error = arena_strdup(arena, rank->err.text);
        for (int s = 0; s < STREAM_N; s++)
            if (rank->last_task[s] > 0)
                real->ranks[r].last_task[s] = arena_strdup(
                    arena, program_task_name(program_of(report), rank->last_task[s] - 1, name));
    }
    if (why->status != STATUS_OK)
        real->error = arena_strdup(arena, why->text);
}

static void note_checks(struct run_report *report, struct arena *arena)
{
    const struct run_log *log = report->log;
    struct run_real *real = &report->real;

    real->checks = arena_array(arena, struct run_check, log->ranks * MEMORY_CHECKS);
    report->memory_agrees = true;
    for (uint32_t r = 0; r < log->ranks; r++)
        for (uint32_t i = 0; i < log->rank[r].n_check; i++) {
            const struct memory_check *from = &log->rank[r].checks[i];
            real->checks[real->n_check++] =
                (struct run_check){.rank = r,
                                   .step = from->step,
                                   .reserved_bytes = from->reserved_bytes,
                                   .mapped_bytes = from->mapped_bytes};
            report->memory_agrees &= from->reserved_bytes == from->mapped_bytes;
        }
}

/* Both 16-bit floats have the policy's name; which of them no size tells. */
static uint8_t seen_dtype(uint64_t bytes, uint64_t elements, uint8_t expected)
{
    return elements > 0 && bytes == elements * dtype_bytes((enum dtype)expected)
               ? expected
               : (bytes == elements * dtype_bytes(DTYPE_FP32) ? DTYPE_FP32 : DTYPE_N);
}

static void see_buffer(struct run_report *report, const struct buffer *buffer)
{
    const struct program *program = program_of(report);
    const struct plan *plan = program->plan;
    const struct unit *unit = &plan->units[buffer->unit];
    uint32_t nth = 0;

    for (uint32_t i = 0; i < unit->n_param; i++) {
        const uint32_t param = plan->unit_params[unit->param + i];
        const struct param_policy *policy = &plan->policy[param];
        const struct param_layout *place =
            &program->layout->params[program->layout->units[buffer->unit]->param + i];
        struct seen_dtypes *seen = &report->dtypes[param];
        if (buffer->role == ROLE_SHARD)
            seen->storage = seen_dtype(buffer_member_bytes(program, buffer, i),
                                       place->shard_elements, policy->storage);
        else if (buffer->role == ROLE_FULL)
            seen->compute = seen_dtype(buffer_member_bytes(program, buffer, i),
                                       place->shard_elements * plan->shard_ranks, policy->compute);
        else if (buffer->role == ROLE_GRADS && policy->has_grad)
            seen->grad =
                seen_dtype(buffer_member_bytes(program, buffer, nth++), place->numel, policy->grad);
    }
}

/* A bucket is one buffer, so that its dtype is that of all in it. */
static void see_reduced(struct run_report *report, const struct task *task)
{
    const struct plan *plan = program_of(report)->plan;
    const struct unit_layout *layout = program_of(report)->layout->units[task->unit];

    for (uint32_t i = 0; i < plan->units[task->unit].n_param; i++)
        if (program_of(report)->layout->params[layout->param + i].bucket == task->bucket)
            report->dtypes[plan->unit_params[plan->units[task->unit].param + i]].reduce =
                task->dtype;
}

static void note_dtypes(struct run_report *report, struct arena *arena)
{
    const struct program *program = program_of(report);
    const uint32_t n = program->plan->model->n_param;

    report->dtypes = arena_array(arena, struct seen_dtypes, n + 1);
    for (uint32_t i = 0; i < n; i++)
        report->dtypes[i] = (struct seen_dtypes){DTYPE_N, DTYPE_N, DTYPE_N, DTYPE_N};
    for (uint32_t b = 0; b < program->n_buffer; b++)
        if (program->buffers[b].unit != NO_UNIT)
            see_buffer(report, &program->buffers[b]);
    for (uint32_t t = 0; t < program->n_task; t++)
        if (program->tasks[t].kind == TASK_PACK)
            see_reduced(report, &program->tasks[t]);
}

/* Time that the host's own calls took, in the measured steps. */
static int64_t instr_ns(const struct run_log *log)
{
    const struct rank_log *rank = &log->rank[0];
    return rank->instrs > 0 ? rank->issue_ns / (int64_t)rank->instrs : RUN_NO_METRIC;
}

void run_report_make(struct sim_report *sim, struct run_log *log, const struct run_real *asked,
                     const struct err *why, struct arena *arena, struct run_report *out)
{
    *out = (struct run_report){.sim = sim, .log = log, .real = *asked};
    note_steps(out, arena);
    find_median(out, arena);
    if (out->median_step > 0)
        measure(out, arena);
    note_ranks(out, why, arena);
    note_checks(out, arena);
    note_dtypes(out, arena);
    out->host_instr_ns = instr_ns(log);
}

void run_report_warn(const struct run_report *report, struct text *warnings)
{
    const struct run_real *real = &report->real;
    uint64_t not_finite = 0, skipped = 0;

    for (uint32_t i = 0; i < real->n_check; i++) {
        const struct run_check *check = &real->checks[i];
        if (check->reserved_bytes != check->mapped_bytes)
            text_add(warnings,
                     "rank %llu, step %llu: %llu bytes are reserved by the program's account, the "
                     "system has mapped %llu\n",
                     (unsigned long long)check->rank, (unsigned long long)check->step,
                     (unsigned long long)check->reserved_bytes,
                     (unsigned long long)check->mapped_bytes);
    }
    for (uint32_t i = 0; i < real->n_step; i++) {
        not_finite += real->steps[i].skipped ? 0 : real->steps[i].not_finite;
        skipped += real->steps[i].skipped;
    }
    if (not_finite > 0)
        text_add(warnings, "%llu elements of gradients were not finite\n",
                 (unsigned long long)not_finite);
    if (skipped > 0)
        text_add(warnings, "the loss scaler skipped %llu steps\n", (unsigned long long)skipped);
}
