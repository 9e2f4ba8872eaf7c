/*
 * Reading CSV; see csv.h. One pass: fields are copied to the arena as they are met, and a row is
 * complete where its line ends outside of quotes.
 */
#include "src/csv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/text.h"

#define FILE_BYTES_MAX ((size_t)64 << 20)

struct reader {
    struct csv *csv;
    struct arena *arena;
    struct err *err;
    const char *at;
    uint32_t line;       /* of at */
    const char **fields; /* header included */
    uint32_t *lines;
    uint32_t n_field, field_cap, line_cap;
};

enum status csv_fail(const struct csv *csv, uint32_t line, struct err *err, const char *fmt, ...)
{
    char message[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return err_set(err, STATUS_INPUT, "%.160s: line %u: %s", csv->file, line, message);
}

static bool ends_field(char c)
{
    return c == ',' || c == '\n' || c == '\r' || c == '\0';
}

/* An upper bound, from one quote to the next that is not doubled or the end. */
static size_t quoted_length(const char *at)
{
    const char *end = at + 1;
    while (*end != '\0' && (*end != '"' || end[1] == '"'))
        end += *end == '"' ? 2 : 1;
    return (size_t)(end - at) + 1;
}

/* Between quotes, of which two stand for one. */
static enum status read_quoted(struct reader *r, const char **out)
{
    const uint32_t begin = r->line;
    char *field = arena_alloc(r->arena, quoted_length(r->at)), *end = field;

    for (r->at++; *r->at != '"' || r->at[1] == '"'; r->at++) {
        if (*r->at == '\0')
            return csv_fail(r->csv, begin, r->err, "a quote is opened and never closed");
        r->line += *r->at == '\n';
        r->at += *r->at == '"';
        *end++ = *r->at;
    }
    *end = '\0';
    r->at++;
    if (!ends_field(*r->at))
        return csv_fail(r->csv, r->line, r->err, "text behind a closing quote");
    *out = field;
    return STATUS_OK;
}

static enum status read_plain(struct reader *r, const char **out)
{
    const size_t length = strcspn(r->at, ",\r\n\"");

    if (r->at[length] == '"')
        return csv_fail(r->csv, r->line, r->err, "a quote inside a field that does not begin so");
    *out = arena_printf(r->arena, "%.*s", (int)length, r->at);
    r->at += length;
    return STATUS_OK;
}

static enum status read_field(struct reader *r)
{
    const char *field = NULL;
    const enum status status = *r->at == '"' ? read_quoted(r, &field) : read_plain(r, &field);

    if (status)
        return status;
    r->fields = arena_grow(r->arena, r->fields, &r->field_cap, r->n_field + 1, sizeof *r->fields);
    r->fields[r->n_field++] = field;
    return STATUS_OK;
}

static enum status end_line(struct reader *r)
{
    if (*r->at == '\r' && r->at[1] != '\n')
        return csv_fail(r->csv, r->line, r->err, "a carriage return without a line feed");
    r->at += *r->at == '\r';
    r->line += *r->at == '\n';
    r->at += *r->at == '\n';
    return STATUS_OK;
}

/* The fields of one line; how many there are is for the caller. */
static enum status read_line(struct reader *r)
{
    enum status status;

    while (!(status = read_field(r)) && *r->at == ',')
        r->at++;
    return status ? status : end_line(r);
}

static enum status read_header(struct reader *r)
{
    const enum status status = read_line(r);

    if (status)
        return status;
    if (r->n_field > CSV_MAX_COLUMNS)
        return csv_fail(r->csv, 1, r->err, "%u columns, at most %d are read", r->n_field,
                        CSV_MAX_COLUMNS);
    for (uint32_t i = 0; i < r->n_field; i++) {
        if (*r->fields[i] == '\0')
            return csv_fail(r->csv, 1, r->err, "column %u has no name", i + 1);
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(r->fields[i], r->fields[j]))
                return csv_fail(r->csv, 1, r->err, "column '%.80s' is there twice", r->fields[i]);
    }
    r->csv->n_column = r->n_field;
    return STATUS_OK;
}

static enum status read_row(struct reader *r)
{
    const uint32_t line = r->line, before = r->n_field;
    const enum status status = read_line(r);

    if (status)
        return status;
    if (r->n_field - before != r->csv->n_column)
        return csv_fail(r->csv, line, r->err, "%u fields, the header has %u", r->n_field - before,
                        r->csv->n_column);
    if (r->csv->n_row == CSV_MAX_ROWS)
        return csv_fail(r->csv, line, r->err, "more than %d rows", CSV_MAX_ROWS);
    r->lines = arena_grow(r->arena, r->lines, &r->line_cap, r->csv->n_row + 1, sizeof *r->lines);
    r->lines[r->csv->n_row++] = line;
    return STATUS_OK;
}

enum status csv_parse(const char *text, const char *file, struct arena *arena, struct csv *out,
                      struct err *err)
{
    struct csv csv = {.file = file};
    struct reader r = {.csv = &csv, .arena = arena, .err = err, .at = text, .line = 1};
    enum status status;

    if (*text == '\0')
        return csv_fail(&csv, 1, err, "the file is empty, a header is needed");
    if ((status = read_header(&r)))
        return status;
    while (*r.at != '\0')
        if ((status = read_row(&r)))
            return status;
    csv.columns = r.fields;
    csv.fields = r.fields + csv.n_column;
    csv.lines = r.lines;
    *out = csv;
    return STATUS_OK;
}

/* The whole file and a 0 behind it. */
static enum status read_all(FILE *file, const char *path, struct text *out, struct err *err)
{
    char part[1 << 16];
    size_t n;

    while ((n = fread(part, 1, sizeof part, file)) > 0) {
        if (memchr(part, '\0', n))
            return err_set(err, STATUS_INPUT, "%.160s: a byte 0, which no text has", path);
        if (out->length + n > FILE_BYTES_MAX)
            return err_set(err, STATUS_INPUT, "cannot read '%.160s': more than %zu MiB", path,
                           FILE_BYTES_MAX >> 20);
        text_add(out, "%.*s", (int)n, part);
    }
    if (ferror(file))
        return err_set(err, STATUS_INPUT, "cannot read '%.160s': %s", path, strerror(errno));
    return STATUS_OK;
}

enum status csv_read(const char *path, struct arena *arena, struct csv *out, struct err *err)
{
    FILE *file = fopen(path, "rb");
    struct text text;
    enum status status;

    if (!file)
        return err_set(err, STATUS_INPUT, "cannot read '%.160s': %s", path, strerror(errno));
    text_init(&text);
    text_add(&text, "%s", "");
    if (!(status = read_all(file, path, &text, err)))
        status = csv_parse(text.at, path, arena, out, err);
    text_release(&text);
    fclose(file);
    return status;
}
