#ifndef TESTS_SLOW_PATH_H
#define TESTS_SLOW_PATH_H
/*
 * What no execution of a program can undercut, from its instructions alone: the longest path through
 * the host's order, streams, communicators and events, at the prices of tasks that run alone. Shares
 * nothing with the engine but the prices.
 */
#include "sim/cost.h"

struct slow_path {
    int64_t longest_ns, busiest_stream_ns, busiest_comm_ns;
    unsigned n_comm; /* communicators that are used */
};

/* Init, first and steady, so that steps counts without init. */
void slow_path_of(const struct program *program, const struct prices *prices, uint32_t steps,
                  struct slow_path *out);

#endif
