/*
 * `unshard calibrate`: a cluster's rates from what was measured, here or elsewhere.
 *
 * Each source reads or measures and fills in rates, low, mid and high as they were seen; what it does
 * not say stays the preset's (--cluster). Files: calibrate_host.c with calibrate_ops.c and
 * calibrate_device.c (one rank: operators, packing, memory, its host) and calibrate_comm.c (ranks);
 * calibrate_nccl.c over collective_fit.h (outputs of nccl-tests); calibrate_trace.c with
 * calibrate_trace_comm.c (profiles).
 * What is out of what a cluster file can say is brought to its bound, in src/cluster_file.c.
 */
#ifndef SRC_CLI_CALIBRATE_H
#define SRC_CLI_CALIBRATE_H

#include "src/cli/command.h"
#include "src/cluster.h"

/* X(ENUM, word of --from) */
#define CALIBRATE_SOURCES(X)    \
    X(DEVICE, "device")         \
    X(NCCL_TESTS, "nccl-tests") \
    X(TRACE, "trace")

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

/* This machine as a cluster. Texts and ranges to arena. */
enum status calibrate_host(struct cluster *out, struct arena *arena, struct err *err);

/* A sequence and a short one, in tokens; products that are narrow, and hardly any. */
enum { CALIBRATE_SEQ = 256, CALIBRATE_SHORT_SEQ = 32, CALIBRATE_NARROW = 64, CALIBRATE_SMALL = 16 };

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
enum status calibrate_op_speeds(struct calibrate_speed out[CLASS_OP_N], struct err *err);

/* Rates of the device's own kernels and of its host, alone. Texts and ranges to arena. */
enum status calibrate_device(struct cluster *out, struct arena *arena, struct err *err);

/* Rows for 2 ranks up to most, each number of them doubled; ranks are forked. */
enum status calibrate_comm(uint32_t most, struct cluster *out, struct arena *arena,
                           struct err *err);

/* One number for all three, or three in any order. */
struct rate calibrate_rate(double low, double mid, double high, const char *source);
struct rate calibrate_value(double value, const char *source);
void calibrate_valid(struct rate *rate, enum quantity quantity, uint64_t min, uint64_t max,
                     struct arena *arena);

#endif
