/*
 * Many writers at once, and writers that die: each run is whole or absent.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/run_make.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

enum { N_PROCESS = 8, N_RUN = 50, N_KILL = 50 };

/* Run i of a process is the same wherever it is made. */
static void make_run(struct run *run, struct arena *arena, uint64_t seed)
{
    uint64_t random = seed;
    run_make(run, arena, &random, 150, 10);
    run->parameters = seed;
}

/* Opens the new file together with the others. */
static int store_many(const char *path, uint64_t first, uint64_t n, int told)
{
    struct store *store;
    struct err err = {0};
    struct arena arena;
    enum status status = store_open(path, &store, &err);
    arena_init(&arena);
    for (uint64_t i = first; i < first + n && status == STATUS_OK; i++) {
        struct run run;
        int64_t id;
        make_run(&run, &arena, i);
        status = store_put(store, &run, &id, &err);
        if (status == STATUS_OK && told >= 0 && write(told, &i, sizeof(i)) != sizeof(i))
            status = STATUS_RUN;
        arena_reset(&arena);
    }
    if (status != STATUS_OK) {
        tap_note("%s", err.text);
        return 1;
    }
    store_close(store);
    arena_release(&arena);
    return 0;
}

/* How many runs of the file are not the ones that their number stands for. */
static uint32_t count_damaged(const char *path, int64_t n)
{
    struct store *store = NULL;
    struct err err = {0};
    struct arena arena;
    uint32_t n_damaged = 0;
    if (store_open_read(path, &store, &err) != STATUS_OK)
        tap_bail(err.text);
    arena_init(&arena);
    for (int64_t id = 1; id <= n; id++) {
        struct run want, got;
        const char *difference = err.text;
        if (store_get(store, id, &arena, &got, &err) == STATUS_OK) {
            make_run(&want, &arena, got.parameters);
            difference = run_difference(&want, &got);
        }
        if (difference)
            tap_note("run %lld: %s", (long long)id, difference);
        n_damaged += difference != NULL;
        arena_reset(&arena);
    }
    store_close(store);
    arena_release(&arena);
    return n_damaged;
}

/* What the schema does not refer to by a foreign key. */
static bool has_orphans(const char *path)
{
    return rig_number(path, "SELECT (SELECT total(n_task) FROM run) <> (SELECT count(*) FROM task)"
                            " OR (SELECT total(n_sample) FROM run) <> (SELECT count(*) FROM"
                            " memory_sample) OR EXISTS (SELECT 1 FROM task WHERE label_id NOT IN"
                            " (SELECT id FROM task_label))") != 0;
}

static void crowd(void)
{
    const char *path = rig_path("crowd/runs.db");
    uint32_t n_failed = 0;
    int ended;
    fflush(stdout);
    for (int p = 0; p < N_PROCESS; p++) {
        if (fork() == 0)
            _exit(store_many(path, 1 + (uint64_t)p * N_RUN, N_RUN, -1));
    }
    while (wait(&ended) > 0)
        n_failed += ended != 0;
    is_int(n_failed, 0, "%d processes make one new file and store %d runs each", N_PROCESS, N_RUN);
    is_int(rig_number(path, "SELECT count(DISTINCT parameters) FROM run"), N_PROCESS * N_RUN,
           "each run is there once");
    is_int(rig_number(path, "SELECT max(id) FROM run"), N_PROCESS * N_RUN, "ids have no gaps");
    is_int(count_damaged(path, N_PROCESS * N_RUN), 0, "and each is as it was put");
    ok(!has_orphans(path), "no task or sample is without a run, no task without its label");
    is_int(rig_number(path, "SELECT count(*) - count(DISTINCT kind || hash || name) FROM document"),
           0, "no document is there twice");
    ok(rig_is_clean(path), "the file is sound");
}

/*
 * A child stores run after run and tells when one is in; it is killed after some time, counted from
 * its start (before the file is there, perhaps) or from its first run.
 */
static uint64_t store_until_killed(const char *path, uint64_t first, bool from_first_run, long us)
{
    int told[2], ended;
    uint64_t run, last = first - 1;
    if (pipe(told))
        tap_bail("no pipe");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(store_many(path, first, UINT64_MAX / 2, told[1]));
    close(told[1]);
    if (from_first_run && read(told[0], &run, sizeof(run)) == sizeof(run))
        last = run;
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
    kill(child, SIGKILL);
    waitpid(child, &ended, 0);
    while (read(told[0], &run, sizeof(run)) == sizeof(run))
        last = run;
    close(told[0]);
    return last;
}

static void killed(void)
{
    const char *path = rig_path("killed/runs.db");
    uint64_t random = tap_seed(5), next = 1;
    uint32_t n_lost = 0, n_unsound = 0, n_early = 0, n_silent = 0;
    for (int i = 0; i < N_KILL; i++) {
        const uint64_t last =
            store_until_killed(path, next, i % 2, (long)tap_below(&random, 20000));
        store_close(rig_open(path)); /* whoever comes next repairs what is to be repaired */
        const int64_t n = rig_number(path, "SELECT count(*) FROM run");
        n_lost += (uint64_t)n < last;
        n_silent += (uint64_t)n > last;
        n_early += last < next;
        n_unsound += has_orphans(path);
        next = (uint64_t)n + 1;
    }
    is_int(n_lost, 0, "after %d kills no run is lost that was said to be in", N_KILL);
    is_int(n_unsound, 0, "and no part of one is left");
    is_int(count_damaged(path, (int64_t)next - 1), 0, "each of the %llu runs is whole",
           (unsigned long long)next - 1);
    ok(rig_is_clean(path), "the file is sound");
    ok(next > N_KILL / 2, "many were stored in between");
    tap_note("%u kills before a first run, %u between commit and word of it", n_early, n_silent);
}

int main(void)
{
    crowd();
    killed();
    return tap_done();
}
