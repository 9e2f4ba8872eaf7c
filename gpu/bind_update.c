/*
 * The end of a step over all gradients of the shards: unscale, norm, clip and the optimizer.
 *
 * A unit's gradients lie in one buffer a bucket, each at its place of the layout; padding is zeros,
 * which no sum and no update is changed by.
 */
#include "gpu/bind_inner.h"

/* The buffers of one unit among the task's accesses. */
struct unit_buffers {
    uint32_t grads[MAX_BUCKETS], n_grad;
    uint32_t shard, states; /* or NO_BUFFER */
};

/* From access i on, to the next unit's or the end. */
static uint32_t take_unit(const struct binding *of, uint32_t i, uint16_t *unit,
                          struct unit_buffers *out)
{
    const struct access *accesses = &of->bind->program->accesses[of->task->access];

    *out = (struct unit_buffers){.shard = NO_BUFFER, .states = NO_BUFFER};
    *unit = binding_buffer(of, accesses[i].buffer)->unit;
    for (; i < of->task->n_access; i++) {
        const struct buffer *buffer = binding_buffer(of, accesses[i].buffer);
        if (buffer->unit != *unit)
            break;
        if (buffer->role == ROLE_SHARD)
            out->shard = accesses[i].buffer;
        else if (buffer->role == ROLE_STATE)
            out->states = accesses[i].buffer;
        else
            out->grads[out->n_grad++] = accesses[i].buffer;
    }
    return i;
}

static struct device_tensor grad_tensor(const struct binding *of,
                                        const struct unit_buffers *buffers, const struct member *m)
{
    const enum dtype dtype = (enum dtype)m->policy->storage;
    char *bucket = binding_member(of, buffers->grads[m->place->bucket], 0);

    return (struct device_tensor){.at = bucket + m->place->reduce_offset * dtype_bytes(dtype),
                                  .n = m->place->shard_elements,
                                  .dtype = (uint8_t)dtype};
}

static struct device_tensor same_shape(struct device_tensor of, char *at)
{
    of.at = at;
    return of;
}

/* Parameter, gradient and, of Adam, counter and moments. */
static struct update update_of(const struct binding *of, const struct unit_buffers *buffers,
                               const struct member *m, uint32_t i, uint32_t nth)
{
    struct update out = {.grad = grad_tensor(of, buffers, m)};

    if (buffers->shard != NO_BUFFER)
        out.param = same_shape(out.grad, binding_member(of, buffers->shard, i));
    if (buffers->states != NO_BUFFER) {
        const uint32_t at = (MOMENTS + 1) * nth;
        out.step = (float *)(void *)binding_member(of, buffers->states, at);
        out.moment = same_shape(out.grad, binding_member(of, buffers->states, at + 1));
        out.variance = same_shape(out.grad, binding_member(of, buffers->states, at + 2));
    }
    return out;
}

/* Of all units of the task, in its order. */
static struct update *list_updates(struct binding *of, uint32_t *n)
{
    struct arena *arena = &of->bind->arena;
    struct update *list = arena_array(arena, struct update, of->bind->plan->model->n_param + 1);
    uint16_t unit;

    *n = 0;
    for (uint32_t i = 0; i < of->task->n_access;) {
        struct unit_buffers buffers;
        uint32_t nth = 0;
        i = take_unit(of, i, &unit, &buffers);
        for (uint32_t p = 0; unit != NO_UNIT && p < of->bind->plan->units[unit].n_param; p++) {
            const struct member m = member_of(of->bind, unit, p);
            if (m.place->bucket != NO_BUCKET)
                list[(*n)++] = update_of(of, &buffers, &m, p, nth++);
        }
    }
    return list;
}

static struct device_tensor *list_grads(struct binding *of, uint32_t *n)
{
    const struct update *updates = list_updates(of, n);
    struct device_tensor *list = arena_array(&of->bind->arena, struct device_tensor, *n + 1);

    for (uint32_t i = 0; i < *n; i++)
        list[i] = updates[i].grad;
    return list;
}

/* After the last reduction of what the scaler found: every rank has the same. */
void bind_verdict(struct binding *to, uint32_t scalar)
{
    const struct task *writer = to->bind->writers[scalar];

    if (writer->kind == TASK_UNSCALE)
        binding_add(to, WORK_VERDICT)->is.verdict =
            (const float *)(void *)binding_member(to, scalar, 0);
}

static void squares(struct binding *to, bool finite)
{
    const uint32_t scalar = binding_find(to, ROLE_SCALAR, 0);
    uint32_t n;
    const struct device_tensor *list = list_grads(to, &n);

    binding_add(to, WORK_SQUARES)->is.squares =
        (struct work_squares){.list = list,
                              .n_list = n,
                              .finite = finite,
                              .to = (float *)(void *)binding_member(to, scalar, 0)};
    if (finite && to->bind->plan->shard_ranks == 1)
        bind_verdict(to, scalar);
}

static void clip(struct binding *to)
{
    const uint32_t scalar = binding_find(to, ROLE_SCALAR, 0);
    uint32_t n;
    const struct device_tensor *list = list_grads(to, &n);

    binding_add(to, WORK_SCALE)->is.scale =
        (struct work_scale){.list = list,
                            .n_list = n,
                            .squares = (const float *)(void *)binding_member(to, scalar, 0),
                            .max_norm = to->bind->setup.max_norm};
}

static void update(struct binding *to)
{
    uint32_t n;
    const struct update *list = list_updates(to, &n);

    binding_add(to, WORK_UPDATE)->is.update =
        (struct work_update){.list = list, .n_list = n, .options = to->bind->setup.optimizer};
}

void bind_over_grads(struct binding *to)
{
    if (to->task->kind == TASK_OPTIMIZER)
        update(to);
    else if (to->task->kind == TASK_CLIP)
        clip(to);
    else
        squares(to, to->task->kind == TASK_UNSCALE);
}
