/*
 * Compared plans with everything that is said about them, and the shapes of that: table, picture,
 * words and JSON.
 */
#ifndef SRC_CLI_PLAN_REPORT_H
#define SRC_CLI_PLAN_REPORT_H

#include "sim/cost.h"
#include "sim/judge_pool.h"
#include "src/cli/plan_find.h"
#include "src/cli/plan_lists.h"
#include "src/cli/plan_relax.h"
#include "src/cli/plan_row.h"
#include "src/cli/term.h"

/* How plans were found that nobody named. Times are of so many tokens, whatever a combination has. */
enum { PLAN_FOUND_TOKENS = 1000000 };
struct plan_found {
    bool on;
    unsigned axes; /* bits of enum axis */
    bool halves;   /* units may end inside of blocks */
    enum objective objective;
    uint64_t sequences; /* of a GPU in a step, where microbatches share them; else 0 */
    bool whole;         /* all plans of the space were looked at, so that the best one is optimal */
    bool stopped;       /* by a signal */
    double space_size;  /* plans that there are */
    uint64_t judged, passed_over;
    int64_t first_ns; /* of the first row, 0: none fits */
    int64_t least_ns; /* that any plan takes; 0: not known */
};

struct plan_report {
    const struct options *options; /* as typed */
    struct plan_found search;
    struct plan_lists lists;
    struct plan_find find;
    struct plan_relax relax; /* where none fits */
    struct plan_row *rows;   /* ranked */
    uint32_t n_row;
    /* NULL: none fits; there is no second one that does; all are refused */
    const struct plan_row *best, *runner_up, *smallest;
    uint64_t limit_bytes, outside_bytes;
    struct tables_left left; /* tables that some price of some plan is read outside of */
    /* of every plan the same */
    const char *model, *cluster;
    uint64_t parameters;
    unsigned columns; /* of a line, at most TERM_PAGE_COLUMNS */
    struct text head; /* what stands above the table */
};

/* Whether plans differ in an option that is worth a column. */
bool plan_report_varies(const struct plan_report *report, enum option_id id);

/* What the search looked at, as a paragraph; nothing where there was none. */
void plan_report_search(const struct plan_report *report, struct text *out);

/* The options in which this plan differs from others, as one would type them. */
void plan_report_differs(const struct plan_report *report, const struct plan_row *row,
                         struct text *out);

/* Why nothing fits: what the smallest plan needs, when and for what, and with what it would. */
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
