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

#include "sim/space.h"
#include "src/cli/command.h"
#include "src/cli/plan_rows.h"

/* X(ENUM, word): axes of --search that are lists of an option; what is tried stands in plan_search.c */
#define SEARCH_LISTS(X)       \
    X(AC, "ac")               \
    X(ALLOCATOR, "allocator") \
    X(ARRANGE, "arrange")     \
    X(HOLD, "hold")  \
    X(COMM, "comm")

enum search_word {
#define X(id, name, what) SEARCH_##id,
    AXES(X)
#undef X
        SEARCH_SPLIT,
#define X(id, name) SEARCH_##id,
    SEARCH_LISTS(X)
#undef X
        SEARCH_WORD_N
};

/*
 * Whether there is a search, and over which axes: those of --search, else all of sim/space.h but those
 * that an option fixes. Completes the options with the lists of the other axes.
 */
void plan_search_options(struct options *options, struct plan_found *out);

/* Adds rows, and fills in the report's search. */
enum status plan_search(struct comparison *comparison, struct output *out, struct err *err);

#endif
