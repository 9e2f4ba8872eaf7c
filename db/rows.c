/*
 * The virtual table behind rows.h: read-only, scanned from the first row to the last.
 *
 * It is eponymous: there without a CREATE VIRTUAL TABLE, so that no schema knows of it.
 */
#include "db/rows.h"

#include <stdio.h>
#include <stdlib.h>

struct rows_table {
    sqlite3_vtab base;
    const struct rows *rows;
};

struct rows_cursor {
    sqlite3_vtab_cursor base;
    const struct rows *rows;
    uint32_t row;
};

static int table_connect(sqlite3 *db, void *rows, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message)
{
    (void)argc;
    (void)argv;
    (void)message;
    int code = sqlite3_declare_vtab(db, "CREATE TABLE rows (c0, c1, c2, c3, c4, c5, c6, c7, c8, "
                                        "c9, c10, c11, c12, c13, c14, c15)");
    struct rows_table *table = calloc(1, sizeof(*table));
    if (!table)
        err_out_of_memory(sizeof(*table));
    table->rows = rows;
    *out = &table->base;
    return code;
}

static int table_disconnect(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int table_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    info->estimatedRows = ((const struct rows_table *)table)->rows->n;
    info->estimatedCost = (double)info->estimatedRows;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    struct rows_cursor *cursor = calloc(1, sizeof(*cursor));
    if (!cursor)
        err_out_of_memory(sizeof(*cursor));
    cursor->rows = ((const struct rows_table *)table)->rows;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int cursor_rewind(sqlite3_vtab_cursor *cursor, int index, const char *name, int argc,
                         sqlite3_value **argv)
{
    (void)index;
    (void)name;
    (void)argc;
    (void)argv;
    ((struct rows_cursor *)cursor)->row = 0;
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *cursor)
{
    ((struct rows_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int cursor_at_end(sqlite3_vtab_cursor *cursor)
{
    const struct rows_cursor *at = (const struct rows_cursor *)cursor;
    return at->row >= at->rows->n;
}

static int cursor_value(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const struct rows_cursor *at = (const struct rows_cursor *)cursor;
    sqlite3_result_int64(context, at->rows->value(at->rows, at->row, column));
    return SQLITE_OK;
}

static int cursor_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = ((const struct rows_cursor *)cursor)->row;
    return SQLITE_OK;
}

enum status rows_register(struct connection *connection, const struct rows *rows, struct err *err)
{
    static const sqlite3_module module = {
        .xConnect = table_connect,
        .xBestIndex = table_plan,
        .xDisconnect = table_disconnect,
        .xOpen = cursor_open,
        .xClose = cursor_close,
        .xFilter = cursor_rewind,
        .xNext = cursor_next,
        .xEof = cursor_at_end,
        .xColumn = cursor_value,
        .xRowid = cursor_number,
    };
    if (sqlite3_create_module(connection->db, "rows", &module, (void *)rows) != SQLITE_OK)
        return connection_fail(connection, "open", err);
    return STATUS_OK;
}
