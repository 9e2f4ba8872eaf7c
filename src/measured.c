/*
 * Rows of a CSV table as runs; see measured.h. Each column is looked up by name, so that their order
 * is free.
 */
#include "src/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/text.h"

static const char *const column_names[] = {
#define X(member, column, least, otherwise) column,
    MEASURED_COUNTS(X)
#undef X
#define X(member, column, needed) column,
        MEASURED_NUMBERS(X)
#undef X
#define X(member, column, otherwise) column,
            MEASURED_WORDS(X)
#undef X
};
enum { N_COLUMN = sizeof column_names / sizeof *column_names };

/* A row on its way, and what complaints about it need. */
struct row {
    const struct csv *csv;
    uint32_t index;
    struct err *err;
};

static enum status check_columns(const struct csv *csv, struct err *err)
{
    for (uint32_t c = 0; c < csv->n_column; c++) {
        const char *name = csv->columns[c];
        uint32_t known = 0;
        while (known < N_COLUMN && strcmp(name, column_names[known]))
            known++;
        if (known < N_COLUMN)
            continue;
        const int nearest = text_nearest(name, column_names, N_COLUMN);
        if (nearest >= 0)
            return csv_fail(csv, 1, err, "unknown column '%.80s', did you mean '%s'?", name,
                            column_names[nearest]);
        return csv_fail(csv, 1, err, "unknown column '%.80s'", name);
    }
    return STATUS_OK;
}

/* What stands in this column, or NULL where nothing does. */
static const char *field_of(const struct row *row, const char *column)
{
    for (uint32_t c = 0; c < row->csv->n_column; c++) {
        const char *field = row->csv->fields[(size_t)row->index * row->csv->n_column + c];
        if (!strcmp(row->csv->columns[c], column))
            return *field ? field : NULL;
    }
    return NULL;
}

static enum status fail(const struct row *row, const char *column, const char *why)
{
    const char *field = field_of(row, column);
    const uint32_t line = row->csv->lines[row->index];

    if (!field)
        return csv_fail(row->csv, line, row->err, "column '%s': %s", column, why);
    return csv_fail(row->csv, line, row->err, "column '%s': '%.80s' %s", column, field, why);
}

static enum status read_count(const struct row *row, const char *column, uint64_t least,
                              uint64_t otherwise, uint64_t *out)
{
    const char *field = field_of(row, column);
    uint64_t value = otherwise;

    if (!field && otherwise < least)
        return fail(row, column, "a value is needed");
    if (field && (!text_to_u64(field, &value) || value < least))
        return fail(row, column,
                    least > 0 ? "is not a whole number from 1 on" : "is not a whole number");
    *out = value;
    return STATUS_OK;
}

static enum status read_number(const struct row *row, const char *column, bool needed, double *out)
{
    const char *field = field_of(row, column);
    char *end;

    *out = NAN;
    if (!field)
        return needed ? fail(row, column, "a value is needed") : STATUS_OK;
    *out = strtod(field, &end);
    if (*end || field[strspn(field, "0123456789.eE+-")] || !(*out > 0 && *out < 1e15))
        return fail(row, column, "is not a number above 0");
    return STATUS_OK;
}

static enum status read_word(const struct row *row, const char *column, const char *otherwise,
                             const char **out)
{
    const char *field = field_of(row, column);

    if (!field && !otherwise)
        return fail(row, column, "a value is needed");
    *out = field ? field : otherwise;
    return STATUS_OK;
}

static enum status read_run(const struct row *row, struct measured_run *out)
{
    enum status status;

    out->line = row->csv->lines[row->index];
#define X(member, column, least, otherwise)                                      \
    if ((status = read_count(row, column, least, otherwise, &out->member)) != 0) \
        return status;
    MEASURED_COUNTS(X)
#undef X
#define X(member, column, needed)                                       \
    if ((status = read_number(row, column, needed, &out->member)) != 0) \
        return status;
    MEASURED_NUMBERS(X)
#undef X
#define X(member, column, otherwise)                                     \
    if ((status = read_word(row, column, otherwise, &out->member)) != 0) \
        return status;
    MEASURED_WORDS(X)
#undef X
    return STATUS_OK;
}

enum status measured_from_csv(const struct csv *csv, struct arena *arena, struct measured *out,
                              struct err *err)
{
    struct measured_run *runs = arena_array(arena, struct measured_run, csv->n_row);
    enum status status = check_columns(csv, err);

    for (uint32_t i = 0; i < csv->n_row && !status; i++) {
        const struct row row = {.csv = csv, .index = i, .err = err};
        status = read_run(&row, &runs[i]);
        for (uint32_t j = 0; j < i && !status; j++)
            if (!strcmp(runs[j].id, runs[i].id))
                status = fail(&row, "id", "is there twice");
    }
    if (status)
        return status;
    *out = (struct measured){.runs = runs, .n = csv->n_row};
    return STATUS_OK;
}

enum status measured_read(const char *path, struct arena *arena, struct measured *out,
                          struct err *err)
{
    struct csv csv;
    const enum status status = csv_read(path, arena, &csv, err);

    return status ? status : measured_from_csv(&csv, arena, out, err);
}
