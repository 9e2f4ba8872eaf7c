/*
 * The end of a step: what users do between backward and the next step, and the optimizer.
 *
 * On stream C, over the gradients of the shards. Norm and verdict of the scaler are DTensors that are
 * partial over the ranks which parameters are cut over and the same on all replicas, so that one
 * number is reduced over the former. Sources: spec FSDP2 3.2 (scaler) and COST 3 (clipping).
 */
#include "src/schedule/pieces.h"

enum {
    FOREACH_NORMS = 110, /* tensors of a launch that takes one list */
};

/* An update as launches: passes over all tensors, of so many tensors each. */
struct update {
    uint32_t tensors, passes;
};
static const struct update updates[OPTIMIZER_N] = {
    [OPTIMIZER_ADAMW] = {30, 1}, /* five lists */
    [OPTIMIZER_SGD] = {64, 1},   /* two */
    [OPTIMIZER_ADAMW_FOREACH] = {FOREACH_NORMS, 12},
    [OPTIMIZER_ADAMW_COMPOSER] = {1, 13},
};

/* Adam's moments and counters are born zero right before the first optimizer task. */
static void init_states(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        if (sched->units[u].states == NO_BUFFER)
            continue;
        build_alloc(&sched->build, sched->units[u].states, 0);
        build_instr(&sched->build, INSTR_LAUNCH, STREAM_C, 0, sched->units[u].init_states);
    }
}

static void update_unit(struct schedule *sched, uint32_t u)
{
    const struct unit_state *unit = &sched->units[u];

    if (layout_of(sched, u)->n_updated == 0)
        return;
    for (uint32_t b = 0; b < layout_of(sched, u)->n_bucket; b++)
        build_access(&sched->build, unit->buckets[b].grad_shard, ACCESS_READ);
    build_access(&sched->build, unit->shard, ACCESS_UPDATE);
    if (unit->states != NO_BUFFER)
        build_access(&sched->build, unit->states, ACCESS_UPDATE);
}

static void zero_grad(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        for (uint32_t b = 0; b < layout_of(sched, u)->n_bucket; b++) {
            build_free(&sched->build, sched->units[u].buckets[b].grad_shard, 0);
            sched->units[u].buckets[b].grad_shard = NO_BUFFER;
        }
}

/* Every gradient of the shards, read or changed. */
static void access_grads(struct schedule *sched, enum access_mode mode)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        for (uint32_t b = 0; b < layout_of(sched, u)->n_bucket; b++)
            build_access(&sched->build, sched->units[u].buckets[b].grad_shard, mode);
}

static struct task *launch_over_grads(struct schedule *sched, enum task_kind kind,
                                      struct update update)
{
    struct task *task = build_launch(&sched->build, kind, STREAM_C, NO_UNIT);
    uint32_t n_param = 0;

    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        n_param += layout_of(sched, u)->n_updated;
        task->elements += layout_of(sched, u)->updated_elements;
    }
    task->dtype = (uint8_t)sched->plan->options.policy.storage;
    task->kernels = ceil_div(n_param, update.tensors) * update.passes;
    return task;
}

static void all_reduce_scalar(struct schedule *sched, uint32_t scalar, enum comm comm,
                              enum reduction reduction)
{
    struct task *task = build_launch(&sched->build, TASK_ALL_REDUCE, STREAM_C, NO_UNIT);

    task->dtype = DTYPE_FP32;
    task->elements = 1;
    task->comm = (uint8_t)comm;
    task->reduction = (uint8_t)reduction;
    build_access(&sched->build, scalar, ACCESS_UPDATE);
}

static uint32_t alloc_scalar(struct schedule *sched)
{
    const uint32_t scalar =
        build_buffer(&sched->build, ROLE_SCALAR, STREAM_C, NO_UNIT, dtype_bytes(DTYPE_FP32));
    build_alloc(&sched->build, scalar, 0);
    return scalar;
}

/* The host reads a number off the device, and issues nothing until it has it. */
void schedule_host_reads(struct schedule *sched)
{
    build_host_wait(&sched->build, build_record(&sched->build, STREAM_C));
}

/* GradScaler: divide by the scale and look for what is not finite, on any rank; then the host
   decides whether the optimizer steps. The step that does is the one that is built. */
static void unscale(struct schedule *sched)
{
    const uint32_t found_inf = alloc_scalar(sched);

    launch_over_grads(sched, TASK_UNSCALE, (struct update){FOREACH_NORMS, 1});
    access_grads(sched, ACCESS_UPDATE);
    build_access(&sched->build, found_inf, ACCESS_WRITE);
    if (sched->plan->shard_ranks > 1)
        all_reduce_scalar(sched, found_inf, COMM_SHARD, REDUCE_SUM);
    schedule_host_reads(sched);
    build_free(&sched->build, found_inf, 0);
}

/* clip_grad_norm_: the norm of all gradients, then each is scaled in place. That of FSDP1 goes over
   them one by one, but leaves what is not sharded to that of torch.nn.utils. */
static void clip(struct schedule *sched)
{
    const bool one_by_one = is_fsdp1(sched) && sched->plan->shard_ranks > 1;
    const struct update each = {one_by_one ? 1 : FOREACH_NORMS, 1};
    const uint32_t norm = alloc_scalar(sched);

    launch_over_grads(sched, TASK_GRAD_NORM, each);
    access_grads(sched, ACCESS_READ);
    build_access(&sched->build, norm, ACCESS_WRITE);
    if (sched->plan->shard_ranks > 1)
        all_reduce_scalar(sched, norm, COMM_SHARD, REDUCE_SUM);
    launch_over_grads(sched, TASK_CLIP, each);
    build_access(&sched->build, norm, ACCESS_READ);
    access_grads(sched, ACCESS_UPDATE);
    build_free(&sched->build, norm, 0);
}

/* The mean loss of all ranks, printed by the host at the end of each step. */
static void log_loss(struct schedule *sched)
{
    const uint32_t loss = alloc_scalar(sched);
    const enum comm comm = sched->plan->options.replicas > 1 ? COMM_WORLD : COMM_SHARD;

    struct task *task = build_launch(&sched->build, TASK_CAST, STREAM_C, NO_UNIT);
    task->dtype = DTYPE_FP32;
    task->elements = 1;
    build_access(&sched->build, loss, ACCESS_WRITE);
    if (sched->plan->world > 1)
        all_reduce_scalar(sched, loss, comm, REDUCE_AVG);
    schedule_host_reads(sched);
    build_free(&sched->build, loss, 0);
}

/* The root of each second moment, which an update over lists makes all at once. Returns how many. */
static uint32_t list_roots(const struct schedule *sched, uint64_t *bytes)
{
    uint32_t n = 0;

    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        if (sched->units[u].states == NO_BUFFER)
            continue;
        const struct buffer *states = &sched->build.program->buffers[sched->units[u].states];
        for (uint32_t i = ADAMW_STATES - 1; i < states->n_member; i += ADAMW_STATES)
            bytes[n++] = buffer_member_bytes(sched->build.program, states, i);
    }
    return n;
}

/* In a loop over tensors: two of the largest one's size. */
static uint32_t keep_largest_twice(uint64_t *bytes, uint32_t n)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < n; i++)
        largest = bytes[i] > largest ? bytes[i] : largest;
    bytes[0] = bytes[1] = largest;
    return 2;
}

/* What an update needs beside its states (spec MEMORY 4). NO_BUFFER: nothing. */
static uint32_t update_temp(struct schedule *sched)
{
    const enum optimizer optimizer = sched->plan->options.optimizer;
    uint64_t sum = 0, *bytes;

    if (optimizer != OPTIMIZER_ADAMW_FOREACH && optimizer != OPTIMIZER_ADAMW_COMPOSER)
        return NO_BUFFER;
    bytes = arena_array(sched->build.arena, uint64_t, sched->plan->model->n_param + 2);
    uint32_t n = list_roots(sched, bytes);
    if (optimizer == OPTIMIZER_ADAMW_COMPOSER)
        n = keep_largest_twice(bytes, n);
    for (uint32_t i = 0; i < n; i++)
        sum += bytes[i];
    if (sum == 0)
        return NO_BUFFER;
    const uint32_t temp = build_group(&sched->build, ROLE_UPDATE_TEMP, STREAM_C, NO_UNIT,
                                      build_members(&sched->build, bytes, n), n, sum);
    build_alloc(&sched->build, temp, 0);
    return temp;
}

static void update(struct schedule *sched)
{
    const uint32_t temp = update_temp(sched);

    launch_over_grads(sched, TASK_OPTIMIZER, updates[sched->plan->options.optimizer]);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        update_unit(sched, u);
    if (temp == NO_BUFFER)
        return;
    build_access(&sched->build, temp, ACCESS_WRITE);
    build_free(&sched->build, temp, 0);
}

/* One task for all units, then zero_grad, the last act of the step. */
void schedule_optimizer(struct schedule *sched)
{
    build_mark(&sched->build, PHASE_OPTIMIZER, false);
    if (sched->plan->options.scaler)
        unscale(sched);
    if (sched->plan->options.clip)
        clip(sched);
    if (sched->build.section == SECTION_FIRST)
        init_states(sched);
    update(sched);
    if (sched->plan->options.log_loss)
        log_loss(sched);
    zero_grad(sched);
    build_mark(&sched->build, PHASE_OPTIMIZER, true);
}
