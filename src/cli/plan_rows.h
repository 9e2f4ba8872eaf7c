/*
 * Plans that are compared: each is simulated and becomes a row, or the reason why it cannot be.
 *
 * Which plans these are is for those who add them (cmd_plan.c, plan_search.c), their order for
 * plan_rank.c.
 */
#ifndef SRC_CLI_PLAN_ROWS_H
#define SRC_CLI_PLAN_ROWS_H

#include "src/cli/history.h"
#include "src/cli/plan_report.h"

struct comparison {
    struct options *options;  /* as typed */
    struct prepared prepared; /* opened, and the plan of the row that is made */
    struct plan_report report;
    struct history history;
    struct arena arena; /* rows and their texts */
    uint32_t cap_row;
    uint32_t search; /* that rows are added of, from 1; 0: they are named */
};

/*
 * One more row, at the end of the report's. options: of this plan alone, one value each; label: its
 * units in words, which live as long as the comparison. A plan that is refused is a row as well;
 * anything else that fails ends all. What is the same program as another row of the same search, or
 * has more units than --max-units, is none.
 */
enum status comparison_add(struct comparison *comparison, const struct options *options,
                           const char *label, const struct term *term, struct err *err);

/* Whether this way of failing is a plan that is refused. */
bool plan_row_is_refusal(enum status status);

void comparison_release(struct comparison *comparison);

#endif
