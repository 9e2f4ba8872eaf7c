/*
 * What a profile of PyTorch (Kineto) says of a GPU: its kernels by stream, by kind of work and by
 * name, its collectives, its products and attention where shapes were recorded, the launches of the
 * host, and the ranges that are marked.
 *
 * The file, plain or gzip, is read once, event by event; its text is never held. Kept are distinct
 * names and sizes, and a fixed record for each operation of the GPU, each launch and each marked
 * range (40 to 64 bytes), since files are not sorted by time. Times are integer ns from the digits of
 * the text. Nothing of the head is kept but the rank, the GPU's name and the time base: hosts, users
 * and environments stay where they are.
 */
#ifndef TRACES_KINETO_H
#define TRACES_KINETO_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/err.h"

/* By name of the kernel; for collectives also by its arguments. X(ENUM, word) */
#define KINETO_WORKS(X)          \
    X(GEMM, "products")          \
    X(ATTENTION, "attention")    \
    X(MEMORY, "elementwise")     \
    X(COLLECTIVE, "collectives") \
    X(OTHER, "other kernels")    \
    X(COPY, "copies")            \
    X(SET, "sets")

enum kineto_work {
#define X(id, word) KINETO_##id,
    KINETO_WORKS(X)
#undef X
        KINETO_WORK_N
};
const char *kineto_work_name(enum kineto_work work);

/* Of n durations: their sum, and nearest ranks at 0, 10, 50, 90 and 100 %. Zero where n is. */
struct kineto_spread {
    uint64_t n;
    int64_t sum_ns, least_ns, low_ns, mid_ns, high_ns, most_ns;
};

/* Sums of durations stop at the largest number. */
static inline int64_t kineto_add_ns(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* busy: the time in which at least one operation runs. */
struct kineto_stream {
    int64_t device, stream;
    uint64_t n_kernel, n_copy, n_set;
    int64_t begin_ns, end_ns, busy_ns;
};

struct kineto_kernel {
    const char *name;
    enum kineto_work work;
    struct kineto_spread spread;
};

/* Equal collectives of one process group. Sizes are those of the whole message: the larger side. */
struct kineto_collective {
    const char *kind;         /* "all_gather", "reduce_scatter", "all_reduce", … */
    const char *group, *list; /* process group: its name, and its ranks as in "[0, 1]"; or "" */
    const char *dtype;        /* as in "BFloat16"; "" where sizes are not known */
    uint32_t ranks;           /* 0: not known */
    uint64_t elements, bytes; /* of one; 0: not known */
    struct kineto_spread spread;
};

/* One of them, for those who hold several ranks side by side; in order of time. */
struct kineto_call {
    uint32_t collective;
    int64_t begin_ns, dur_ns;
};

enum kineto_op { KINETO_MATMUL, KINETO_SDPA, KINETO_SDPA_BACKWARD };

/*
 * Calls of an operator of one shape, each the sum of the kernels that it launches. Products: batch
 * of m by k times k by n. Attention: batch is sequences times heads, m queries, k keys, n the width
 * of a head.
 */
struct kineto_product {
    enum kineto_op op;
    const char *dtype; /* as in "c10::BFloat16" */
    int64_t batch, m, n, k;
    bool causal;
    struct kineto_spread spread;
};
double kineto_product_flop(const struct kineto_product *product);

/*
 * A marked range by name, ProfilerStep without its number. On the host, and what was launched in it:
 * ranges inside it count for it too. "FSDP::forward (UNIT)" and "FSDP::backward (UNIT)" are made here:
 * from the end of FSDP's hook before to the beginning of the one behind.
 */
struct kineto_range {
    const char *name;
    struct kineto_spread host;
    uint64_t n_kernel;
    int64_t gpu_ns, collective_ns; /* of all of them; the first holds the second */
};

struct kineto {
    const char *device_name; /* "" where there is none */
    bool has_rank;
    int64_t rank, world_size;
    bool has_date;
    char date[16]; /* of the first event, as in "2025-01-31", UTC */
    uint64_t n_event, n_gpu;
    uint64_t n_discarded;          /* on the GPU, but without times that make sense */
    uint64_t n_unlaunched;         /* on the GPU, without the launch */
    struct kineto_stream *streams; /* by device and stream */
    struct kineto_kernel *kernels; /* of most time first */
    struct kineto_collective *collectives;
    struct kineto_call *calls;
    struct kineto_product *products;
    struct kineto_range *ranges; /* as threads have them first, one thread after the other */
    uint32_t n_stream, n_kernel, n_collective, n_product, n_range;
    uint64_t n_call;
    struct kineto_spread works[KINETO_WORK_N];
    struct kineto_spread launch;   /* calls that launch a kernel */
    struct kineto_spread interval; /* from one such call to the next on its thread */
};

/*
 * Everything of *out lives in the arena. STATUS_INPUT: the file cannot be read, is no trace, or is
 * damaged; a trace without any operation of a GPU is none of these.
 */
enum status kineto_read(const char *path, struct arena *arena, struct kineto *out, struct err *err);

#endif
