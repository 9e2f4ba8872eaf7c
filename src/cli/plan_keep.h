/*
 * --keep: which of the plans that a search has judged are kept in the history, to be asked in SQL.
 *
 * They are rows of v_candidate, not runs: what the answer shows is stored as runs whatever is kept.
 */
#ifndef SRC_CLI_PLAN_KEEP_H
#define SRC_CLI_PLAN_KEEP_H

#include "sim/finalists.h"
#include "src/cli/history.h"
#include "src/cli/plan_lists.h"

enum keep { KEEP_BEST, KEEP_FRONT, KEEP_ALL };

/* One search: of one combination of the lists. */
struct plan_kept {
    const struct options *options; /* of the combination */
    const struct plan_lists *lists;
    const struct space *space;
    const struct search_result *result;
    const struct finalists *finalists;
    uint64_t limit_bytes; /* for torch */
};

/* STATUS_USAGE where something is to be kept and --no-db is given. */
enum status plan_keep_check(const struct options *options, struct err *err);

void plan_keep(const struct plan_kept *kept, struct history *history);

#endif
