/*
 * Seconds of one collective, and what more ranks cost; see cost_formula.h.
 *
 * Source: spec COST sections 4 and 5. A collective reads its row, or the points that were measured of
 * it; between nodes that have no row the narrower of one node's bandwidth and its adapters binds.
 * Compute that runs beside it slows nothing here: that is the engine's contention.
 */
#include <math.h>

#include "sim/cost_formula.h"

static const double MB = 1e6;
static const double RANKS_WITHOUT_STRAGGLERS = 8;

/*
 * Between two points a message costs a start and a rate of its own, as no one formula has it over all
 * sizes: NCCL changes algorithm and protocol on the way. Outside them those of the nearest two go on,
 * down to the row's start, and never down to larger messages.
 */
static double measured_s(const struct collective_row *row, double sent)
{
    const struct collective_point *first = row->points, *last = first + row->n_point - 1;
    const double bytes = sent * row->ranks / (row->ranks - 1.0);
    uint32_t i = 1;

    while (i + 1 < row->n_point && row->points[i].bytes < bytes)
        i++;
    const struct collective_point *less = &row->points[i - 1], *more = &row->points[i];
    const double share = (bytes - less->bytes) / (more->bytes - less->bytes);
    const double seconds = less->seconds + share * (more->seconds - less->seconds);
    if (bytes < first->bytes)
        return fmax(seconds, fmin(row->a_s, first->seconds));
    return bytes > last->bytes ? fmax(seconds, last->seconds) : seconds;
}

static double spread_of(const struct cost_rates *r, const struct collective_row *row)
{
    const double factors[SPREAD_N] = {
        [SPREAD_LOW] = 1 - row->faster, [SPREAD_MID] = 1, [SPREAD_HIGH] = 1 + row->slower};
    return factors[r->spread];
}

/*
 * The floor of a launch by one process per GPU holds in one node and between nodes. Adapters belong
 * to GPUs: a node of which fewer GPUs take part has fewer of them.
 */
double cost_collective_s(const struct cost_rates *r, const struct collective_row *row, double bytes,
                         double nodes, double gpus_per_node)
{
    const double ranks = nodes * gpus_per_node;
    const double sent = bytes * (ranks - 1) / ranks;
    const double start_s =
        fmax(row->a_s, r->collective_floor_s) + row->b_s_per_sqrt_mb * sqrt(sent / MB);

    if (nodes == collective_row_nodes(row) && row->n_point > 0)
        return fmax(measured_s(row, sent), r->collective_floor_s) * spread_of(r, row);
    if (nodes == collective_row_nodes(row))
        return (start_s + sent / row->bytes_per_s) * spread_of(r, row);
    const double wire = r->nic_bytes_per_s * gpus_per_node * r->nic_efficiency;
    const double bytes_per_s = fmin(row->bytes_per_s, wire) / (1 + nodes / r->node_decay);
    return start_s + r->rank_latency_s * ranks + sent / bytes_per_s;
}

/*
 * For other ranks, and for nodes that have none of their own. What an all-reduce takes says little of
 * others: switches add for it inside a node, so that eight ranks beat four, and between nodes it goes
 * over the wire twice.
 */
static bool may_stand_in(const struct collective_row *row)
{
    return collective_row_nodes(row) == 1 && row->kind != TASK_ALL_REDUCE;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

const struct collective_row *cost_collective_row(const struct cluster *cluster, enum task_kind kind,
                                                 uint64_t per_node, uint64_t nodes)
{
    const struct collective_row *best = NULL;

    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        const struct collective_row *row = &cluster->collectives[i];
        const uint64_t row_nodes = collective_row_nodes(row);
        if (row->kind != kind)
            continue;
        if (row_nodes == nodes && row->ranks == per_node * nodes)
            return row;
        if (!may_stand_in(row))
            continue;
        const bool nearer =
            !best || distance(row->ranks, per_node) < distance(best->ranks, per_node);
        const bool equal =
            best && distance(row->ranks, per_node) == distance(best->ranks, per_node);
        if (nearer || (equal && row->ranks > best->ranks))
            best = row;
    }
    return best;
}

double cost_straggler_factor(const struct cost_rates *r, double world)
{
    return 1 + r->straggler * fmax(0, log2(world / RANKS_WITHOUT_STRAGGLERS));
}
