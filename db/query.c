/*
 * A person's SQL on a connection that can only read.
 *
 * Three locks, each enough by itself: the file is opened read-only, query_only is set, and an
 * authorizer lets through reading, functions and a few questions about the database. Time is
 * counted while SQLite works, not while its rows are printed.
 */
#include "db/query.h"

#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/connection.h"
#include "src/arena.h"

enum { CHECK_EVERY_STEPS = 1000, MAX_VALUE_BYTES = 64 << 20, NUMBER_CHARS = 32 };

struct running {
    struct connection connection;
    const struct query *query;
    struct arena arena;
    sqlite3_stmt *statement;
    int64_t used_ms, step_began_ms; /* of the timeout */
    bool timed_out, denied;
};

/* Questions that have no argument, or one that changes nothing. */
static bool pragma_is_harmless(const char *name, const char *argument)
{
    static const struct {
        const char *name;
        bool takes_argument;
    } harmless[] = {
        {"application_id", false},   {"user_version", false},   {"journal_mode", false},
        {"table_list", true},        {"table_info", true},      {"table_xinfo", true},
        {"index_list", true},        {"index_info", true},      {"foreign_key_list", true},
        {"foreign_key_check", true}, {"integrity_check", true}, {"quick_check", true},
        {"page_count", false},       {"page_size", false},      {"freelist_count", false},
        {"compile_options", false},  {"function_list", false},
    };
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (!sqlite3_stricmp(harmless[i].name, name))
            return !argument || harmless[i].takes_argument;
    }
    return false;
}

/* What reaches beyond the database, where a build of SQLite has it. */
static bool function_is_harmless(const char *name)
{
    static const char *const harmful[] = {"load_extension", "fts3_tokenizer", "readfile",
                                          "writefile", "edit"};
    for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++) {
        if (!sqlite3_stricmp(harmful[i], name))
            return false;
    }
    return true;
}

static bool action_is_harmless(int action, const char *first, const char *second)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return true;
    case SQLITE_FUNCTION:
        return function_is_harmless(second);
    case SQLITE_UPDATE: /* asked when a table function declares itself; SQLite refuses a real one */
        return sqlite3_stricmp(first, "sqlite_master") == 0;
    case SQLITE_PRAGMA:
        return pragma_is_harmless(first, second);
    default:
        return false;
    }
}

/* A denial is remembered: SQLite's code for it depends on the statement. */
static int authorize(void *self, int action, const char *first, const char *second,
                     const char *database, const char *view)
{
    struct running *running = self;
    (void)database;
    (void)view;
    if (action_is_harmless(action, first, second))
        return SQLITE_OK;
    running->denied = true;
    return SQLITE_DENY;
}

static int check_time(void *self)
{
    struct running *running = self;
    const int64_t now_ms = connection_clock_ms() - running->step_began_ms + running->used_ms;
    running->timed_out = now_ms >= running->query->timeout_ms;
    return running->timed_out;
}

static void limit(struct running *running)
{
    sqlite3 *db = running->connection.db;
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(db, authorize, running);
    if (running->query->timeout_ms > 0)
        sqlite3_progress_handler(db, CHECK_EVERY_STEPS, check_time, running);
}

static int error_offset(sqlite3 *db)
{
#if SQLITE_VERSION_NUMBER >= 3038000
    return sqlite3_error_offset(db);
#else
    (void)db;
    return -1;
#endif
}

/* base: where the statement that SQLite speaks of begins. */
static enum status fail_sql(const struct running *running, const char *base, struct err *err)
{
    sqlite3 *db = running->connection.db;
    const int code = sqlite3_errcode(db) & 0xff, offset = error_offset(db);
    if (running->timed_out)
        return err_set(
            err, STATUS_DB,
            "the statement was stopped after %lld ms: ask for less, or give it more time",
            (long long)running->query->timeout_ms);
    if (running->denied)
        return err_set(err, STATUS_USAGE,
                       "not allowed: a query only reads: use one SELECT statement (%s)",
                       sqlite3_errmsg(db));
    if (code != SQLITE_ERROR && code != SQLITE_TOOBIG && code != SQLITE_MISMATCH &&
        code != SQLITE_RANGE)
        return connection_fail(&running->connection, "read", err);
    if (offset >= 0)
        return err_set(err, STATUS_USAGE, "error in SQL at character %lld: %s",
                       (long long)(base - running->query->sql) + offset + 1, sqlite3_errmsg(db));
    return err_set(err, STATUS_USAGE, "error in SQL: %s", sqlite3_errmsg(db));
}

/* What stands behind the first statement: nothing but blanks, comments and semicolons. */
static enum status check_tail(const struct running *running, const char *tail, struct err *err)
{
    sqlite3_stmt *more = NULL;
    int code = SQLITE_OK;
    while (*tail && !more && code == SQLITE_OK)
        code = sqlite3_prepare_v2(running->connection.db, tail, -1, &more, &tail);
    const bool single = !more && code == SQLITE_OK;
    sqlite3_finalize(more);
    if (single)
        return STATUS_OK;
    return err_set(err, STATUS_USAGE,
                   "more than one statement in the SQL: give one, or ask for each by itself");
}

static enum status prepare(struct running *running, struct err *err)
{
    const char *sql = running->query->sql, *tail;
    if (sqlite3_prepare_v2(running->connection.db, sql, -1, &running->statement, &tail) !=
        SQLITE_OK)
        return fail_sql(running, sql, err);
    if (!running->statement)
        return err_set(err, STATUS_USAGE, "no statement in the SQL: give a SELECT");
    return check_tail(running, tail, err);
}

/* A number only where it would be printed as it was given; of 15 digits a real keeps each. */
static void bind_value(sqlite3_stmt *statement, int parameter, const char *text)
{
    char printed[NUMBER_CHARS];
    const long long integer = strtoll(text, NULL, 10);
    snprintf(printed, sizeof(printed), "%lld", integer);
    if (!strcmp(printed, text)) {
        sqlite3_bind_int64(statement, parameter, integer);
        return;
    }
    const double real = strtod(text, NULL);
    snprintf(printed, sizeof(printed), "%.*g", DBL_DIG, real);
    if (!strcmp(printed, text) && strchr(text, '.'))
        sqlite3_bind_double(statement, parameter, real);
    else
        sqlite3_bind_text(statement, parameter, text, -1, SQLITE_STATIC);
}

static enum status bind(const struct running *running, struct err *err)
{
    const int want = sqlite3_bind_parameter_count(running->statement);
    const int n = running->query->n_param;
    if (n != want)
        return err_set(err, STATUS_USAGE, "the SQL has %d parameter%s, values given: %d", want,
                       want == 1 ? "" : "s", n);
    for (int i = 0; i < n; i++)
        bind_value(running->statement, i + 1, running->query->params[i]);
    return STATUS_OK;
}

/* SQLite writes 15 digits of a real; buffer holds those that it takes to read the same again. */
static void make_exact(struct query_value *value, double real, char buffer[NUMBER_CHARS])
{
    if (strtod(value->text, NULL) == real)
        return;
    for (int digits = DBL_DIG + 1; digits <= DBL_DECIMAL_DIG; digits++) {
        value->length = (size_t)snprintf(buffer, NUMBER_CHARS, "%.*g", digits, real);
        value->text = buffer;
        if (strtod(buffer, NULL) == real)
            return;
    }
}

static struct query_value value_of(sqlite3_stmt *statement, int column, char buffer[NUMBER_CHARS])
{
    static const enum query_kind kinds[] = {
        [SQLITE_INTEGER] = QUERY_INTEGER, [SQLITE_FLOAT] = QUERY_REAL, [SQLITE_TEXT] = QUERY_TEXT,
        [SQLITE_BLOB] = QUERY_BLOB,       [SQLITE_NULL] = QUERY_NULL,
    };
    struct query_value value = {.kind = kinds[sqlite3_column_type(statement, column)]};
    if (value.kind == QUERY_NULL)
        return value;
    const double real = value.kind == QUERY_REAL ? sqlite3_column_double(statement, column) : 0;
    const void *text = value.kind == QUERY_BLOB ? sqlite3_column_blob(statement, column)
                                                : sqlite3_column_text(statement, column);
    value.text = text ? text : "";
    value.length = (size_t)sqlite3_column_bytes(statement, column);
    if (value.kind == QUERY_REAL)
        make_exact(&value, real, buffer);
    else if (value.kind == QUERY_TEXT && memchr(value.text, '\0', value.length))
        value.kind = QUERY_BLOB;
    return value;
}

static enum status step(struct running *running, bool *row, struct err *err)
{
    running->step_began_ms = connection_clock_ms();
    const int code = sqlite3_step(running->statement);
    running->used_ms += connection_clock_ms() - running->step_began_ms;
    *row = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return fail_sql(running, running->query->sql, err);
    return STATUS_OK;
}

static enum status send_rows(struct running *running, query_row row, void *self, struct err *err)
{
    const int n = sqlite3_column_count(running->statement);
    const char **names = arena_array(&running->arena, const char *, n);
    struct query_value *values = arena_array(&running->arena, struct query_value, n);
    char(*buffers)[NUMBER_CHARS] = arena_alloc(&running->arena, (size_t)n * NUMBER_CHARS);
    bool more = true;

    for (int i = 0; i < n; i++)
        names[i] = arena_strdup(&running->arena, sqlite3_column_name(running->statement, i));
    enum status status = row(self, n, names, NULL, err);
    while (status == STATUS_OK && more) {
        status = step(running, &more, err);
        for (int i = 0; i < n && more; i++)
            values[i] = value_of(running->statement, i, buffers[i]);
        if (status == STATUS_OK && more)
            status = row(self, n, names, values, err);
    }
    return status;
}

enum status query_run(const char *path, const struct query *query, query_row row, void *self,
                      struct err *err)
{
    struct running running = {.query = query};
    arena_init(&running.arena);
    enum status status = connection_open(&running.connection, path, CONNECTION_READ, err);
    if (status == STATUS_OK) {
        limit(&running);
        running.step_began_ms = connection_clock_ms();
        status = prepare(&running, err);
    }
    if (status == STATUS_OK)
        status = bind(&running, err);
    if (status == STATUS_OK)
        status = send_rows(&running, row, self, err);
    sqlite3_finalize(running.statement);
    connection_close(&running.connection);
    arena_release(&running.arena);
    return status;
}
