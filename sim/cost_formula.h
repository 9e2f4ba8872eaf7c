/*
 * The formulas of spec COST, one function each, in double seconds and bytes.
 *
 * Pure: no program, no rounding, no state. struct cost_rates is a cluster at one end of its spread.
 */
#ifndef SIM_COST_FORMULA_H
#define SIM_COST_FORMULA_H

#include "src/cluster.h"

struct cost_rates {
#define X(member, section, key, unit, more_is_faster, least, most) double member;
    CLUSTER_RATES(X)
#undef X
};
struct cost_rates cost_rates_at(const struct cluster *cluster, enum spread spread);

/* Sections 1 to 3. */
double cost_gemm_s(const struct cost_rates *r, double m, double n, double k);
double cost_attention_s(const struct cost_rates *r, double rows, double seq, double head_dim);
double cost_memory_s(const struct cost_rates *r, double bytes);
double cost_op_s(const struct cost_rates *r, const struct op *op); /* by kind and pass */

/* Section 3.1: launches of a kernel family that reaches this fraction of the memory bandwidth. */
double cost_copy_s(const struct cost_rates *r, double launches, double bytes, double fraction);

/* What a unit task moves. Shard elements are a rank's, padded; dtypes are those of the buffers. */
struct unit_work {
    double launches;
    double shard_elements, elements, padded_elements;
    double storage_bytes, compute_bytes, reduce_bytes; /* of one element */
};
double cost_copy_in_s(const struct cost_rates *r, const struct unit_work *work);
double cost_copy_out_s(const struct cost_rates *r, const struct unit_work *work);
double cost_pack_s(const struct cost_rates *r, const struct unit_work *work);
double cost_accumulate_s(const struct cost_rates *r, const struct unit_work *work);
double cost_adamw_s(const struct cost_rates *r, const struct unit_work *work);
/* In a world of 1: in place of all-gather and copy-out, and of the reduce-scatter. */
double cost_cast_out_s(const struct cost_rates *r, const struct unit_work *work);
double cost_reduce_copy_s(const struct cost_rates *r, const struct unit_work *work);

/* Section 4. bytes: the full message; W = nodes * gpus_per_node. */
double cost_collective_s(const struct cost_rates *r, const struct collective_row *row, double bytes,
                         double nodes, double gpus_per_node);
/* The row for this many ranks of a node, or the nearest (the larger of two); NULL without rows. */
const struct collective_row *cost_collective_row(const struct cluster *cluster, enum task_kind kind,
                                                 uint64_t ranks);

/* Section 5: how much longer compute takes on the slowest of W ranks. */
double cost_straggler_factor(const struct cost_rates *r, double world);

#endif
