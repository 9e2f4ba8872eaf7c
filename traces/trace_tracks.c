/*
 * Sort, then one pass with a stack: slices of a track nest or are disjoint, in integer ns.
 *
 * Equal ends are nested, touching ends are disjoint. Where one crosses the end of another it is
 * reported and left out of the stack, as a viewer would drop it.
 */
#include "traces/trace_tracks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/hash.h"

enum { ARRAY_MIN = 16, INDEX_MIN = 64 };

void *trace_grow(void *array, size_t n, size_t *cap, size_t element_bytes)
{
    if (n < *cap)
        return array;
    size_t bytes, larger = *cap ? *cap * 2 : ARRAY_MIN;
    if (__builtin_mul_overflow(larger, element_bytes, &bytes))
        bytes = SIZE_MAX;
    void *grown = realloc(array, bytes);
    if (!grown)
        err_out_of_memory(bytes);
    *cap = larger;
    return grown;
}

void trace_tracks_release(struct trace_tracks *tracks)
{
    for (uint32_t i = 0; i < tracks->n; i++) {
        free(tracks->tracks[i].slices);
        free(tracks->tracks[i].edges);
    }
    free(tracks->tracks);
    free(tracks->index);
    *tracks = (struct trace_tracks){0};
}

uint64_t trace_id_value(const struct json_span *id)
{
    int64_t value;
    return json_span_int(id, &value) ? (uint64_t)value : json_span_hash(id, id->type);
}

static uint32_t *index_slot(struct trace_tracks *tracks, uint64_t pid, uint64_t tid)
{
    const uint32_t mask = tracks->index_size - 1;
    uint32_t at = (uint32_t)(hash_add(hash_add(1, pid), tid) >> 32) & mask;
    for (; tracks->index[at]; at = (at + 1) & mask) {
        const struct track *track = &tracks->tracks[tracks->index[at] - 1];
        if (track->pid == pid && track->tid == tid)
            break;
    }
    return &tracks->index[at];
}

static void grow_index(struct trace_tracks *tracks)
{
    const uint32_t size = tracks->index_size ? tracks->index_size * 2 : INDEX_MIN;
    free(tracks->index);
    tracks->index = calloc(size, sizeof(*tracks->index));
    if (!tracks->index)
        err_out_of_memory(size * sizeof(*tracks->index));
    tracks->index_size = size;
    for (uint32_t i = 0; i < tracks->n; i++)
        *index_slot(tracks, tracks->tracks[i].pid, tracks->tracks[i].tid) = i + 1;
}

uint32_t trace_track_of(struct trace_tracks *tracks, uint64_t pid, uint64_t tid)
{
    if (tracks->n > 0 && tracks->tracks[tracks->last].pid == pid &&
        tracks->tracks[tracks->last].tid == tid)
        return tracks->last;
    if (tracks->n >= tracks->index_size / 2)
        grow_index(tracks);
    uint32_t *slot = index_slot(tracks, pid, tid);
    if (!*slot) {
        size_t cap = tracks->cap;
        tracks->tracks = trace_grow(tracks->tracks, tracks->n, &cap, sizeof(*tracks->tracks));
        tracks->cap = (uint32_t)cap;
        tracks->tracks[tracks->n] = (struct track){.pid = pid, .tid = tid};
        *slot = ++tracks->n;
    }
    tracks->last = *slot - 1;
    return tracks->last;
}

void trace_track_slice(struct trace_tracks *tracks, uint32_t track, const struct track_slice *slice)
{
    struct track *to = &tracks->tracks[track];
    to->slices = trace_grow(to->slices, to->n_slice, &to->slice_cap, sizeof(*to->slices));
    to->slices[to->n_slice++] = *slice;
}

void trace_track_edge(struct trace_tracks *tracks, uint32_t track, const struct track_edge *edge)
{
    struct track *to = &tracks->tracks[track];
    to->edges = trace_grow(to->edges, to->n_edge, &to->edge_cap, sizeof(*to->edges));
    to->edges[to->n_edge++] = *edge;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Those that begin together: the longer one is around the shorter one. */
static int by_begin(const void *a, const void *b)
{
    const struct track_slice *x = a, *y = b;
    const int order = compare(x->begin_ns, y->begin_ns);
    return order ? order : compare(y->end_ns, x->end_ns);
}

/* At one moment, the order of the file. */
static int edge_order(const void *a, const void *b)
{
    const struct track_edge *x = a, *y = b;
    const int order = compare(x->at_ns, y->at_ns);
    return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

static void report_edge(struct trace_findings *findings, const struct track_edge *edge)
{
    if (trace_found(findings, RULE_BEGIN_END, edge->offset))
        trace_say(findings, RULE_BEGIN_END, "an event '%s' at %" PRId64 " ns has no partner",
                  edge->begins ? "B" : "E", edge->at_ns);
}

/* An E ends the last B that is open. The front of the array serves as the stack. */
static void match_edges(struct trace_tracks *tracks, uint32_t index,
                        struct trace_findings *findings)
{
    struct track *track = &tracks->tracks[index];
    if (track->n_edge == 0)
        return;
    qsort(track->edges, track->n_edge, sizeof(*track->edges), edge_order);
    size_t depth = 0;
    for (size_t i = 0; i < track->n_edge; i++) {
        const struct track_edge edge = track->edges[i];
        if (edge.begins) {
            track->edges[depth++] = edge;
        } else if (depth == 0) {
            report_edge(findings, &edge);
        } else {
            const struct track_edge *begin = &track->edges[--depth];
            const struct track_slice slice = {begin->at_ns, edge.at_ns, begin->offset};
            trace_track_slice(tracks, index, &slice);
        }
    }
    while (depth > 0)
        report_edge(findings, &track->edges[--depth]);
}

static void report_overlap(struct trace_findings *findings, const struct track_slice *slice,
                           const struct track_slice *around)
{
    if (trace_found(findings, RULE_NEST, slice->offset))
        trace_say(findings, RULE_NEST,
                  "slice [%" PRId64 ", %" PRId64 ") ns crosses the end of [%" PRId64 ", %" PRId64
                  ") ns on its track, which is at byte %" PRIu64,
                  slice->begin_ns, slice->end_ns, around->begin_ns, around->end_ns, around->offset);
}

static void check_nesting(struct track *track, struct trace_findings *findings)
{
    if (track->n_slice == 0)
        return;
    qsort(track->slices, track->n_slice, sizeof(*track->slices), by_begin);
    size_t cap = 0, depth = 0;
    const struct track_slice **open = NULL;
    for (size_t i = 0; i < track->n_slice; i++) {
        const struct track_slice *slice = &track->slices[i];
        while (depth > 0 && open[depth - 1]->end_ns <= slice->begin_ns)
            depth--;
        if (depth > 0 && slice->end_ns > open[depth - 1]->end_ns) {
            report_overlap(findings, slice, open[depth - 1]);
            continue;
        }
        open = trace_grow(open, depth, &cap, sizeof(*open));
        open[depth++] = slice;
    }
    free(open);
}

void trace_tracks_check(struct trace_tracks *tracks, struct trace_findings *findings)
{
    for (uint32_t i = 0; i < tracks->n; i++) {
        match_edges(tracks, i, findings);
        check_nesting(&tracks->tracks[i], findings);
    }
}

static int by_moment(const void *a, const void *b)
{
    const struct track_moment *x = a, *y = b;
    const int order = (x->track > y->track) - (x->track < y->track);
    return order ? order : compare(x->at_ns, y->at_ns);
}

/*
 * Of those that begin by then, the latest end tells whether one is open. A slice of no length is at
 * its own moment.
 */
static void enclose_track(const struct track *track, const struct track_moment *moments, size_t n,
                          struct trace_findings *findings)
{
    int64_t end_ns = INT64_MIN, begin_ns = INT64_MIN;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct track_moment *moment = &moments[i];
        for (; at < track->n_slice && track->slices[at].begin_ns <= moment->at_ns; at++) {
            begin_ns = track->slices[at].begin_ns;
            end_ns = track->slices[at].end_ns > end_ns ? track->slices[at].end_ns : end_ns;
        }
        const bool later = moment->next && at < track->n_slice;
        if (end_ns > moment->at_ns || begin_ns == moment->at_ns || later)
            continue;
        if (trace_found(findings, RULE_FLOW_ENCLOSED, moment->offset))
            trace_say(findings, RULE_FLOW_ENCLOSED,
                      "no slice of its track is open at %" PRId64
                      " ns, where a flow is bound to one",
                      moment->at_ns);
    }
}

void trace_tracks_enclose(const struct trace_tracks *tracks, struct track_moment *moments, size_t n,
                          struct trace_findings *findings)
{
    if (n == 0)
        return;
    qsort(moments, n, sizeof(*moments), by_moment);
    for (size_t begin = 0, end; begin < n; begin = end) {
        const uint32_t track = moments[begin].track;
        for (end = begin; end < n && moments[end].track == track; end++) {
        }
        enclose_track(&tracks->tracks[track], moments + begin, end - begin, findings);
    }
}
