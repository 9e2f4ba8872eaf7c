/*
 * How FSDP1's constructor makes flat parameters: around one module after the other, inner ones
 * first, parameters are put on the device in storage dtype, copied in a row, and of that row the
 * rank's part. All three live until the part is there, and what they leave of the allocator's
 * segments is what training begins with. The model is taken to come from the meta device or the
 * host (param_init_fn, device_id). Not here: when anything is gathered (fsdp1.c, flat.c).
 *
 * Source: torch/distributed/fsdp/_init_utils.py and _flat_param.py of 2.11: the caller holds the
 * parameters until FlatParamHandle.shard() has returned.
 */
#include "src/schedule/pieces.h"

static uint32_t born(struct schedule *sched, uint32_t buffer, enum dtype dtype)
{
    const struct buffer *made = &sched->build.program->buffers[buffer];
    const uint64_t bytes = made->bytes;
    const uint32_t kernels = made->n_member;

    build_alloc(&sched->build, buffer, 0);
    struct task *task = build_launch(&sched->build, TASK_INIT, STREAM_C, made->unit);
    task->dtype = (uint8_t)dtype;
    task->elements = bytes / dtype_bytes(dtype);
    task->kernels = kernels;
    build_access(&sched->build, buffer, ACCESS_WRITE);
    return buffer;
}

/* NO_SHARD keeps the row itself, which is what its shard is. */
static void birth(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const struct shape_members *shape = members_of(sched, u);
    const enum dtype storage = (enum dtype)unit->casts[0].storage;
    const uint64_t row_bytes = unit->padded_elements * dtype_bytes(storage);
    uint32_t row = NO_BUFFER;

    const uint32_t params = born(sched,
                                 build_group(&sched->build, ROLE_FULL, STREAM_C, (uint16_t)u,
                                             shape->whole, unit->n_param, shape->whole_bytes),
                                 storage);
    if (unit->shard_bytes < row_bytes)
        row = born(sched, build_buffer(&sched->build, ROLE_FULL, STREAM_C, (uint16_t)u, row_bytes),
                   storage);
    build_alloc(&sched->build, sched->units[u].shard, 0);
    build_instr(&sched->build, INSTR_LAUNCH, STREAM_C, 0, sched->units[u].init_shard);
    if (row != NO_BUFFER)
        build_free(&sched->build, row, 0);
    build_free(&sched->build, params, 0);
}

void schedule_flat_births(struct schedule *sched, uint16_t outer)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        if (sched->plan->units[u].outer != outer)
            continue;
        schedule_flat_births(sched, (uint16_t)u);
        birth(sched, u);
    }
}
