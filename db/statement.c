/*
 * Thin shells around sqlite3_stmt, so that what stores and reads a run is a list of columns.
 */
#include "db/statement.h"

enum status statement_prepare(struct connection *connection, const char *sql, sqlite3_stmt **out,
                              struct err *err)
{
    *out = NULL;
    if (sqlite3_prepare_v2(connection->db, sql, -1, out, NULL) != SQLITE_OK)
        return connection_fail(connection, "use", err);
    return STATUS_OK;
}

void statement_bind_ints(sqlite3_stmt *statement, int first, int n, const int64_t *values)
{
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(statement, first + i, values[i]);
}

void statement_bind_text(sqlite3_stmt *statement, int parameter, const char *text)
{
    sqlite3_bind_text(statement, parameter, text, -1, SQLITE_STATIC);
}

enum status statement_run(struct connection *connection, sqlite3_stmt *statement, struct err *err)
{
    sqlite3_step(statement);
    if (sqlite3_reset(statement) != SQLITE_OK)
        return connection_fail(connection, "store a run in", err);
    return STATUS_OK;
}

enum status statement_next(struct connection *connection, sqlite3_stmt *statement, bool *row,
                           struct err *err)
{
    *row = sqlite3_step(statement) == SQLITE_ROW;
    if (!*row && sqlite3_reset(statement) != SQLITE_OK)
        return connection_fail(connection, "read", err);
    return STATUS_OK;
}
