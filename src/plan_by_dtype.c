/*
 * Finding the subtrees; see plan_by_dtype.h.
 *
 * Modules are in preorder, so that one pass from the last to the first knows a module's subtree
 * before the module, and one from the first to the last its owner. Invariant: what is found here
 * depends on the drafts as they were, not on those that are added.
 */
#include "src/plan_by_dtype.h"

#include <string.h>

enum { MIXED = DTYPE_N, NOTHING };

struct by_dtype {
    const struct plan *plan;
    struct arena *arena;
    struct unit_drafts *drafts;
    uint32_t n_draft; /* before any was added; the root counts as one more */
    uint32_t *owner;  /* by module: draft */
    uint8_t *subtree; /* by module: dtype of all that its owner has below it, MIXED or NOTHING */
    uint8_t *keeps;   /* by draft: the dtype that keeps the unit */
};

static void own_modules(struct by_dtype *b)
{
    const struct model *model = b->plan->model;
    b->owner[0] = b->n_draft;
    for (uint32_t i = 1; i < model->n_module; i++) {
        const uint32_t draft = b->drafts->of_module[i];
        b->owner[i] = draft == NO_DRAFT ? b->owner[model->modules[i].parent] : draft;
    }
}

/* Which dtype has most elements of each draft. */
static void find_majorities(struct by_dtype *b)
{
    const struct model *model = b->plan->model;
    uint64_t(*elements)[DTYPE_N] = arena_alloc(b->arena, (b->n_draft + 1) * sizeof *elements);

    memset(elements, 0, (b->n_draft + 1) * sizeof *elements);
    for (uint32_t i = 0; i < model->n_param; i++)
        if (b->plan->policy[i].managed)
            elements[b->owner[model->params[i].module]][b->plan->policy[i].compute] +=
                model->params[i].numel;
    for (uint32_t draft = 0; draft <= b->n_draft; draft++)
        for (uint8_t dtype = 1; dtype < DTYPE_N; dtype++)
            if (elements[draft][dtype] > elements[draft][b->keeps[draft]])
                b->keeps[draft] = dtype;
}

static uint8_t joined(uint8_t a, uint8_t b)
{
    if (a == NOTHING || a == b)
        return b;
    return b == NOTHING ? a : MIXED;
}

static void find_subtrees(struct by_dtype *b)
{
    const struct model *model = b->plan->model;
    memset(b->subtree, NOTHING, model->n_module);
    for (uint32_t i = 0; i < model->n_param; i++) {
        uint8_t *of = &b->subtree[model->params[i].module];
        if (b->plan->policy[i].managed)
            *of = joined(*of, b->plan->policy[i].compute);
    }
    for (uint32_t i = model->n_module; i-- > 1;) {
        const uint32_t parent = model->modules[i].parent;
        if (b->owner[parent] == b->owner[i])
            b->subtree[parent] = joined(b->subtree[parent], b->subtree[i]);
    }
}

/* All of it is of one dtype, which does not keep the unit, and the module above is not. */
static bool is_maximal(const struct by_dtype *b, uint32_t module)
{
    const uint32_t parent = b->plan->model->modules[module].parent;
    return b->subtree[module] < MIXED && b->subtree[module] != b->keeps[b->owner[module]] &&
           (b->owner[parent] != b->owner[module] || b->subtree[parent] == MIXED ||
            parent == module);
}

static enum status fail_siblings(const struct by_dtype *b, uint32_t param, struct err *err)
{
    const struct model *model = b->plan->model;
    const uint32_t module = model->params[param].module;
    const enum dtype dtype = (enum dtype)b->plan->policy[param].compute;
    uint32_t other = model->modules[module].first_param;

    while (b->plan->policy[other].compute == (uint8_t)dtype)
        other++;
    return err_set(err, STATUS_NO,
                   "by-dtype cannot part '%s' (%s) from '%s' (%s): module '%s' holds both, and a "
                   "unit is made of whole modules; put one dtype into a module of its own",
                   model->params[param].name, dtype_name(dtype), model->params[other].name,
                   dtype_name((enum dtype)b->plan->policy[other].compute),
                   model->modules[module].path);
}

/* A parameter whose module is mixed and which is not of the dtype that keeps the unit. */
static enum status refuse_siblings(const struct by_dtype *b, struct err *err)
{
    const struct model *model = b->plan->model;
    for (uint32_t i = 0; i < model->n_param; i++) {
        const uint32_t module = model->params[i].module;
        if (b->plan->policy[i].managed && b->subtree[module] == MIXED &&
            b->plan->policy[i].compute != b->keeps[b->owner[module]])
            return fail_siblings(b, i, err);
    }
    return STATUS_OK;
}

enum status plan_by_dtype(const struct plan *plan, struct arena *arena, struct unit_drafts *drafts,
                          struct err *err)
{
    const struct model *model = plan->model;
    struct by_dtype b = {
        .plan = plan,
        .arena = arena,
        .drafts = drafts,
        .n_draft = drafts->n_draft,
        .owner = arena_array(arena, uint32_t, model->n_module),
        .subtree = arena_array(arena, uint8_t, model->n_module),
        .keeps = arena_array(arena, uint8_t, drafts->n_draft + 1),
    };

    own_modules(&b);
    find_majorities(&b);
    find_subtrees(&b);
    enum status status = refuse_siblings(&b, err);
    for (uint32_t i = 1; i < model->n_module && !status; i++)
        if (is_maximal(&b, i))
            drafts->of_module[i] = unit_drafts_add(drafts, arena, "by-dtype", "");
    return status;
}
