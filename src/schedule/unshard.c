/*
 * Unsharding: copy-in, all-gather, copy-out, and the lifetimes of their buffers.
 *
 * unshard only issues; wait_for_unshard makes stream C see the result (spec FSDP2 1.3, 1.4). Not
 * here: when either is called.
 */
#include "src/schedule/pieces.h"

/* _foreach_copy_ takes at most this many tensors a launch (spec FSDP2 5.3). */
enum { FOREACH_TENSORS = 64 };

static void copy_in(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const bool cast = unit->storage_dtype != sched->plan->param_dtype;
    const uint64_t element_bytes = dtype_bytes(sched->plan->param_dtype);
    uint32_t temp = NO_BUFFER;

    if (cast) {
        temp = build_buffer(&sched->build, ROLE_CAST_TEMP, STREAM_AGI, (uint16_t)u,
                            unit->shard_elements * element_bytes);
        build_alloc(&sched->build, temp, 0);
    }
    sched->units[u].gathered = build_buffer(&sched->build, ROLE_GATHERED, STREAM_AGI, (uint16_t)u,
                                            unit->padded_elements * element_bytes);
    build_alloc(&sched->build, sched->units[u].gathered, 0);
    struct task *task = build_launch(&sched->build, TASK_COPY_IN, STREAM_AGI, (uint16_t)u);
    task->dtype = sched->plan->param_dtype;
    task->elements = unit->shard_elements;
    task->kernels = (uint16_t)((cast ? 2 : 1) * ceil_div(unit->n_param, FOREACH_TENSORS));
    build_access(&sched->build, sched->units[u].shard, ACCESS_READ);
    if (cast)
        build_access(&sched->build, temp, ACCESS_WRITE);
    build_access(&sched->build, sched->units[u].gathered, ACCESS_WRITE);
    if (cast)
        build_free(&sched->build, temp, 0);
}

/* Issue only: copy-in and all-gather of u, unless it is under way or not needed. */
void schedule_unshard(struct schedule *sched, uint32_t u)
{
    struct unit_state *unit = &sched->units[u];

    if (unit->pending || unit->is_full)
        return;
    unit->pending = true;
    if (sched->plan->world == 1)
        return;
    copy_in(sched, u);
    build_wait(&sched->build, STREAM_AG, build_record(&sched->build, STREAM_AGI));
    struct task *task = build_launch(&sched->build, TASK_ALL_GATHER, STREAM_AG, (uint16_t)u);
    task->comm = COMM_SHARD;
    task->dtype = sched->plan->param_dtype;
    task->elements = layout_of(sched, u)->padded_elements;
    build_access(&sched->build, unit->gathered, ACCESS_UPDATE);
    unit->gather_event = build_record(&sched->build, STREAM_AG);
}

/* What was held may be overwritten by the next copy-in: both gather streams wait for its copy-out.
 */
static void release_gathered(struct schedule *sched, struct held held)
{
    build_wait(&sched->build, STREAM_AGI, held.event);
    build_wait(&sched->build, STREAM_AG, held.event);
    if (held.buffer != NO_BUFFER)
        build_free(&sched->build, held.buffer, 0);
}

void schedule_release_held(struct schedule *sched)
{
    if (sched->gathered.buffer != NO_BUFFER)
        release_gathered(sched, sched->gathered);
    sched->gathered.buffer = NO_BUFFER;
}

static void copy_out(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct unit_state *state = &sched->units[u];
    const bool alone = sched->plan->world == 1;

    state->full =
        build_group(&sched->build, ROLE_FULL, STREAM_C, (uint16_t)u, members_of(sched, u)->full,
                    unit->n_param, unit->padded_elements * dtype_bytes(sched->plan->param_dtype));
    build_alloc(&sched->build, state->full, 0);
    struct task *task = build_launch(&sched->build, TASK_COPY_OUT, STREAM_C, (uint16_t)u);
    task->dtype = sched->plan->param_dtype;
    task->elements = unit->padded_elements;
    task->kernels = (uint16_t)(alone ? unit->n_param : 1);
    build_access(&sched->build, alone ? state->shard : state->gathered, ACCESS_READ);
    build_access(&sched->build, state->full, ACCESS_WRITE);
}

/* Stream C sees the unsharded parameters of u. Forward holds the all-gather output, backward frees.
 */
void schedule_wait_for_unshard(struct schedule *sched, uint32_t u, enum phase phase)
{
    struct unit_state *unit = &sched->units[u];
    const bool alone = sched->plan->world == 1;

    if (!unit->pending)
        return;
    if (phase == PHASE_FORWARD)
        schedule_release_held(sched);
    if (!alone)
        build_wait(&sched->build, STREAM_C, unit->gather_event);
    copy_out(sched, u);
    const struct held done = {.buffer = alone ? NO_BUFFER : unit->gathered,
                              .event = build_record(&sched->build, STREAM_C)};
    if (phase == PHASE_FORWARD && !alone)
        sched->gathered = done;
    else
        release_gathered(sched, done);
    unit->pending = false;
    unit->is_full = true;
}

void schedule_reshard(struct schedule *sched, uint32_t u)
{
    if (!sched->units[u].is_full)
        return;
    build_free(&sched->build, sched->units[u].full, 0);
    sched->units[u].is_full = false;
}
