/*
 * Axes of the picture of plans, and the picture as text; see plan_canvas.h. Ticks stand at 1, 2 and
 * 5 times powers of ten.
 */
#include "src/cli/plan_canvas.h"

#include <stdio.h>
#include <string.h>

#include "src/cli/plan_scale.h"

unsigned plan_axis_cell(const struct axis *axis, double value)
{
    double at = (value - axis->low) / (axis->high - axis->low) * (axis->n - 1) + 0.5;
    return at < 0 ? 0 : at > axis->n - 1 ? axis->n - 1 : (unsigned)at;
}

/* 1, 2 or 5 times a power of ten: the least that makes no more ticks than these. */
static double tick_step(double range, unsigned most)
{
    static const double factors[] = {2, 2.5, 2};
    double step = 1e-9;
    for (unsigned i = 0; range / step > most; i++)
        step *= factors[i % 3];
    return step;
}

static int tick_decimals(double step)
{
    int decimals = 0;
    for (; step < 0.999 && decimals < 9; step *= 10)
        decimals++;
    return decimals;
}

static double first_tick(double low, double step)
{
    double n = (double)(int64_t)(low / step);
    return n * step < low ? (n + 1) * step : n * step;
}

/* The label of a row of the y axis, or an empty one. */
static void tick_label(const struct canvas *canvas, const struct plan_scale *scale, unsigned row,
                       char label[16])
{
    double low = canvas->y.low / scale->size, high = canvas->y.high / scale->size;
    double step = tick_step(high - low, 5);
    label[0] = '\0';
    for (double tick = first_tick(low, step); tick <= high; tick += step) {
        if (ROWS - 1 - plan_axis_cell(&canvas->y, tick * scale->size) == row)
            snprintf(label, 16, "%.*f", tick_decimals(step), tick);
    }
}

static void add_cell(const struct canvas *canvas, const struct cell *cell, struct text *out)
{
    const char *dress = cell->dress ? cell->dress : "";
    text_add(out, "%s%s%s", dress, cell->glyph ? cell->glyph : cell->letter,
             *dress ? canvas->term->plain : "");
}

static void add_line(const struct canvas *canvas, unsigned row, const struct plan_scale *scale,
                     struct text *out)
{
    const struct term *term = canvas->term;
    char label[16];
    unsigned blanks = 0;
    tick_label(canvas, scale, row, label);
    text_add(out, "%s%*s %s%s", term->quiet, LABELS - 1, label,
             *label ? canvas->glyphs->tick_y : canvas->glyphs->side, term->plain);
    for (unsigned col = 0; col < canvas->width; col++) {
        if (plan_canvas_is_blank(canvas, row, col)) {
            blanks++;
            continue;
        }
        text_add(out, "%*s", (int)blanks, "");
        blanks = 0;
        add_cell(canvas, &canvas->cells[row][col], out);
    }
    text_add(out, "\n");
}

/* Above the picture: what the y axis is, and what the line is. */
static void add_top(const struct canvas *canvas, const struct plan_scale *scale, struct text *out)
{
    const struct term *term = canvas->term;
    char bytes[32], limit[48];
    snprintf(limit, sizeof limit, "limit %s", text_bytes(canvas->plot->limit_bytes, bytes));
    int length = (int)strlen(limit), at = (int)canvas->limit - length / 2;
    int most = (int)canvas->width - length;
    at = at > most ? most : at < 2 ? 2 : at;
    text_add(out, "%s%*s %s%*s%s%s%s\n", term->quiet, LABELS - 1, "step,", scale->unit,
             at + 1 - (int)strlen(scale->unit), "", term->plain, term->bad, limit);
    text_add(out, "%s", term->plain);
}

/* Where the x axis is not to scale: beside a limit that is far away, before what is far behind. */
static bool is_break(const struct canvas *canvas, unsigned col)
{
    unsigned end = canvas->first + canvas->x.n;
    bool right = canvas->is_left ? canvas->has_strip : canvas->broken;
    return (col > 0 && col < canvas->first) || (right && (col == end || col == end + 1));
}

/* The x axis with its ticks, then their numbers. */
static void add_floor(const struct canvas *canvas, const struct plan_scale *scale, struct text *out)
{
    const struct glyphs *glyphs = canvas->glyphs;
    double low = canvas->x.low / scale->size, high = canvas->x.high / scale->size;
    double step = tick_step(high - low, 8);
    const char *marks[MAX_WIDTH];
    char numbers[MAX_WIDTH], title[16];
    for (unsigned col = 0; col < canvas->width; col++)
        marks[col] = is_break(canvas, col) ? glyphs->broken : glyphs->floor;
    memset(numbers, ' ', sizeof numbers);
    int used = 1; /* a blank before the first one */
    for (double tick = first_tick(low, step); tick <= high; tick += step) {
        char number[32];
        int length = snprintf(number, sizeof number, "%.*f", tick_decimals(step), tick);
        unsigned col = canvas->first + plan_axis_cell(&canvas->x, tick * scale->size);
        int at = (int)col - length / 2;
        marks[col] = glyphs->tick_x;
        if (at < used || at + length > (int)canvas->width)
            continue;
        memcpy(numbers + at, number, (size_t)length);
        used = at + length + 1;
    }
    text_add(out, "%s%*s%s", canvas->term->quiet, LABELS, "", glyphs->corner);
    for (unsigned col = 0; col < canvas->width; col++)
        text_add(out, "%s", marks[col]);
    snprintf(title, sizeof title, "total, %s", scale->unit);
    text_add(out, "\n%*s%.*s%s\n", LABELS + 1, title, used - 1, numbers, canvas->term->plain);
}

static void add_unnumbered(const struct canvas *canvas, struct text *out)
{
    const struct term_margins margins = {
        .columns = canvas->plot->columns, .at = LABELS + 1, .hanging = LABELS + 1};
    struct text words;
    text_init(&words);
    text_add(&words, "%u of the plans stand where it is too crowded for a number",
             canvas->n_unnumbered);
    text_add(out, "%s%*s", canvas->term->quiet, LABELS + 1, "");
    term_wrap(words.at, margins, out);
    text_add(out, "%s", canvas->term->plain);
    text_release(&words);
}

void plan_canvas_print(const struct canvas *canvas, struct text *out)
{
    struct plan_scale time = plan_scale_ns((uint64_t)canvas->y.low, (uint64_t)canvas->y.high);
    struct plan_scale memory = plan_scale_bytes((uint64_t)canvas->x.low, (uint64_t)canvas->x.high);
    add_top(canvas, &time, out);
    for (unsigned row = 0; row < ROWS; row++)
        add_line(canvas, row, &time, out);
    add_floor(canvas, &memory, out);
    if (canvas->n_unnumbered > 0)
        add_unnumbered(canvas, out);
}
