/*
 * How far work is, for who waits: one line on stderr that is written over and in the end removed.
 * Only on a terminal, and only once the work has taken a second.
 */
#ifndef SRC_CLI_PLAN_PROGRESS_H
#define SRC_CLI_PLAN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct plan_progress {
    int64_t start_ns;
    bool terminal, shown;
};

struct plan_progress plan_progress_begin(void);
void plan_progress_at(struct plan_progress *progress, uint32_t done, uint32_t all);
/* Of a search: plans so far, of at most so many, and the best step, 0 while there is none. */
void plan_progress_search(struct plan_progress *progress, uint64_t done, uint64_t all,
                          int64_t best_ns);
void plan_progress_end(struct plan_progress *progress);

#endif
