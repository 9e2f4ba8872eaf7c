/*
 * Reducing a unit's gradients: pack, reduce-scatter, and the hold-over of its input (spec FSDP2 1.6,
 * steps 2 to 6 and 9). Not here: when a unit's turn is, and what follows the reduce-scatter.
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

/* Stream C sees all gradients that were reduced so far. */
void schedule_wait_for_reduce(struct schedule *sched)
{
    for (int s = 0; s < STREAM_N; s++) {
        if (sched->post_event[s] != NO_EVENT)
            build_wait(&sched->build, STREAM_C, sched->post_event[s]);
        sched->post_event[s] = NO_EVENT;
    }
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        sched->units[u].post_event = NO_EVENT;
}

/* An earlier microbatch of this step was not the last backward to anybody: its end is waited for
   where the unit reduces again. */
static void wait_for_own(struct schedule *sched, uint32_t u)
{
    if (sched->units[u].post_event != NO_EVENT)
        build_wait(&sched->build, STREAM_C, sched->units[u].post_event);
    sched->units[u].post_event = NO_EVENT;
    schedule_release_kept(sched, u);
}

/* set_reduce_scatter_unused_params: what has no gradient is reduced as zeros. They are born when the
   gradients are taken, while the unit's parameters are still whole. */
void schedule_fill_zeros(struct schedule *sched, uint32_t u)
{
    const struct shape_members *shape = members_of(sched, u);

    if (shape->n_zeros == 0)
        return;
    const uint32_t zeros = build_group(&sched->build, ROLE_ZEROS, STREAM_C, (uint16_t)u,
                                       shape->zeros, shape->n_zeros, shape->zeros_bytes);

    build_alloc(&sched->build, zeros, 0);
    struct task *task = build_launch(&sched->build, TASK_ZERO_FILL, STREAM_C, (uint16_t)u);
    task->dtype = DTYPE_U8;
    task->elements = shape->zeros_bytes;
    task->kernels = shape->n_zeros;
    build_access(&sched->build, zeros, ACCESS_WRITE);
    sched->units[u].zeros = zeros;
}

static void follow(struct schedule *sched, enum stream stream, enum stream of)
{
    build_wait(&sched->build, stream, build_record(&sched->build, of));
}

/* Whose memory a reduce-scatter's input is, and what packs it (pytorch#129721: C in place of RS). */
static enum stream pack_stream(const struct schedule *sched)
{
    return sched->plan->options.pack_on_reduce ? STREAM_RS : STREAM_C;
}

/* Where a unit's gradients are while they are packed, bucket by bucket. */
struct sources {
    uint32_t grads, zeros; /* or NO_BUFFER */
    bool precast;
};

static void read_sources(struct schedule *sched, const struct sources *from)
{
    if (from->grads != NO_BUFFER)
        build_access(&sched->build, from->grads, ACCESS_READ);
    if (from->zeros != NO_BUFFER)
        build_access(&sched->build, from->zeros, ACCESS_READ);
}

/* Arrangement precast: full-size copies in the reduce dtype, alive until they are packed. */
static uint32_t precast(struct schedule *sched, uint32_t u, const struct bucket *bucket,
                        const struct sources *from)
{
    const uint32_t cast =
        build_buffer(&sched->build, ROLE_PRECAST, pack_stream(sched), (uint16_t)u,
                     bucket->precast_elements * dtype_bytes((enum dtype)bucket->dtype));

    build_alloc(&sched->build, cast, 0);
    struct task *task = build_launch(&sched->build, TASK_PRECAST, pack_stream(sched), (uint16_t)u);
    task->dtype = bucket->dtype;
    task->elements = bucket->precast_elements;
    task->kernels = ceil_div(bucket->n_precast, FOREACH_TENSORS);
    read_sources(sched, from);
    build_access(&sched->build, cast, ACCESS_WRITE);
    return cast;
}

/* A gradient that is cut along another dimension than 0 is first put into the order of ranks. */
static uint32_t alloc_cat_temp(struct schedule *sched, uint32_t u, const struct bucket *bucket)
{
    const uint32_t temp = build_buffer(&sched->build, ROLE_CAT_TEMP, pack_stream(sched),
                                       (uint16_t)u, bucket->crosswise_grad_bytes);
    build_alloc(&sched->build, temp, 0);
    return temp;
}

/* One; but 2.15.0 makes one launch for each dtype of fresh gradients. */
static uint32_t pack_kernels(const struct schedule *sched, const struct bucket *bucket,
                             const struct sources *from)
{
    const bool fresh =
        from->grads == NO_BUFFER || sched->build.program->buffers[from->grads].role == ROLE_GRADS;

    return fresh && sched->plan->options.policy.behavior == BEHAVIOR_TORCH_2_15_0
               ? (uint32_t)__builtin_popcount(bucket->grad_dtypes)
               : 1;
}

static uint32_t pack(struct schedule *sched, uint32_t u, uint32_t b, const struct sources *from)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    const bool casts = from->precast && bucket->n_precast > 0;
    const bool crosswise = sched->plan->shard_ranks > 1 && bucket->n_crosswise > 0;
    const uint32_t cast = casts ? precast(sched, u, bucket, from) : NO_BUFFER;
    const uint32_t temp = crosswise ? alloc_cat_temp(sched, u, bucket) : NO_BUFFER;
    const uint32_t in =
        build_buffer(&sched->build, ROLE_REDUCE_IN, pack_stream(sched), (uint16_t)u,
                     bucket->padded_elements * dtype_bytes((enum dtype)bucket->dtype));

    build_alloc(&sched->build, in, 0);
    struct task *task = build_launch(&sched->build, TASK_PACK, pack_stream(sched), (uint16_t)u);
    task->dtype = bucket->dtype;
    task->bucket = (uint8_t)b;
    task->elements = bucket->padded_elements;
    task->kernels = pack_kernels(sched, bucket, from) + (crosswise ? bucket->n_crosswise : 0);
    read_sources(sched, from);
    if (casts)
        build_access(&sched->build, cast, ACCESS_READ);
    if (crosswise)
        build_access(&sched->build, temp, ACCESS_WRITE);
    build_access(&sched->build, in, ACCESS_WRITE);
    if (crosswise)
        build_free(&sched->build, temp, 0);
    if (casts)
        build_free(&sched->build, cast, 0);
    return in;
}

static void launch_divide(struct schedule *sched, uint32_t u, uint32_t b, double divisor)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    struct task *task = build_launch(&sched->build, TASK_PRE_DIVIDE, STREAM_RS, (uint16_t)u);

    task->dtype = bucket->dtype;
    task->bucket = (uint8_t)b;
    task->elements = bucket->padded_elements;
    task->divisor = divisor;
}

void schedule_pre_divide(struct schedule *sched, uint32_t u, uint32_t b, uint32_t in,
                         double divisor)
{
    launch_divide(sched, u, b, divisor);
    build_access(&sched->build, in, ACCESS_UPDATE);
}

/* Where no collective multiplies, an explicit factor divides on the way, into a temporary. */
static uint32_t divide_copy(struct schedule *sched, uint32_t u, uint32_t b, uint32_t in,
                            double divisor)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    const uint32_t quotient =
        build_buffer(&sched->build, ROLE_QUOTIENT, STREAM_RS, (uint16_t)u,
                     bucket->padded_elements * dtype_bytes((enum dtype)bucket->dtype));

    build_alloc(&sched->build, quotient, 0);
    launch_divide(sched, u, b, divisor);
    build_access(&sched->build, in, ACCESS_READ);
    build_access(&sched->build, quotient, ACCESS_WRITE);
    return quotient;
}

/* The collective; of one rank a copy on the same stream stands in its place. */
void schedule_reduce_scatter(struct schedule *sched, uint32_t u, uint32_t b, uint32_t in,
                             uint32_t out)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];
    const bool alone = sched->plan->shard_ranks == 1;
    const struct divide divide = sched->divides[bucket->dtype];

    if (divide.pre != 1)
        schedule_pre_divide(sched, u, b, in, divide.pre);
    const uint32_t from = divide.copy != 1 ? divide_copy(sched, u, b, in, divide.copy) : in;
    struct task *task = build_launch(&sched->build, alone ? TASK_POST_REDUCE : TASK_REDUCE_SCATTER,
                                     STREAM_RS, (uint16_t)u);
    task->dtype = bucket->dtype;
    task->bucket = (uint8_t)b;
    task->elements = bucket->padded_elements;
    if (!alone) {
        task->comm = sched->plan->options.separate_reduce_comm ? COMM_REDUCE : shard_comm(sched, u);
        task->reduction = divide.reduce_scatter;
        task->divisor = divide.scatter;
    }
    build_access(&sched->build, from, ACCESS_READ);
    build_access(&sched->build, out, ACCESS_WRITE);
    if (from != in)
        build_free(&sched->build, from, 0);
}

/* What is packed on RS needs nobody else's wait and is free at once. */
static void hold_over(struct schedule *sched, uint32_t in)
{
    const uint32_t event = build_record(&sched->build, STREAM_RS);

    if (sched->plan->options.pack_on_reduce)
        build_free(&sched->build, in, 0);
    else
        sched->reduce_in[sched->n_reduce_in++] = (struct held){.buffer = in, .event = event};
}

static void reduce_bucket(struct schedule *sched, uint32_t u, uint32_t b, uint32_t in)
{
    const struct bucket *bucket = &layout_of(sched, u)->buckets[b];

    if (!sched->plan->options.pack_on_reduce)
        follow(sched, STREAM_RS, STREAM_C);
    const uint32_t out =
        build_buffer(&sched->build, schedule_out_role(sched, u, b), STREAM_RS, (uint16_t)u,
                     bucket->shard_elements * dtype_bytes((enum dtype)bucket->dtype));
    build_alloc(&sched->build, out, 0);
    schedule_reduce_scatter(sched, u, b, in, out);
    hold_over(sched, in);
    schedule_post_reduce(sched, u, b, out);
}

static void free_source(struct schedule *sched, uint32_t *buffer)
{
    if (*buffer != NO_BUFFER)
        build_free(&sched->build, *buffer, 0);
    *buffer = NO_BUFFER;
}

/* All of the unit's gradients, a bucket for each reduce dtype; they die with the last packing. */
void schedule_reduce(struct schedule *sched, uint32_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct unit_state *state = &sched->units[u];
    const uint32_t most = (uint32_t)sched->plan->options.reduce_inputs;

    /* Up to 2.14 a unit without gradients leaves what others hold alone. */
    if (unit->n_bucket == 0 && sched->plan->options.policy.behavior == BEHAVIOR_TORCH_2_11)
        return;
    if (is_last_group(sched, u))
        schedule_drain_reduce_in(sched, most - 1);
    if (unit->n_bucket == 0)
        return;
    wait_for_own(sched, u);
    struct sources from = {
        .grads = state->accumulated != NO_BUFFER ? state->accumulated : state->grads,
        .zeros = state->zeros,
        .precast = sched->plan->options.arrange == ARRANGE_PRECAST,
    };
    for (uint32_t b = 0; b < unit->n_bucket; b++) {
        if (sched->plan->options.pack_on_reduce)
            follow(sched, STREAM_RS, STREAM_C);
        const uint32_t in = pack(sched, u, b, &from);
        if (sched->plan->options.pack_on_reduce) /* before it reuses what was packed */
            follow(sched, STREAM_C, STREAM_RS);
        if (b + 1u == unit->n_bucket) {
            free_source(sched, &from.grads);
            free_source(sched, &from.zeros);
        }
        reduce_bucket(sched, u, b, in);
    }
    state->grads = state->accumulated = state->zeros = NO_BUFFER;
}
