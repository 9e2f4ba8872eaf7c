/*
 * The views: their columns and rows on a run of numbers made by hand, and what they add up to on
 * random runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run_make.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

enum { N_RANDOM = 40, WINDOW_NS = 40000 };

static void golden(const char *path, const char *const *views, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char sql[160], name[40];
        snprintf(sql, sizeof(sql), "SELECT * FROM %s", views[i]);
        snprintf(name, sizeof(name), "view-%s.txt", views[i] + 2);
        char *got = rig_query(path, sql);
        char *created = strstr(got, "|20");
        if (!strcmp(views[i], "v_run") && created)
            memcpy(created, "|YYYY-MM-DD hh:mm:ss", 20);
        is_golden(got, name);
        free(got);
    }
}

static void by_hand(void)
{
    static const char *const views[] = {"v_run",         "v_unit",       "v_task",   "v_memory",
                                        "v_memory_peak", "v_collective", "v_exposed"};
    const char *path = rig_path("hand.db");
    struct run run;
    struct store *store = rig_open(path);
    run_by_hand(&run);
    rig_put(store, &run);
    store_close(store);
    golden(path, views, sizeof(views) / sizeof(views[0]));
    is_int(rig_number(path, "SELECT (SELECT count(*) FROM v_real) + (SELECT count(*) FROM v_step) +"
                            " (SELECT count(*) FROM v_rank) + (SELECT count(*) FROM v_check)"),
           0, "a simulated run has nothing of a real one");
}

static void real_by_hand(void)
{
    static const char *const views[] = {"v_real", "v_step", "v_rank", "v_check"};
    const char *path = rig_path("real.db");
    struct run run;
    struct store *store = rig_open(path);
    run_by_hand_real(&run);
    rig_put(store, &run);
    run_by_hand_failed(&run);
    rig_put(store, &run);
    store_close(store);
    golden(path, views, sizeof(views) / sizeof(views[0]));
    is_int(rig_number(path, "SELECT sum(exposed_ns) FROM v_exposed WHERE run = 1"), 50,
           "exposed time of a real run is seen as that of a simulated one");
    is_int(rig_number(path, "SELECT count(*) FROM v_task WHERE run = 2"), 0,
           "a run that failed may have no tasks");
    char *kinds = rig_query(path, "SELECT kind, step_ns FROM v_run ORDER BY run");
    is_str(kinds, "kind|step_ns\nreal|440\nreal|NULL\n", "and no time");
    free(kinds);
}

/* Exposed time the slow way: each ns of the window by itself. */
static int64_t slow_exposed_ns(const struct run *run)
{
    static unsigned char busy[WINDOW_NS];
    int64_t exposed_ns = 0;
    memset(busy, 0, sizeof(busy));
    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        const int bit = task->stream == STREAM_C ? 2 : task_kind_is_collective(task->kind) ? 1 : 0;
        const int both = task->stream == STREAM_C && task_kind_is_collective(task->kind) ? 3 : bit;
        for (int64_t at = task->start_ns > 0 ? task->start_ns : 0;
             at < task->end_ns && at < WINDOW_NS; at++)
            busy[at] |= (unsigned char)both;
    }
    for (int at = 0; at < WINDOW_NS; at++)
        exposed_ns += busy[at] == 1;
    return exposed_ns;
}

static void exposed_of_random_runs(void)
{
    const char *path = rig_path("random.db");
    uint64_t random = tap_seed(3);
    uint32_t n_wrong = 0, n_exposed = 0;
    struct arena arena;
    struct store *store = rig_open(path);

    arena_init(&arena);
    for (int i = 1; i <= N_RANDOM; i++) {
        struct run run;
        char sql[120];
        run_make(&run, &arena, &random, 300, 4);
        const int64_t id = rig_put(store, &run), want = slow_exposed_ns(&run);
        snprintf(sql, sizeof(sql),
                 "SELECT ifnull(sum(exposed_ns), 0) FROM v_exposed WHERE run = %" PRId64, id);
        const int64_t got = rig_number(path, sql);
        if (got != want)
            tap_note("run %d: %" PRId64 ", each ns by itself: %" PRId64, i, got, want);
        n_wrong += got != want;
        n_exposed += want > 0;
    }
    is_int(n_wrong, 0, "v_exposed of %d random runs sums to the time counted ns by ns", N_RANDOM);
    ok(n_exposed > N_RANDOM / 2, "most of them had some");
    is_int(rig_number(path, "SELECT count(*) FROM v_exposed WHERE exposed_ns < 0 OR covered_ns < 0"
                            " OR counted_ns > end_ns - start_ns"),
           0, "and no part is less than nothing or more than its task");
    is_int(rig_number(path, "SELECT (SELECT count(*) FROM v_task) - (SELECT count(*) FROM task)"),
           0, "v_task has every task once");
    is_int(rig_number(path, "SELECT (SELECT count(*) FROM v_memory) -"
                            " (SELECT count(*) FROM memory_sample)"),
           0, "v_memory every sample");
    is_int(rig_number(path, "SELECT (SELECT count(*) FROM v_unit) - (SELECT count(*) FROM unit)"),
           0, "v_unit every unit");
    store_close(store);
    arena_release(&arena);
}

/* A metric that is new must have its column. */
static void metrics_of_run(void)
{
    for (int i = 0; i < RUN_METRIC_N; i++) {
        char sql[160];
        const char *name = run_metric_name((enum run_metric)i);
        snprintf(sql, sizeof(sql),
                 "SELECT count(*) FROM v_run JOIN metric ON run_id = run AND name = '%s'"
                 " WHERE value <> %s",
                 name, name);
        is_int(rig_number(rig_path("random.db"), sql), 0, "v_run shows metric %s", name);
    }
}

/* A question about one run must not cost a walk over the whole history. */
static void plans(void)
{
    static const char *const views[] = {"v_run",         "v_unit",       "v_task",    "v_memory",
                                        "v_memory_peak", "v_collective", "v_exposed", "v_real",
                                        "v_step",        "v_rank",       "v_check",
                                        "v_candidate"};
    static const char *const tables[] = {
        "run",  "unit",         "task", "memory_sample", "memory_peak", "collective", "sample",
        "peak", "communicator", "real", "step",          "real_rank",   "real_check", "real_step"};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        char sql[120], scan[40];
        bool scans = false;
        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN SELECT * FROM %s WHERE run = 7", views[i]);
        char *plan = rig_query(rig_path("random.db"), sql);
        for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
            snprintf(scan, sizeof(scan), "|SCAN %s\n", tables[t]);
            scans = scans || strstr(plan, scan);
        }
        if (!ok(!scans, "%s of one run reads that run's rows alone", views[i]))
            tap_note("%s", plan);
        free(plan);
    }
}

int main(void)
{
    by_hand();
    real_by_hand();
    exposed_of_random_runs();
    metrics_of_run();
    plans();
    return tap_done();
}
