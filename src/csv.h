/*
 * A CSV file as RFC 4180 has it: a header, then lines of as many fields, quoted where they need it.
 *
 * Strict: each line has the fields of the header, a quote stands only around a whole field, and no
 * column is there twice. It knows nothing of what columns mean, and numbers are text. Everything
 * belongs to the arena.
 */
#ifndef SRC_CSV_H
#define SRC_CSV_H

#include <stdint.h>

#include "src/arena.h"
#include "src/err.h"

enum { CSV_MAX_COLUMNS = 256, CSV_MAX_ROWS = 1 << 14 };

struct csv {
    const char *file;           /* for messages */
    const char *const *columns; /* names, without blanks around them */
    const char *const *fields;  /* of row r and column c: fields[r * n_column + c] */
    const uint32_t *lines;      /* by row: the line of the file that it begins in, from 1 */
    uint32_t n_column, n_row;   /* rows without the header */
};

/* STATUS_INPUT with file and line. path lives as long as the result. */
enum status csv_read(const char *path, struct arena *arena, struct csv *out, struct err *err);
/* The same of a text, which file names in messages. */
enum status csv_parse(const char *text, const char *file, struct arena *arena, struct csv *out,
                      struct err *err);

/* "FILE: line N: message", STATUS_INPUT. */
enum status csv_fail(const struct csv *csv, uint32_t line, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
