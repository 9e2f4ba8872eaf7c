/*
 * `unshard bench store`: how fast runs are stored, and listed.
 *
 * The database is a real file in a folder that is removed afterwards, written as the history is:
 * one transaction a run, each measured from its beginning to its commit.
 */
#include "db/store.h"
#include "src/cli/bench.h"

enum { TASK_N = 10000, LARGE_TASK_N = 1000000 };

struct bench {
    struct bench_step step;
    struct arena arena;
    struct run run, large; /* large: tasks without samples, to count rows of tasks alone */
    struct store *store;
    const char *path;
};

static enum status put_run(void *self, struct err *err)
{
    struct bench *bench = self;
    int64_t id;
    return store_put(bench->store, &bench->run, &id, err);
}

static enum status put_large(void *self, struct err *err)
{
    struct bench *bench = self;
    int64_t id;
    return store_put(bench->store, &bench->large, &id, err);
}

static enum status list_runs(void *self, struct err *err)
{
    static char history[] = "history", list[] = "list", db[] = "--db";
    struct bench *bench = self;
    char *argv[] = {history, list, db, arena_strdup(&bench->arena, bench->path), NULL};
    struct options options;
    struct output out = {.term = term_open(COLOR_NEVER)};
    enum status status = options_parse(command_find("history"), 4, argv, &options, err);
    if (status == STATUS_OK)
        status = cmd_history(&options, &out, err);
    text_release(&out.result);
    text_release(&out.warnings);
    return status;
}

enum { STAGE_RUN, STAGE_LIST, STAGE_LARGE, STAGE_N };
static const struct bench_stage stages[STAGE_N] = {
    [STAGE_RUN] = {3, 11, NULL, put_run},
    [STAGE_LIST] = {1, 11, NULL, list_runs},
    [STAGE_LARGE] = {1, 3, NULL, put_large},
};

static void print(const struct bench *bench, const struct bench_time times[STAGE_N],
                  const struct options *options, struct output *out)
{
    const struct bench_time *run = &times[STAGE_RUN], *list = &times[STAGE_LIST],
                            *large = &times[STAGE_LARGE];
    const struct bench_fact facts[] = {
        {"tasks", "tasks", bench->run.n_task},
        {"samples", "samples", bench->run.n_sample},
        {"large_tasks", "tasks in the large run", bench->large.n_task},
    };
    const struct bench_line lines[] = {
        {"run_10k_ms", BENCH_MS, run->wall_s * 1e3, 50, "one run into an open database"},
        {"run_10k_cpu_ms", BENCH_MS, run->cpu_s * 1e3, 0, "the same, CPU time of the process"},
        {"task_rows_per_s", BENCH_PER_S, bench->large.n_task / large->wall_s, 1e6,
         "the large run, without samples"},
        {"task_rows_per_cpu_s", BENCH_PER_S, bench->large.n_task / large->cpu_s, 0,
         "the same, by CPU time"},
        {"history_list_ms", BENCH_MS, list->wall_s * 1e3, 0,
         "unshard history list, without its process"},
        {"history_list_cpu_ms", BENCH_MS, list->cpu_s * 1e3, 0, "the same, CPU time"},
    };
    const struct bench_report report = {
        .benchmark = "store",
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
    enum status status = store_open(bench->path, &bench->store, err);
    for (int i = 0; i < STAGE_N && status == STATUS_OK; i++)
        status = bench_measure(&stages[i], bench, &times[i], err);
    store_close(bench->store);
    return status;
}

enum status bench_store(const struct options *options, struct output *out, struct err *err)
{
    struct bench bench = {0};
    struct bench_time times[STAGE_N];
    const char *folder = NULL;
    arena_init(&bench.arena);
    enum status status = bench_step_make(&bench.step, err);
    if (status != STATUS_OK)
        goto out;
    status = bench_folder_make(&bench.arena, &folder, err);
    if (status != STATUS_OK)
        goto out;

    bench_repeat(&bench.step.run, TASK_N, TASK_N, &bench.arena, &bench.run);
    bench_repeat(&bench.step.run, LARGE_TASK_N, 0, &bench.arena, &bench.large);
    bench.path = arena_printf(&bench.arena, "%s/runs.db", folder);
    status = measure_all(&bench, times, err);
    if (status == STATUS_OK)
        print(&bench, times, options, out);
out:
    if (folder)
        bench_folder_remove(folder);
    bench_step_release(&bench.step);
    arena_release(&bench.arena);
    return status;
}
