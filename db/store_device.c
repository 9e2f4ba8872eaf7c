/*
 * Parts of a device check into the tables, all of them in one transaction.
 */
#include <time.h>

#include "db/statement.h"
#include "db/store_inner.h"

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum status put_lines(struct connection *connection, sqlite3_stmt *statement, int64_t id,
                             const struct device_check *check, struct err *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < check->n_line && status == STATUS_OK; i++) {
        const struct check_line *line = &check->lines[i];
        const bool bounded = line->bound != CHECK_BOUND_NONE;
        BIND_INTS(statement, 1, id, i);
        statement_bind_text(statement, 3, line->key);
        statement_bind_text(statement, 4, line->words);
        sqlite3_bind_double(statement, 5, line->value); /* NAN becomes NULL */
        statement_bind_text(statement, 6, check_unit_name((enum check_unit)line->unit));
        statement_bind_text(statement, 7, check_bound_name((enum check_bound)line->bound));
        if (bounded)
            sqlite3_bind_double(statement, 8, line->limit);
        else
            sqlite3_bind_null(statement, 8);
        statement_bind_text(statement, 9, check_verdict_name((enum check_verdict)line->verdict));
        status = statement_run(connection, statement, err);
    }
    return status;
}

static enum status put_check(struct connection *connection, sqlite3_stmt *statements[2],
                             const struct device_check *check, struct err *err)
{
    static const char next[] = "SELECT ifnull(max(id), 0) + 1 FROM device_check";
    int64_t id = 0;
    enum status status = connection_int(connection, next, &id, err);
    if (status != STATUS_OK)
        return status;
    BIND_INTS(statements[0], 1, id, now_ns());
    statement_bind_text(statements[0], 3, check->tool_version);
    statement_bind_text(statements[0], 4, check->part);
    statement_bind_text(statements[0], 5, check->device);
    statement_bind_text(statements[0], 6, check->name);
    statement_bind_text(statements[0], 7, check->software);
    status = statement_run(connection, statements[0], err);
    return status == STATUS_OK ? put_lines(connection, statements[1], id, check, err) : status;
}

/* Within the transaction. */
static enum status put_checks(struct connection *connection, const struct device_check *checks,
                              uint32_t n, struct err *err)
{
    static const char *const sql[2] = {
        "INSERT INTO device_check (id, created_ns, tool_version, part, device, name, software)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        "INSERT INTO device_check_line (check_id, position, key, words, value, unit, bound, goal,"
        " verdict) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"};
    sqlite3_stmt *statements[2] = {NULL, NULL};
    enum status status = statement_prepare(connection, sql[0], &statements[0], err);
    if (status == STATUS_OK)
        status = statement_prepare(connection, sql[1], &statements[1], err);
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++)
        status = put_check(connection, statements, &checks[i], err);
    sqlite3_finalize(statements[0]);
    sqlite3_finalize(statements[1]);
    return status;
}

enum status store_put_device(struct store *store, const struct device_check *checks, uint32_t n,
                             struct err *err)
{
    struct connection *connection = &store->connection;
    enum status status = connection_exec(connection, "BEGIN IMMEDIATE", "store a check in", err);
    if (status != STATUS_OK)
        return status;
    status = put_checks(connection, checks, n, err);
    if (status == STATUS_OK)
        status = connection_exec(connection, "COMMIT", "store a check in", err);
    if (status != STATUS_OK)
        sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
