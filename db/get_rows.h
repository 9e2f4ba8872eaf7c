/*
 * Reading a run row by row: columns as the values of a run, and a list of rows by a function for
 * each. Private to db/.
 *
 * What no program of ours has stored is STATUS_DB and names the run and the file.
 */
#ifndef DB_GET_ROWS_H
#define DB_GET_ROWS_H

#include "db/connection.h"
#include "db/names.h"
#include "src/run.h"

struct get {
    struct connection *connection;
    struct arena *arena;
    struct run *run; /* what is filled */
    int64_t id, first_task, first_sample;
};

/* Copies into the arena. NULL is an empty text, or stays NULL. */
const char *get_text(const struct get *get, sqlite3_stmt *statement, int column);
const char *get_text_or_null(const struct get *get, sqlite3_stmt *statement, int column);
uint64_t get_u64(sqlite3_stmt *statement, int column);
uint64_t get_hash(sqlite3_stmt *statement, int column);
/* The number of the name in this column; of names in columns that follow one another. */
enum status get_name(const struct get *get, sqlite3_stmt *statement, int column, enum name_set set,
                     int *out, struct err *err);
enum status get_names(const struct get *get, sqlite3_stmt *statement, int column, int n,
                      const enum name_set *sets, int *out, struct err *err);

/* Fills element i of what a section reads. */
typedef enum status (*read_row)(struct get *get, sqlite3_stmt *statement, uint32_t i,
                                struct err *err);
/* All rows of a query with parameters of the run; STATUS_DB where they are not n. */
enum status get_rows(struct get *get, const char *sql, int n_bind, const int64_t *bind, uint32_t n,
                     read_row read, struct err *err);
/* How many rows of a table name the run. */
enum status get_count(struct get *get, const char *table, uint32_t *out, struct err *err);

#endif
