/*
 * Unsharding: copy-in, all-gather, copy-out, and the lifetimes of their buffers.
 *
 * unshard only issues; wait_for_unshard makes stream C see the result (spec FSDP2 1.3, 1.4). Not
 * here: when either is called.
 */
#include "src/schedule/pieces.h"

/* What an all-gather starts from: the shards, or what an integer reshard kept of the full tensors. */
static bool is_kept(const struct schedule *sched, uint32_t u)
{
    return sched->units[u].kept != NO_BUFFER;
}

/* One foreach copy for each group that is staged, then one for all into the slice; K1 of behavior
   unshard does both in one launch. */
static uint32_t copy_in_kernels(const struct schedule *sched, const struct unit_layout *unit)
{
    uint32_t n = ceil_div(unit->n_param, FOREACH_TENSORS);

    if (sched->plan->options.policy.behavior == BEHAVIOR_UNSHARD)
        return 1;
    for (uint8_t i = 0; i < unit->n_cast; i++)
        if (unit->casts[i].staged)
            n += ceil_div(unit->casts[i].n_param, FOREACH_TENSORS);
    return n;
}

/* A flat tensor for all that has a param_dtype, or NO_BUFFER. That is so too for what an integer
   reshard kept, which is in this dtype already. ranks: that share what is gathered. */
static uint32_t alloc_cast_temp(struct schedule *sched, uint32_t u, uint64_t ranks)
{
    const uint64_t bytes = layout_of(sched, u)->staged_bytes * sched->plan->shard_ranks / ranks;

    if (bytes == 0 || sched->plan->options.policy.behavior == BEHAVIOR_UNSHARD)
        return NO_BUFFER;
    const uint32_t temp =
        build_buffer(&sched->build, ROLE_CAST_TEMP, STREAM_AGI, (uint16_t)u, bytes);
    build_alloc(&sched->build, temp, 0);
    return temp;
}

static void copy_in(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const bool from_kept = is_kept(sched, u);
    const uint64_t ranks =
        from_kept ? sched->plan->options.reshard_ranks : sched->plan->shard_ranks;
    const uint32_t temp = alloc_cast_temp(sched, u, ranks);

    sched->units[u].gathered = build_buffer(&sched->build, ROLE_GATHERED, STREAM_AGI, (uint16_t)u,
                                            unit->slice_bytes * sched->plan->shard_ranks);
    build_alloc(&sched->build, sched->units[u].gathered, 0);
    struct task *task = build_launch(&sched->build, TASK_COPY_IN, STREAM_AGI, (uint16_t)u);
    task->dtype = unit->wire;
    task->elements = unit_gather_elements(sched->plan, unit) / ranks;
    task->kernels = copy_in_kernels(sched, unit);
    build_access(&sched->build, from_kept ? sched->units[u].kept : sched->units[u].shard,
                 ACCESS_READ);
    if (temp != NO_BUFFER)
        build_access(&sched->build, temp, ACCESS_WRITE);
    build_access(&sched->build, sched->units[u].gathered, ACCESS_WRITE);
    if (temp != NO_BUFFER)
        build_free(&sched->build, temp, 0);
}

/* What an integer reshard kept was copied on stream C. */
static void wait_for_kept(struct schedule *sched, uint32_t u)
{
    build_wait(&sched->build, STREAM_AGI, sched->units[u].kept_event);
    build_wait(&sched->build, STREAM_AG, sched->units[u].kept_event);
}

/* Issue only: copy-in and all-gather of u, unless it is under way or not needed. */
void schedule_unshard(struct schedule *sched, uint32_t u, enum phase phase)
{
    struct unit_state *unit = &sched->units[u];

    if (unit->pending || unit->is_full ||
        (phase == PHASE_BACKWARD && !sched->plan->units[u].unshard_in_backward))
        return;
    unit->pending = true;
    if (is_kept(sched, u))
        wait_for_kept(sched, u);
    if (sched->plan->shard_ranks == 1)
        return;
    copy_in(sched, u);
    build_wait(&sched->build, STREAM_AG, build_record(&sched->build, STREAM_AGI));
    struct task *task = build_launch(&sched->build, TASK_ALL_GATHER, STREAM_AG, (uint16_t)u);
    task->comm = is_kept(sched, u) ? COMM_KEPT : shard_comm(sched, u);
    task->dtype = layout_of(sched, u)->wire;
    task->elements = unit_gather_elements(sched->plan, layout_of(sched, u));
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

/* A parameter that is cut along another dimension than 0 is put together once more. */
static uint32_t alloc_cat_temp(struct schedule *sched, uint32_t u, uint64_t bytes)
{
    const uint32_t temp = build_buffer(&sched->build, ROLE_CAT_TEMP, STREAM_C, (uint16_t)u, bytes);
    build_alloc(&sched->build, temp, 0);
    return temp;
}

static void copy_out(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct unit_state *state = &sched->units[u];
    const bool alone = sched->plan->shard_ranks == 1;
    const bool crosswise = !alone && unit->n_crosswise > 0;
    uint32_t temp = NO_BUFFER;

    state->full = build_group(&sched->build, ROLE_FULL, STREAM_C, (uint16_t)u,
                              members_of(sched, u)->full, unit->n_param, unit->full_bytes);
    build_alloc(&sched->build, state->full, 0);
    if (crosswise)
        temp = alloc_cat_temp(sched, u, unit->crosswise_bytes);
    struct task *task = build_launch(&sched->build, TASK_COPY_OUT, STREAM_C, (uint16_t)u);
    task->dtype = unit->wire;
    task->elements = unit_gather_elements(sched->plan, unit);
    task->kernels = alone ? unit->n_param : 1 + unit->n_crosswise;
    build_access(&sched->build, alone ? state->shard : state->gathered, ACCESS_READ);
    if (crosswise)
        build_access(&sched->build, temp, ACCESS_WRITE);
    build_access(&sched->build, state->full, ACCESS_WRITE);
    if (crosswise)
        build_free(&sched->build, temp, 0);
}

static void free_kept(struct schedule *sched, uint32_t u)
{
    if (is_kept(sched, u))
        build_free(&sched->build, sched->units[u].kept, 0);
    sched->units[u].kept = NO_BUFFER;
}

/* Stream C sees the unsharded parameters of u. Forward holds the all-gather output, backward frees.
 */
void schedule_wait_for_unshard(struct schedule *sched, uint32_t u, enum phase phase)
{
    struct unit_state *unit = &sched->units[u];
    const bool alone = sched->plan->shard_ranks == 1;

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
    free_kept(sched, u);
    unit->pending = false;
    unit->is_full = true;
}

/* An all-gather that was prefetched for a unit whose backward never came. */
void schedule_drop_pending(struct schedule *sched, uint32_t u)
{
    struct unit_state *unit = &sched->units[u];

    if (!unit->pending)
        return;
    unit->pending = false;
    if (sched->plan->shard_ranks == 1)
        return;
    build_wait(&sched->build, STREAM_C, unit->gather_event);
    build_free(&sched->build, unit->gathered, 0);
    free_kept(sched, u);
}

/* What a pending all-gather starts from stays until C has waited for it. PyTorch lets go of it here,
   while its copy-in may still read it. */
void schedule_reshard(struct schedule *sched, uint32_t u)
{
    struct unit_state *unit = &sched->units[u];

    if (unit->is_full)
        build_free(&sched->build, unit->full, 0);
    if (!unit->pending)
        free_kept(sched, u);
    unit->is_full = false;
}

/* reshard_after_forward=m: of each full tensor the rank keeps the m-th part that is its own. */
void schedule_reshard_to_ranks(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct unit_state *state = &sched->units[u];
    const uint32_t kept =
        build_group(&sched->build, ROLE_KEPT, STREAM_C, (uint16_t)u, members_of(sched, u)->kept,
                    unit->n_param, members_of(sched, u)->kept_bytes);

    build_alloc(&sched->build, kept, 0);
    struct task *task = build_launch(&sched->build, TASK_KEEP, STREAM_C, (uint16_t)u);
    task->dtype = unit->wire;
    task->elements = unit_gather_elements(sched->plan, unit) / sched->plan->options.reshard_ranks;
    task->kernels = unit->n_param;
    build_access(&sched->build, state->full, ACCESS_READ);
    build_access(&sched->build, kept, ACCESS_WRITE);
    schedule_reshard(sched, u);
    state->kept = kept;
    state->kept_event = build_record(&sched->build, STREAM_C);
}
