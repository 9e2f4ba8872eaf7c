/*
 * A real run as a run for the history: the prediction's record with what was measured in its place.
 *
 * Memory and its samples are facts of the placement, which was executed; times are rank 0's.
 */
#include <math.h>

#include "src/cli/record.h"
#include "src/cli/run_report.h"
#include "src/program_print.h"

static void record_task(const struct run_report *report, const struct run_task *like, uint32_t t,
                        struct run_task *out)
{
    const struct task_time *time = rank_log_time(report->log, 0, report->median_step, t);

    *out = *like;
    out->launch_ns = time->launch_ns - report->origin_ns;
    out->launched_ns = time->launched_ns - report->origin_ns;
    out->start_ns = time->stamp.start_ns - report->origin_ns;
    out->end_ns = time->stamp.end_ns - report->origin_ns;
}

/* The record of the prediction has the tasks of the step in the order of issue, as they were run. A
   task that had nothing to do has no time: it is left out. */
static void record_tasks(const struct run_report *report, const struct run *sim,
                         struct arena *arena, struct run *out)
{
    const struct program *program = &report->sim->prepared->program;
    const uint32_t section =
        report->median_step < SECTION_STEADY ? report->median_step : SECTION_STEADY;
    uint32_t nth = 0;

    out->n_task = 0;
    out->tasks = arena_array(arena, struct run_task, sim->n_task + 1);
    for (uint32_t i = program->sections[section].begin; i < program->sections[section].end; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op != INSTR_LAUNCH)
            continue;
        if (rank_log_time(report->log, 0, report->median_step, instr->id)->stamp.end_ns > 0)
            record_task(report, &sim->tasks[nth], instr->id, &out->tasks[out->n_task++]);
        nth++;
    }
}

static void record_metrics(const struct run_report *report, struct run *out)
{
    const double tokens_per_s = report->sim->tokens_per_s *
                                (double)report->sim->time[SPREAD_MID].step_ns /
                                (double)report->median_ns;
    int64_t *metrics = out->metrics;

    metrics[RUN_METRIC_STEP_LOW] = report->min_ns;
    metrics[RUN_METRIC_STEP] = report->median_ns;
    metrics[RUN_METRIC_STEP_HIGH] = report->max_ns;
    metrics[RUN_METRIC_COMPUTE] = report->has_tasks ? report->time.compute_ns : RUN_NO_METRIC;
    metrics[RUN_METRIC_COMM] = report->has_tasks ? report->time.comm_ns : RUN_NO_METRIC;
    metrics[RUN_METRIC_EXPOSED_COMM] =
        report->has_tasks ? report->time.exposed_comm_ns : RUN_NO_METRIC;
    metrics[RUN_METRIC_TOKENS_PER_S_PER_GPU] =
        isfinite(tokens_per_s) ? llround(tokens_per_s * 1e3) : RUN_NO_METRIC;
    metrics[RUN_METRIC_CONTENTION] = metrics[RUN_METRIC_RETRY] = metrics[RUN_METRIC_MFU] =
        metrics[RUN_METRIC_HFU] = metrics[RUN_METRIC_OUTSIDE] = RUN_NO_METRIC;
}

static void forget_times(struct run *out)
{
    for (int i = RUN_METRIC_STEP_LOW; i <= RUN_METRIC_HFU; i++)
        out->metrics[i] = RUN_NO_METRIC;
    out->metrics[RUN_METRIC_OUTSIDE] = RUN_NO_METRIC;
    out->n_task = out->n_sample = 0;
}

void run_report_record(const struct run_report *report, const char *command, struct arena *arena,
                       struct run *out)
{
    struct run sim;

    record_run(report->sim, report->real.emulated ? RUN_EMULATED : RUN_REAL, command, arena, &sim);
    *out = sim;
    out->real = report->real;
    if (report->median_step == 0) {
        forget_times(out);
        return;
    }
    record_metrics(report, out);
    if (!report->has_tasks) {
        out->n_task = out->n_sample = 0;
        return;
    }
    record_tasks(report, &sim, arena, out);
    for (uint32_t i = 0; i < out->n_sample; i++)
        out->samples[i].at_ns =
            rank_log_time(report->log, 0, report->median_step, report->sim->curve.samples[i].task)
                ->launch_ns -
            report->origin_ns;
}
