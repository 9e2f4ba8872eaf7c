/*
 * One search for a plan: a combination of options, the space of its units, and what was found in it.
 *
 * Who hunts decides how much is looked at and what becomes of the finds (plan_search.c, plan_probe.c).
 * The search knows requested bytes alone; what the allocator reserves is known of the finalists.
 */
#ifndef SRC_CLI_PLAN_HUNT_H
#define SRC_CLI_PLAN_HUNT_H

#include "sim/finalists.h"
#include "src/cli/plan_progress.h"
#include "src/cli/plan_report.h"
#include "src/cli/prepare.h"

struct hunt {
    struct options options; /* of this combination, one value each */
    struct prepared fine;   /* opened; its units as small as they may become */
    struct plan start;
    struct space space;
    struct search_options search;
    struct search_result result;
    struct finalists finalists; /* n is 0 where nothing can be placed */
    struct plan_progress *progress;
};

/* What a GPU may be filled with, all in all: --memory, else a little less than there is. */
uint64_t hunt_limit_bytes(const struct options *options, const struct cluster *cluster);

/*
 * The space of the combination, and how it will be searched, which may be changed before it is: within
 * the limit, on the threads of --jobs. STATUS_USAGE where it has none. fine.arena begins anew.
 */
enum status hunt_open(struct hunt *hunt, const struct plan_found *asked, struct err *err);

/* Atoms that --fixed names stay as the start has them. STATUS_USAGE for a pattern that names none. */
enum status hunt_fix(struct hunt *hunt, struct err *err);

/* Search, and place what has promise. */
enum status hunt_run(struct hunt *hunt, struct err *err);

/* A plan of the result as options, in words that arena owns. */
enum status hunt_options(struct hunt *hunt, uint32_t found, struct arena *arena,
                         struct options *out, struct err *err);

#endif
