/*
 * The run history: what is put comes back, what is equal is kept once, and whose file is refused.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/schema.h"
#include "tests/run_make.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

enum { N_RUN = 60 };

static void get_and_compare(struct store *store, int64_t id, const struct run *want,
                            uint32_t *n_different)
{
    struct arena arena;
    struct run got;
    struct err err = {0};
    arena_init(&arena);
    const char *difference = store_get(store, id, &arena, &got, &err) == STATUS_OK
                                 ? run_difference(want, &got)
                                 : err.text;
    if (difference) {
        tap_note("run %lld: %s", (long long)id, difference);
        ++*n_different;
    }
    arena_release(&arena);
}

static void round_trip(void)
{
    const char *path = rig_path("round/trip/runs.db");
    struct arena arena;
    struct run runs[N_RUN];
    uint64_t random = tap_seed(7);
    uint32_t n_different = 0, n_wrong_id = 0;
    struct store *store = rig_open(path);

    arena_init(&arena);
    for (int i = 0; i < N_RUN; i++) {
        run_make(&runs[i], &arena, &random, i < 50 ? 40 : 2000, i < 50 ? 5 : 300);
        n_wrong_id += rig_put(store, &runs[i]) != i + 1;
        if (i % 10 == 0)
            get_and_compare(store, 0, &runs[i], &n_different);
    }
    is_int(n_wrong_id, 0, "ids count from 1");
    is_int(n_different, 0, "id 0 is the newest run");
    for (int i = 0; i < N_RUN; i++)
        get_and_compare(store, i + 1, &runs[i], &n_different);
    is_int(n_different, 0, "%d random runs come back as they were put", N_RUN);
    store_close(store);

    struct err err = {0};
    ok(store_open_read(path, &store, &err) == STATUS_OK, "a reader opens the file");
    get_and_compare(store, 17, &runs[16], &n_different);
    is_int(n_different, 0, "and gets the same");
    int64_t id;
    is_int(store_put(store, &runs[0], &id, &err), STATUS_DB, "but cannot store");
    store_close(store);
    ok(rig_is_clean(path), "the file is sound");
    arena_release(&arena);
}

/* Names of the machine would tell a stranger who asked. */
static void keeps_no_host(const char *path)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    char *columns = rig_query(path, "SELECT group_concat(m.name || '.' || c.name) FROM"
                                    " sqlite_schema AS m, pragma_table_info(m.name) AS c");
    ok(!strstr(columns, "host") && !strstr(columns, "user"), "no column is for a host or a user");
    free(columns);
    columns = rig_query(path, "SELECT * FROM v_run");
    if (strlen(host) > 5)
        ok(!strstr(columns, host), "and none holds this host's name");
    else
        tap_skip("this host's name is too short to look for");
    free(columns);
}

static void shares(void)
{
    const char *path = rig_path("shared.db");
    struct run run, other;
    struct arena arena;
    struct store *store = rig_open(path);
    struct err err = {0};
    const int64_t before_s = time(NULL);

    arena_init(&arena);
    run_by_hand(&run);
    other = run;
    other.plan_json = "{\"units\":\"whole\"}";
    rig_put(store, &run);
    const int64_t n_string = rig_number(path, "SELECT count(*) FROM string");
    rig_put(store, &run);
    rig_put(store, &other);
    is_int(rig_number(path, "SELECT count(*) FROM run"), 3, "three runs of two plans");
    is_int(rig_number(path, "SELECT count(*) FROM document WHERE kind = 'model'"), 1,
           "share one model");
    is_int(rig_number(path, "SELECT count(*) FROM document WHERE kind = 'cluster'"), 1,
           "one cluster");
    is_int(rig_number(path, "SELECT count(*) FROM document WHERE kind = 'plan'"), 2,
           "and have two plans");
    is_int(rig_number(path, "SELECT count(*) FROM string"), n_string, "and no text twice");
    is_int(rig_number(path, "SELECT count(*) FROM task_label"), run.n_task, "nor a task's label");
    is_int(rig_number(path, "SELECT count(*) FROM task"), 3 * run.n_task, "tasks are each run's");

    struct run got;
    ok(store_get(store, 1, &arena, &got, &err) == STATUS_OK, "a run is read");
    ok(got.created_ns / 1000000000 >= before_s && got.created_ns / 1000000000 <= time(NULL),
       "and says when it was stored");
    is_int(store_get(store, 4, &arena, &got, &err), STATUS_USAGE, "run 4 does not exist");
    ok(strstr(err.text, "newest of its 3 is run 3"), "and the message says which do: %s", err.text);
    run.world = UINT64_MAX;
    int64_t id = 0;
    is_int(store_put(store, &run, &id, &err), STATUS_DB, "a number past 2^63 - 1 is refused");
    is_int(id, 0, "without an id");
    run_by_hand_real(&run);
    run.real.seed = UINT64_MAX;
    is_int(store_put(store, &run, &id, &err), STATUS_DB, "so is one of a real run");
    store_close(store);
    keeps_no_host(path);
    arena_release(&arena);
}

static void settings(void)
{
    const char *path = rig_path("settings.db");
    store_close(rig_open(path));
    is_int(rig_number(path, "PRAGMA user_version"), 7, "the schema has its number");
    is_int(rig_number(path, "PRAGMA application_id"), 0x756e7368, "the file has its owner");
    char *mode = rig_query(path, "PRAGMA journal_mode");
    is_str(mode, "journal_mode\nwal\n", "it uses a write-ahead log");
    free(mode);
    is_int(rig_number(path, "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type"
                            " = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'"),
           0, "every table is strict");

    const char *odd = rig_path("a?b#c%20d.db");
    store_close(rig_open(odd));
    store_close(rig_open(odd));
    is_int(access(odd, F_OK), 0, "a path with characters of URIs is taken as it is");
}

/* Opens for writing and for reading; neither may change a byte. */
static void refuses(const char *path, const char *words, const char *what)
{
    struct store *store = NULL;
    struct err err = {0};
    struct stat before, after;
    char *bytes = tap_read_file(path), *now;

    stat(path, &before);
    is_int(store_open(path, &store, &err), STATUS_DB, "%s is refused to store in", what);
    ok(strstr(err.text, path) && strstr(err.text, words), "with its name and what to do: %s",
       err.text);
    is_int(store_open_read(path, &store, &err), STATUS_DB, "and to read");
    char *answer = rig_query(path, "SELECT 1");
    ok(!strncmp(answer, "error: ", 7), "and to query");
    now = tap_read_file(path);
    stat(path, &after);
    ok(before.st_size == after.st_size && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec &&
           !memcmp(bytes, now, (size_t)before.st_size),
       "and stays as it was");
    const char *log = rig_path("foreign.db-wal");
    ok(access(log, F_OK), "nothing appears beside it");
    free(answer);
    free(bytes);
    free(now);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file))
        tap_bail("cannot write a file of the test");
}

static void foreign_files(void)
{
    const char *path = rig_path("foreign.db"), *empty = rig_path("empty.db");
    struct err err = {0};
    struct store *store = NULL;

    store_close(rig_open(path));
    rig_patch(path, HEADER_APPLICATION_ID, 77);
    refuses(path, "give another file with --db", "a database of another program");
    rig_patch(path, HEADER_APPLICATION_ID, 0);
    refuses(path, "give another file with --db", "a database of nobody");
    rig_patch(path, HEADER_APPLICATION_ID, 0x756e7368);
    rig_patch(path, HEADER_USER_VERSION, schema_version + 1);
    refuses(path, "update, or give another", "a newer schema");
    rig_patch(path, HEADER_USER_VERSION, (uint32_t)-3);
    refuses(path, "update, or give another", "a schema of no number");
    write_file(path, "these are the notes of somebody, long enough to be more than the header of a"
                     " database, and nothing that should ever be written over\n");
    refuses(path, "not a database", "a text");
    write_file(path, "short\n");
    refuses(path, "not a database", "a short text");

    write_file(empty, "");
    is_int(store_open_read(empty, &store, &err), STATUS_DB, "an empty file has nothing to read");
    store_close(rig_open(empty));
    is_int(rig_number(empty, "SELECT count(*) FROM run"), 0, "but can be stored in");
    is_int(store_open(rig_path("."), &store, &err), STATUS_DB, "a folder is refused: %s", err.text);
    is_int(store_open("", &store, &err), STATUS_DB, "no path is refused");
    is_int(store_open(":memory:", &store, &err), STATUS_DB, "and a database that nobody would see");
    is_int(store_open_read(rig_path("none.db"), &store, &err), STATUS_DB,
           "a missing file is not made by a reader: %s", err.text);
    ok(access(rig_path("none.db"), F_OK), "nothing is there afterwards");
}

/* Somebody's own hands in the file. */
static void change(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL))
        tap_bail("cannot change a database of the test");
    sqlite3_close(db);
}

static void damaged_files(void)
{
    static const struct {
        const char *name, *sql, *words;
    } cases[] = {
        {"number", "PRAGMA user_version = 0", "it lacks its schema number 'user_version'"},
        {"view", "DROP VIEW v_run", "it lacks its view 'v_run'"},
        {"table", "DROP TABLE memory_sample", "it lacks its table 'memory_sample'"},
        {"index", "DROP INDEX document_by_hash", "it lacks its index 'document_by_hash'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = rig_path(cases[i].name);
        store_close(rig_open(path));
        change(path, cases[i].sql);
        refuses(path, cases[i].words, "a history of ours after hands were in it");
    }
    const char *path = rig_path("more.db");
    store_close(rig_open(path));
    change(path, "CREATE VIEW mine AS SELECT * FROM v_run");
    store_close(rig_open(path));
    is_int(rig_number(path, "SELECT count(*) FROM mine"), 0, "a view of one's own does no harm");
}

/* Rows of a real run that are missing make it no simulated one. */
static void damaged_real_run(void)
{
    const char *path = rig_path("real.db");
    struct arena arena;
    struct run run, got;
    struct err err = {0};
    struct store *store = rig_open(path);
    arena_init(&arena);
    run_by_hand_real(&run);
    rig_put(store, &run);
    ok(store_get(store, 1, &arena, &got, &err) == STATUS_OK, "a real run is read");
    is_str(run_real_difference(&run.real, &got.real), NULL, "as it was put");
    run_by_hand_failed(&run);
    rig_put(store, &run);
    ok(store_get(store, 2, &arena, &got, &err) == STATUS_OK, "one that failed too");
    is_str(run_difference(&run, &got), NULL, "as it was put");
    change(path, "DELETE FROM real_run WHERE run_id = 1");
    is_int(store_get(store, 1, &arena, &got, &err), STATUS_DB,
           "without its row in real_run it is damaged");
    ok(strstr(err.text, "run 1 in") && strstr(err.text, "is damaged"), "which is said: %s",
       err.text);
    store_close(store);
    arena_release(&arena);
}

static void empty_history(void)
{
    struct arena arena;
    struct run run;
    struct err err = {0};
    struct store *store = rig_open(rig_path("new.db"));
    arena_init(&arena);
    is_int(store_get(store, 0, &arena, &run, &err), STATUS_USAGE,
           "a new history has no newest run");
    ok(strstr(err.text, "no run in"), "and says so: %s", err.text);
    store_close(store);
    arena_release(&arena);
}

static void default_path(void)
{
    struct arena arena;
    struct err err = {0};
    const char *path = NULL;
    arena_init(&arena);
    setenv("HOME", "/home/someone", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    store_default_path(&arena, &path, &err);
    is_str(path, "/data/unshard/runs.db", "the history lies in the user's data folder");
    setenv("XDG_DATA_HOME", "not/absolute", 1);
    store_default_path(&arena, &path, &err);
    is_str(path, "/home/someone/.local/share/unshard/runs.db", "a relative one counts as none");
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    is_int(store_default_path(&arena, &path, &err), STATUS_USAGE, "without a home: %s", err.text);
    arena_release(&arena);
}

int main(void)
{
    round_trip();
    shares();
    settings();
    foreign_files();
    damaged_files();
    damaged_real_run();
    empty_history();
    default_path();
    return tap_done();
}
