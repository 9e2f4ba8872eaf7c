/*
 * `unshard calibrate`: a cluster's rates measured where it runs.
 *
 * Each part measures and fills in its rates, low, mid and high as they were seen. Files:
 * calibrate_ops.c (one thread: operators, packing, memory), calibrate_comm.c (ranks). What is out of
 * what a cluster file can say is brought to its bound, in cmd_calibrate.c.
 */
#ifndef SRC_CLI_CALIBRATE_H
#define SRC_CLI_CALIBRATE_H

#include "src/cluster.h"

/* Rates of the device's own kernels and of its host, alone. Texts and ranges to arena. */
enum status calibrate_ops(struct cluster *out, struct arena *arena, struct err *err);

/* Rows for 2 ranks up to most, each number of them doubled; ranks are forked. */
enum status calibrate_comm(uint32_t most, struct cluster *out, struct arena *arena,
                           struct err *err);

/* One number for all three, or three in any order. */
struct rate calibrate_rate(double low, double mid, double high, const char *source);
struct rate calibrate_value(double value, const char *source);
void calibrate_valid(struct rate *rate, enum quantity quantity, uint64_t min, uint64_t max,
                     struct arena *arena);

#endif
