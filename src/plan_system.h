/*
 * What FSDP1 has of the options and what it has not: each system's own are refused for the other.
 */
#ifndef SRC_PLAN_SYSTEM_H
#define SRC_PLAN_SYSTEM_H

#include "src/plan.h"

/*
 * STATUS_USAGE with the option and the reason. Of FSDP1 the strategy becomes the one that it takes
 * itself: none is sharded where there is one rank to shard over, and then each rank is a replica.
 */
enum status plan_system(struct plan_options *options, struct err *err);

#endif
