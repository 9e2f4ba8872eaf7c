/*
 * Shards and their places in the communication buffers; see layout.h.
 *
 * Not here: which parameter is in which unit (plan) and what moves when (schedule). Units that hold
 * equal parameters in equal order share one run of param_layouts, so that a deep model costs as
 * much as a shallow one.
 */
#include "src/layout.h"

#include <assert.h>

static const uint64_t MAX_ELEMENTS = UINT64_C(1) << 60; /* 2^62 bytes of FP32 */

struct param_layout param_layout_of(const struct param *param, uint64_t world)
{
    const uint64_t rows = param->shape[0];
    const uint64_t chunk_rows = (rows + world - 1) / world;
    return (struct param_layout){
        .numel = param->numel,
        .rows = rows,
        .row_elements = param->numel / rows,
        .chunk_rows = chunk_rows,
        .shard_elements = chunk_rows * (param->numel / rows),
    };
}

static bool same_params(const struct plan *plan, const struct unit *a, const struct unit *b)
{
    if (a->n_param != b->n_param)
        return false;
    for (uint32_t i = 0; i < a->n_param; i++) {
        const struct param *p = &plan->model->params[plan->unit_params[a->param + i]];
        const struct param *q = &plan->model->params[plan->unit_params[b->param + i]];
        if (p->numel != q->numel || p->shape[0] != q->shape[0] || p->storage != q->storage)
            return false;
    }
    return true;
}

/* The unit before u whose parameters are the same, or -1. One candidate a shape is enough. */
static int find_shape(const struct plan *plan, const struct layout *layout,
                      const uint32_t *of_shape, uint32_t u)
{
    for (uint32_t s = layout->n_shape; s-- > 0;)
        if (same_params(plan, &plan->units[of_shape[s]], &plan->units[u]))
            return (int)of_shape[s];
    return -1;
}

static enum status layout_unit(const struct plan *plan, const struct unit *unit,
                               struct param_layout *params, struct unit_layout *out,
                               struct err *err)
{
    out->n_param = unit->n_param;
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct param *param = &plan->model->params[plan->unit_params[unit->param + i]];
        struct param_layout *place = &params[i];
        *place = param_layout_of(param, plan->world);
        place->offset = out->shard_elements;
        if (i == 0)
            out->storage_dtype = param->storage;
        else if (out->storage_dtype != param->storage)
            return err_set(err, STATUS_NO,
                           "unit '%s' mixes storage dtypes ('%s' is %s); behavior torch-2.11 "
                           "needs one per unit, so cut it by dtype",
                           unit->name, param->name, dtype_name(param->storage));
        if (__builtin_add_overflow(out->shard_elements, place->shard_elements,
                                   &out->shard_elements) ||
            __builtin_mul_overflow(out->shard_elements, plan->world, &out->padded_elements) ||
            out->padded_elements > MAX_ELEMENTS)
            return err_set(err, STATUS_INPUT, "unit '%s' is too large: over 2^60 elements",
                           unit->name);
        out->elements += param->numel;
    }
    return STATUS_OK;
}

enum status layout_build(const struct plan *plan, struct arena *arena, struct layout *out,
                         struct err *err)
{
    struct layout layout = {.units = arena_array(arena, struct unit_layout, plan->n_unit + 1)};
    uint32_t *of_shape = arena_array(arena, uint32_t, plan->n_unit + 1); /* first unit of a shape */
    uint32_t n_param = 0, cap = 0;

    for (uint32_t u = 0; u < plan->n_unit; u++) {
        struct unit_layout *unit = &layout.units[u];
        const int same = find_shape(plan, &layout, of_shape, u);
        if (same >= 0) {
            *unit = layout.units[same];
            continue;
        }
        unit->param = n_param;
        unit->shape = layout.n_shape;
        n_param += plan->units[u].n_param;
        layout.params = arena_grow(arena, layout.params, &cap, n_param, sizeof *layout.params);
        const enum status status =
            layout_unit(plan, &plan->units[u], &layout.params[unit->param], unit, err);
        if (status != STATUS_OK)
            return status;
        of_shape[layout.n_shape++] = u;
    }
    *out = layout;
    return STATUS_OK;
}

uint64_t param_layout_rows(const struct param_layout *param, uint64_t rank)
{
    const uint64_t begin = rank * param->chunk_rows;
    if (begin >= param->rows)
        return 0;
    return param->rows - begin < param->chunk_rows ? param->rows - begin : param->chunk_rows;
}
