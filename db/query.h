/*
 * SQL of a person over the run history: read-only, bounded, as rows of text.
 *
 * The connection is read-only and an authorizer lets through SELECT, functions and a few questions
 * about the database alone; no ATTACH, no PRAGMA that writes, no extension, no function that reaches
 * beyond the database. A statement that runs longer than the timeout is stopped.
 */
#ifndef DB_QUERY_H
#define DB_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "src/err.h"

/*
 * One value: text is NULL for SQL NULL, terminated, and the bytes themselves of a blob. kind tells a
 * number from a string, for alignment and JSON. A real has as many digits as it takes to read the
 * same number again; an infinite one is "Inf" or "-Inf", which JSON has no number for. A text with a
 * zero byte in it comes as a blob, since nothing of it may be lost.
 */
enum query_kind { QUERY_NULL, QUERY_INTEGER, QUERY_REAL, QUERY_TEXT, QUERY_BLOB };
struct query_value {
    enum query_kind kind;
    const char *text;
    size_t length;
};

/* Called once with names (values NULL), then once a row. A status that is not OK ends the query. */
typedef enum status (*query_row)(void *self, int n, const char *const *names,
                                 const struct query_value *values, struct err *err);

/*
 * A parameter is bound as a number where it is spelled as that number is printed (7, -3, 0.5), as
 * text otherwise (007, +7, 7.50, 1e3, 0x7), so that no digit of an identifier is lost.
 */
struct query {
    const char *sql;
    const char *const *params; /* bound to ?1, ?2, ... */
    int n_param;
    int64_t timeout_ms; /* 0: none */
};

/*
 * One statement; more than one, or none, is STATUS_USAGE, as is an error in it, with SQLite's words
 * and the place. STATUS_DB where the file cannot be read or the time is over.
 */
enum status query_run(const char *path, const struct query *query, query_row row, void *self,
                      struct err *err);

#endif
