/*
 * In what systems differ before there is a schedule: options of one that the other has not, which are
 * refused, and the order in which they find parameters.
 */
#ifndef SRC_PLAN_SYSTEM_H
#define SRC_PLAN_SYSTEM_H

#include "src/plan.h"

/*
 * STATUS_USAGE with the option and the reason. Of FSDP1 the strategy becomes the one that it takes
 * itself: none is sharded where there is one rank to shard over, and then each rank is a replica.
 */
enum status plan_system(struct plan_options *options, struct err *err);

/* All n_param of the model. */
void plan_system_order(enum system system, const struct model *model, uint32_t *out);

#endif
