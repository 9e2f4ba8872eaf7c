/*
 * FSDP1's flat parameters: cast, all-gather, free; and their gradients: put in a row, cast, reduced.
 *
 * Its streams are ours by what they do: pre_unshard is AGI, unshard AG, post_backward RS, all_reduce
 * AR. What is freed while another stream uses it is left to the allocator (record_stream), or, where
 * the plan has none of that, the stream that owns the memory waits for the other. Not here: when a
 * unit's turn is. Source: torch/distributed/fsdp/_flat_param.py and _runtime_utils.py of 2.11.
 */
#include "src/schedule/pieces.h"

#include <string.h>

/* All-gathers that may be in flight before the host waits: chosen by trial, says PyTorch. */
enum { MAX_FREES_BEHIND = 2 };

static bool is_sharded(const struct schedule *sched)
{
    return sched->plan->options.fsdp1.strategy != FSDP1_NO_SHARD;
}

/* Where a stream is, for those who have to wait for it: nobody, where the allocator does. */
static uint32_t point_of(struct schedule *sched, enum stream stream)
{
    return sched->plan->options.fsdp1.record_stream ? NO_EVENT
                                                    : build_record(&sched->build, stream);
}

static void free_used_until(struct schedule *sched, uint32_t buffer, enum stream user,
                            uint32_t point)
{
    if (point == NO_EVENT)
        build_record_stream(&sched->build, buffer, user);
    else
        build_wait(&sched->build, (enum stream)sched->build.program->buffers[buffer].pool, point);
    build_free(&sched->build, buffer, 0);
}

void schedule_free_used(struct schedule *sched, uint32_t buffer, enum stream user)
{
    free_used_until(sched, buffer, user, point_of(sched, user));
}

static uint32_t born(struct schedule *sched, enum buffer_role role, enum stream pool, uint32_t u,
                     uint64_t bytes)
{
    const uint32_t buffer = build_buffer(&sched->build, role, pool, (uint16_t)u, bytes);
    build_alloc(&sched->build, buffer, 0);
    return buffer;
}

/* The shard in the dtype of compute, or the shard itself where it is that. */
static uint32_t cast_shard(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const enum buffer_role role = is_sharded(sched) ? ROLE_CAST_TEMP : ROLE_FULL;

    if (unit->staged_bytes == 0)
        return sched->units[u].shard;
    const uint32_t cast = born(sched, role, STREAM_AGI, u, unit->staged_bytes);
    struct task *task = build_launch(&sched->build, TASK_COPY_IN, STREAM_AGI, (uint16_t)u);
    task->dtype = unit->wire;
    task->elements = unit->shard_elements;
    build_access(&sched->build, sched->units[u].shard, ACCESS_READ);
    build_access(&sched->build, cast, ACCESS_WRITE);
    build_wait(&sched->build, STREAM_AG, build_record(&sched->build, STREAM_AGI));
    return cast;
}

/* Recorded again since then, so that it is more than a step old. */
static bool is_long_ago(const struct free_events *frees, uint32_t event)
{
    for (uint32_t i = 1; i < frees->n_queue; i++)
        if (frees->queue[i] == event)
            return true;
    return false;
}

/* The rate limiter: with two frees behind it the host waits for the oldest one of all. */
static void limit_all_gathers(struct schedule *sched)
{
    struct free_events *frees = &sched->frees;

    if (!sched->plan->options.fsdp1.limit_all_gathers || frees->n_queue < MAX_FREES_BEHIND)
        return;
    if (!is_long_ago(frees, frees->queue[0]))
        build_host_wait(&sched->build, frees->queue[0]);
    frees->n_queue--;
    memmove(frees->queue, frees->queue + 1, frees->n_queue * sizeof *frees->queue);
}

static void all_gather(struct schedule *sched, uint32_t u, uint32_t from)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const uint32_t full = born(sched, ROLE_FULL, STREAM_AG, u, unit->full_bytes);
    struct task *task = build_launch(&sched->build, TASK_ALL_GATHER, STREAM_AG, (uint16_t)u);

    task->comm = COMM_SHARD;
    task->dtype = unit->wire;
    task->elements = unit->padded_elements;
    build_access(&sched->build, from, ACCESS_READ);
    build_access(&sched->build, full, ACCESS_WRITE);
    if (from != sched->units[u].shard)
        schedule_free_used(sched, from, STREAM_AG);
    sched->units[u].full = full;
}

/* Issue only. What is whole already is not gathered, but the limiter counts it all the same. */
void schedule_flat_unshard(struct schedule *sched, uint32_t u)
{
    struct unit_state *unit = &sched->units[u];
    const uint32_t from = unit->is_full ? NO_BUFFER : cast_shard(sched, u);

    limit_all_gathers(sched);
    if (!unit->is_full && is_sharded(sched))
        all_gather(sched, u, from);
    else if (!unit->is_full)
        unit->full = from;
    unit->is_full = unit->pending = true;
}

/* An event for the rate limiter, the same one in each step. */
static void note_free(struct schedule *sched)
{
    struct free_events *frees = &sched->frees;
    const uint32_t event = frees->first + frees->n++;

    if (!sched->plan->options.fsdp1.limit_all_gathers)
        return;
    build_instr(&sched->build, INSTR_RECORD, STREAM_C, 0, event);
    frees->queue[frees->n_queue++] = event;
}

/* frees: of a sharded parameter; the cast of one that is not goes always. */
void schedule_flat_reshard(struct schedule *sched, uint32_t u, bool frees)
{
    struct unit_state *unit = &sched->units[u];
    const bool goes = is_sharded(sched) ? frees : unit->full != unit->shard;

    unit->pending = false;
    if (!goes)
        return;
    schedule_free_used(sched, unit->full, STREAM_C);
    unit->is_full = false;
    if (is_sharded(sched))
        note_free(sched);
}

static enum dtype reduce_dtype_of(const struct schedule *sched, uint32_t u)
{
    return (enum dtype)layout_of(sched, u)->buckets[0].dtype;
}

/* NO_SHARD keeps whole gradients; this is what the one is that nothing more is done to. */
static enum buffer_role whole_role(const struct schedule *sched, uint32_t u)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[0];
    return bucket->dtype == bucket->storage ? ROLE_GRAD_SHARD : ROLE_REDUCE_IN;
}

/* Autograd's gradient of the flat parameter's views: those of the parameters in a row. */
void schedule_flat_grads(struct schedule *sched, uint32_t u)
{
    struct unit_state *unit = &sched->units[u];
    const enum dtype dtype = sched->plan->param_dtype;
    const bool stays = !is_sharded(sched) && dtype == reduce_dtype_of(sched, u);
    const uint64_t elements = layout_of(sched, u)->buckets[0].padded_elements;
    const uint32_t flat = born(sched, stays ? whole_role(sched, u) : ROLE_FLAT_GRAD, STREAM_C, u,
                               elements * dtype_bytes(dtype));
    struct task *task = build_launch(&sched->build, TASK_PACK, STREAM_C, (uint16_t)u);

    task->dtype = (uint8_t)dtype;
    task->elements = elements;
    build_access(&sched->build, unit->grads, ACCESS_READ);
    build_access(&sched->build, flat, ACCESS_WRITE);
    build_free(&sched->build, unit->grads, 0);
    unit->grads = flat;
}

/* On stream RS, which owns the result. */
static uint32_t cast_grads(struct schedule *sched, uint32_t u, uint32_t from, enum buffer_role role,
                           enum dtype dtype)
{
    const uint64_t elements = layout_of(sched, u)->buckets[0].padded_elements;
    const uint32_t cast = born(sched, role, STREAM_RS, u, elements * dtype_bytes(dtype));
    struct task *task = build_launch(&sched->build, TASK_PRECAST, STREAM_RS, (uint16_t)u);

    task->dtype = (uint8_t)dtype;
    task->elements = elements;
    build_access(&sched->build, from, ACCESS_READ);
    build_access(&sched->build, cast, ACCESS_WRITE);
    return cast;
}

/*
 * What is reduced is the gradient itself or, in memory of stream RS, its cast. F.pad makes a copy even
 * where there is nothing to pad, which PyTorch asked for always before 2.0. All live on to the end.
 */
static void reduce_sharded(struct schedule *sched, uint32_t u)
{
    const enum dtype dtype = reduce_dtype_of(sched, u);
    const bool casts = dtype != sched->plan->param_dtype;
    const bool pads = sched->plan->options.fsdp1.pad_grads, is_copy = casts || pads;
    const uint32_t flat = sched->units[u].grads;
    const uint32_t cast = casts ? cast_grads(sched, u, flat, ROLE_REDUCE_IN, dtype) : flat;
    const uint32_t in = pads ? cast_grads(sched, u, cast, ROLE_REDUCE_IN, dtype) : cast;
    uint32_t read = is_copy ? point_of(sched, STREAM_RS) : NO_EVENT;
    const uint32_t out = born(sched, schedule_out_role(sched, u, 0), STREAM_RS, u,
                              layout_of(sched, u)->buckets[0].shard_elements * dtype_bytes(dtype));

    schedule_reduce_scatter(sched, u, 0, in, out);
    if (!is_copy)
        read = point_of(sched, STREAM_RS);
    schedule_post_reduce(sched, u, 0, out);
    if (is_copy)
        build_free(&sched->build, in, 0);
    if (casts && pads)
        build_free(&sched->build, cast, 0);
    free_used_until(sched, flat, STREAM_RS, read);
}

static void all_reduce(struct schedule *sched, uint32_t u, uint32_t grad)
{
    struct task *task = build_launch(&sched->build, TASK_ALL_REDUCE, STREAM_RS, (uint16_t)u);

    task->comm = COMM_REPLICATE;
    task->dtype = (uint8_t)reduce_dtype_of(sched, u);
    task->elements = layout_of(sched, u)->buckets[0].padded_elements;
    task->reduction = REDUCE_SUM;
    build_access(&sched->build, grad, ACCESS_UPDATE);
}

static void divide_whole(struct schedule *sched, uint32_t u, uint32_t grad, double divisor)
{
    struct task *task = build_launch(&sched->build, TASK_POST_REDUCE, STREAM_RS, (uint16_t)u);

    task->dtype = (uint8_t)reduce_dtype_of(sched, u);
    task->elements = layout_of(sched, u)->buckets[0].padded_elements;
    task->divisor = divisor;
    build_access(&sched->build, grad, ACCESS_UPDATE);
}

static uint32_t cast_away(struct schedule *sched, uint32_t u, uint32_t from, enum buffer_role role,
                          enum dtype dtype)
{
    const uint32_t cast = cast_grads(sched, u, from, role, dtype);
    schedule_free_used(sched, from, STREAM_RS);
    return cast;
}

/* The whole gradient, cast to what it is reduced in and after that to what it is stored in. */
static void reduce_whole(struct schedule *sched, uint32_t u)
{
    const enum dtype dtype = reduce_dtype_of(sched, u);
    const enum dtype storage = (enum dtype)layout_of(sched, u)->buckets[0].storage;
    const struct divide divide = sched->divides[dtype];
    uint32_t grad = sched->units[u].grads;

    if (dtype != sched->plan->param_dtype)
        grad = cast_away(sched, u, grad, whole_role(sched, u), dtype);
    if (divide.pre != 1)
        schedule_pre_divide(sched, u, 0, grad, divide.pre);
    if (sched->plan->world > 1)
        all_reduce(sched, u, grad);
    if (divide.post != 1)
        divide_whole(sched, u, grad, divide.post);
    if (dtype != storage)
        grad = cast_away(sched, u, grad, ROLE_GRAD_SHARD, storage);
    sched->units[u].buckets[0].grad_shard = grad;
    sched->post_event[STREAM_RS] = build_record(&sched->build, STREAM_RS);
}

void schedule_flat_reduce(struct schedule *sched, uint32_t u)
{
    build_wait(&sched->build, STREAM_RS, build_record(&sched->build, STREAM_C));
    if (is_sharded(sched))
        reduce_sharded(sched, u);
    else
        reduce_whole(sched, u);
    sched->units[u].grads = NO_BUFFER;
}
