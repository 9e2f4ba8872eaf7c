/*
 * Does a collective fit its process group? What the head of a trace says of groups, and what an
 * event says of its own.
 */
#ifndef TRACES_TRACE_GROUPS_H
#define TRACES_TRACE_GROUPS_H

#include "traces/trace_event.h"

struct trace_group {
    uint64_t name; /* its hash */
    int64_t ranks;
};

struct trace_groups {
    struct trace_group *at; /* in order of name and ranks; a name may stand twice */
    size_t n, cap;
};

/* pg_config of distributedInfo; what is not as PyTorch writes it is passed over. */
void trace_groups_take(struct trace_groups *groups, const struct json_span *pg_config);
void trace_groups_release(struct trace_groups *groups);

/* False where what goes in and comes out cannot be that of so many ranks. */
bool trace_group_sizes_fit(const struct trace_event *event);
/* False where the list of ranks, or the head, has another number of ranks for its group. */
bool trace_group_ranks_fit(const struct trace_groups *groups, const struct trace_event *event);

#endif
