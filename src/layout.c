/*
 * Shards and their places in the communication buffers; see layout.h.
 *
 * Not here: which parameter is in which unit (plan), how it is stored and computed with (policy)
 * and what moves when (schedule). Units that hold equal parameters in equal order share one run of
 * param_layouts, so that a deep model costs as much as a shallow one.
 */
#include "src/layout.h"

#include <assert.h>

static const uint64_t MAX_ELEMENTS = UINT64_C(1) << 60; /* 2^62 bytes of FP32 */
enum { ALIGNED_BYTES = 16 };                            /* packing "aligned" */

struct param_layout param_layout_of(const struct param *param, uint8_t dim, uint64_t world)
{
    const uint64_t rows = param->shape[dim];
    const uint64_t chunk_rows = (rows + world - 1) / world;
    return (struct param_layout){
        .numel = param->numel,
        .rows = rows,
        .row_elements = param->numel / rows,
        .chunk_rows = chunk_rows,
        .shard_elements = chunk_rows * (param->numel / rows),
        .shard_dim = dim,
        .bucket = NO_BUCKET,
    };
}

static bool same_params(const struct plan *plan, const struct unit *a, const struct unit *b)
{
    if (a->n_param != b->n_param)
        return false;
    for (uint32_t i = 0; i < a->n_param; i++)
        if (plan->like[plan->unit_params[a->param + i]] !=
            plan->like[plan->unit_params[b->param + i]])
            return false;
    return true;
}

/* That of a unit before u whose parameters are the same, or NULL. One candidate a shape is enough. */
static const struct unit_layout *find_shape(const struct plan *plan, const struct layout *layout,
                                            const uint32_t *of_shape, uint32_t u)
{
    for (uint32_t s = layout->n_shape; s-- > 0;)
        if (same_params(plan, &plan->units[of_shape[s]], &plan->units[u]))
            return layout->units[of_shape[s]];
    return NULL;
}

static uint64_t round_up(uint64_t n, uint64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static uint64_t alignment(const struct plan *plan)
{
    return plan->options.policy.behavior == BEHAVIOR_UNSHARD ? ALIGNED_BYTES : 1;
}

static struct cast_group *cast_group_of(struct unit_layout *unit, const struct param_policy *policy)
{
    for (uint8_t i = 0; i < unit->n_cast; i++)
        if (unit->casts[i].storage == policy->storage && unit->casts[i].compute == policy->compute)
            return &unit->casts[i];
    assert(unit->n_cast < MAX_CAST_GROUPS);
    unit->casts[unit->n_cast] =
        (struct cast_group){.storage = policy->storage, .compute = policy->compute};
    return &unit->casts[unit->n_cast++];
}

/* Its place in a rank's slice of the all-gather. */
static void place_in_gather(const struct plan *plan, const struct param_policy *policy,
                            struct param_layout *place, struct unit_layout *unit)
{
    const uint64_t compute_bytes = dtype_bytes((enum dtype)policy->compute);
    const uint64_t bytes = place->shard_elements * compute_bytes;
    struct cast_group *cast = cast_group_of(unit, policy);

    place->gather_offset_bytes = unit->slice_bytes;
    unit->slice_bytes = round_up(unit->slice_bytes + bytes, alignment(plan));
    unit->full_bytes += bytes * plan->shard_ranks;
    if (policy->compute != unit->casts[0].compute)
        unit->wire = DTYPE_U8;
    cast->n_param++;
    cast->shard_elements += place->shard_elements;
    if (policy->shard_dim != 0) {
        unit->n_crosswise++;
        unit->crosswise_bytes += bytes * plan->shard_ranks;
    }
}

static uint8_t bucket_of(struct unit_layout *unit, const struct param_policy *policy)
{
    uint8_t i = 0;
    while (i < unit->n_bucket && unit->buckets[i].dtype != policy->reduce)
        i++;
    if (i == unit->n_bucket) {
        assert(i < MAX_BUCKETS);
        unit->n_bucket++;
        unit->buckets[i] = (struct bucket){.dtype = policy->reduce, .storage = policy->storage};
    }
    return i;
}

/* Its place in a rank's slice of its bucket. */
static void place_in_reduce(const struct plan *plan, const struct param_policy *policy,
                            struct param_layout *place, struct unit_layout *unit)
{
    if (!policy->has_grad && !plan_fills_zeros(plan, policy))
        return;
    place->bucket = bucket_of(unit, policy);
    struct bucket *bucket = &unit->buckets[place->bucket];
    const uint64_t multiple = round_up(alignment(plan), dtype_bytes((enum dtype)policy->reduce)) /
                              dtype_bytes((enum dtype)policy->reduce);

    place->reduce_offset = bucket->shard_elements;
    bucket->n_param++;
    bucket->elements += place->numel;
    bucket->shard_elements = round_up(bucket->shard_elements + place->shard_elements, multiple);
    bucket->padded_elements = bucket->shard_elements * plan->shard_ranks;
    const uint64_t grad_bytes = place->numel * dtype_bytes((enum dtype)policy->grad);
    bucket->grad_bytes += grad_bytes;
    bucket->grad_dtypes |= (uint8_t)(1u << policy->grad);
    if (policy->shard_dim != 0) {
        bucket->n_crosswise++;
        bucket->crosswise_grad_bytes += grad_bytes;
    }
    if (policy->grad != policy->reduce) {
        bucket->n_precast++;
        bucket->precast_elements += place->numel;
    }
}

static void count_trained(const struct param_policy *policy, const struct param_layout *place,
                          struct unit_layout *unit)
{
    if (place->bucket != NO_BUCKET) {
        unit->n_updated++;
        unit->updated_elements += place->shard_elements;
    }
    if (!policy->has_grad)
        return;
    unit->n_trained++;
    unit->grad_bytes += place->numel * dtype_bytes((enum dtype)policy->grad);
}

/*
 * What is cast goes through a temporary. Where dtypes differ torch-2.15 and torch-pr196626 stage
 * every group, also one that keeps its dtype; 2.15.0 views it as bytes, as it does all the rest.
 */
static void stage(const struct plan *plan, struct unit_layout *unit)
{
    const enum behavior behavior = plan->options.policy.behavior;
    const bool stages_all = unit->wire == DTYPE_U8 && (behavior == BEHAVIOR_TORCH_2_15 ||
                                                       behavior == BEHAVIOR_TORCH_PR196626);

    for (uint8_t i = 0; i < unit->n_cast; i++) {
        struct cast_group *group = &unit->casts[i];
        group->staged = stages_all || group->storage != group->compute;
        if (group->staged)
            unit->staged_bytes += group->shard_elements * dtype_bytes((enum dtype)group->compute);
    }
}

/* What the optimizer sees of a flat parameter: itself, or each piece that the first rank has. */
static void count_updated(const struct plan *plan, const struct param_layout *params,
                          struct unit_layout *unit)
{
    const bool is_flat = !plan->options.fsdp1.use_orig_params;

    unit->n_updated = is_flat && unit->n_param > 0;
    unit->updated_elements = is_flat ? unit->shard_elements : 0;
    if (is_flat)
        return;
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const uint64_t piece = param_layout_piece(&params[i], unit, 0);
        unit->n_updated += piece > 0;
        unit->updated_elements += piece;
    }
}

/* One parameter of all; sizes were added up before, where they are not too large. */
static void flatten(const struct plan *plan, struct param_layout *params, struct unit_layout *unit)
{
    struct bucket *bucket = &unit->buckets[0];
    const struct cast_group *cast = &unit->casts[0];
    const uint64_t compute_bytes = dtype_bytes((enum dtype)cast->compute);
    const bool aligns = plan->options.fsdp1.use_orig_params;
    const uint64_t aligned = aligns ? ALIGNED_BYTES / compute_bytes : 1;
    const uint64_t ranks = plan->shard_ranks;
    /* NO_SHARD has shards of one rank, in a process group of all. */
    const uint64_t padded_to =
        aligns && plan->options.fsdp1.strategy == FSDP1_NO_SHARD ? plan->world : ranks;
    uint64_t end = 0;

    for (uint32_t i = 0; i < unit->n_param; i++) {
        const uint64_t at = round_up(end, aligned);
        params[i].gather_offset_bytes = at * compute_bytes;
        params[i].reduce_offset = at;
        end = at + params[i].numel;
    }
    const uint64_t shard = round_up(end, padded_to) / ranks;
    unit->shard_elements = shard;
    unit->casts[0].shard_elements = bucket->shard_elements = shard;
    unit->padded_elements = bucket->padded_elements = shard * ranks;
    unit->shard_bytes = shard * dtype_bytes((enum dtype)cast->storage);
    unit->slice_bytes = shard * compute_bytes;
    unit->full_bytes = shard * ranks * compute_bytes;
    unit->staged_bytes = cast->storage != cast->compute ? unit->slice_bytes : 0;
    count_updated(plan, params, unit);
}

static enum status layout_unit(const struct plan *plan, const struct unit *unit,
                               struct param_layout *params, struct unit_layout *out,
                               struct err *err)
{
    out->n_param = unit->n_param;
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const uint32_t id = plan->unit_params[unit->param + i];
        const struct param_policy *policy = &plan->policy[id];
        struct param_layout *place = &params[i];
        *place = param_layout_of(&plan->model->params[id], policy->shard_dim, plan->shard_ranks);
        if (i == 0)
            out->wire = policy->compute;
        /* Before any product is made of it: a slot is at most 16 bytes longer than its shard. */
        if (__builtin_add_overflow(out->shard_elements, place->shard_elements,
                                   &out->shard_elements) ||
            __builtin_mul_overflow(out->shard_elements, plan->shard_ranks, &out->padded_elements) ||
            out->padded_elements > MAX_ELEMENTS)
            return err_set(err, STATUS_INPUT, "unit '%s' is too large: over 2^60 elements",
                           unit->name);
        out->elements += place->numel;
        out->shard_bytes += place->shard_elements * dtype_bytes((enum dtype)policy->storage);
        place_in_gather(plan, policy, place, out);
        place_in_reduce(plan, policy, place, out);
        count_trained(policy, place, out);
    }
    stage(plan, out);
    if (plan->options.system == SYSTEM_FSDP1)
        flatten(plan, params, out);
    return STATUS_OK;
}

enum status layout_build(const struct plan *plan, struct arena *arena, struct layout *out,
                         struct err *err)
{
    struct layout layout = {.units = arena_take(arena, (plan->n_unit + 1) * sizeof *layout.units)};
    uint32_t *of_shape =
        arena_take(arena, (plan->n_unit + 1) * sizeof *of_shape); /* its first unit */
    uint32_t n_param = 0, cap = 0;

    for (uint32_t u = 0; u < plan->n_unit; u++) {
        layout.units[u] = find_shape(plan, &layout, of_shape, u);
        if (layout.units[u])
            continue;
        struct unit_layout *unit = arena_array(arena, struct unit_layout, 1);
        unit->param = n_param;
        unit->shape = layout.n_shape;
        n_param += plan->units[u].n_param;
        layout.params = arena_grow(arena, layout.params, &cap, n_param, sizeof *layout.params);
        const enum status status =
            layout_unit(plan, &plan->units[u], &layout.params[unit->param], unit, err);
        if (status != STATUS_OK)
            return status;
        layout.units[u] = unit;
        of_shape[layout.n_shape++] = u;
    }
    *out = layout;
    return STATUS_OK;
}

uint64_t param_layout_piece(const struct param_layout *param, const struct unit_layout *unit,
                            uint64_t rank)
{
    const uint64_t shard_begin = rank * unit->shard_elements;
    const uint64_t shard_end = shard_begin + unit->shard_elements;
    const uint64_t param_end = param->reduce_offset + param->numel;
    const uint64_t begin = param->reduce_offset > shard_begin ? param->reduce_offset : shard_begin;
    const uint64_t end = param_end < shard_end ? param_end : shard_end;

    return begin < end ? end - begin : 0;
}

uint64_t param_layout_rows(const struct param_layout *param, uint64_t rank)
{
    const uint64_t begin = rank * param->chunk_rows;
    if (begin >= param->rows)
        return 0;
    return param->rows - begin < param->chunk_rows ? param->rows - begin : param->chunk_rows;
}
