/*
 * One event of a Chrome trace, taken apart: what the readers look at, and nothing else.
 *
 * Spans point into the event's text. Where a key comes twice the last one counts, as in all readers.
 */
#ifndef TRACES_TRACE_EVENT_H
#define TRACES_TRACE_EVENT_H

#include "traces/trace_json.h"

/* Arguments that are looked at. X(ENUM, key) */
#define EVENT_ARGS(X)                     \
    X(CORRELATION, "correlation")         \
    X(STREAM, "stream")                   \
    X(NAME, "name")                       \
    X(COLLECTIVE_NAME, "Collective name") \
    X(IN_NELEMS, "In msg nelems")         \
    X(OUT_NELEMS, "Out msg nelems")       \
    X(GROUP_SIZE, "Group size")           \
    X(DTYPE, "dtype")                     \
    X(GROUP_NAME, "Process Group Name")   \
    X(GROUP_RANKS, "Process Group Ranks") \
    X(DEVICE, "device")                   \
    X(INPUT_DIMS, "Input Dims")           \
    X(INPUT_TYPES, "Input type")          \
    X(CONCRETE_INPUTS, "Concrete Inputs")

enum event_arg {
#define X(id, key) ARG_##id,
    EVENT_ARGS(X)
#undef X
        ARG_N
};

struct trace_event {
    struct json_span ph, cat, name, id, bp, pid, tid, ts, dur;
    struct json_span args[ARG_N];
    uint32_t n_member, n_arg;
    bool args_numeric;    /* each argument is a number, or a string that holds one */
    char phase;           /* of ph, 0 where that is not one letter */
    bool has_ts, has_dur; /* readable as times */
    int64_t ts_ns, dur_ns;
};

/* False at a fault, which is in *scan. */
bool trace_event_parse(struct json_scan *scan, struct trace_event *out);

#endif
