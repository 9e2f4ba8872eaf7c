/*
 * Will the readers of Chrome traces take this file? Strict JSON, nesting per track, flow pairing,
 * and the stated preconditions of each reader, every finding with the reader it breaks. The rules
 * stand in traces/trace_findings.h.
 *
 * Streams the file (plain or gzip): its text is never held whole. What is kept is 24 bytes a slice
 * and 32 bytes an end of a flow or a correlation, since files are not sorted by time. Times are
 * compared in integer ns, parsed from text.
 */
#ifndef TRACES_TRACE_CHECK_H
#define TRACES_TRACE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/err.h"

struct trace_finding {
    const char *rule;   /* "slices-nest", "flow-paired", "rank-blank", "numeric-ids", … */
    const char *reader; /* "Perfetto", "HTA", "TraceLens", "speedscope", "all" */
    const char *text;   /* what and where, one line */
    uint64_t count;     /* how often; text is of the first */
    uint64_t offset;    /* byte of the first, in the uncompressed text */
};

struct trace_report {
    uint64_t n_event, n_slice, n_flow, n_counter, n_track;
    struct trace_finding *findings; /* at most one a rule */
    uint32_t n_finding;
};

/*
 * STATUS_OK: no finding; STATUS_NO: findings, *out is written and err says nothing; STATUS_INPUT: it
 * cannot be read as a trace at all.
 */
enum status trace_check(const char *path, struct arena *arena, struct trace_report *out,
                        struct err *err);

#endif
