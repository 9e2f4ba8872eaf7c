/*
 * What the host hands to the device: shards and states at the start, the input of a microbatch.
 *
 * Shards are cut here from whole parameters, rows that a rank does not have are zeros.
 */
#include "gpu/bind_inner.h"

#include <stdlib.h>
#include <string.h>

struct given {
    struct bind *bind;
    struct member member;
    enum dtype dtype;
    int moment;          /* -1: the parameter itself */
    uint32_t microbatch; /* of an input */
};

static enum status ask(const struct given *given, uint64_t first, uint64_t n, float *out,
                       struct err *err)
{
    const struct values *values = given->bind->setup.values;

    if (given->moment < 0)
        return values->param(values->context, given->member.param, first, n, out, err);
    return values->moment(values->context, given->member.param, (unsigned)given->moment, first, n,
                          out, err);
}

/* The rank's part in FP32, padded, [before][chunk_rows][behind]. */
static enum status ask_shard(const struct given *given, float *out, struct err *err)
{
    const struct member *member = &given->member;
    const struct rows rows = member_rows(member, given->bind->shard_rank);
    const uint64_t chunk = member->place->chunk_rows * member->behind;
    enum status status = STATUS_OK;

    for (uint64_t b = 0; b < member->before && !status && rows.n > 0; b++)
        status = ask(given, (b * member->place->rows + rows.first) * member->behind,
                     rows.n * member->behind, out + b * chunk, err);
    return status;
}

static enum status store(enum dtype dtype, const float *values, uint64_t n, void *to)
{
    const struct op_tensor tensor = {.at = to, .n = n, .dtype = (uint8_t)dtype, .mode = OP_WRITE};
    host_store(&tensor, 0, n, values);
    return STATUS_OK;
}

static enum status fill_shard(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                              struct err *err)
{
    const struct given *given = context;
    const uint64_t n = bytes / dtype_bytes(given->dtype);
    float *values = calloc(n, sizeof *values);

    (void)step;
    (void)what;
    if (!values)
        err_out_of_memory(n * sizeof *values);
    enum status status = ask_shard(given, values, err);
    if (!status)
        status = store(given->dtype, values, n, to);
    free(values);
    return status;
}

static enum status fill_whole(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                              struct err *err)
{
    const struct given *given = context;
    const uint64_t n = bytes / dtype_bytes(given->dtype);
    float *values = malloc(n * sizeof *values);

    (void)step;
    (void)what;
    if (!values)
        err_out_of_memory(n * sizeof *values);
    enum status status = ask(given, 0, n, values, err);
    if (!status)
        status = store(given->dtype, values, n, to);
    free(values);
    return status;
}

/* A number that counts updates. */
static enum status fill_count(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                              struct err *err)
{
    const struct given *given = context;
    const struct values *values = given->bind->setup.values;
    const float updates = values->updates(values->context, given->member.param);

    (void)step;
    (void)what;
    (void)err;
    memcpy(to, &updates, bytes);
    return STATUS_OK;
}

/* The context is the work's own: it lies in the arena beside it. */
static void give(struct binding *to, const struct given *given, void *at, uint64_t bytes,
                 enum status (*fill)(void *, uint32_t, uint64_t, void *, uint64_t, struct err *))
{
    struct given *kept = arena_array(&to->bind->arena, struct given, 1);
    struct work *work;

    if (bytes == 0)
        return;
    *kept = *given;
    kept->bind = to->bind;
    work = binding_add(to, WORK_GIVE);
    work->is.give = (struct work_give){.to = at, .bytes = bytes, .fill = fill, .context = kept};
}

static uint64_t member_bytes(const struct binding *of, uint32_t buffer, uint32_t member)
{
    return buffer_member_bytes(of->bind->program, binding_buffer(of, buffer), member);
}

static void init_shards(struct binding *to, uint32_t buffer)
{
    for (uint32_t i = 0; i < to->bind->plan->units[to->task->unit].n_param; i++) {
        const struct member member = member_of(to->bind, to->task->unit, i);
        const struct given given = {
            .member = member, .dtype = (enum dtype)member.policy->storage, .moment = -1};
        give(to, &given, binding_member(to, buffer, i), member_bytes(to, buffer, i), fill_shard);
    }
}

static void fill_zero(struct binding *to, void *at, uint64_t bytes)
{
    if (bytes > 0)
        binding_add(to, WORK_FILL)->is.fill = (struct work_fill){.to = at, .bytes = bytes};
}

/* A counter and two moments for each parameter that is updated. */
static void init_states(struct binding *to, uint32_t buffer)
{
    const bool resumes = to->bind->setup.values->moment != NULL;
    uint32_t at = 0;

    for (uint32_t i = 0; i < to->bind->plan->units[to->task->unit].n_param; i++) {
        const struct member member = member_of(to->bind, to->task->unit, i);
        if (member.place->bucket == NO_BUCKET)
            continue;
        for (int which = -1; which < MOMENTS; which++, at++) {
            const struct given given = {
                .member = member, .dtype = (enum dtype)member.policy->storage, .moment = which};
            char *address = binding_member(to, buffer, at);
            const uint64_t bytes = member_bytes(to, buffer, at);
            if (resumes)
                give(to, &given, address, bytes, which < 0 ? fill_count : fill_shard);
            else
                fill_zero(to, address, bytes);
        }
    }
}

static void init_ignored(struct binding *to, uint32_t buffer)
{
    const struct plan *plan = to->bind->plan;

    for (uint32_t i = 0; i < plan->model->n_param; i++) {
        const enum dtype dtype = (enum dtype)plan->policy[i].storage;
        const struct given given = {.member = {.param = i}, .dtype = dtype, .moment = -1};
        if (!plan->policy[i].managed)
            give(to, &given, binding_member(to, buffer, 0) + to->bind->homes[i].ignored_at,
                 plan->model->params[i].numel * dtype_bytes(dtype), fill_whole);
    }
}

void bind_init(struct binding *to)
{
    enum access_mode mode;
    const uint32_t buffer = binding_target(to, &mode);

    if (binding_buffer(to, buffer)->role == ROLE_STATE)
        init_states(to, buffer);
    else if (binding_buffer(to, buffer)->role == ROLE_IGNORED)
        init_ignored(to, buffer);
    else
        init_shards(to, buffer);
}

/* ---- the input of a microbatch ------------------------------------------------------------- */

/* Steps of the executor count from 1. Ids, then labels. */
static enum status fill_tokens(void *context, uint32_t step, uint64_t what, void *to,
                               uint64_t bytes, struct err *err)
{
    const struct given *given = context;
    const struct values *values = given->bind->setup.values;
    const uint64_t n = bytes / (2 * sizeof(int64_t));

    (void)what;
    (void)err;
    values->tokens(values->context, step - 1, given->microbatch, n, to, (int64_t *)to + n);
    return STATUS_OK;
}

static enum status fill_hidden(void *context, uint32_t step, uint64_t what, void *to,
                               uint64_t bytes, struct err *err)
{
    const struct given *given = context;
    const struct values *from = given->bind->setup.values;
    const uint64_t n = bytes / dtype_bytes(given->dtype);
    float *values = malloc(n * sizeof *values);

    (void)what;
    (void)err;
    if (!values)
        err_out_of_memory(n * sizeof *values);
    from->hidden(from->context, step - 1, given->microbatch, n, values);
    store(given->dtype, values, n, to);
    free(values);
    return STATUS_OK;
}

void bind_input(struct binding *to)
{
    const bool tokens = to->bind->plan->segments[0].kind == BODY_EMBEDDING;
    const uint32_t buffer = binding_find(to, ROLE_INPUT, 0);
    const struct given given = {.dtype = to->bind->plan->param_dtype,
                                .microbatch = to->task->microbatch};

    give(to, &given, binding_member(to, buffer, 0), binding_buffer(to, buffer)->bytes,
         tokens ? fill_tokens : fill_hidden);
}
