/*
 * Two joins: the ends of one flow, and all that has one correlation.
 */
#include "traces/trace_links.h"

#include <inttypes.h>
#include <stdlib.h>

void trace_links_add(struct links *links, const struct link *link)
{
    links->at = trace_grow(links->at, links->n, &links->cap, sizeof(*links->at));
    links->at[links->n++] = *link;
}

void trace_links_release(struct trace_links *links)
{
    free(links->flows.at);
    free(links->correlations.at);
    *links = (struct trace_links){0};
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Key, role and track bring together what is compared; time and place make the order complete. */
static int by_key(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    int order = ORDER(x->key, y->key);
    order = order ? order : ORDER(x->role, y->role);
    order = order ? order : ORDER(x->track, y->track);
    order = order ? order : ORDER(x->at_ns, y->at_ns);
    return order ? order : ORDER(x->offset, y->offset);
}

/* One group of equal key: [begin[role], begin[role + 1]) are those of a role. */
struct group {
    const struct link *begin[LINK_ROLE_N + 1];
};

static size_t count(const struct group *group, int role)
{
    return (size_t)(group->begin[role + 1] - group->begin[role]);
}

static struct group group_at(const struct links *links, size_t at)
{
    struct group group;
    size_t i = at;
    for (int role = 0; role < LINK_ROLE_N; role++) {
        group.begin[role] = &links->at[i];
        while (i < links->n && links->at[i].key == links->at[at].key && links->at[i].role == role)
            i++;
    }
    group.begin[LINK_ROLE_N] = &links->at[i];
    return group;
}

static int64_t first_ns(const struct link *from, const struct link *to)
{
    int64_t first = INT64_MAX;
    for (; from < to; from++)
        first = from->at_ns < first ? from->at_ns : first;
    return first;
}

static void report_ends(struct trace_findings *findings, const struct link *from,
                        const struct link *to, const char *what)
{
    for (; from < to; from++) {
        if (trace_found(findings, RULE_FLOW_PAIRED, from->offset))
            trace_say(findings, RULE_FLOW_PAIRED, "flow at %" PRId64 " ns %s", from->at_ns, what);
    }
}

static void check_flow(const struct group *group, struct trace_findings *findings)
{
    const struct link *begins = group->begin[FLOW_BEGIN], *steps = group->begin[FLOW_STEP];
    const struct link *ends = group->begin[FLOW_END], *last = group->begin[LINK_ROLE_N];
    const size_t n_begin = (size_t)(steps - begins), n_end = (size_t)(last - ends);
    if (n_begin == 0)
        report_ends(findings, ends, last, "ends ('f') and nothing begins it ('s')");
    if (n_end == 0)
        report_ends(findings, begins, steps, "begins ('s') and nothing ends it ('f')");
    if (n_begin > 0 && n_end > 0 && first_ns(ends, last) < first_ns(begins, steps))
        report_ends(findings, ends, ends + 1, "ends before it begins");
    if ((n_begin > 1 || n_end > 1) && trace_found(findings, RULE_FLOW_ONCE, begins->offset))
        trace_say(findings, RULE_FLOW_ONCE,
                  "one category, name and id begins %zu times and ends %zu times", n_begin, n_end);
}

static void check_flows(struct links *flows, const struct trace_tracks *tracks,
                        struct trace_findings *findings)
{
    if (flows->n == 0)
        return;
    qsort(flows->at, flows->n, sizeof(*flows->at), by_key);
    for (size_t i = 0; i < flows->n;) {
        const struct group group = group_at(flows, i);
        check_flow(&group, findings);
        i = (size_t)(group.begin[LINK_ROLE_N] - flows->at);
    }

    struct track_moment *moments = calloc(flows->n, sizeof(*moments));
    if (!moments)
        err_out_of_memory(flows->n * sizeof(*moments));
    for (size_t i = 0; i < flows->n; i++) {
        const struct link *flow = &flows->at[i];
        moments[i] = (struct track_moment){.track = flow->track,
                                           .at_ns = flow->at_ns,
                                           .offset = flow->offset,
                                           .next = flow->role == FLOW_END_NEXT};
    }
    trace_tracks_enclose(tracks, moments, flows->n, findings);
    free(moments);
}

static void check_launches(const struct group *group, struct trace_findings *findings)
{
    const struct link *device = group->begin[LINK_DEVICE];
    const size_t n_launch = count(group, LINK_LAUNCH), n_device = count(group, LINK_DEVICE);
    for (size_t i = 0; i < n_device && n_launch == 0; i++) {
        if (trace_found(findings, RULE_LAUNCH_PAIRED, device[i].offset))
            trace_say(findings, RULE_LAUNCH_PAIRED,
                      "correlation %" PRIu64 " of a GPU event is that of no launch on the host",
                      device[i].key);
    }
    if (n_device > 0 && (n_launch > 1 || n_device > 1) &&
        trace_found(findings, RULE_LAUNCH_ONCE, device->offset))
        trace_say(findings, RULE_LAUNCH_ONCE,
                  "correlation %" PRIu64 " is that of %zu launches and %zu GPU events", device->key,
                  n_launch, n_device);
    if (n_launch == 0)
        return;
    const int64_t launch_ns = first_ns(group->begin[LINK_LAUNCH], group->begin[LINK_LAUNCH + 1]);
    for (size_t i = 0; i < n_device; i++) {
        if (device[i].at_ns < launch_ns &&
            trace_found(findings, RULE_LAUNCH_ORDER, device[i].offset))
            trace_say(findings, RULE_LAUNCH_ORDER,
                      "GPU event at %" PRId64 " ns runs before its launch at %" PRId64 " ns",
                      device[i].at_ns, launch_ns);
    }
}

/* Both are in order of track. */
static void check_arrows(const struct group *group, struct trace_findings *findings)
{
    const struct link *end = group->begin[LINK_FLOW_END], *device = group->begin[LINK_DEVICE];
    const bool begun = count(group, LINK_FLOW_BEGIN) > 0;
    for (; device < group->begin[LINK_ROLE_N]; device++) {
        while (end < group->begin[LINK_DEVICE] && end->track < device->track)
            end++;
        if (begun && end < group->begin[LINK_DEVICE] && end->track == device->track)
            continue;
        if (trace_found(findings, RULE_FLOW_KERNEL, device->offset))
            trace_say(findings, RULE_FLOW_KERNEL,
                      "no flow 'ac2g' with id %" PRIu64 " begins at a launch and ends on the GPU "
                      "event's track",
                      device->key);
    }
}

static void check_correlations(struct links *links, struct trace_findings *findings)
{
    if (links->n == 0)
        return;
    qsort(links->at, links->n, sizeof(*links->at), by_key);
    for (size_t i = 0; i < links->n;) {
        const struct group group = group_at(links, i);
        check_launches(&group, findings);
        check_arrows(&group, findings);
        i = (size_t)(group.begin[LINK_ROLE_N] - links->at);
    }
}

void trace_links_check(struct trace_links *links, const struct trace_tracks *tracks,
                       struct trace_findings *findings)
{
    check_flows(&links->flows, tracks, findings);
    check_correlations(&links->correlations, findings);
}
