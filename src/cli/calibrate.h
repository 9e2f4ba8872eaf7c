/*
 * `unshard calibrate`: a cluster's rates from what was measured, here or elsewhere.
 *
 * Each source reads or measures and fills in rates, low, mid and high as they were seen; what it does
 * not say stays the preset's (--cluster). A device is measured by ranks of its own (calibrate_ranks.c),
 * by its own stamps, on streams, as a step runs: operators (calibrate_ops.c), copies and launches
 * (calibrate_copies.c), collectives (calibrate_comm.c). Rates come from these numbers alone
 * (calibrate_rates.c). What a host and a GPU differ in: calibrate_host.c, calibrate_cuda.c. Outputs of
 * nccl-tests: calibrate_nccl.c over collective_fit.h and measured_row.h; profiles: calibrate_trace.c
 * with calibrate_trace_comm.c; measured runs: calibrate_runs.h. What is out of what a cluster file can
 * say is brought to its bound, in src/cluster_file.c.
 */
#ifndef SRC_CLI_CALIBRATE_H
#define SRC_CLI_CALIBRATE_H

#include "src/cli/command.h"
#include "src/cli/timed_device.h"
#include "src/cluster.h"

/* X(ENUM, word of --from) */
#define CALIBRATE_SOURCES(X)    \
    X(DEVICE, "device")         \
    X(NCCL_TESTS, "nccl-tests") \
    X(TRACE, "trace")           \
    X(RUNS, "runs")

enum calibrate_source {
#define X(id, name) CALIBRATE_FROM_##id,
    CALIBRATE_SOURCES(X)
#undef X
        CALIBRATE_SOURCE_N
};

/* Write a cluster to --output, or to where results go; of a file it is told what is in it. */
enum status calibrate_put(const struct cluster *cluster, const char *what,
                          const struct options *options, struct output *out, struct err *err);

/* Outputs of nccl-tests as the collectives of --cluster. */
enum status calibrate_nccl(const struct options *options, struct arena *arena, struct output *out,
                           struct err *err);

/* Profiles of ranks that ran side by side, as files of PyTorch's profiler. */
enum status calibrate_trace(const struct options *options, struct arena *arena, struct output *out,
                            struct err *err);

/* Write a cluster to this file, whole or not at all. */
enum status calibrate_write(const struct cluster *cluster, const char *path, struct err *err);

/* A table of measured runs as a cluster file a platform, in the folder --output. */
enum status calibrate_from_runs(const struct options *options, struct arena *arena,
                                struct output *out, struct err *err);

/* ---- what is measured ---------------------------------------------------------------------------- */

/* Sizes of the cases, named as in gpu/ops.h: of sequences in tokens, a short and a long one; of
   products, which are wide (g), narrow, or hardly any; of what is copied and updated. */
struct calibrate_sizes {
    uint64_t t, short_t, h, f, v, nh, d;
    uint64_t g_t, g_h, g_f, narrow, small;
    uint64_t copy_bytes, pack_bytes, updated, message_bytes;
};

/* Operators that are priced by one rate: products of three sizes, attention over both sequences, the
   delta rule, and all others. */
enum calibrate_class {
    CLASS_GEMM,
    CLASS_NARROW,
    CLASS_START,
    CLASS_LONG,
    CLASS_SHORT,
    CLASS_DELTA,
    CLASS_OTHER,
    CLASS_OP_N
};

/* FLOP or bytes in a second: of the fastest, of all together, of the slowest. */
struct calibrate_speed {
    double fast, all, slow;
    double work, seconds; /* of all together */
};

/* X(member of struct cluster, from, to): shares of the rate of memory at which packing reads and
   writes. */
#define CALIBRATE_PACKINGS(X) \
    X(copy_cast, FP32, BF16)  \
    X(copy_in, FP32, BF16)    \
    X(copy_out, BF16, BF16)   \
    X(pack_widen, BF16, FP32) \
    X(pack_same, BF16, BF16)  \
    X(pack_fp32, FP32, FP32)

enum calibrate_packing {
#define X(member, from, to) PACKING_##member,
    CALIBRATE_PACKINGS(X)
#undef X
        PACKING_N
};

/* Of one rank. Bytes are counted as read and as written. */
struct calibrate_numbers {
    struct calibrate_speed speeds[CLASS_OP_N];
    double copy_bytes_per_s, update_bytes_per_s, pack_bytes_per_s[PACKING_N];
    double launch_s; /* of a kernel that has hardly anything to do, on its stream */
    double issue_s;  /* of one, on the host's thread */
    uint64_t context_bytes;
};

enum status calibrate_ops(struct timed_device *timed, const struct calibrate_sizes *sizes,
                          struct calibrate_speed out[CLASS_OP_N], struct err *err);
/* A wide product, prepared; in the device's arena. */
enum status calibrate_product(struct timed_device *timed, const struct calibrate_sizes *sizes,
                              struct work *out, struct err *err);
enum status calibrate_copies(struct timed_device *timed, const struct calibrate_sizes *sizes,
                             struct calibrate_numbers *out, struct err *err);

/* Seconds from the end of compute to the start of compute that waits for the collective between them,
   by kind and message; and of products beside collectives, against products alone. */
enum { CALIBRATE_KINDS = 3, CALIBRATE_MESSAGES = 2, CALIBRATE_EVENTS = 3 };
struct calibrate_comm {
    double seconds[CALIBRATE_KINDS][CALIBRATE_MESSAGES];
    double slowdown; /* 1: none */
};
enum status calibrate_collectives(struct timed_device *timed, uint32_t ranks,
                                  const struct calibrate_sizes *sizes, struct calibrate_comm *out,
                                  struct err *err);

/* ---- by whom ------------------------------------------------------------------------------------- */

/* A device that is measured, and how much of it. */
struct calibrate_target {
    const struct device_ops *ops;
    struct calibrate_sizes sizes;
    uint32_t ranks;      /* that measure operators and copies side by side, as a run has them */
    uint32_t most_ranks; /* of collectives; below 2: none are measured */
    struct device_facts facts; /* of the device: filled in by calibrate_numbers() */
};

/* The numbers of rank 0. */
enum status calibrate_measure(struct calibrate_target *target, struct calibrate_numbers *out,
                              struct err *err);
enum status calibrate_measure_comm(const struct calibrate_target *target, uint32_t ranks,
                                   struct calibrate_comm *out, struct err *err);

/* ---- rates --------------------------------------------------------------------------------------- */

/* Texts and ranges to arena. */
void calibrate_rates(const struct calibrate_target *target, const struct calibrate_numbers *numbers,
                     struct cluster *out, struct arena *arena);
/* Rows for 2 ranks up to the target's, each number of them doubled, and contention. Where there is one
   rank alone both stay as they are. */
enum status calibrate_comm(const struct calibrate_target *target, struct cluster *out,
                           struct arena *arena, struct err *err);

/* This machine as a cluster; a GPU of it, whose links are the preset's. */
enum status calibrate_host(const struct device_ops *ops, const struct cluster *preset,
                           struct cluster *out, struct arena *arena, struct err *err);
enum status calibrate_cuda(const struct device_ops *ops, const struct cluster *preset,
                           struct cluster *out, struct arena *arena, struct err *err);

/* One number for all three, or three in any order. */
struct rate calibrate_rate(double low, double mid, double high, const char *source);
struct rate calibrate_value(double value, const char *source);
void calibrate_valid(struct rate *rate, enum quantity quantity, uint64_t min, uint64_t max,
                     struct arena *arena);

#endif
