/*
 * What is left of a cost model without some of its terms; see without.h.
 */
#include "sim/without.h"

#include <math.h>

/* The benchmark's kernel is that of the table: neither an older generation nor a derate of runs. */
static void take_benchmark(const struct cluster *cluster, enum spread spread,
                           struct cost_rates *rates)
{
    rates->attention_derate = 1;
    rates->attention_head64 = cluster->attention_head64.at[spread];
}

void without_rates(const struct cluster *cluster, enum spread spread, struct cost_rates *rates)
{
    const struct {
        enum without term;
        double *rate, value;
    } all[] = {
        {WITHOUT_ELEMENTWISE, &rates->memory_slowdown, 0},
        {WITHOUT_CONTENTION, &rates->contention, 0},
        {WITHOUT_RING, &rates->rank_latency_s, 0},
        {WITHOUT_RING, &rates->node_decay, INFINITY},
        {WITHOUT_GEMM_RAMP, &rates->gemm_k0, 0},
        {WITHOUT_GEMM_RAMP, &rates->gemm_start_s, 0},
        {WITHOUT_STRAGGLERS, &rates->straggler, 0},
        {WITHOUT_ATTENTION_RAMP, &rates->attention_s0, 0},
        {WITHOUT_HOST, &rates->host_launch_s, 0},
        {WITHOUT_HOST, &rates->host_all_gather_s, 0},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_without(cluster, all[i].term))
            *all[i].rate = all[i].value;
    if (is_without(cluster, WITHOUT_ATTENTION_KERNEL))
        take_benchmark(cluster, spread, rates);
}

bool without_task(const struct cluster *cluster, const struct task *task)
{
    const bool is_packing = task->kind == TASK_PACK || task->kind == TASK_PRECAST;
    const bool is_copy = task->kind == TASK_COPY_IN || task->kind == TASK_COPY_OUT ||
                         task->kind == TASK_POST_REDUCE || is_packing;

    return (is_without(cluster, WITHOUT_COMM) && task->comm != COMM_NONE) ||
           (is_without(cluster, WITHOUT_OPTIMIZER) && task->kind == TASK_OPTIMIZER) ||
           (is_without(cluster, WITHOUT_PACKING) && is_packing) ||
           (is_without(cluster, WITHOUT_COPIES) && is_copy);
}

bool without_op(const struct cluster *cluster, const struct op *op, bool of_logits)
{
    const bool is_memory = op_kind_cost(op->kind) == COST_MEMORY;

    return (is_without(cluster, WITHOUT_ELEMENTWISE) && is_memory) ||
           (is_without(cluster, WITHOUT_LOSS) && is_memory && of_logits);
}
