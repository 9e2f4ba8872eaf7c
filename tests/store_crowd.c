/*
 * Many writers at once, and writers that die: each run is whole or absent.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Each run by a store of its own, as each `unshard sim` does: who closes last removes the log. */
static int store_many(const char *path, uint64_t first, uint64_t n, int told)
{
    struct err err = {0};
    struct arena arena;
    enum status status = STATUS_OK;
    arena_init(&arena);
    for (uint64_t i = first; i < first + n && status == STATUS_OK; i++) {
        struct store *store = NULL;
        struct run run;
        int64_t id;
        make_run(&run, &arena, i);
        status = store_open(path, &store, &err);
        if (status == STATUS_OK)
            status = store_put(store, &run, &id, &err);
        if (status == STATUS_OK && told >= 0 && write(told, &i, sizeof(i)) != sizeof(i))
            status = STATUS_RUN;
        store_close(store);
        arena_reset(&arena);
    }
    arena_release(&arena);
    if (status != STATUS_OK)
        tap_note("%s", err.text);
    return status != STATUS_OK;
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

static char *read_part(const char *path, long offset, size_t n)
{
    char *bytes = malloc(n);
    FILE *file = fopen(path, "rb");
    if (!bytes || !file || fseek(file, offset, SEEK_SET) || fread(bytes, n, 1, file) != 1)
        tap_bail("cannot read a file of the test");
    fclose(file);
    return bytes;
}

static void write_part(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "ab");
    if (!file || fwrite(bytes, n, 1, file) != 1 || fclose(file))
        tap_bail("cannot write a file of the test");
}

static size_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

enum { PAGE_BYTES = 4096 };

/* The log holds more runs than the file; of them only the first page has come into the file. */
static void killed_in_checkpoint(bool by_reader)
{
    const char *source = rig_path("source.db"), *log = rig_path("source.db-wal");
    const char *path = rig_path(by_reader ? "read.db" : "half.db");
    struct arena arena;
    remove(source);
    store_close(rig_open(source));
    const size_t n_old = size_of(source);
    char *old = read_part(source, 0, n_old);
    struct store *store = rig_open(source);
    arena_init(&arena);
    for (uint64_t i = 1; i <= 20; i++) {
        struct run run;
        make_run(&run, &arena, i);
        rig_put(store, &run);
    }
    const size_t n_log = size_of(log);
    char *frames = read_part(log, 0, n_log);
    store_close(store);
    char *page = read_part(source, 0, PAGE_BYTES);
    memcpy(old, page, PAGE_BYTES);
    write_part(path, old, n_old);
    write_part(rig_path(by_reader ? "read.db-wal" : "half.db-wal"), frames, n_log);

    if (!by_reader)
        store_close(rig_open(path));
    is_int(count_damaged(path, 20), 0, "a kill in the middle of a checkpoint harms no run: %s",
           by_reader ? "they can be read" : "storing goes on");
    ok(rig_is_clean(path), "the file is sound");
    free(page);
    free(frames);
    free(old);
    arena_release(&arena);
}

/* The journal of a file that was empty: SQLite's file format, chapter 3. */
static void write_journal(const char *path)
{
    unsigned char journal[512] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    journal[22] = 512 >> 8;        /* bytes of a sector; before it pages, nonce, old size: 0 */
    journal[26] = PAGE_BYTES >> 8; /* bytes of a page */
    write_part(path, journal, sizeof(journal));
}

/* Half of a new file is written, in the mode that it is made in. */
static void make_half(const char *path, uint32_t application_id)
{
    const char *source = rig_path("source.db"), *journal = rig_path("journal");
    remove(source);
    remove(path);
    store_close(rig_open(source));
    char *half = read_part(source, 0, size_of(source) / 2 / PAGE_BYTES * PAGE_BYTES);
    write_part(path, half, size_of(source) / 2 / PAGE_BYTES * PAGE_BYTES);
    rig_patch(path, 16, PAGE_BYTES << 16 | 0x0101);
    rig_patch(path, HEADER_APPLICATION_ID, application_id);
    remove(journal);
    write_journal(journal);
    free(half);
}

static void killed_while_made(void)
{
    const char *path = rig_path("made.db"), *beside = rig_path("made.db-journal");
    struct err err = {0};
    struct store *store = NULL;
    make_half(path, 0x756e7368);
    rename(rig_path("journal"), beside);
    store_close(rig_open(path));
    is_int(rig_number(path, "SELECT count(*) FROM run"), 0,
           "a kill while the file is made leaves one that can be stored in");
    ok(rig_is_clean(path), "the file is sound");

    make_half(path, 0x756e7368);
    rename(rig_path("journal"), beside);
    is_int(store_open_read(path, &store, &err), STATUS_DB, "and that a reader finds empty");
    ok(strstr(err.text, "is empty: no run was stored yet"), "which it says: %s", err.text);

    make_half(path, 77);
    rename(rig_path("journal"), beside);
    const size_t before = size_of(path);
    is_int(store_open(path, &store, &err), STATUS_DB, "a database of another program is refused");
    is_int(store_open_read(path, &store, &err), STATUS_DB, "also to readers");
    ok(size_of(path) == before && size_of(beside) == 512, "and left to its owner to repair");
}

int main(void)
{
    crowd();
    killed();
    killed_in_checkpoint(false);
    killed_in_checkpoint(true);
    killed_while_made();
    return tap_done();
}
