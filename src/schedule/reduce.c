/*
 * Reducing a unit's gradients: pack, reduce-scatter, what follows it, and the hold-over of its
 * input (spec FSDP2 1.6, steps 4 to 9). Not here: when a unit's turn is.
 */
#include "src/schedule/pieces.h"

#include <string.h>

/* Reduce-scatter inputs beyond the limit go; stream C must not reuse them before they were read. */
void schedule_drain_reduce_in(struct schedule *sched, uint32_t keep)
{
    while (sched->n_reduce_in > keep) {
        build_wait(&sched->build, STREAM_C, sched->reduce_in[0].event);
        build_free(&sched->build, sched->reduce_in[0].buffer, 0);
        sched->n_reduce_in--;
        memmove(sched->reduce_in, sched->reduce_in + 1,
                sched->n_reduce_in * sizeof *sched->reduce_in);
    }
}

static uint32_t pack(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const uint32_t in =
        build_buffer(&sched->build, ROLE_REDUCE_IN, STREAM_C, (uint16_t)u,
                     unit->padded_elements * dtype_bytes(sched->plan->reduce_dtype));

    build_alloc(&sched->build, in, 0);
    struct task *task = build_launch(&sched->build, TASK_PACK, STREAM_C, (uint16_t)u);
    task->dtype = sched->plan->reduce_dtype;
    task->elements = unit->padded_elements;
    build_access(&sched->build, sched->units[u].grads, ACCESS_READ);
    build_access(&sched->build, in, ACCESS_WRITE);
    build_free(&sched->build, sched->units[u].grads, 0);
    sched->units[u].grads = NO_BUFFER;
    return in;
}

/* The collective; at world 1 a copy on the same stream stands in its place. */
static void reduce_scatter(struct schedule *sched, uint32_t u, uint32_t in, uint32_t out)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const bool alone = sched->plan->world == 1;
    struct task *task = build_launch(&sched->build, alone ? TASK_POST_REDUCE : TASK_REDUCE_SCATTER,
                                     STREAM_RS, (uint16_t)u);

    task->dtype = sched->plan->reduce_dtype;
    task->elements = unit->padded_elements;
    if (!alone) {
        task->comm = COMM_SHARD;
        task->reduction = REDUCE_AVG;
    }
    build_access(&sched->build, in, ACCESS_READ);
    build_access(&sched->build, out, ACCESS_WRITE);
}

/* Later microbatches add their reduced gradient, one kernel a parameter. */
static void accumulate(struct schedule *sched, uint32_t u, uint32_t out)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct task *task = build_launch(&sched->build, TASK_POST_REDUCE, STREAM_RS, (uint16_t)u);

    task->dtype = unit->storage_dtype;
    task->elements = unit->shard_elements;
    task->kernels = (uint16_t)unit->n_param;
    build_access(&sched->build, out, ACCESS_READ);
    build_access(&sched->build, sched->units[u].grad_shard, ACCESS_UPDATE);
}

void schedule_reduce(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const bool assign = sched->units[u].grad_shard == NO_BUFFER;

    schedule_reshard(sched, u);
    schedule_drain_reduce_in(sched, MAX_REDUCE_IN - 1);
    const uint32_t in = pack(sched, u);
    build_wait(&sched->build, STREAM_RS, build_record(&sched->build, STREAM_C));
    /* Reduced in the storage dtype: the output itself is the gradient, no cast, no copy. */
    const uint32_t out =
        build_buffer(&sched->build, assign ? ROLE_GRAD_SHARD : ROLE_REDUCE_OUT, STREAM_RS,
                     (uint16_t)u, unit->shard_elements * dtype_bytes(sched->plan->reduce_dtype));
    build_alloc(&sched->build, out, 0);
    reduce_scatter(sched, u, in, out);
    sched->reduce_in[sched->n_reduce_in++] =
        (struct held){.buffer = in, .event = build_record(&sched->build, STREAM_RS)};
    if (assign)
        sched->units[u].grad_shard = out;
    else
        accumulate(sched, u, out);
    sched->post_event = build_record(&sched->build, STREAM_RS);
    if (!assign)
        build_free(&sched->build, out, 0);
}
