/*
 * Which ranks share what: replicas, nodes, and groups of an integer reshard.
 *
 * Invariant: a set of shards lies in one node or fills nodes; groups of an integer reshard divide it.
 */
#ifndef SRC_PLAN_RANKS_H
#define SRC_PLAN_RANKS_H

#include "src/plan.h"

/* Of a node that nobody described. */
enum { GPUS_PER_NODE = 8 };

/* Nodes for so many GPUs, 1 or more, where nobody says how many. */
uint64_t plan_ranks_nodes(uint64_t gpus);

/* Fills nodes in the options, world, gpus_per_node and shard_ranks. STATUS_USAGE with the counts
   that do not fit one another. */
enum status plan_ranks(struct plan *plan, struct err *err);

#endif
