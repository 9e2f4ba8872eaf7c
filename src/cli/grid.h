/*
 * Rows of values as a table for people, as comma-separated values, as JSON.
 *
 * Values are those of db/query.h: their kind decides the side to which a column leans and how JSON
 * writes them. All rows are kept until they are printed, since columns are as wide as their widest
 * value.
 */
#ifndef SRC_CLI_GRID_H
#define SRC_CLI_GRID_H

#include "db/query.h"
#include "src/arena.h"
#include "src/cli/term.h"

struct grid {
    struct arena *arena;
    const char **names;
    struct query_value **rows; /* n_column values each */
    uint32_t n_column, n_row, cap;
};

void grid_begin(struct grid *grid, struct arena *arena, uint32_t n_column,
                const char *const *names);
/* Names, texts and blobs are copied. */
void grid_add(struct grid *grid, const struct query_value *values);

/* Lines are as long as they must be, on a terminal no longer than it is wide: values are cut. */
void grid_text(const struct grid *grid, const struct term *term, struct text *out);
/* RFC 4180 with a line of names; NULL is nothing, an empty text two quotes. */
void grid_csv(const struct grid *grid, struct text *out);
/* An array of objects; STATUS_USAGE where two columns have one name. */
enum status grid_json(const struct grid *grid, struct text *out, struct err *err);

#endif
