/*
 * What one event says by itself, held against the rules, and what it adds to tracks and links.
 */
#ifndef TRACES_TRACE_RULES_H
#define TRACES_TRACE_RULES_H

#include "traces/trace_groups.h"
#include "traces/trace_links.h"

struct trace_state {
    struct trace_tracks tracks;
    struct trace_links links;
    struct trace_findings findings;
    struct trace_keys keys;
    struct trace_groups groups; /* where they are told before the events */
    uint64_t n_event, n_slice, n_flow, n_counter;
    uint64_t step; /* hash of the name of the first ProfilerStep; 0: none yet */
};

/* text: an element of traceEvents at this byte of the file. */
void trace_rules_event(struct trace_state *state, const char *text, size_t length, uint64_t offset);

#endif
