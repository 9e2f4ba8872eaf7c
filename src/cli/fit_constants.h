/*
 * Which constants of a cluster a fit to runs may move, and a cluster with them moved.
 *
 * Each is a factor on the mid of one rate of the preset, or of several that runs choose between (the
 * attention kernels). What a data sheet, a counted formula or a benchmark of the kernel alone says
 * is none: only what it comes to in a whole step (spec COST 6).
 */
#ifndef SRC_CLI_FIT_CONSTANTS_H
#define SRC_CLI_FIT_CONSTANTS_H

#include <stdbool.h>

#include "src/cluster.h"

/* X(ENUM): in the order in which they are printed; that of FP8 is the last. */
#define FIT_CONSTANTS(X) \
    X(GEMM)              \
    X(ATTENTION)         \
    X(MEMORY)            \
    X(CONTENTION)        \
    X(NIC)               \
    X(RANK)              \
    X(STRAGGLER)         \
    X(HOST)              \
    X(FP8)

enum fit_constant {
#define X(id) FIT_##id,
    FIT_CONSTANTS(X)
#undef X
        FIT_CONSTANT_N
};

/* How many may move at most; products in FP8 have their own beside them. */
enum { FIT_MOST_CONSTANTS = 6 };

/* One rate that a constant stands for, and the kernel whose runs it prices (ATTENTION_N: all). */
struct fit_rate {
    enum fit_constant constant;
    uint8_t attention;
    size_t offset; /* of its struct rate in struct cluster */
};
extern const struct fit_rate fit_rates[];
extern const uint32_t n_fit_rates;

/* Of the logarithm of its factor: how far it may well be from 0 where no run says anything. */
double fit_constant_sd(enum fit_constant constant);

/* Multiply mids alone by exp(x), x by constant. */
void fit_move(struct cluster *cluster, const double x[FIT_CONSTANT_N]);

/* The bounds of x, so that no rate of the cluster leaves what its file can say. */
void fit_bounds(const struct cluster *cluster, double least[FIT_CONSTANT_N],
                double most[FIT_CONSTANT_N]);

struct rate *fit_rate_of(struct cluster *cluster, const struct fit_rate *rate);
const struct rate_field *fit_field(const struct fit_rate *rate);

#endif
