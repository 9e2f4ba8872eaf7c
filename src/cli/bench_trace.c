/*
 * `unshard bench trace`: how fast a run becomes a Chrome trace, and how fast one is checked.
 *
 * Events of all sorts: launches, kernels, flows, annotations and counters, as a run has them. The
 * file is a real one, not compressed, in a folder that is removed afterwards.
 */
#include <sys/stat.h>

#include "src/cli/bench.h"
#include "traces/chrome.h"
#include "traces/trace_check.h"

enum { TASK_N = 50000 };

struct bench {
    struct bench_step step;
    struct arena arena, scratch;
    struct run run;
    const char *path;
    struct trace_report report; /* of the last check; its texts are in scratch */
};

static void reset_scratch(void *self)
{
    struct bench *bench = self;
    arena_reset(&bench->scratch);
}

static enum status write_trace(void *self, struct err *err)
{
    static const struct chrome_options rank_0 = {.rank = 0};
    const struct bench *bench = self;
    return chrome_write(&bench->run, &rank_0, bench->path, err);
}

static enum status check_trace(void *self, struct err *err)
{
    struct bench *bench = self;
    const enum status status = trace_check(bench->path, &bench->scratch, &bench->report, err);
    if (status != STATUS_NO)
        return status;
    const struct trace_finding *first = &bench->report.findings[0];
    return err_set(err, STATUS_INPUT, "the trace that was written breaks %s of %s: %s", first->rule,
                   first->reader, first->text);
}

enum { STAGE_WRITE, STAGE_CHECK, STAGE_N };
static const struct bench_stage stages[STAGE_N] = {
    [STAGE_WRITE] = {1, 5, NULL, write_trace},
    [STAGE_CHECK] = {1, 3, reset_scratch, check_trace},
};

static uint64_t file_bytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void print(const struct bench *bench, const struct bench_time times[STAGE_N],
                  const struct options *options, struct output *out)
{
    const double n = (double)bench->report.n_event;
    const struct bench_time *write = &times[STAGE_WRITE], *check = &times[STAGE_CHECK];
    const struct bench_fact facts[] = {
        {"tasks", "tasks", bench->run.n_task},
        {"events", "events", bench->report.n_event},
        {"bytes", "bytes", file_bytes(bench->path)},
    };
    const struct bench_line lines[] = {
        {"events_per_s", BENCH_PER_S, n / write->wall_s, 5e5, "written, not compressed"},
        {"events_per_cpu_s", BENCH_PER_S, n / write->cpu_s, 0, "the same, by CPU time"},
        {"check_events_per_s", BENCH_PER_S, n / check->wall_s, 0, "held against all readers"},
        {"check_events_per_cpu_s", BENCH_PER_S, n / check->cpu_s, 0, "the same, by CPU time"},
    };
    const struct bench_report report = {
        .benchmark = "trace",
        .prepared = &bench->step.prepared,
        .facts = facts,
        .lines = lines,
        .n_fact = sizeof facts / sizeof *facts,
        .n_line = sizeof lines / sizeof *lines,
    };
    bench_print(&report, options, out);
}

static enum status measure_all(struct bench *bench, struct bench_time times[STAGE_N],
                               struct err *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < STAGE_N && status == STATUS_OK; i++)
        status = bench_measure(&stages[i], bench, &times[i], err);
    return status;
}

enum status bench_trace(const struct options *options, struct output *out, struct err *err)
{
    struct bench bench = {0};
    struct bench_time times[STAGE_N];
    const char *folder = NULL;
    arena_init(&bench.arena);
    arena_init(&bench.scratch);
    enum status status = bench_step_make(&bench.step, err);
    if (status != STATUS_OK)
        goto out;
    status = bench_folder_make(&bench.arena, &folder, err);
    if (status != STATUS_OK)
        goto out;

    bench_repeat(&bench.step.run, TASK_N, TASK_N, &bench.arena, &bench.run);
    bench.path = arena_printf(&bench.arena, "%s/trace.json", folder);
    status = measure_all(&bench, times, err);
    if (status == STATUS_OK)
        print(&bench, times, options, out);
out:
    if (folder)
        bench_folder_remove(folder);
    bench_step_release(&bench.step);
    arena_release(&bench.scratch);
    arena_release(&bench.arena);
    return status;
}
