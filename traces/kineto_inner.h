/*
 * A trace while it is read: the records that are kept of events, and what turns them into numbers.
 * Known to traces/kineto*.c alone.
 */
#ifndef TRACES_KINETO_INNER_H
#define TRACES_KINETO_INNER_H

#include "traces/kineto.h"
#include "traces/kineto_ids.h"
#include "traces/trace_event.h"

#define KINETO_NONE UINT32_MAX

/* One operation of a GPU. */
struct kineto_gpu {
    int64_t begin_ns, dur_ns;
    uint64_t correlation;
    uint32_t stream, name;
    uint32_t collective; /* KINETO_NONE: none, or its sizes are not given */
    uint32_t launch;     /* KINETO_NONE before it is found, and where there is none */
    uint8_t work;        /* enum kineto_work; KINETO_OTHER before names are looked at */
};

/* One call of the host that starts something on a GPU, and what that is in all. */
struct kineto_launch {
    uint64_t correlation;
    int64_t begin_ns, dur_ns, gpu_ns, collective_ns;
    uint32_t thread, n_kernel;
    uint32_t collective; /* of the operator around it */
    bool of_kernel;
};

enum kineto_scope_kind { SCOPE_RANGE, SCOPE_PRODUCT, SCOPE_COLLECTIVE };

/* A span of a thread of the host, and what is launched in it. */
struct kineto_scope {
    int64_t begin_ns, end_ns, gpu_ns, collective_ns;
    uint64_t n_kernel;
    uint32_t thread, id; /* id: of a name, product or collective */
    uint8_t kind;
};

struct kineto_stream_key {
    int64_t device, stream;
};

struct kineto_thread_key {
    uint64_t pid, tid;
};

/* Keys are compared byte by byte: no padding. */
struct kineto_collective_key {
    uint64_t elements, bytes, ranks;
    uint32_t kind, group, list, dtype; /* kind: of the table of kinds; the others: of a name */
};

struct kineto_product_key {
    int64_t batch, m, n, k;
    uint32_t op, causal, dtype, unused;
};

struct kineto_state {
    struct arena *arena;
    struct kineto_ids names, streams, threads, collectives, products;
    struct kineto_gpu *gpu;
    struct kineto_launch *launches;
    struct kineto_launch **order; /* of launches by thread and time, once they are joined */
    struct kineto_scope *scopes;
    size_t n_gpu, gpu_cap, n_launch, launch_cap, n_scope, scope_cap;
    uint64_t n_event, n_discarded;
    bool has_begin;
    int64_t begin_ns, base_ns; /* of the first event; added to all times to get those of a clock */
};

static inline const char *kineto_name(const struct kineto_state *state, uint32_t id)
{
    return state->names.keys[id];
}

/* kineto_event.c: what is kept of an event. */
void kineto_take(struct kineto_state *state, const struct trace_event *event);
uint32_t kineto_name_of(struct kineto_state *state, const struct json_span *span);

/* kineto_work.c: what a kernel does, by its name, and which collective a word means. */
enum kineto_work kineto_work_of(const char *name);
uint32_t kineto_collective_kind(const struct json_span *word);
const char *kineto_collective_kind_name(uint32_t kind);

/* kineto_shape.c: sizes from arguments. KINETO_NONE where they are not there. */
uint32_t kineto_product_of(struct kineto_state *state, const struct trace_event *event);
uint32_t kineto_collective_of(struct kineto_state *state, const struct trace_event *event);
/* One of which no more than the kernel's name is known. */
uint32_t kineto_collective_unsized(struct kineto_state *state, const char *kernel);

/* kineto_join.c: operations to their launches, launches to the scopes around them. */
void kineto_join(struct kineto_state *state);
void kineto_add_scope(struct kineto_state *state, const struct kineto_scope *scope);

/* kineto_sum.c: the answer. */
void kineto_sum(struct kineto_state *state, struct kineto *out);

#endif
