/*
 * The canvas that the picture of plans is drawn on, shared by who draws (plan_plot.c) and who puts
 * axes to it and prints it (plan_axes.c).
 */
#ifndef SRC_CLI_PLAN_CANVAS_H
#define SRC_CLI_PLAN_CANVAS_H

#include "src/arena.h"
#include "src/cli/plan_plot.h"

enum { ROWS = 13, LABELS = 9, STRIP = 9, BREAK = 4 };
enum { MAX_WIDTH = TERM_PAGE_COLUMNS - LABELS - 1 };

struct glyphs {
    const char *front, *other, *above, *below, *step, *limit, *side, *tick_y, *corner, *floor,
        *tick_x, *broken;
};

struct cell {
    const char *glyph; /* NULL: blank */
    char letter[2];    /* of a number; used where glyph is NULL and it is not empty */
    const char *dress;
};

/* Values from low to high on cells 0 to n - 1. */
struct axis {
    double low, high;
    unsigned n;
};

struct point {
    unsigned row, col;
    bool front, above, below; /* the last two: of the axis, which shows it at its end */
    char label[20];
};

struct canvas {
    const struct plan_plot *plot;
    const struct term *term;
    const struct glyphs *glyphs;
    struct arena arena;
    struct axis x, y;
    unsigned width;         /* columns in use */
    unsigned first;         /* column where x begins */
    unsigned limit, behind; /* columns of the limit, and of what stands behind it */
    bool broken, is_left;   /* the limit is not to scale; it lies left of all */
    bool has_strip;         /* something stands behind, where x is not to scale */
    bool some_fit;          /* then the axes are theirs */
    double shown_bytes;     /* else those of what needs no more than this */
    struct cell cells[ROWS][MAX_WIDTH];
    struct point *points;
    uint32_t n_point, n_unnumbered;
};

/* The cell of a value; of what lies outside the nearest one. */
unsigned plan_axis_cell(const struct axis *axis, double value);

static inline bool plan_canvas_is_blank(const struct canvas *canvas, unsigned row, unsigned col)
{
    return !canvas->cells[row][col].glyph && !canvas->cells[row][col].letter[0];
}

void plan_canvas_print(const struct canvas *canvas, struct text *out);

#endif
