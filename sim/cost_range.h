/*
 * Where a program leaves the ranges in which a cluster's rates were measured.
 *
 * Collected while pricing, told once at the end; it never changes a price.
 */
#ifndef SIM_COST_RANGE_H
#define SIM_COST_RANGE_H

#include "src/cluster.h"

struct cost_extent { /* smallest and largest seen; min > max: not seen */
    uint64_t min[QUANTITY_N], max[QUANTITY_N];
};

void cost_extent_init(struct cost_extent *extent, const struct plan *plan);
void cost_extent_op(struct cost_extent *extent, const struct op *op);

/* One text for all that lies outside, or NULL. */
const char *cost_leaves_table(const struct cluster *cluster, const struct program *program,
                              const struct cost_extent *extent, struct arena *arena);

#endif
