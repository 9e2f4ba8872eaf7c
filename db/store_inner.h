/*
 * What storing and reading a run share. Private to db/.
 */
#ifndef DB_STORE_INNER_H
#define DB_STORE_INNER_H

#include "db/connection.h"
#include "db/rows.h"
#include "db/shared.h"
#include "db/store.h"

enum { STORE_PARTS = 12 };

struct store {
    struct connection connection;
    struct rows rows; /* what the table "rows" shows while a run is stored */
    struct shared shared;
    sqlite3_stmt *statements[STORE_PARTS]; /* of db/store_put.c, once they were used */
};

/* A run on its way into the tables: where rows of the long ones go, and what stands for each task. */
struct put {
    struct store *store;
    struct connection *connection;
    const struct run *run;
    struct arena arena;
    struct text json;
    int64_t run_id, first_task, first_sample;
    int64_t *label_ids; /* a task each */
};

/*
 * db/store_put_real.c: what only a run of kind real has; of any other nothing is put. The statements
 * are those of db/store_put.c.
 */
uint64_t store_real_numbers(const struct run_real *real); /* all bits of what is stored unsigned */
enum status store_put_real_run(struct put *put, sqlite3_stmt *statement, struct err *err);
enum status store_put_real_steps(struct put *put, sqlite3_stmt *statement, struct err *err);
enum status store_put_real_ranks(struct put *put, sqlite3_stmt *statement, struct err *err);
enum status store_put_real_checks(struct put *put, sqlite3_stmt *statement, struct err *err);

/* db/store_get_real.c: the same back; of any other run nothing is read. */
struct get;
enum status store_get_real(struct get *get, struct err *err);

#endif
