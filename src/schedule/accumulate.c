/*
 * Gradients of microbatches without sync: they stay unsharded, in the reduce dtype, until the last
 * one reduces their sum (spec FSDP2 3.4). Not here: which microbatch that is.
 *
 * Autograd adds a gradient of equal dtype in place as it comes; here the unit's fresh gradients are
 * added together, at its post_backward, so that they are all alive once until then.
 */
#include "src/schedule/pieces.h"

static void launch(struct schedule *sched, uint32_t u, enum access_mode mode)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct task *task = build_launch(&sched->build, TASK_ACCUMULATE, STREAM_C, (uint16_t)u);

    task->dtype = (uint8_t)sched->plan->reduce_dtype;
    task->elements = members_of(sched, u)->accumulated_bytes / dtype_bytes((enum dtype)task->dtype);
    task->kernels = unit->n_trained;
    build_access(&sched->build, sched->units[u].grads, ACCESS_READ);
    build_access(&sched->build, sched->units[u].accumulated, mode);
    build_free(&sched->build, sched->units[u].grads, 0);
    sched->units[u].grads = NO_BUFFER;
}

/* What this microbatch yielded is added to what earlier ones left, if both are there. */
void schedule_accumulate(struct schedule *sched, uint32_t u)
{
    const struct unit_state *unit = &sched->units[u];

    if (unit->grads != NO_BUFFER && unit->accumulated != NO_BUFFER)
        launch(sched, u, ACCESS_UPDATE);
}

/* Whether every gradient of the unit comes in the dtype that it is reduced in. */
static bool comes_as_reduced(const struct schedule *sched, uint32_t u)
{
    const struct unit *unit = &sched->plan->units[u];

    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct param_policy *policy =
            &sched->plan->policy[sched->plan->unit_params[unit->param + i]];
        if (policy->has_grad && policy->grad != policy->reduce)
            return false;
    }
    return true;
}

/* The first gradients of a step become the accumulated ones, cast where their dtype is another. */
void schedule_keep_accumulated(struct schedule *sched, uint32_t u)
{
    struct unit_state *unit = &sched->units[u];
    const struct shape_members *shape = members_of(sched, u);

    if (unit->grads == NO_BUFFER)
        return;
    if (comes_as_reduced(sched, u)) {
        unit->accumulated = unit->grads;
        unit->grads = NO_BUFFER;
        return;
    }
    unit->accumulated =
        build_group(&sched->build, ROLE_ACCUMULATED, STREAM_C, (uint16_t)u, shape->accumulated,
                    layout_of(sched, u)->n_trained, shape->accumulated_bytes);
    build_alloc(&sched->build, unit->accumulated, 0);
    launch(sched, u, ACCESS_WRITE);
}
