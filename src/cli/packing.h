/*
 * What a step spends on moving parameters and gradients between their own places and the
 * communication buffers: the figures by which arrangements and behaviors are compared.
 *
 * Of the steady step at the mid prices, summed over its tasks; nothing of it is measured.
 */
#ifndef SRC_CLI_PACKING_H
#define SRC_CLI_PACKING_H

#include "sim/cost.h"

struct packing {
    int64_t copy_in_ns, copy_out_ns;
    int64_t pack_ns;          /* casts before packing included */
    uint64_t temporary_bytes; /* of copies and casts, the most that is alive at once */
    uint32_t n_all_gather, n_reduce_scatter;
};
struct packing packing_of(const struct program *program, const struct prices *prices);

/* On which hardware the prices of a behavior's copies were measured, in a few words. */
const char *packing_measured_on(enum behavior behavior);

#endif
