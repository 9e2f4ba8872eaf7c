/*
 * The formulas of spec COST, one function each, in double seconds and bytes.
 *
 * Pure: no program, no rounding, no state. struct cost_rates is a cluster at one end of its spread.
 */
#ifndef SIM_COST_FORMULA_H
#define SIM_COST_FORMULA_H

#include "src/cluster.h"

struct cost_rates {
    enum spread spread;
    double product_bytes; /* of an element of a product: what it reads and writes */
#define X(member, section, key, unit, more_is_faster, least, most) double member;
    CLUSTER_RATES(X)
#undef X
    double attention_backward; /* times the forward pass */
};
struct cost_rates cost_rates_at(const struct cluster *cluster, enum spread spread);

/* The same where a plan chooses its attention kernel, and what products are computed in. */
struct cost_rates cost_rates_of(const struct cluster *cluster, enum spread spread,
                                const struct plan_options *options);

/* Sections 1 to 3. */
double cost_gemm_s(const struct cost_rates *r, double m, double n, double k);
double cost_attention_s(const struct cost_rates *r, double rows, double seq, double head_dim);
double cost_memory_s(const struct cost_rates *r, double bytes);
double cost_op_s(const struct cost_rates *r, const struct op *op); /* by kind and pass */
/* The same, but a product of a linear layer is one in FP8, with the casts of what it reads. */
double cost_op_fp8_s(const struct cost_rates *r, const struct op *op);

/* Section 3.1: launches of a kernel family that reaches this fraction of the memory bandwidth. */
double cost_copy_s(const struct cost_rates *r, double launches, double bytes, double fraction);

/* Section 3.1: one task of a unit that is neither a body nor a collective, by what it moves. */
double cost_unit_task_s(const struct cost_rates *r, const struct program *program,
                        const struct task *task);

/* Section 4. bytes: the full message; W = nodes * gpus_per_node. */
double cost_collective_s(const struct cost_rates *r, const struct collective_row *row, double bytes,
                         double nodes, double gpus_per_node);
/*
 * The row for so many ranks on each of so many nodes. Without one: that of one node for these ranks,
 * or the nearest (the larger of two); NULL without rows, and for an all-reduce, of which a row holds
 * for its own ranks and nodes alone.
 */
const struct collective_row *cost_collective_row(const struct cluster *cluster, enum task_kind kind,
                                                 uint64_t per_node, uint64_t nodes);

/* Section 5: how much longer compute takes on the slowest of W ranks. */
double cost_straggler_factor(const struct cost_rates *r, double world);

#endif
