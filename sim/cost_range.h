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
    uint8_t row_readers[TASK_KIND_N]; /* bits of the communicators that read a row of the kind */
};

void cost_extent_init(struct cost_extent *extent, const struct plan *plan);
void cost_extent_op(struct cost_extent *extent, const struct op *op);
/* kind: that of the row which is read. */
void cost_extent_collective(struct cost_extent *extent, enum task_kind kind, enum comm comm,
                            struct comm_ranks ranks);

/* One text for all that lies outside, or NULL. */
const char *cost_leaves_table(const struct cluster *cluster, const struct program *program,
                              const struct cost_extent *extent, struct arena *arena);

#endif
