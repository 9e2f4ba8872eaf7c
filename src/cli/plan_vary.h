/*
 * What a search varies, and how that is asked for: the words of --search.
 *
 * Words of sim/space.h are axes of one search. The others are lists of an option's values, and each
 * combination of them is a search of its own. Which values make sense may depend on the other options.
 */
#ifndef SRC_CLI_PLAN_VARY_H
#define SRC_CLI_PLAN_VARY_H

#include "sim/space.h"
#include "src/cli/plan_report.h"

/* X(ENUM, word): those that are lists of an option */
#define SEARCH_LISTS(X)           \
    X(AC, "ac")                   \
    X(ALLOCATOR, "allocator")     \
    X(ARRANGE, "arrange")         \
    X(HOLD, "hold")               \
    X(COMM, "comm")               \
    X(REPLICAS, "replicas")       \
    X(INT_RESHARD, "int-reshard") \
    X(BATCH, "batch")

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
 * that an option fixes. Completes the options with the lists of the other words, in texts of the arena,
 * and where nobody gives units with some that every system has.
 * STATUS_USAGE where a word needs one value of an option that has several, and for an option of searches
 * where there is none.
 */
enum status plan_vary(struct options *options, struct arena *arena, struct plan_found *out,
                      struct err *err);

/* The lists of the options; those that vary together are bound to one another. */
enum status plan_vary_lists(const struct options *options, const struct plan_found *asked,
                            struct arena *arena, struct plan_lists *out, struct err *err);

#endif
