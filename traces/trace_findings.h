/*
 * The rules that a trace is held against, and what was found: one entry a rule, with its first place
 * and how often.
 */
#ifndef TRACES_TRACE_FINDINGS_H
#define TRACES_TRACE_FINDINGS_H

#include "traces/trace_check.h"
#include "traces/trace_keys.h"

/*
 * X(ENUM, rule, reader that it breaks). Sources: spec TRACES sections 0, 2 and 3.
 *
 * Kept by every trace that has been seen to work in all of them, but not by every real trace: many
 * profilers write files that some readers misread.
 */
#define TRACE_RULES(X)                              \
    X(JSON, "strict-json", "all")                   \
    X(KEYS, "keys-once", "all")                     \
    X(START, "format-guess", "Perfetto")            \
    X(SURROGATE, "no-surrogates", "Perfetto")       \
    X(OBJECT, "event-objects", "speedscope")        \
    X(PHASE, "phase", "Perfetto")                   \
    X(NUMERIC_IDS, "numeric-ids", "speedscope")     \
    X(IDS_KEPT, "ids-kept", "Perfetto")             \
    X(TIMES, "times-are-numbers", "HTA")            \
    X(TIMES_EXACT, "times-exact", "Perfetto")       \
    X(DURATION, "durations", "Perfetto")            \
    X(LONG, "under-7-days", "HTA")                  \
    X(CATEGORY, "category", "HTA")                  \
    X(NEST, "slices-nest", "Perfetto")              \
    X(BEGIN_END, "begin-end-paired", "Perfetto")    \
    X(SHOWN, "has-slices", "speedscope")            \
    X(FLOW_PAIRED, "flow-paired", "Perfetto")       \
    X(FLOW_ONCE, "flow-once", "Perfetto")           \
    X(FLOW_ENCLOSED, "flow-enclosed", "Perfetto")   \
    X(FLOW_KERNEL, "flow-at-kernel", "TraceLens")   \
    X(CORRELATION, "gpu-arguments", "HTA")          \
    X(STREAM, "stream-positive", "HTA")             \
    X(LAUNCH_PAIRED, "launch-paired", "HTA")        \
    X(LAUNCH_ONCE, "launch-once", "HTA")            \
    X(LAUNCH_ORDER, "launch-before-kernel", "HTA")  \
    X(LAUNCH_FIRST, "metadata-first", "HTA")        \
    X(STEPS, "profiler-step", "HTA")                \
    X(NCCL_NAME, "nccl-name", "HTA")                \
    X(NCCL_ARGS, "nccl-arguments", "TraceLens")     \
    X(NCCL_SIZES, "nccl-sizes", "TraceLens")        \
    X(NCCL_GROUP, "nccl-group", "TraceLens")        \
    X(COUNTER_KEY, "counter-one-key", "Perfetto")   \
    X(COUNTER_NUMBER, "counter-number", "Perfetto") \
    X(METADATA_NAME, "metadata-name", "Perfetto")   \
    X(RANK, "rank-given", "HTA")                    \
    X(RANK_BLANK, "rank-blank", "HTA")              \
    X(RANK_FIRST, "rank-first", "HTA")              \
    X(SUFFIX, "file-suffix", "HTA, TraceLens")

enum trace_rule {
#define X(id, rule, reader) RULE_##id,
    TRACE_RULES(X)
#undef X
        RULE_N
};

struct trace_findings {
    struct arena *arena; /* of the texts */
    struct trace_finding of[RULE_N];
};

void trace_findings_init(struct trace_findings *findings, struct arena *arena);

/* True where this is the rule's first, so that its text is wanted. */
bool trace_found(struct trace_findings *findings, enum trace_rule rule, uint64_t offset);
void trace_say(struct trace_findings *findings, enum trace_rule rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* RULE_KEYS for each key that stands twice in the text, which begins at this byte of the file. */
void trace_found_keys(struct trace_findings *findings, const struct trace_keys *keys,
                      const char *text, uint64_t offset);

/* Those that were found, in the order of the table. */
void trace_findings_report(const struct trace_findings *findings, struct trace_report *out);

#endif
