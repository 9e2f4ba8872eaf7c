/*
 * Counts of ranks that have to divide one another; see plan_ranks.h.
 */
#include "src/plan_ranks.h"

#include <inttypes.h>

uint64_t plan_ranks_nodes(uint64_t gpus)
{
    return gpus <= GPUS_PER_NODE ? 1 : (gpus - 1) / GPUS_PER_NODE + 1;
}

static enum status check_nodes(const struct plan_options *o, bool chosen_here, struct err *err)
{
    if (o->nodes == 0 || o->nodes > PLAN_MAX_RANKS)
        return err_set(err, STATUS_USAGE, "nodes is %" PRIu64 ", from 1 to %d are possible",
                       o->nodes, PLAN_MAX_RANKS);
    if (o->gpus % o->nodes == 0)
        return STATUS_OK;
    if (chosen_here)
        return err_set(err, STATUS_USAGE,
                       "%" PRIu64 " gpus do not fill nodes of %d, nor do %" PRIu64 " nodes share "
                       "them evenly; give --nodes, which divides them",
                       o->gpus, GPUS_PER_NODE, o->nodes);
    return err_set(err, STATUS_USAGE,
                   "%" PRIu64 " gpus are no multiple of %" PRIu64 " nodes; all nodes have "
                   "equally many",
                   o->gpus, o->nodes);
}

static enum status check_replicas(const struct plan *plan, struct err *err)
{
    const struct plan_options *o = &plan->options;
    const uint64_t per_node = plan->gpus_per_node;

    if (o->gpus % o->replicas != 0)
        return err_set(err, STATUS_USAGE,
                       "%" PRIu64 " gpus do not hold %" PRIu64 " replicas of equally many", o->gpus,
                       o->replicas);
    if (plan->shard_ranks % per_node == 0 || per_node % plan->shard_ranks == 0)
        return STATUS_OK;
    return err_set(err, STATUS_USAGE,
                   "a replica on %" PRIu64 " gpus neither fills nodes of %" PRIu64 " nor divides "
                   "one; change --replicas or --nodes",
                   plan->shard_ranks, per_node);
}

/* As in fully_shard 1 is no, and all ranks are yes. */
static enum status check_reshard(struct plan *plan, struct err *err)
{
    struct plan_options *o = &plan->options;

    if (o->reshard != RESHARD_RANKS)
        return STATUS_OK;
    if (o->reshard_ranks == 0 || plan->shard_ranks % o->reshard_ranks != 0)
        return err_set(err, STATUS_USAGE,
                       "reshard %" PRIu64 " is no factor of the %" PRIu64
                       " ranks that parameters are cut over",
                       o->reshard_ranks, plan->shard_ranks);
    if (o->reshard_ranks == 1)
        o->reshard = RESHARD_NO;
    else if (o->reshard_ranks == plan->shard_ranks)
        o->reshard = RESHARD_YES;
    return STATUS_OK;
}

/* A unit has groups since 2.15; what a mesh has beyond its shards is that of one mesh here. */
static enum status check_second_mesh(const struct plan *plan, struct err *err)
{
    const struct plan_options *o = &plan->options;
    const struct {
        bool broken;
        const char *words;
    } rules[] = {
        {o->policy.behavior == BEHAVIOR_TORCH_2_11,
         "with behavior torch-2.11, which has one group of parameters in a unit; 2.15 has several"},
        {o->replicas > 1, "with replicas is not modelled"},
        {o->reshard == RESHARD_RANKS, "with reshard to groups of ranks is not modelled"},
        {o->separate_reduce_comm, "with separate-reduce-comm is not modelled"},
        {o->clip, "with clip: clip_grad_norm_ takes gradients of one mesh"},
        {o->scaler, "with scaler is not modelled"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules && o->policy.second_mesh; i++)
        if (rules[i].broken)
            return err_set(err, STATUS_USAGE, "second-mesh %s", rules[i].words);
    return STATUS_OK;
}

enum status plan_ranks(struct plan *plan, struct err *err)
{
    struct plan_options *o = &plan->options;
    const bool chosen_here = o->nodes == 0;

    if (chosen_here)
        o->nodes = plan_ranks_nodes(o->gpus);
    enum status status = check_nodes(o, chosen_here, err);
    if (status)
        return status;
    plan->world = o->gpus;
    plan->gpus_per_node = o->gpus / o->nodes;
    plan->shard_ranks = o->gpus / o->replicas;
    status = check_replicas(plan, err);
    if (!status)
        status = check_reshard(plan, err);
    return status ? status : check_second_mesh(plan, err);
}
