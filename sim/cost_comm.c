/*
 * Seconds of one collective, and what more ranks cost; see cost_formula.h.
 *
 * Source: spec COST sections 4 and 5. Inside a node a collective reads its row; between nodes the
 * narrower of that row's bandwidth and the node's adapters binds. Compute that runs beside it slows
 * nothing here: that is the engine's contention.
 */
#include <math.h>

#include "sim/cost_formula.h"

static const double MB = 1e6;
static const double RANKS_WITHOUT_STRAGGLERS = 8;

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

    if (nodes == 1)
        return start_s + sent / row->bytes_per_s;
    const double wire = r->nic_bytes_per_s * gpus_per_node * r->nic_efficiency;
    const double bytes_per_s = fmin(row->bytes_per_s, wire) / (1 + nodes / r->node_decay);
    return start_s + r->rank_latency_s * ranks + sent / bytes_per_s;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

const struct collective_row *cost_collective_row(const struct cluster *cluster, enum task_kind kind,
                                                 uint64_t ranks)
{
    const struct collective_row *best = NULL;

    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        const struct collective_row *row = &cluster->collectives[i];
        if (row->kind != kind)
            continue;
        const bool nearer = !best || distance(row->ranks, ranks) < distance(best->ranks, ranks);
        const bool equal = best && distance(row->ranks, ranks) == distance(best->ranks, ranks);
        if (nearer || (equal && row->ranks > best->ranks))
            best = row;
    }
    return best;
}

double cost_straggler_factor(const struct cost_rates *r, double world)
{
    return 1 + r->straggler * fmax(0, log2(world / RANKS_WITHOUT_STRAGGLERS));
}
