/*
 * Time and memory of plans as a picture of characters: left is small, low is fast. Steps of other
 * numbers of tokens than the first plan's are shown as if they had as many.
 *
 * Points carry their rank. The axes are to scale for the plans that fit (for all, where none does);
 * where the limit lies far from them the axis is broken, and what does not fit stands behind it.
 * ASCII but on a terminal that shows UTF-8.
 */
#ifndef SRC_CLI_PLAN_PLOT_H
#define SRC_CLI_PLAN_PLOT_H

#include "src/cli/plan_row.h"
#include "src/cli/term.h"

enum { PLAN_PLOT_LEAST_COLUMNS = 60 };

struct plan_plot {
    const struct plan_row *rows; /* ranked */
    uint32_t n_row;
    uint64_t limit_bytes;
    unsigned columns; /* of a line; PLAN_PLOT_LEAST_COLUMNS to TERM_PAGE_COLUMNS */
};

/* Nothing where fewer than two plans have numbers. */
void plan_plot_text(const struct plan_plot *plot, const struct term *term, struct text *out);

#endif
