/*
 * `unshard plan` where nobody says which plans: the search for the best, and the plans of it that are
 * worth a row.
 *
 * Of each combination of the lists that were given a space is searched (sim/search.h) and a few plans
 * are placed and become rows: the plan that one would have had without a search; the fastest that fits
 * with all that the allocator reserves; the one of fewest units that ties with it; and some of the front of
 * time and memory. Where units cannot be searched schemes are compared, and it is said why.
 */
#ifndef SRC_CLI_PLAN_SEARCH_H
#define SRC_CLI_PLAN_SEARCH_H

#include "src/cli/command.h"
#include "src/cli/plan_rows.h"

/* Adds rows, and fills in the report's search. */
enum status plan_search(struct comparison *comparison, struct output *out, struct err *err);

#endif
