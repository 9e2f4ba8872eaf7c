/*
 * Where the compute stream stands idle in a step, and what held it.
 *
 * An interval on C in which nothing runs is a stall of the task behind it; the last one may be of
 * the step's end. What a body loses between its kernels to a late host is a stall too, as if all of
 * it stood at the body's end. Each stall is parted among causes by the critical path through it, to
 * the ns; its own cause is that of the largest part.
 */
#ifndef SIM_STALLS_H
#define SIM_STALLS_H

#include "sim/critical_path.h"

/* X(ENUM, name, words) */
#define STALL_CAUSES(X)                                                             \
    X(ALL_GATHER, "all-gather", "an all-gather runs")                               \
    X(REDUCE, "reduce", "a reduction runs")                                         \
    X(COMMUNICATOR, "communicator", "another collective is before it in the queue") \
    X(COPY, "copy", "a copy on another stream runs")                                \
    X(HOST, "host", "the host is still at it")                                      \
    X(HOST_WAIT, "host-wait", "the host waited for an event")                       \
    X(ALLOCATOR, "allocator", "memory was given back, which needs an idle device")

enum stall_cause {
#define X(id, name, words) STALL_##id,
    STALL_CAUSES(X)
#undef X
        STALL_CAUSE_N
};
const char *stall_cause_name(enum stall_cause cause);
const char *stall_cause_words(enum stall_cause cause);

struct stall {
    int64_t begin_ns, end_ns;
    uint32_t span;   /* what could not go on; NO_SPAN: the end of the step */
    uint32_t holder; /* of the largest part: the task that ran, or that the host was at */
    uint8_t cause;   /* enum stall_cause, of the largest part */
    bool inside;     /* between the kernels of span */
    int64_t parts_ns[STALL_CAUSE_N];
};

struct stalls {
    struct stall *at; /* the costliest first */
    uint32_t n, cap;
    int64_t idle_ns, by_cause_ns[STALL_CAUSE_N];
};

/* step: the last one that ran, so that nothing of a later one is in it. */
void stalls_find(const struct causes *causes, uint32_t step, struct arena *arena,
                 struct stalls *out);

#endif
