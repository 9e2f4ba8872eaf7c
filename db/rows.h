/*
 * An array of records as a table that SQL can read: INSERT INTO t SELECT ... FROM rows. Private to
 * db/.
 *
 * For the two long tables of a run: one statement stores all rows, which takes half the time of a
 * statement with bound values a row.
 */
#ifndef DB_ROWS_H
#define DB_ROWS_H

#include <stdint.h>

#include "db/connection.h"

enum { ROWS_MAX_COLUMN = 16 };

/* All values are integers; columns are called c0, c1, ... */
struct rows {
    const void *data;
    uint32_t n;
    int64_t (*value)(const struct rows *rows, uint32_t row, int column);
};

/*
 * Makes "rows" a table of this connection; what rows points at is read when a statement runs, so
 * that it may be filled later.
 */
enum status rows_register(struct connection *connection, const struct rows *rows, struct err *err);

#endif
