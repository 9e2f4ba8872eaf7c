/*
 * Seconds of a unit's own tasks: copies, casts, packing, what follows a reduction, the optimizer;
 * see cost_formula.h.
 *
 * Each is launches of a kernel family plus the bytes that it reads and writes, at the share of the
 * memory bandwidth which the family reaches. Source: spec COST 3.1. Which family it is says the
 * behavior; what a task reads says the program.
 */
#include "sim/cost_formula.h"

struct unit_task {
    const struct cost_rates *r;
    const struct program *program;
    const struct task *task;
    const struct unit_layout *unit; /* NULL for tasks of the whole step */
    bool own_kernels;               /* K1 to K4 in place of PyTorch's */
    bool is_flat;                   /* of a flat parameter */
};

static double bytes_of(enum dtype dtype)
{
    return (double)dtype_bytes(dtype);
}

static const struct access *first_access(const struct program *program, const struct task *task)
{
    return &program->accesses[task->access];
}

static enum buffer_role first_role(const struct program *program, const struct task *task)
{
    return (enum buffer_role)program->buffers[first_access(program, task)->buffer].role;
}

/* Bytes at this share, or at that of our own kernels. */
static double moved_s(const struct unit_task *t, double bytes, double fraction)
{
    return bytes / (t->r->memory_bytes_per_s * (t->own_kernels ? t->r->own_kernels : fraction));
}

/* Any plain elementwise kernel. */
static double plain_s(const struct unit_task *t, double bytes)
{
    return bytes / (t->r->memory_bytes_per_s * t->r->memory_efficiency);
}

/*
 * Casts to a flat temporary, then a copy into the rank's slice, slower as bytes of several types.
 * Our kernel reads shards and writes the slice. What an integer reshard kept is cast already, and
 * copied to the temporary all the same.
 */
static double copy_in_s(const struct unit_task *t)
{
    const double slice = (double)t->task->elements * bytes_of((enum dtype)t->task->dtype);
    const bool kept = first_role(t->program, t->task) == ROLE_KEPT;
    const bool mixed = t->unit->wire == DTYPE_U8;
    const double slices = kept ? slice / (double)t->unit->slice_bytes : 1; /* of a rank */
    double cast = 0;

    if (t->own_kernels)
        return moved_s(t, kept ? 2 * slice : (double)t->unit->shard_bytes + slice, 0);
    for (uint8_t i = 0; i < t->unit->n_cast; i++) {
        const struct cast_group *group = &t->unit->casts[i];
        const uint8_t from = kept ? group->compute : group->storage;
        if (group->storage != group->compute)
            cast += (double)group->shard_elements * slices *
                    (bytes_of((enum dtype)from) + bytes_of((enum dtype)group->compute));
    }
    return moved_s(t, cast + 2 * slice * (mixed ? t->r->mixed_slowdown : 1), t->r->copy_in);
}

/* Of one rank's shards a cast to the full tensors stands in its place. */
static double copy_out_s(const struct unit_task *t)
{
    const double gathered = (double)t->task->elements * bytes_of((enum dtype)t->task->dtype);

    if (t->program->plan->shard_ranks == 1)
        return moved_s(t, (double)t->unit->shard_bytes + (double)t->unit->full_bytes,
                       t->r->copy_cast);
    return moved_s(t, 2 * gathered, t->r->copy_out) +
           plain_s(t, 2 * (double)t->unit->crosswise_bytes);
}

/* Reads gradients without padding and writes the message with it. */
static double pack_s(const struct unit_task *t)
{
    const struct bucket *bucket = &t->unit->buckets[t->task->bucket];
    const enum dtype dtype = (enum dtype)bucket->dtype;
    const double written = (double)bucket->padded_elements * bytes_of(dtype);
    const double same = (double)bucket->elements * bytes_of(dtype);
    const bool is_cast = first_role(t->program, t->task) == ROLE_ACCUMULATED ||
                         t->program->plan->options.arrange == ARRANGE_PRECAST;
    const double read = is_cast ? same : (double)bucket->grad_bytes;
    const double fraction = read < same           ? t->r->pack_widen
                            : dtype == DTYPE_FP32 ? t->r->pack_fp32
                                                  : t->r->pack_same;

    return moved_s(t, read + written, fraction) +
           plain_s(t, 2 * (double)bucket->crosswise_grad_bytes);
}

/* Reads the gradients that are in another dtype, writes them in that of the bucket. */
static double precast_s(const struct unit_task *t)
{
    const struct bucket *bucket = &t->unit->buckets[t->task->bucket];
    const double element_bytes = bytes_of((enum dtype)bucket->dtype);
    const double kept = (double)(bucket->elements - bucket->precast_elements) * element_bytes;
    const double read = (double)bucket->grad_bytes - kept;

    return (read + (double)bucket->precast_elements * element_bytes) /
           (t->r->memory_bytes_per_s * t->r->copy_cast);
}

/* FSDP1: the shard in another dtype, one plain kernel. */
static double flat_copy_in_s(const struct unit_task *t)
{
    return plain_s(t, (double)t->unit->shard_bytes + (double)t->unit->staged_bytes);
}

/*
 * FSDP1's gradients: put in a row, cast, padded and divided before the sum. All but the first run on
 * RS, but fill the device and so hold C up for as long as they take: COST 3.1 has them as one price
 * of C. It is on the first, which RS waits for, so that RS gets no further for it either.
 */
static double flat_pack_s(const struct unit_task *t)
{
    const struct bucket *bucket = &t->unit->buckets[0];
    const double n = (double)bucket->padded_elements;
    const double flat = bytes_of(t->program->plan->param_dtype);
    const double reduced = bytes_of((enum dtype)bucket->dtype);
    const double cast = flat == reduced ? 0 : n * (flat + reduced);
    const struct fsdp1_options *fsdp1 = &t->program->plan->options.fsdp1;
    const bool pads = fsdp1->pad_grads && fsdp1->strategy != FSDP1_NO_SHARD;
    const double pad = pads ? 2 * n * reduced : 0;
    const double divide = t->program->plan->world > 1 ? 2 * n * reduced : 0;

    return plain_s(t, (double)bucket->grad_bytes + n * flat + cast + pad + divide);
}

/* The accumulated gradient is written, and read as well once there is one. */
static double accumulate_s(const struct unit_task *t)
{
    const double sum = (double)t->task->elements * bytes_of((enum dtype)t->task->dtype);
    const bool updates = first_access(t->program, t->task)[1].mode == ACCESS_UPDATE;

    return plain_s(t, (double)t->unit->grad_bytes + sum * (updates ? 2 : 1));
}

/*
 * What it is follows from its accesses: scale in place; cast or copy from one buffer to another;
 * add one to another, which reads two and writes one.
 */
static double post_reduce_s(const struct unit_task *t)
{
    const struct access *access = first_access(t->program, t->task);
    const double n = (double)t->task->elements, bytes = bytes_of((enum dtype)t->task->dtype);
    const struct bucket *bucket = &t->unit->buckets[t->task->bucket];

    if (t->task->n_access == 1)
        return moved_s(t, n * 2 * bytes, t->r->memory_efficiency);
    if (access[1].mode == ACCESS_UPDATE)
        return moved_s(t, n * 3 * bytes, t->r->memory_efficiency);
    return moved_s(t, n * (bytes_of((enum dtype)bucket->dtype) + bytes), t->r->memory_efficiency);
}

/* Ids and labels, or hidden states: to the device. */
static double input_s(const struct unit_task *t)
{
    const struct access *access = first_access(t->program, t->task);
    return (double)t->program->buffers[access->buffer].bytes /
           (t->r->memory_bytes_per_s * t->r->copy_in);
}

/* At a border of units: both sides of it. */
static double cast_s(const struct unit_task *t)
{
    const struct access *access = first_access(t->program, t->task);
    double bytes = 0;

    for (uint32_t i = 0; i < t->task->n_access; i++)
        bytes += (double)t->program->buffers[access[i].buffer].bytes;
    return bytes / (t->r->memory_bytes_per_s * t->r->copy_cast);
}

/*
 * How often an update reads or writes a number for each element of the shards, states in their dtype:
 * fused AdamW reads four and writes three, SGD two and one; one operation after another goes over
 * them three times as often (spec COST 3.1: 28, 84 and 92 bytes of FP32).
 */
static double optimizer_s(const struct unit_task *t, double bytes)
{
    static const double passes[OPTIMIZER_N] = {[OPTIMIZER_ADAMW] = 7,
                                               [OPTIMIZER_SGD] = 3,
                                               [OPTIMIZER_ADAMW_FOREACH] = 21,
                                               [OPTIMIZER_ADAMW_COMPOSER] = 23};
    return plain_s(t, passes[t->program->plan->options.optimizer] * bytes);
}

static double bytes_s(const struct unit_task *t)
{
    const double bytes = (double)t->task->elements * bytes_of((enum dtype)t->task->dtype);

    switch ((enum task_kind)t->task->kind) {
    case TASK_INIT:
        return bytes / (t->r->memory_bytes_per_s * t->r->copy_in);
    case TASK_COPY_INPUT:
        return input_s(t);
    case TASK_COPY_IN:
        return t->is_flat ? flat_copy_in_s(t) : copy_in_s(t);
    case TASK_COPY_OUT:
        return copy_out_s(t);
    case TASK_KEEP:
        return plain_s(t, 2 * bytes);
    case TASK_PRE_DIVIDE:
        return t->is_flat ? 0 : plain_s(t, 2 * bytes);
    case TASK_UNSCALE:
    case TASK_CLIP:
        return plain_s(t, 2 * bytes);
    case TASK_GRAD_NORM:
        return plain_s(t, bytes);
    case TASK_CAST:
        return cast_s(t);
    case TASK_ZERO_FILL:
        return plain_s(t, bytes);
    case TASK_ACCUMULATE:
        return accumulate_s(t);
    case TASK_PRECAST:
        return t->is_flat ? 0 : precast_s(t);
    case TASK_PACK:
        return t->is_flat ? flat_pack_s(t) : pack_s(t);
    case TASK_POST_REDUCE:
        return post_reduce_s(t);
    case TASK_OPTIMIZER:
        return optimizer_s(t, bytes);
    case TASK_ALL_GATHER:
    case TASK_REDUCE_SCATTER:
    case TASK_ALL_REDUCE:
    case TASK_FORWARD:
    case TASK_BACKWARD:
    case TASK_KIND_N:
        break;
    }
    __builtin_unreachable();
}

double cost_unit_task_s(const struct cost_rates *r, const struct program *program,
                        const struct task *task)
{
    const struct unit_task t = {
        .r = r,
        .program = program,
        .task = task,
        .unit = task->unit == NO_UNIT ? NULL : program->layout->units[task->unit],
        .own_kernels = program->plan->options.policy.behavior == BEHAVIOR_UNSHARD,
        .is_flat = program->plan->options.system == SYSTEM_FSDP1,
    };
    return task->kernels * r->copy_launch_s + bytes_s(&t);
}
