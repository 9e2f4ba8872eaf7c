/*
 * A real step on the host: what an instruction costs the thread that issues it, and which plans hide
 * communication.
 *
 * The model has eight equal blocks. Overlap is the share of the forward pass' all-gathers during
 * which something computes, where they take a good half of the time of compute (--slow-comm). What
 * is issued ahead of need is hidden: with one unit nothing is; of blocks the next one is, by the
 * order of streams alone, as in FSDP2, until the host waits for each (--host-sync); and then what
 * --prefetch names still is.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/interval_set.h"
#include "src/cli/bench_host.h"

static const char MODEL[] =
    "{\"schema\": \"unshard.model/1\", \"model\": \"llama-8-blocks\", \"family\": \"llama\", "
    "\"layers\": 8, \"hidden\": 64, \"intermediate\": 160, \"heads\": 4, \"kv_heads\": 2, "
    "\"head_dim\": 16, \"vocab\": 256, \"seq\": 64}";

enum { MAX_SETTINGS = 4 };

/* Time of all all-gathers as a share of the compute that can hide them. */
static const double COMM_SHARE = 0.6;

struct setting {
    enum option_id option;
    const char *value; /* NULL: no more */
};

struct overlap_case {
    const char *key;
    struct setting settings[MAX_SETTINGS];
    enum bench_unit unit;
    double goal;
    const char *covers;
};
static const struct overlap_case cases[] = {
    {"overlap_whole_percent",
     {{OPTION_UNITS, "whole"}},
     BENCH_PERCENT_AT_MOST,
     10,
     "of forward's all-gathers: nothing is ahead"},
    {"overlap_block_percent",
     {{OPTION_UNITS, "block"}},
     BENCH_PERCENT,
     60,
     "units of a block, prefetch by stream order"},
    {"overlap_sync_percent",
     {{OPTION_UNITS, "block"}, {OPTION_HOST_SYNC, "*"}},
     BENCH_PERCENT_AT_MOST,
     10,
     "the same, the host waits for each unit"},
    {"overlap_ahead_percent",
     {{OPTION_UNITS, "block"}, {OPTION_HOST_SYNC, "*"}, {OPTION_PREFETCH, "2"}},
     BENCH_PERCENT,
     60,
     "the same with --prefetch 2"},
};

static enum status run_plan(const struct setting *settings, const char *slow_gb_per_s,
                            struct bench_plan *out, struct err *err)
{
    static char run[] = "run", model[] = "llama-8-blocks";
    static char *argv[] = {run, model, NULL}; /* the options point into it */
    enum status status = options_parse(command_find("run"), 2, argv, &out->options, err);

    for (int i = 0; i < MAX_SETTINGS && settings[i].value && status == STATUS_OK; i++)
        status = options_take(&out->options, settings[i].option, settings[i].value, err);
    if (status == STATUS_OK && slow_gb_per_s)
        status = options_take(&out->options, OPTION_SLOW_COMM, slow_gb_per_s, err);
    return status == STATUS_OK ? run_execute(&out->options, MODEL, &out->execution, err) : status;
}

/* ---- the forward pass of the median step ----------------------------------------------------- */

struct forward {
    int64_t gather_ns, hidden_ns, compute_ns;
    double gather_bytes;
};

static struct forward forward_of(const struct run *run, struct arena *arena)
{
    struct interval_set gathers = {0}, compute = {0};
    struct forward out = {0};

    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        const bool is_gather = task->kind == TASK_ALL_GATHER && task->phase == PHASE_FORWARD;
        if (is_gather || task->stream == STREAM_C)
            interval_set_add(is_gather ? &gathers : &compute, arena, task->start_ns, task->end_ns);
        if (is_gather)
            out.gather_bytes +=
                (double)task->elements * (double)dtype_bytes((enum dtype)task->dtype);
        if (task->kind == TASK_FORWARD)
            out.compute_ns += task->end_ns - task->start_ns;
    }
    out.gather_ns = interval_set_ns(&gathers);
    out.hidden_ns = interval_set_common_ns(&gathers, &compute);
    return out;
}

/* Of any step: the report's record is of one, and which one is told to a copy. */
static struct forward forward_at(struct bench_plan *plan, uint32_t step)
{
    struct arena *arena = &plan->execution.prepared.arena;
    struct run_report report = plan->execution.report;
    struct run run;

    report.median_step = step;
    run_report_record(&report, "unshard bench host", arena, &run);
    return forward_of(&run, arena);
}

static int compare_shares(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The median of the measured steps. */
static double hidden_share(struct bench_plan *plan)
{
    const struct run_real *real = &plan->execution.report.real;
    double *shares = arena_array(&plan->execution.prepared.arena, double, real->n_step);
    uint32_t n = 0;

    for (uint32_t i = (uint32_t)real->warmup; i < real->n_step; i++) {
        const struct forward forward = forward_at(plan, i + 1);
        shares[n++] = (double)forward.hidden_ns / (double)forward.gather_ns;
    }
    qsort(shares, n, sizeof *shares, compare_shares);
    return shares[n / 2];
}

/* In GB/s, which are bytes in a nanosecond. Of the fastest step, since a busy machine only ever
   adds: what it adds later to compute hides no less. */
static double slow_rate(struct bench_plan *plan)
{
    const struct run_real *real = &plan->execution.report.real;
    double rate = 0;

    for (uint32_t i = (uint32_t)real->warmup; i < real->n_step; i++) {
        const struct forward forward = forward_at(plan, i + 1);
        rate = fmax(rate, forward.gather_bytes / (COMM_SHARE * (double)forward.compute_ns));
    }
    return rate;
}

static enum status measure_overlap(const struct overlap_case *of, const char *slow_gb_per_s,
                                   struct bench_lines *lines, struct err *err)
{
    struct bench_plan plan = {0};
    const enum status status = run_plan(of->settings, slow_gb_per_s, &plan, err);

    if (status == STATUS_OK)
        bench_lines_add(lines, (struct bench_line){of->key, of->unit, 100 * hidden_share(&plan),
                                                   of->goal, of->covers});
    run_execution_release(&plan.execution);
    return status;
}

/* ---- the host's thread ------------------------------------------------------------------------- */

static void add_host(const struct run_log *log, struct bench_lines *lines)
{
    const struct rank_log *rank = &log->rank[0];
    const double instrs = (double)rank->instrs * 1e3;

    bench_lines_add(lines, (struct bench_line){"host_instr_us", BENCH_US,
                                               (double)rank->issue_cpu_ns / instrs, 2,
                                               "CPU time of the host's thread, an instruction"});
    bench_lines_add(lines, (struct bench_line){"host_instr_wall_us", BENCH_US,
                                               (double)rank->issue_ns / instrs, 0,
                                               "the same by the clock, calls of the device alone"});
}

/* Few blocks and steps: the host is ahead of its streams, and never so far that queues are full. */
static enum status measure_host(struct bench_lines *lines, struct err *err)
{
    static const struct setting settings[MAX_SETTINGS] = {
        {OPTION_UNITS, "block"}, {OPTION_LAYERS, "2"}, {OPTION_STEPS, "12"}};
    struct bench_plan plan = {0};
    const enum status status = run_plan(settings, NULL, &plan, err);

    if (status == STATUS_OK)
        add_host(plan.execution.report.log, lines);
    run_execution_release(&plan.execution);
    return status;
}

enum status bench_run(struct bench_lines *lines, struct bench_plan *plan, struct err *err)
{
    static const struct setting settings[MAX_SETTINGS] = {{OPTION_UNITS, "block"}};
    char slow_gb_per_s[32];
    enum status status = measure_host(lines, err);

    if (status == STATUS_OK)
        status = run_plan(settings, NULL, plan, err);
    if (status != STATUS_OK)
        return status;
    snprintf(slow_gb_per_s, sizeof slow_gb_per_s, "%.9f", slow_rate(plan));
    for (size_t i = 0; i < sizeof cases / sizeof *cases && status == STATUS_OK; i++)
        status = measure_overlap(&cases[i], slow_gb_per_s, lines, err);
    return status;
}
