/*
 * `unshard calibrate`: a cluster's rates measured where it runs.
 *
 * Each part measures and fills in its rates, low, mid and high as they were seen. Files:
 * calibrate_ops.c and calibrate_device.c (one rank: operators, packing, memory, its host), calibrate_comm.c (ranks). What is out of
 * what a cluster file can say is brought to its bound, in cmd_calibrate.c.
 */
#ifndef SRC_CLI_CALIBRATE_H
#define SRC_CLI_CALIBRATE_H

#include "src/cluster.h"

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
