/*
 * From a reduce-scatter's output to the gradient of the shards: over replicas, scaled, cast, and
 * added to what earlier microbatches left (spec FSDP2 1.6 steps 7 and 8, 3.3).
 *
 * On stream RS, and on AR what follows an all-reduce. Where nothing has to be done the output is
 * itself the gradient.
 */
#include "src/schedule/pieces.h"

static bool has_replicas(const struct schedule *sched)
{
    return sched->plan->options.replicas > 1;
}

static bool is_cast(const struct bucket *bucket)
{
    return bucket->dtype != bucket->storage;
}

/* K4 of behavior unshard scales, casts and adds in one launch (spec FSDP2 0.1). */
static bool is_fused(const struct schedule *sched)
{
    return sched->plan->options.policy.behavior == BEHAVIOR_UNSHARD;
}

static bool stays_partial(const struct schedule *sched)
{
    return has_replicas(sched) && !schedule_holds(sched, sched->plan->options.all_reduce);
}

/* What the output of the next reduce-scatter will be. */
enum buffer_role schedule_out_role(const struct schedule *sched, uint32_t u, uint32_t b)
{
    const struct bucket_state *state = &sched->units[u].buckets[b];

    if (stays_partial(sched) && state->partial == NO_BUFFER)
        return ROLE_PARTIAL;
    if (stays_partial(sched) || state->grad_shard != NO_BUFFER ||
        is_cast(&layout_of(sched, u)->buckets[b]))
        return ROLE_REDUCE_OUT;
    return ROLE_GRAD_SHARD;
}

static struct task *launch(struct schedule *sched, uint32_t u, uint32_t b, enum stream stream,
                           enum dtype dtype)
{
    struct task *task = build_launch(&sched->build, TASK_POST_REDUCE, stream, (uint16_t)u);

    task->dtype = (uint8_t)dtype;
    task->bucket = (uint8_t)b;
    task->elements = layout_of(sched, u)->buckets[b].shard_elements;
    return task;
}

/* to += from, on stream RS. */
static void add_partial(struct schedule *sched, uint32_t u, uint32_t b, uint32_t from, uint32_t to)
{
    launch(sched, u, b, STREAM_RS, (enum dtype)layout_of(sched, u)->buckets[b].dtype);
    build_access(&sched->build, from, ACCESS_READ);
    build_access(&sched->build, to, ACCESS_UPDATE);
    build_free(&sched->build, from, 0);
}

/* Without all-reduce the scattered sum stays in the reduce dtype. */
static void keep_partial(struct schedule *sched, uint32_t u, uint32_t b, uint32_t out)
{
    struct bucket_state *state = &sched->units[u].buckets[b];

    if (state->partial == NO_BUFFER)
        state->partial = out;
    else
        add_partial(sched, u, b, out, state->partial);
}

static void all_reduce(struct schedule *sched, uint32_t u, uint32_t b, uint32_t out,
                       enum reduction reduction)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    struct bucket_state *state = &sched->units[u].buckets[b];

    if (state->partial != NO_BUFFER)
        add_partial(sched, u, b, state->partial, out);
    state->partial = NO_BUFFER;
    build_wait(&sched->build, STREAM_AR, build_record(&sched->build, STREAM_RS));
    struct task *task = build_launch(&sched->build, TASK_ALL_REDUCE, STREAM_AR, (uint16_t)u);
    task->dtype = bucket->dtype;
    task->bucket = (uint8_t)b;
    task->elements = bucket->shard_elements;
    task->comm = COMM_REPLICATE;
    task->reduction = reduction;
    build_access(&sched->build, out, ACCESS_UPDATE);
    if (is_fsdp1(sched) && sched->plan->options.fsdp1.record_stream)
        build_record_stream(&sched->build, out, STREAM_AR);
    state->kept_event = build_record(&sched->build, STREAM_AR);
}

static void divide_after(struct schedule *sched, uint32_t u, uint32_t b, enum stream stream,
                         uint32_t out, double divisor)
{
    launch(sched, u, b, stream, (enum dtype)layout_of(sched, u)->buckets[b].dtype)->divisor =
        divisor;
    build_access(&sched->build, out, ACCESS_UPDATE);
}

/* Into a new buffer in the dtype of storage. */
static uint32_t cast(struct schedule *sched, uint32_t u, uint32_t b, enum stream stream,
                     uint32_t out, double divisor)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    const bool assigns = sched->units[u].buckets[b].grad_shard == NO_BUFFER;
    const uint32_t to = build_buffer(
        &sched->build, assigns ? ROLE_GRAD_SHARD : ROLE_REDUCE_OUT, stream, (uint16_t)u,
        bucket->shard_elements * dtype_bytes((enum dtype)bucket->storage));

    build_alloc(&sched->build, to, 0);
    launch(sched, u, b, stream, (enum dtype)bucket->storage)->divisor = divisor;
    build_access(&sched->build, out, ACCESS_READ);
    build_access(&sched->build, to, ACCESS_WRITE);
    return to;
}

/* Later microbatches add their reduced gradient, one kernel a parameter or K4. */
static void add(struct schedule *sched, uint32_t u, uint32_t b, enum stream stream, uint32_t from,
                double divisor)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    struct task *task = launch(sched, u, b, stream, (enum dtype)bucket->storage);

    task->kernels = is_fused(sched) ? 1 : bucket->n_param;
    task->divisor = divisor;
    build_access(&sched->build, from, ACCESS_READ);
    build_access(&sched->build, sched->units[u].buckets[b].grad_shard, ACCESS_UPDATE);
}

/* An all-reduced buffer that is no gradient lives until stream C has waited for its all-reduce; of
   FSDP1 until the allocator has. */
static void let_go(struct schedule *sched, uint32_t u, uint32_t b, uint32_t out)
{
    if (has_replicas(sched) && is_fsdp1(sched))
        schedule_free_used(sched, out, STREAM_AR);
    else if (has_replicas(sched))
        sched->units[u].buckets[b].kept = out;
    else
        build_free(&sched->build, out, 0);
}

static void note_end(struct schedule *sched, uint32_t u, enum stream stream)
{
    sched->post_event[stream] = sched->units[u].post_event = build_record(&sched->build, stream);
}

void schedule_post_reduce(struct schedule *sched, uint32_t u, uint32_t b, uint32_t out)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    struct bucket_state *state = &sched->units[u].buckets[b];
    const struct divide divide = sched->divides[bucket->dtype];
    const enum stream stream = has_replicas(sched) ? STREAM_AR : STREAM_RS;

    if (stays_partial(sched)) {
        keep_partial(sched, u, b, out);
        note_end(sched, u, STREAM_RS);
        return;
    }
    if (has_replicas(sched))
        all_reduce(sched, u, b, out, divide.all_reduce);
    const bool assigns = state->grad_shard == NO_BUFFER;
    const bool in_place = assigns && !is_cast(bucket);
    const double later = in_place || !is_fused(sched) ? 1 : divide.post; /* by K4 */
    if (divide.post != later)
        divide_after(sched, u, b, stream, out, divide.post);
    const bool casts = is_cast(bucket) && (assigns || !is_fused(sched));
    const uint32_t grad = casts ? cast(sched, u, b, stream, out, later) : out;
    if (assigns)
        state->grad_shard = grad;
    else
        add(sched, u, b, stream, grad, later);
    note_end(sched, u, stream);
    if (grad != out)
        let_go(sched, u, b, out);
    if (!assigns && grad != out)
        build_free(&sched->build, grad, 0);
    else if (!assigns)
        let_go(sched, u, b, out);
}

/* What let_go() kept of a unit's all-reduces. */
void schedule_release_kept(struct schedule *sched, uint32_t u)
{
    for (uint32_t b = 0; b < layout_of(sched, u)->n_bucket; b++) {
        struct bucket_state *state = &sched->units[u].buckets[b];
        if (state->kept == NO_BUFFER)
            continue;
        build_wait(&sched->build, STREAM_C, state->kept_event);
        build_free(&sched->build, state->kept, 0);
        state->kept = NO_BUFFER;
    }
}
