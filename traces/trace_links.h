/*
 * What ties events of a trace together: flows by (category, name, id), and launches to what ran on
 * the device by correlation.
 *
 * Collected in any order and joined at the end by sorting: memory is four words an end.
 */
#ifndef TRACES_TRACE_LINKS_H
#define TRACES_TRACE_LINKS_H

#include "traces/trace_tracks.h"

enum flow_role { FLOW_BEGIN, FLOW_STEP, FLOW_END, FLOW_END_NEXT /* bound to the next slice */ };
enum correlation_role { LINK_LAUNCH, LINK_FLOW_BEGIN, LINK_FLOW_END, LINK_DEVICE, LINK_ROLE_N };

struct link {
    uint64_t key;
    int64_t at_ns;
    uint64_t offset;
    uint32_t track;
    uint8_t role;
};

struct links {
    struct link *at;
    size_t n, cap;
};

struct trace_links {
    struct links flows, correlations;
};

void trace_links_add(struct links *links, const struct link *link);
void trace_links_release(struct trace_links *links);

/* Tracks are sorted: after trace_tracks_check(). */
void trace_links_check(struct trace_links *links, const struct trace_tracks *tracks,
                       struct trace_findings *findings);

#endif
