/*
 * Columns as a run holds them; see get_rows.h. Knows no table by name.
 */
#include "db/get_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/statement.h"

const char *get_text(const struct get *get, sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return arena_strdup(get->arena, text ? (const char *)text : "");
}

const char *get_text_or_null(const struct get *get, sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? NULL
                                                                 : get_text(get, statement, column);
}

uint64_t get_u64(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

uint64_t get_hash(sqlite3_stmt *statement, int column)
{
    return strtoull((const char *)sqlite3_column_text(statement, column), NULL, 16);
}

enum status get_name(const struct get *get, sqlite3_stmt *statement, int column, enum name_set set,
                     int *out, struct err *err)
{
    const char *name = (const char *)sqlite3_column_text(statement, column);
    if (names_find(set, name, out))
        return STATUS_OK;
    return err_set(err, STATUS_DB,
                   "run %" PRId64 " in '%s' has a %s '%s' that this version does not know: use the"
                   " version that stored it",
                   get->id, get->connection->shown, names_what(set), name ? name : "");
}

enum status get_names(const struct get *get, sqlite3_stmt *statement, int column, int n,
                      const enum name_set *sets, int *out, struct err *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < n && status == STATUS_OK; i++)
        status = get_name(get, statement, column + i, sets[i], &out[i], err);
    return status;
}

/* More rows than fit are another program's doing: they are counted, not read. */
enum status get_rows(struct get *get, const char *sql, int n_bind, const int64_t *bind, uint32_t n,
                     read_row read, struct err *err)
{
    sqlite3_stmt *statement;
    bool row = true;
    uint32_t i = 0;
    enum status status = statement_prepare(get->connection, sql, &statement, err);
    if (status == STATUS_OK)
        statement_bind_ints(statement, 1, n_bind, bind);
    while (status == STATUS_OK && row) {
        status = statement_next(get->connection, statement, &row, err);
        if (status == STATUS_OK && row && i < n)
            status = read(get, statement, i, err);
        i += row;
    }
    sqlite3_finalize(statement);
    if (status == STATUS_OK && i != n)
        return err_set(err, STATUS_DB,
                       "run %" PRId64 " in '%s' is damaged: it has other numbers of rows than it"
                       " says: restore the file from a copy",
                       get->id, get->connection->shown);
    return status;
}

enum status get_count(struct get *get, const char *table, uint32_t *out, struct err *err)
{
    char sql[120];
    int64_t n = 0;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE run_id = %" PRId64, table, get->id);
    const enum status status = connection_int(get->connection, sql, &n, err);
    *out = (uint32_t)n;
    return status;
}
