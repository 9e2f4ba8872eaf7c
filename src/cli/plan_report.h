/*
 * Compared plans with everything that is said about them, and the shapes of that: table, picture,
 * words and JSON.
 */
#ifndef SRC_CLI_PLAN_REPORT_H
#define SRC_CLI_PLAN_REPORT_H

#include "src/cli/plan_lists.h"
#include "src/cli/plan_row.h"
#include "src/cli/term.h"

struct plan_report {
    const struct options *options; /* as typed */
    struct plan_lists lists;
    struct plan_row *rows; /* ranked */
    uint32_t n_row;
    const struct plan_row *best, *smallest; /* NULL: none fits; all are refused */
    uint64_t limit_bytes, outside_bytes;
    const char *leaves_table; /* the first price that does, or NULL */
    /* of every plan the same */
    const char *model, *cluster;
    uint64_t parameters;
    unsigned columns; /* of a line, at most TERM_PAGE_COLUMNS */
    struct text head; /* what stands above the table */
};

/* The options in which this plan differs from others, as one would type them. */
void plan_report_differs(const struct plan_report *report, const struct plan_row *row,
                         struct text *out);

/* Why nothing fits: what the smallest plan needs, when and for what. */
void plan_report_shortage(const struct plan_report *report, struct text *out);

/* A paragraph as page_wrap() has it, in lines of the report. */
void plan_report_wrap(const struct plan_report *report, const char *paragraph, unsigned at,
                      unsigned hanging, struct text *out);

void plan_report_text(const struct plan_report *report, const struct term *term, struct text *out);
void plan_report_table(const struct plan_report *report, const struct term *term, struct text *out);
/* Nothing where behavior and arrangement are the same for all. */
void plan_report_packing(const struct plan_report *report, const struct term *term,
                         struct text *out);
void plan_row_packing_json(const struct plan_row *row);
/* Takes the rows' JSON. */
void plan_report_json(struct plan_report *report, struct text *out);

#endif
