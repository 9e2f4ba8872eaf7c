/*
 * Parameters by name; see emit_torch_inner.h. Of each the policy says to which list it belongs.
 */
#include <inttypes.h>

#include "src/cli/emit_torch_inner.h"

static const struct {
    const char *name, *words;
} lists[EMIT_LIST_N] = {
    [EMIT_KEPT] = {"kept_fp32", "Parameters that compute in FP32."},
    [EMIT_FROZEN] = {"frozen", "Parameters that are not trained."},
    [EMIT_IGNORED] = {"ignored", "Parameters that no unit manages: each rank has all of them."},
    [EMIT_SHARD_ON] = {"placed", "Parameters that are not cut along dimension 0 of the first mesh: "
                                 "dimension, second mesh."},
};

static bool is_in(const struct emit *emit, enum emit_list list, uint32_t param)
{
    const struct param_policy *policy = &emit->plan->policy[param];
    switch (list) {
    case EMIT_KEPT:
        return policy->managed && policy->compute == DTYPE_FP32 &&
               emit->plan->param_dtype != DTYPE_FP32;
    case EMIT_FROZEN:
        return !policy->trainable;
    case EMIT_IGNORED:
        return !policy->managed;
    case EMIT_SHARD_ON:
        return policy->managed && (policy->shard_dim > 0 || policy->second_mesh);
    case EMIT_LIST_N:
        break;
    }
    return false;
}

bool emit_has(const struct emit *emit, enum emit_list list)
{
    for (uint32_t p = 0; p < emit->plan->model->n_param; p++)
        if (is_in(emit, list, p))
            return true;
    return false;
}

/* How many parameters of a unit, of all of its groups, are in the list; n: of how many. */
static uint32_t count(const struct emit *emit, enum emit_list list, uint32_t unit, uint32_t *n)
{
    const struct plan *plan = emit->plan;
    uint32_t in = 0;

    *n = 0;
    for (uint32_t u = unit; u != NO_UNIT; u = plan->units[u].next_group)
        for (uint32_t i = 0; i < plan->units[u].n_param; i++, ++*n)
            in += is_in(emit, list, plan->unit_params[plan->units[u].param + i]);
    return in;
}

bool emit_overrides(const struct emit *emit)
{
    const struct plan *plan = emit->plan;
    uint32_t n;

    for (uint32_t u = 0; u < plan->n_unit; u++) {
        const uint32_t kept = plan->units[u].group == 0 ? count(emit, EMIT_KEPT, u, &n) : 0;
        if (kept > 0 && kept < n)
            return true;
    }
    return false;
}

bool emit_is_fp32(const struct emit *emit, uint32_t unit)
{
    uint32_t n;
    return count(emit, EMIT_KEPT, unit, &n) > 0 && !emit_overrides(emit);
}

bool emit_any_fp32(const struct emit *emit)
{
    for (uint32_t u = 0; u < emit->plan->n_unit; u++)
        if (emit->plan->units[u].group == 0 && emit_is_fp32(emit, u))
            return true;
    return false;
}

static void add_list(const struct emit *emit, enum emit_list list)
{
    const struct plan *plan = emit->plan;
    struct emit_item *items = arena_array(emit->arena, struct emit_item, plan->model->n_param);
    uint32_t n = 0;

    for (uint32_t p = 0; p < plan->model->n_param; p++) {
        const struct param_policy *policy = &plan->policy[p];
        if (!is_in(emit, list, p))
            continue;
        items[n++] = (struct emit_item){
            .words = &plan->model->params[p].name,
            .n = 1,
            .tail = list == EMIT_SHARD_ON ? arena_printf(emit->arena, ", %u, %s", policy->shard_dim,
                                                         policy->second_mesh ? "True" : "False")
                                          : ""};
    }
    text_add(emit->out, "\n\ndef %s():\n    \"\"\"%s\"\"\"\n", lists[list].name, lists[list].words);
    emit_items(items, n, "yield ", "", emit->arena, emit->out);
}

void emit_lists(const struct emit *emit)
{
    for (unsigned list = 0; list < EMIT_LIST_N; list++)
        if (emit_has(emit, (enum emit_list)list) && (list != EMIT_KEPT || emit_overrides(emit)))
            add_list(emit, (enum emit_list)list);
}
