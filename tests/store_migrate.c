/*
 * Histories of older schemas under this program: whoever stores in one first brings it up to date,
 * and what was in it is what it would be had it been stored today.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/run_make.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

enum { N_PROCESS = 4 };

static const char *old_history(const char *name)
{
    static char source[4096];
    const char *path = rig_path(name), *top = getenv("top_srcdir");
    sqlite3 *db = NULL;
    snprintf(source, sizeof(source), "%s/tests/%s.sql", top ? top : ".", name);
    char *sql = tap_read_file(source);
    if (!sql || sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL))
        tap_bail("cannot make a history of an older schema");
    sqlite3_close(db);
    free(sql);
    return path;
}

static void readers_wait(const char *path)
{
    struct store *store = NULL;
    struct err err = {0};
    is_int(store_open_read(path, &store, &err), STATUS_DB, "a reader does not change the schema");
    ok(strstr(err.text, "store a run in it, which brings it up to date"), "and says who does: %s",
       err.text);
    char *answer = rig_query(path, "SELECT * FROM v_run");
    ok(!strncmp(answer, "error: ", 7), "nor does a query");
    free(answer);
}

static void store_one(const char *path)
{
    struct run run;
    struct store *store = rig_open(path);
    run_by_hand(&run);
    rig_put(store, &run);
    store_close(store);
}

/* All at once, so that some find the schema half way between their two looks at it. */
static void processes_meet(const char *path)
{
    uint32_t n_failed = 0;
    int ended;
    fflush(stdout);
    for (int p = 0; p < N_PROCESS; p++) {
        if (fork() == 0) {
            store_one(path);
            _exit(0);
        }
    }
    while (wait(&ended) > 0)
        n_failed += ended != 0;
    is_int(n_failed, 0, "%d processes store a run in it", N_PROCESS);
    is_int(rig_number(path, "PRAGMA user_version"), 7, "it has the newest schema then");
    is_int(rig_number(path, "SELECT count(*) FROM v_run"), 1 + N_PROCESS, "and all their runs");
    ok(rig_is_clean(path), "the file is sound");
}

static void old_run_reads(const char *path)
{
    struct arena arena;
    struct run want, got;
    struct err err = {0};
    struct store *store = rig_open(path);
    arena_init(&arena);
    run_by_hand(&want);
    const char *difference = store_get(store, 1, &arena, &got, &err) == STATUS_OK
                                 ? run_difference(&want, &got)
                                 : err.text;
    ok(!difference, "the old run is what it would be today%s%s", difference ? ": " : "",
       difference ? difference : "");
    store_close(store);
    arena_release(&arena);
}

/* The same golden files as those of a history that was never old. */
static void views_show(const char *path)
{
    static const char *const views[] = {"unit",        "task",       "memory",
                                        "memory_peak", "collective", "exposed"};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        char sql[80], name[40];
        snprintf(sql, sizeof(sql), "SELECT * FROM v_%s WHERE run = 1", views[i]);
        snprintf(name, sizeof(name), "view-%s.txt", views[i]);
        char *got = rig_query(path, sql);
        is_golden(got, name);
        free(got);
    }
}

static void schema_is_the_same(const char *path)
{
    static const char sql[] = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name";
    const char *new_path = rig_path("new.db");
    store_close(rig_open(new_path));
    char *old = rig_query(path, sql), *new = rig_query(new_path, sql);
    is_str(old, new, "its schema is that of a new file");
    is_int(rig_number(path, "SELECT count(*) FROM task_label"), 6,
           "labels are shared between the old run and new ones");
    free(old);
    free(new);
}

int main(void)
{
    static const char *const histories[] = {"history_1", "history_2", "history_3",
                                            "history_4", "history_5", "history_6"};
    for (size_t i = 0; i < sizeof(histories) / sizeof(histories[0]); i++) {
        const char *path = old_history(histories[i]);
        tap_note("%s", histories[i]);
        readers_wait(path);
        processes_meet(path);
        old_run_reads(path);
        views_show(path);
        schema_is_the_same(path);
    }
    return tap_done();
}
