/*
 * The slices of each track, collected in any order and looked at once all are there.
 *
 * Files are not sorted by time, so that nesting can be judged at the end only: memory is one entry
 * of three words a slice. A track is a (pid, tid); where these are strings, their hash.
 */
#ifndef TRACES_TRACE_TRACKS_H
#define TRACES_TRACE_TRACKS_H

#include "traces/trace_event.h"
#include "traces/trace_findings.h"

struct track_slice {
    int64_t begin_ns, end_ns;
    uint64_t offset; /* of its event in the file */
};

/* B and E events, to be matched in order of time. */
struct track_edge {
    int64_t at_ns;
    uint64_t offset;
    bool begins;
};

struct track {
    uint64_t pid, tid;
    struct track_slice *slices;
    struct track_edge *edges;
    size_t n_slice, slice_cap, n_edge, edge_cap;
};

struct trace_tracks {
    struct track *tracks;
    uint32_t n, cap;
    uint32_t *index; /* hash table of 1 + track; 0: empty */
    uint32_t index_size;
    uint32_t last; /* the one found last, which most often comes again */
};

void trace_tracks_release(struct trace_tracks *tracks);

uint64_t trace_id_value(const struct json_span *id); /* of a pid or tid */
uint32_t trace_track_of(struct trace_tracks *tracks, uint64_t pid, uint64_t tid);
void trace_track_slice(struct trace_tracks *tracks, uint32_t track,
                       const struct track_slice *slice);
void trace_track_edge(struct trace_tracks *tracks, uint32_t track, const struct track_edge *edge);

/* Match edges to slices, sort, and report what crosses. Slices are sorted from then on. */
void trace_tracks_check(struct trace_tracks *tracks, struct trace_findings *findings);

/* A moment on a track that a slice should be at. */
struct track_moment {
    uint32_t track;
    int64_t at_ns;
    uint64_t offset;
    bool next; /* a slice that begins at or after it does as well */
};

/* Sorts the moments and reports those where there is no slice; after trace_tracks_check(). */
void trace_tracks_enclose(const struct trace_tracks *tracks, struct track_moment *moments, size_t n,
                          struct trace_findings *findings);

/* An array of n elements with room for one more: doubles. */
void *trace_grow(void *array, size_t n, size_t *cap, size_t element_bytes);

#endif
