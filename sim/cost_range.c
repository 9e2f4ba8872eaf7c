/*
 * Distances from a cluster's tables; see cost_range.h.
 */
#include "sim/cost_range.h"

#include <math.h>
#include <string.h>

/* For each doubling beyond the border. */
static const double PER_DOUBLING_BELOW = 1.4, PER_DOUBLING_ABOVE = 1.1;

static const char *const table_sections[] = {
#define X(id, section) section,
    COST_TABLES(X)
#undef X
};

static void see(struct cost_extent *extent, enum quantity quantity, uint64_t value)
{
    if (value < extent->min[quantity])
        extent->min[quantity] = value;
    if (value > extent->max[quantity])
        extent->max[quantity] = value;
}

void cost_extent_init(struct cost_extent *extent, const struct plan *plan)
{
    *extent = (struct cost_extent){0};
    for (int q = 0; q < QUANTITY_N; q++)
        extent->min[q] = UINT64_MAX;
    see(extent, QUANTITY_HIDDEN, plan->model->dims.hidden);
    see(extent, QUANTITY_TOKENS, plan->options.batch * plan->options.seq);
    see(extent, QUANTITY_SEQ, plan->options.seq);
    see(extent, QUANTITY_GPUS, plan->world);
}

void cost_extent_op(struct cost_extent *extent, const struct op *op)
{
    switch (op_kind_cost(op->kind)) {
    case COST_GEMM:
        see(extent, QUANTITY_GEMM_DIM, op->m);
        see(extent, QUANTITY_GEMM_DIM, op->n);
        see(extent, QUANTITY_GEMM_DIM, op->k);
        break;
    case COST_ATTENTION:
        see(extent, QUANTITY_ATTENTION_ROWS, op->m);
        see(extent, QUANTITY_HEAD_DIM, op->k);
        break;
    case COST_DELTA_RULE:
    case COST_MEMORY:
        break;
    }
}

void cost_extent_collective(struct cost_extent *extent, struct comm_ranks ranks)
{
    see(extent, QUANTITY_RANKS, ranks.ranks);
}

static void narrow(struct cost_extent *table, const struct rate *rate)
{
    for (uint32_t i = 0; i < rate->n_valid; i++) {
        const struct valid_range *range = &rate->valid[i];
        uint64_t *min = &table->min[range->quantity], *max = &table->max[range->quantity];
        *min = range->min > *min ? range->min : *min;
        *max = range->max < *max ? range->max : *max;
    }
}

static void narrow_table_of(struct cost_ranges *ranges, const struct rate_field *field,
                            const struct rate *rate)
{
    for (int t = 0; t < COST_TABLE_N; t++)
        if (!strcmp(field->section, table_sections[t]))
            narrow(&ranges->tables[t], rate);
}

void cost_ranges_init(struct cost_ranges *ranges, const struct cluster *cluster)
{
    *ranges = (struct cost_ranges){0};
    for (int t = 0; t < COST_TABLE_N; t++)
        for (int q = 0; q < QUANTITY_N; q++)
            ranges->tables[t].max[q] = UINT64_MAX;
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate *rate = cluster_rate(cluster, &cluster_rate_fields[f]);
        if (rate->n_valid > 0)
            narrow_table_of(ranges, &cluster_rate_fields[f], rate);
    }
}

double cost_range_factor(uint64_t value, uint64_t min, uint64_t max)
{
    if (value < min)
        return pow(PER_DOUBLING_BELOW, log2((double)min / fmax((double)value, 1)));
    if (value > max)
        return pow(PER_DOUBLING_ABOVE, log2((double)value / fmax((double)max, 1)));
    return 1;
}

/* Both ends of what was seen, against one range. */
static double extent_factor(const struct cost_extent *extent, int quantity, uint64_t min,
                            uint64_t max)
{
    const uint64_t low = extent->min[quantity], high = extent->max[quantity];

    if (low > high || (low >= min && high <= max))
        return 1;
    return fmax(cost_range_factor(low, min, max), cost_range_factor(high, min, max));
}

double cost_table_factor(const struct cost_ranges *ranges, enum cost_table table,
                         const struct cost_extent *of_plan)
{
    const struct cost_extent *range = &ranges->tables[table];
    double factor = 1;

    for (int q = 0; q < QUANTITY_N; q++)
        factor = fmax(factor, extent_factor(of_plan, q, range->min[q], range->max[q]));
    return factor;
}

static double value_factor(const struct cost_ranges *ranges, enum cost_table table,
                           enum quantity quantity, uint64_t value)
{
    const struct cost_extent *range = &ranges->tables[table];
    return cost_range_factor(value, range->min[quantity], range->max[quantity]);
}

enum cost_table cost_table_of(const struct op *op)
{
    switch (op_kind_cost(op->kind)) {
    case COST_GEMM:
        return COST_TABLE_GEMM;
    case COST_ATTENTION:
    case COST_DELTA_RULE:
        return COST_TABLE_ATTENTION;
    case COST_MEMORY:
        break;
    }
    return COST_TABLE_MEMORY;
}

double cost_op_factor(const struct cost_ranges *ranges, const struct op *op)
{
    const enum cost_table table = cost_table_of(op);

    switch (op_kind_cost(op->kind)) {
    case COST_GEMM:
        return fmax(value_factor(ranges, table, QUANTITY_GEMM_DIM, op->m),
                    fmax(value_factor(ranges, table, QUANTITY_GEMM_DIM, op->n),
                         value_factor(ranges, table, QUANTITY_GEMM_DIM, op->k)));
    case COST_ATTENTION:
        return fmax(value_factor(ranges, table, QUANTITY_ATTENTION_ROWS, op->m),
                    value_factor(ranges, table, QUANTITY_HEAD_DIM, op->k));
    case COST_DELTA_RULE:
    case COST_MEMORY:
        break;
    }
    return 1;
}

double cost_collective_factor(const struct cost_ranges *ranges, struct comm_ranks ranks)
{
    return value_factor(ranges, COST_TABLE_NETWORK, QUANTITY_RANKS, ranks.ranks);
}

double cost_rate_factor(const struct rate *rate, const struct cost_extent *extent)
{
    double factor = 1;

    for (uint32_t i = 0; i < rate->n_valid; i++) {
        const struct valid_range *range = &rate->valid[i];
        factor = fmax(factor, extent_factor(extent, range->quantity, range->min, range->max));
    }
    return factor;
}

double cost_widened(double number, double factor, enum spread spread)
{
    return spread == SPREAD_LOW    ? number / factor
           : spread == SPREAD_HIGH ? number * factor
                                   : number;
}
