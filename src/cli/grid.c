/*
 * Keeping rows, and their three shapes; see grid.h.
 *
 * Only the table for people replaces or cuts anything. A blob is hexadecimal digits in each shape.
 */
#include "src/cli/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/json.h"

enum { GAP_COLUMNS = 2, LEAST_COLUMNS = 8 };

void grid_begin(struct grid *grid, struct arena *arena, uint32_t n_column, const char *const *names)
{
    *grid = (struct grid){.arena = arena, .n_column = n_column};
    grid->names = arena_array(arena, const char *, n_column);
    for (uint32_t i = 0; i < n_column; i++)
        grid->names[i] = arena_strdup(arena, names[i]);
}

static const char *hexadecimal(struct arena *arena, const struct query_value *value)
{
    static const char digits[] = "0123456789abcdef";
    char *text = arena_alloc(arena, 2 * value->length + 1);
    for (size_t i = 0; i < value->length; i++) {
        const unsigned char byte = (unsigned char)value->text[i];
        text[2 * i] = digits[byte >> 4];
        text[2 * i + 1] = digits[byte & 15];
    }
    return text;
}

void grid_add(struct grid *grid, const struct query_value *values)
{
    struct query_value *row = arena_array(grid->arena, struct query_value, grid->n_column);
    for (uint32_t i = 0; i < grid->n_column; i++) {
        row[i] = values[i];
        if (values[i].kind == QUERY_BLOB)
            row[i].text = hexadecimal(grid->arena, &values[i]);
        else if (values[i].kind != QUERY_NULL)
            row[i].text = arena_strdup(grid->arena, values[i].text);
    }
    grid->rows =
        arena_grow(grid->arena, grid->rows, &grid->cap, grid->n_row + 1, sizeof *grid->rows);
    grid->rows[grid->n_row++] = row;
}

static bool is_number(const struct query_value *value)
{
    return value->kind == QUERY_INTEGER || value->kind == QUERY_REAL;
}

static const char *shown(const struct query_value *value)
{
    return value->kind == QUERY_NULL ? "NULL" : value->text;
}

/* Columns of the terminal that stdout is; 0: it is none, lines may have any length. */
static unsigned line_columns(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : TERM_PAGE_COLUMNS;
}

/* The widest columns give way first; none becomes narrower than a few characters. */
static void fit(unsigned *widths, uint32_t n, unsigned line)
{
    for (uint32_t i = 0; i < n; i++)
        widths[i] = widths[i] < line ? widths[i] : line;
    for (;;) {
        unsigned long sum = (unsigned long)GAP_COLUMNS * (n - 1);
        uint32_t widest = 0;
        for (uint32_t i = 0; i < n; i++) {
            sum += widths[i];
            if (widths[i] > widths[widest])
                widest = i;
        }
        if (sum <= line || widths[widest] <= LEAST_COLUMNS)
            return;
        widths[widest]--;
    }
}

struct column {
    unsigned width;
    bool right;
};

/* A column of numbers leans to the right, NULL or not. */
static struct column *make_columns(const struct grid *grid)
{
    const uint32_t n = grid->n_column;
    struct column *columns = arena_array(grid->arena, struct column, n);
    unsigned *widths = arena_array(grid->arena, unsigned, n);
    for (uint32_t i = 0; i < n; i++) {
        bool numbers = false, others = false;
        widths[i] = term_columns(grid->names[i]);
        for (uint32_t r = 0; r < grid->n_row; r++) {
            const struct query_value *value = &grid->rows[r][i];
            const unsigned width = term_columns(shown(value));
            widths[i] = width > widths[i] ? width : widths[i];
            numbers |= is_number(value);
            others |= !is_number(value) && value->kind != QUERY_NULL;
        }
        columns[i].right = numbers && !others;
    }
    const unsigned line = line_columns();
    if (line > 0)
        fit(widths, n, line > LEAST_COLUMNS ? line : LEAST_COLUMNS);
    for (uint32_t i = 0; i < n; i++)
        columns[i].width = widths[i];
    return columns;
}

/* Blanks are written only when something comes behind them. */
static void add_cell(const struct column *column, const char *text, unsigned *blanks,
                     struct text *out)
{
    unsigned length = term_columns(text);
    if (length > column->width)
        length = column->width;
    const unsigned rest = column->width - length;
    if (length > 0) {
        text_add(out, "%*s", (int)(*blanks + (column->right ? rest : 0)), "");
        term_text(text, column->width, out);
        *blanks = column->right ? 0 : rest;
    } else {
        *blanks += rest;
    }
    *blanks += GAP_COLUMNS;
}

void grid_text(const struct grid *grid, const struct term *term, struct text *out)
{
    if (grid->n_column == 0)
        return;
    const struct column *columns = make_columns(grid);
    unsigned blanks = 0;
    text_add(out, "%s", term->strong);
    for (uint32_t i = 0; i < grid->n_column; i++)
        add_cell(&columns[i], grid->names[i], &blanks, out);
    text_add(out, "%s\n", term->plain);
    for (uint32_t r = 0; r < grid->n_row; r++) {
        blanks = 0;
        for (uint32_t i = 0; i < grid->n_column; i++)
            add_cell(&columns[i], shown(&grid->rows[r][i]), &blanks, out);
        text_add(out, "\n");
    }
}

static void add_field(const char *text, struct text *out)
{
    if (*text && !text[strcspn(text, ",\"\r\n")]) {
        text_add(out, "%s", text);
        return;
    }
    text_add(out, "\"");
    for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1)
        text_add(out, "%.*s\"\"", (int)(quote - text), text);
    text_add(out, "%s\"", text);
}

void grid_csv(const struct grid *grid, struct text *out)
{
    if (grid->n_column == 0)
        return;
    for (uint32_t i = 0; i < grid->n_column; i++) {
        text_add(out, "%s", i ? "," : "");
        add_field(grid->names[i], out);
    }
    text_add(out, "\r\n");
    for (uint32_t r = 0; r < grid->n_row; r++) {
        for (uint32_t i = 0; i < grid->n_column; i++) {
            const struct query_value *value = &grid->rows[r][i];
            text_add(out, "%s", i ? "," : "");
            if (value->kind != QUERY_NULL)
                add_field(value->text, out);
        }
        text_add(out, "\r\n");
    }
}

static void add_value(struct cJSON *object, const char *key, const struct query_value *value)
{
    switch (value->kind) {
    case QUERY_NULL:
        json_add_real(object, key, NAN); /* what is not finite is null */
        break;
    case QUERY_INTEGER:
        json_add_int(object, key, strtoll(value->text, NULL, 10));
        break;
    case QUERY_REAL:
        json_add_exact(object, key, strtod(value->text, NULL)); /* "Inf" becomes null */
        break;
    case QUERY_TEXT:
    case QUERY_BLOB:
        json_add_string(object, key, value->text);
        break;
    }
}

static enum status check_names(const struct grid *grid, struct err *err)
{
    for (uint32_t i = 0; i < grid->n_column; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (!strcmp(grid->names[i], grid->names[k]))
                return err_set(err, STATUS_USAGE,
                               "two columns are called '%.80s', which JSON has no place for; name "
                               "one with AS",
                               grid->names[i]);
        }
    }
    return STATUS_OK;
}

enum status grid_json(const struct grid *grid, struct text *out, struct err *err)
{
    const enum status status = check_names(grid, err);
    if (status != STATUS_OK)
        return status;
    struct cJSON *array = json_new_array();
    for (uint32_t r = 0; r < grid->n_row; r++) {
        struct cJSON *object = json_add_object(array, NULL);
        for (uint32_t i = 0; i < grid->n_column; i++)
            add_value(object, grid->names[i], &grid->rows[r][i]);
    }
    json_print(array, out);
    json_free(array);
    return STATUS_OK;
}
