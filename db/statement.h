/*
 * Prepared statements with the errors of this program. Private to db/.
 */
#ifndef DB_STATEMENT_H
#define DB_STATEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "db/connection.h"

/* out is to be given to sqlite3_finalize() also where it fails. */
enum status statement_prepare(struct connection *connection, const char *sql, sqlite3_stmt **out,
                              struct err *err);

/* Values of parameters first, first + 1, ... */
void statement_bind_ints(sqlite3_stmt *statement, int first, int n, const int64_t *values);
#define BIND_INTS(statement, first, ...)                                           \
    statement_bind_ints((statement), (first),                                      \
                        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                        (const int64_t[]){__VA_ARGS__})
/* The text must live until the statement is run; NULL is NULL in SQL too. */
void statement_bind_text(sqlite3_stmt *statement, int parameter, const char *text);

/* Runs a statement that changes something; it is ready for the next values then. */
enum status statement_run(struct connection *connection, sqlite3_stmt *statement, struct err *err);
/* To the next row; *row is false past the last, and the statement can be run again. */
enum status statement_next(struct connection *connection, sqlite3_stmt *statement, bool *row,
                           struct err *err);

#endif
