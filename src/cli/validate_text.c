/*
 * Measured runs beside their predictions as a page: a line a row, a line a platform; see
 * validate.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/page.h"
#include "src/cli/validate.h"

enum { ID_COLUMNS = 26, PLATFORM_COLUMNS = 28 };

static void add_number(double value, int columns, int decimals, struct text *out)
{
    if (isnan(value))
        text_add(out, "%*s", columns, "-");
    else
        text_add(out, "%*.*f", columns, decimals, value);
}

/* To four digits that count. */
static void add_seconds(double seconds, int columns, struct text *out)
{
    text_add(out, "%*.4g", columns, seconds);
}

static void add_signed(double percent, int columns, struct text *out)
{
    char number[32] = "-";

    if (!isnan(percent))
        snprintf(number, sizeof number, "%+.1f", percent);
    text_add(out, "%*s", columns, number);
}

static void add_id(const char *id, int columns, struct text *out)
{
    char name[TERM_NAME_BYTES];
    term_name(id, name);
    text_add(out, "%s", name);
    text_add(out, "%*s", columns - (int)term_columns(name), "");
}

static void add_row(const struct validated_row *row, const struct term *term, struct text *out)
{
    const bool outside = row->run->step_s < row->low_s || row->run->step_s > row->high_s;

    add_id(row->run->id, ID_COLUMNS, out);
    add_seconds(row->run->step_s, 9, out);
    add_seconds(row->predicted_s, 10, out);
    add_seconds(row->low_s, 10, out);
    add_seconds(row->high_s, 9, out);
    text_add(out, "%s", outside ? term->bad : "");
    add_signed(row->error_pct, 9, out);
    text_add(out, "%s", outside ? term->plain : "");
    add_signed(row->peak_error_pct, 9, out);
    text_add(out, "%s%s%s\n", row->near_memory_limit ? "  near the limit" : "",
             row->left.n > 0 ? "  outside" : "", row->counts ? "" : "  low trust");
}

static void add_rows(const struct validation *validation, const struct term *term, struct text *out)
{
    text_add(out, "%s%-*s%9s%10s%10s%9s%9s%9s%s\n", term->strong, ID_COLUMNS, "row", "measured",
             "predicted", "low", "high s", "error %", "peak %", term->plain);
    for (uint32_t i = 0; i < validation->n; i++)
        if (!validation->rows[i].reason)
            add_row(&validation->rows[i], term, out);
}

static void add_reasons(const struct validation *validation, const struct term *term,
                        struct text *out)
{
    bool any = false;

    for (uint32_t i = 0; i < validation->n; i++) {
        const struct validated_row *row = &validation->rows[i];
        if (!row->reason)
            continue;
        if (!any)
            text_add(out, "\n%snot predicted%s\n", term->strong, term->plain);
        any = true;
        add_id(row->run->id, ID_COLUMNS, out);
        page_wrap(row->reason, ID_COLUMNS, ID_COLUMNS, out);
    }
}

static void add_platform(const struct platform_stats *stats, struct text *out)
{
    add_id(stats->platform, PLATFORM_COLUMNS, out);
    text_add(out, "%5u", stats->n);
    if (stats->n < VALIDATE_MIN_ROWS) {
        text_add(out, "  too few for statistics, see the rows\n");
        return;
    }
    add_number(stats->mean, 7, 1, out);
    add_number(stats->median, 7, 1, out);
    add_number(stats->p90, 7, 1, out);
    add_number(stats->max, 7, 1, out);
    add_signed(stats->bias, 7, out);
    add_number(stats->clear_mean, 7, 1, out);
    add_number(stats->rank, 8, 1, out);
    add_number(stats->coverage, 8, 0, out);
    add_number(stats->width, 7, 0, out);
    add_number(stats->peak_mean, 7, 1, out);
    text_add(out, "\n");
}

static void add_platforms(const struct validation *validation, const struct term *term,
                          struct text *out)
{
    text_add(out, "\n%s%-*s%5s%7s%7s%7s%7s%7s%7s%8s%8s%7s%7s%s\n", term->strong, PLATFORM_COLUMNS,
             "errors, %", "rows", "mean", "median", "p90", "max", "bias", "clear", "ranked",
             "inside", "width", "peak", term->plain);
    for (uint32_t i = 0; i < validation->n_platform; i++)
        add_platform(&validation->platforms[i], out);
    text_add(out,
             "clear: mean of rows that are not near the memory limit; ranked: pairs of runs of one "
             "model\nin the right order; inside: rows between low and high; width: of that "
             "interval; peak: of memory\n");
}

/* Of all rows that are predicted, each table once. */
static void add_left(const struct validation *validation, const struct term *term, struct text *out)
{
    static const char label[] = "outside: ";
    struct tables_left all = {0};
    struct arena arena;
    struct text words;

    arena_init(&arena);
    text_init(&words);
    for (uint32_t i = 0; i < validation->n; i++)
        tables_left_add(&all, &validation->rows[i].left, &arena);
    if (all.n > 0) {
        text_add(&words, "rows that leave the range that was measured: ");
        tables_left_text(&all, &words);
        text_add(out, "%s%s%s", term->bad, label, term->plain);
        page_wrap(words.at, sizeof label, 2, out);
    }
    text_release(&words);
    arena_release(&arena);
}

void validate_text(const struct validation *validation, const struct term *term, struct text *out)
{
    add_rows(validation, term, out);
    add_reasons(validation, term, out);
    if (validation->without)
        text_add(out, "\n%swithout %s%s\n", term->bad, validation->without, term->plain);
    add_platforms(validation, term, out);
    add_left(validation, term, out);
    if (validation->n == 1 && !validation->rows[0].reason)
        validate_diagnosis(&validation->rows[0], out);
}
