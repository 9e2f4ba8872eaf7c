/*
 * The picture; see plan_plot.h. A canvas of cells is filled from back to front: the limit, the
 * steps of the front, points, numbers; what comes later takes only blank cells, but for points.
 */
#include "src/cli/plan_plot.h"

#include <stdio.h>
#include <string.h>

#include "src/cli/plan_canvas.h"
#include "src/cli/plan_rank.h"

static const struct glyphs ascii = {"*", "o", "^", "v", ".", "|", "|", "+", "+", "-", "+", "/"};
static const struct glyphs utf8 = {"●", "○", "↑", "↓", "·", "┃", "│", "┤", "└", "─", "┬", "╱"};

/* Of as many tokens as the first plan's step has. */
static double time_of(const struct canvas *canvas, const struct plan_row *row)
{
    return (double)plan_row_step_ns(row, SPREAD_MID, canvas->plot->rows[0].tokens);
}

static bool is_built(const struct plan_row *row)
{
    return !row->refused;
}

/* Whether the axes are made for it. */
static bool is_shown(const struct canvas *canvas, const struct plan_row *row)
{
    if (!is_built(row))
        return false;
    return canvas->some_fit ? row->fits : (double)row->total_bytes <= canvas->shown_bytes;
}

static void widen(struct axis *axis, double share)
{
    double room = (axis->high - axis->low) * share;
    double least = axis->high * 0.001 + 1;
    room = room > least ? room : least;
    axis->low -= room < axis->low ? room : axis->low;
    axis->high += room;
}

static void find_ranges(struct canvas *canvas)
{
    bool begun = false;
    for (uint32_t i = 0; i < canvas->plot->n_row; i++) {
        const struct plan_row *row = &canvas->plot->rows[i];
        canvas->has_strip = canvas->has_strip || (is_built(row) && !is_shown(canvas, row));
        if (!is_shown(canvas, row))
            continue;
        double x = (double)row->total_bytes, y = time_of(canvas, row);
        canvas->x.low = !begun || x < canvas->x.low ? x : canvas->x.low;
        canvas->x.high = !begun || x > canvas->x.high ? x : canvas->x.high;
        canvas->y.low = !begun || y < canvas->y.low ? y : canvas->y.low;
        canvas->y.high = !begun || y > canvas->y.high ? y : canvas->y.high;
        begun = true;
    }
    widen(&canvas->x, 0.05);
    widen(&canvas->y, 0.1);
    canvas->y.n = ROWS;
}

/* To scale where that leaves the points half of the width at least. */
static void place_limit(struct canvas *canvas)
{
    double limit = (double)canvas->plot->limit_bytes, range = canvas->x.high - canvas->x.low;
    unsigned width = canvas->width - (canvas->has_strip ? STRIP : 1);
    canvas->is_left = limit < canvas->x.low;
    canvas->broken = limit > canvas->x.high + range || limit < canvas->x.low - range;
    if (canvas->broken)
        width -= BREAK;
    else if (canvas->is_left)
        canvas->x.low = limit;
    else if (limit > canvas->x.high)
        canvas->x.high = limit;
    canvas->x.n = width;
    canvas->first = canvas->broken && canvas->is_left ? BREAK : 0;
    if (!canvas->broken)
        canvas->limit = plan_axis_cell(&canvas->x, limit);
    else
        canvas->limit = canvas->is_left ? 1 : width + BREAK - 1;
    canvas->behind = canvas->width - STRIP + 2;
}

static void set_cell(struct canvas *canvas, unsigned row, unsigned col, const char *glyph,
                     const char *dress)
{
    canvas->cells[row][col] = (struct cell){.glyph = glyph, .dress = dress};
}

static void add_point(struct canvas *canvas, const struct plan_row *row)
{
    double y = time_of(canvas, row);
    struct point point = {.row = ROWS - 1 - plan_axis_cell(&canvas->y, y),
                          .col =
                              canvas->first + plan_axis_cell(&canvas->x, (double)row->total_bytes),
                          .front = row->on_front,
                          .above = y > canvas->y.high,
                          .below = y < canvas->y.low};
    if (!is_shown(canvas, row))
        point.col = canvas->behind;
    for (uint32_t i = 0; i < canvas->n_point; i++) {
        struct point *other = &canvas->points[i];
        if (other->row != point.row || other->col != point.col)
            continue;
        size_t length = strlen(other->label);
        if (length + 6 < sizeof other->label)
            snprintf(other->label + length, sizeof other->label - length, ",%u", row->rank);
        else
            canvas->n_unnumbered++;
        other->front = other->front || point.front;
        other->above = other->above && point.above;
        other->below = other->below && point.below;
        return;
    }
    snprintf(point.label, sizeof point.label, "%u", row->rank);
    canvas->points[canvas->n_point++] = point;
}

static void draw_step(struct canvas *canvas, unsigned row, unsigned col)
{
    if (plan_canvas_is_blank(canvas, row, col))
        set_cell(canvas, row, col, canvas->glyphs->step, canvas->term->quiet);
}

/*
 * Of each budget the fastest: right from a point of the front, then down to the next. In the order
 * of ranks the front goes to one side only.
 */
static void draw_steps(struct canvas *canvas)
{
    const struct point *before = NULL;
    for (uint32_t i = 0; i < canvas->n_point; i++) {
        const struct point *point = &canvas->points[i];
        if (!point->front)
            continue;
        const struct point *slow = before && before->row < point->row ? before : point;
        const struct point *fast = slow == point ? before : point;
        for (unsigned col = slow->col; fast && col <= fast->col; col++)
            draw_step(canvas, slow->row, col);
        for (unsigned row = slow->row; fast && row <= fast->row; row++)
            draw_step(canvas, row, fast->col);
        before = point;
    }
}

static void draw_points(struct canvas *canvas)
{
    for (uint32_t i = 0; i < canvas->n_point; i++) {
        const struct point *point = &canvas->points[i];
        const struct glyphs *glyphs = canvas->glyphs;
        set_cell(canvas, point->row, point->col,
                 point->above   ? glyphs->above
                 : point->below ? glyphs->below
                 : point->front ? glyphs->front
                                : glyphs->other,
                 point->front ? canvas->term->good : "");
    }
}

/* Whether a number has room, with a blank on both sides but for its own point. */
static bool has_room(const struct canvas *canvas, unsigned row, int col, size_t length, int own)
{
    const int width = (int)canvas->width;
    for (int c = col - 1; c <= col + (int)length; c++) {
        bool edge = c < 0 || c >= width;
        if (edge && (c < col || c == col + (int)length) && c >= -1 && c <= width)
            continue;
        if (edge || (c != own && !plan_canvas_is_blank(canvas, row, (unsigned)c) &&
                     canvas->cells[row][c].glyph != canvas->glyphs->step))
            return false;
    }
    return true;
}

static bool write_number(struct canvas *canvas, const struct point *point)
{
    int length = (int)strlen(point->label), col = (int)point->col;
    const struct {
        int row, col;
    } places[] = {{0, col + 1}, {0, col - length},      {-1, col},
                  {1, col},     {-1, col - length + 1}, {1, col - length + 1}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int row = (int)point->row + places[i].row;
        if (row < 0 || row >= ROWS)
            continue;
        if (!has_room(canvas, (unsigned)row, places[i].col, (size_t)length,
                      places[i].row ? -2 : col))
            continue;
        for (int c = 0; c < length; c++)
            canvas->cells[row][places[i].col + c] = (struct cell){
                .letter = {point->label[c]}, .dress = point->front ? canvas->term->strong : ""};
        return true;
    }
    return false;
}

/* The front first: its numbers are what one looks for. */
static void write_numbers(struct canvas *canvas)
{
    for (int front = 1; front >= 0; front--) {
        for (uint32_t i = 0; i < canvas->n_point; i++) {
            const struct point *point = &canvas->points[i];
            if (point->front == (front == 1) && !write_number(canvas, point))
                canvas->n_unnumbered++;
        }
    }
}

static void draw(struct canvas *canvas)
{
    for (unsigned row = 0; row < ROWS; row++)
        set_cell(canvas, row, canvas->limit, canvas->glyphs->limit, canvas->term->bad);
    for (uint32_t i = 0; i < canvas->plot->n_row; i++) {
        if (is_built(&canvas->plot->rows[i]))
            add_point(canvas, &canvas->plot->rows[i]);
    }
    draw_steps(canvas);
    draw_points(canvas);
    write_numbers(canvas);
}

static void init(struct canvas *canvas, const struct plan_plot *plot, const struct term *term)
{
    enum { FAR = 4 }; /* times as much as the smallest */
    uint64_t least = UINT64_MAX;
    arena_init(&canvas->arena);
    canvas->plot = plot;
    canvas->width = plot->columns - LABELS - 1;
    canvas->term = term;
    canvas->glyphs = term->utf8 ? &utf8 : &ascii;
    canvas->points = arena_array(&canvas->arena, struct point, plot->n_row);
    for (uint32_t i = 0; i < plot->n_row; i++) {
        const struct plan_row *row = &plot->rows[i];
        if (is_built(row) && row->total_bytes < least)
            least = row->total_bytes;
        canvas->some_fit = canvas->some_fit || (is_built(row) && row->fits);
    }
    canvas->shown_bytes = FAR * (double)least;
    find_ranges(canvas);
    place_limit(canvas);
}

void plan_plot_text(const struct plan_plot *plot, const struct term *term, struct text *out)
{
    uint32_t n_built = 0;
    for (uint32_t i = 0; i < plot->n_row; i++)
        n_built += is_built(&plot->rows[i]);
    if (n_built < 2)
        return;
    struct canvas canvas = {0};
    init(&canvas, plot, term);
    draw(&canvas);
    text_add(out, "\n");
    plan_canvas_print(&canvas, out);
    arena_release(&canvas.arena);
}
