/*
 * The run history when the machine says no: folders, permissions, a full disk, a lock that stays.
 *
 * Each time one clear line, STATUS_DB, and what was stored before is still there.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/run_make.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

enum { NOBODY = 65534 };

/* What a process without rights sees: the message of the first call that fails, "" if none does. */
static void try_to_store(const char *path, char *message, size_t size)
{
    struct err err = {0};
    struct store *store = NULL;
    struct run run;
    int64_t id;
    run_by_hand(&run);
    enum status status = store_open(path, &store, &err);
    if (status == STATUS_OK)
        status = store_put(store, &run, &id, &err);
    store_close(store);
    snprintf(message, size, "%s%s", status == STATUS_OK || status == STATUS_DB ? "" : "status: ",
             status == STATUS_OK ? "" : err.text);
}

/* What a process without rights reads: the same. */
static void try_to_read(const char *path, char *message, size_t size)
{
    struct err err = {0};
    struct store *store = NULL;
    struct arena arena;
    struct run run;
    arena_init(&arena);
    enum status status = store_open_read(path, &store, &err);
    if (status == STATUS_OK)
        status = store_get(store, 0, &arena, &run, &err);
    store_close(store);
    arena_release(&arena);
    snprintf(message, size, "%s", status == STATUS_OK ? "" : err.text);
}

typedef void attempt(const char *path, char *message, size_t size);

/* An attempt in a child, as a user who is not root. */
static void try_without_rights(attempt *try, const char *path, char *message, size_t size)
{
    int ends[2], ended;
    ssize_t n = 0;
    if (pipe(ends))
        tap_bail("no pipe");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
            _exit(1);
        try(path, message, size);
        _exit(write(ends[1], message, strlen(message)) < 0);
    }
    close(ends[1]);
    waitpid(child, &ended, 0);
    n = read(ends[0], message, size - 1);
    message[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

static void expect(const char *got, const char *path, const char *words, const char *what)
{
    ok(strstr(got, words) && strstr(got, path) && strstr(got, "--db"), "%s: %s", what, got);
}

static void copy_file(const char *from, const char *to)
{
    char block[4096];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (!in || !out)
        tap_bail("cannot copy a file of the test");
    while ((n = fread(block, 1, sizeof(block), in)) > 0)
        fwrite(block, 1, n, out);
    fclose(in);
    if (fclose(out))
        tap_bail("cannot copy a file of the test");
}

/* As on a medium that nobody can write to. */
static void read_only_copy(void)
{
    char message[800];
    const char *path = rig_path("copy/a?b#c.db"), *folder = rig_path("copy");
    const char *log = rig_path("copy/a?b#c.db-wal"), *source = rig_path("copied.db");
    struct run run;
    struct store *store = rig_open(source);
    run_by_hand(&run);
    rig_put(store, &run);
    mkdir(folder, 0755);
    copy_file(rig_path("copied.db-wal"), log);
    store_close(store);
    copy_file(source, path);
    chmod(path, 0444);
    chmod(log, 0444);
    chmod(folder, 0555);
    try_without_rights(try_to_read, path, message, sizeof(message));
    expect(message, path, "cannot read", "with a log that cannot be used it is not whole");
    chmod(folder, 0755);
    remove(log);
    chmod(folder, 0555);
    try_without_rights(try_to_read, path, message, sizeof(message));
    is_str(message, "", "a copy where nothing can be written is read");
    chmod(folder, 0755);
}

static void permissions(void)
{
    char message[800];
    const char *path = rig_path("readable/runs.db"), *folder = rig_path("readable");
    const char *inside = rig_path("readable/new/runs.db");
    struct run run;
    struct store *store = rig_open(path);
    run_by_hand(&run);
    rig_put(store, &run);
    store_close(store);
    chmod(rig_path(""), 0755);

    chmod(path, 0444);
    chmod(folder, 0777);
    try_without_rights(try_to_store, path, message, sizeof(message));
    expect(message, path, "read-only", "a read-only file");
    chmod(path, 0666);
    chmod(folder, 0555);
    try_without_rights(try_to_store, path, message, sizeof(message));
    expect(message, path, "cannot", "a folder that nothing can be made in");
    try_without_rights(try_to_store, rig_path("readable/other.db"), message, sizeof(message));
    expect(message, rig_path("readable/other.db"), "cannot", "a new file in such a folder");
    try_without_rights(try_to_store, inside, message, sizeof(message));
    expect(message, rig_path("readable/new"), "cannot make folder", "a new folder in it");
    chmod(folder, 0755);
    chmod(path, 0644);
    ok(access(rig_path("readable/other.db"), F_OK), "no file is left behind");
    is_int(rig_number(path, "SELECT count(*) FROM run"), 1, "the run of before is still there");

    try_to_store(rig_path("readable/runs.db/below.db"), message, sizeof(message));
    expect(message, rig_path("readable/runs.db"), "cannot", "a file where a folder should be");
}

/* A limit on the size of files stands for the full disk. */
static void full_disk(void)
{
    const char *path = rig_path("full.db");
    uint64_t random = tap_seed(11);
    struct arena arena;
    struct run small, large;
    struct err err = {0};
    struct rlimit before, tight = {0};
    int64_t id = -1;
    uint32_t n_failed = 0, n_words = 0;
    struct store *store = rig_open(path);

    arena_init(&arena);
    run_by_hand(&small);
    do
        run_make(&large, &arena, &random, 4000, 300);
    while (large.kind != RUN_REAL || large.n_task < 2000);
    rig_put(store, &small);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    tight.rlim_max = before.rlim_max;
    for (rlim_t kib = 40; kib < 160; kib += 8) {
        tight.rlim_cur = kib << 10;
        setrlimit(RLIMIT_FSIZE, &tight);
        n_failed += store_put(store, &large, &id, &err) == STATUS_DB;
        n_words += strstr(err.text, "cannot store a run in") && strstr(err.text, path);
        setrlimit(RLIMIT_FSIZE, &before);
    }
    is_int(n_failed, 15, "a run that does not fit is refused, however much of it did");
    is_int(n_words, 15, "in words: %s", err.text);
    is_int(id, -1, "and gets no id");
    is_int(rig_put(store, &small), 2, "once there is room the next run is stored");
    is_int(rig_number(path, "SELECT count(*) FROM task"), 2 * small.n_task,
           "nothing of the others is left");
    is_int(rig_number(path, "SELECT (SELECT count(*) FROM real_run) + (SELECT count(*) FROM"
                            " real_rank)"),
           0, "nor of their ranks");
    is_int(rig_put(store, &large), 3, "and the large one fits too");
    store_close(store);
    ok(rig_is_clean(path), "the file is sound");
    arena_release(&arena);
}

/* The lock of WAL's writer: byte 120 of the shared-memory file (SQLite's file format, 4.5). */
static bool hold_write_lock(const char *path)
{
    char name[4200];
    snprintf(name, sizeof(name), "%s-shm", path);
    const int file = open(name, O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 1};
    return file >= 0 && fcntl(file, F_SETLK, &lock) == 0;
}

static void locked(void)
{
    const char *path = rig_path("locked.db");
    struct run run;
    struct err err = {0};
    int64_t id = -1;
    int ready[2], ended;
    char byte;
    struct store *store = rig_open(path);

    run_by_hand(&run);
    rig_put(store, &run);
    if (pipe(ready))
        tap_bail("no pipe");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        byte = hold_write_lock(path);
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1 || !byte)
        tap_bail("the lock cannot be taken");
    is_int(store_put(store, &run, &id, &err), STATUS_DB,
           "a lock that stays is waited for, not long");
    expect(err.text, path, "database is locked: another program", "and the message says so");
    is_int(rig_number(path, "SELECT count(*) FROM run"), 1, "meanwhile the history can be read");
    kill(child, SIGKILL);
    waitpid(child, &ended, 0);
    is_int(rig_put(store, &run), 2, "once the lock is gone the run is stored");
    store_close(store);
}

int main(void)
{
    permissions();
    read_only_copy();
    full_disk();
    locked();
    return tap_done();
}
