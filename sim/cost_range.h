/*
 * Where a program leaves the ranges in which a cluster's rates were measured, and how much less is
 * known of a price there.
 *
 * A table is a section of the cluster file whose rates price one kind of work. A price that is read
 * outside of its table keeps its mid value; its low is divided and its high multiplied by a factor
 * that grows with the distance (cost_range_factor). Of several ranges that one price leaves the
 * farthest counts: a narrow model has narrow products, which is one reason and not two.
 */
#ifndef SIM_COST_RANGE_H
#define SIM_COST_RANGE_H

#include "src/cluster.h"

struct cost_extent { /* smallest and largest seen; min > max: not seen */
    uint64_t min[QUANTITY_N], max[QUANTITY_N];
};

/* What holds for every price of a plan: hidden size, tokens, sequence, GPUs. */
void cost_extent_init(struct cost_extent *extent, const struct plan *plan);
void cost_extent_op(struct cost_extent *extent, const struct op *op);
void cost_extent_collective(struct cost_extent *extent, struct comm_ranks ranks);
/* X(ENUM, section of the cluster file) */
#define COST_TABLES(X)        \
    X(GEMM, "gemm")           \
    X(ATTENTION, "attention") \
    X(MEMORY, "memory")       \
    X(COPIES, "copies")       \
    X(NETWORK, "network")

enum cost_table {
#define X(id, section) COST_TABLE_##id,
    COST_TABLES(X)
#undef X
        COST_TABLE_N
};
enum cost_table cost_table_of(const struct op *op);

/* By table and quantity where all ranges of the table's rates overlap. */
struct cost_ranges {
    struct cost_extent tables[COST_TABLE_N];
};
void cost_ranges_init(struct cost_ranges *ranges, const struct cluster *cluster);

/*
 * 1 inside [min, max]; outside 1.4 to the power of log2(min / value), or 1.1 to that of
 * log2(value / max).
 *
 * Below: of the products in gemm_aic.csv with one dimension of 256, one doubling below the border,
 * nine in ten are within a factor of 1.32 to 1.72 of the formula, by GPU, half of them within 1.08
 * to 1.29. Above: those with one dimension three doublings beyond 8192 are within 1.05 to 1.15, no
 * worse than inside; and a step on 4 times as many GPUs was missed by 2 and 6 % (spec COST 5).
 */
double cost_range_factor(uint64_t value, uint64_t min, uint64_t max);

/* Of every price of the table: by what holds for all of a plan. */
double cost_table_factor(const struct cost_ranges *ranges, enum cost_table table,
                         const struct cost_extent *of_plan);
/* By what one operator, one collective asks for beside that; the larger of the two counts. */
double cost_op_factor(const struct cost_ranges *ranges, const struct op *op);
double cost_collective_factor(const struct cost_ranges *ranges, struct comm_ranks ranks);
/* Of a rate that no kernel is priced by alone, by its own ranges. */
double cost_rate_factor(const struct rate *rate, const struct cost_extent *extent);
/* The number at this end of the spread; less is faster. */
double cost_widened(double number, double factor, enum spread spread);

#endif
