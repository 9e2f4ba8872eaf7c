/*
 * From parameters back to modules; see plan_modules.h.
 */
#include "src/plan_modules.h"

#include <string.h>

struct search {
    const struct plan *plan;
    const bool *owned; /* by parameter */
    struct unit_modules *out;
};

static bool owns_all(const struct search *s, const struct module *module)
{
    for (uint32_t p = module->first_param; p < module->end_param; p++)
        if (!s->owned[p])
            return false;
    return module->end_param > module->first_param;
}

static bool owns_weight(const struct search *s, uint32_t module)
{
    for (uint32_t p = 0; p < s->plan->model->n_param; p++)
        if (s->owned[p] && s->plan->model->params[p].module == module)
            return true;
    return false;
}

/* Module 0 is never named: what it owns itself is the root's. */
static void visit(struct search *s, uint32_t module)
{
    const struct module *modules = s->plan->model->modules;

    if (module > 0 && owns_all(s, &modules[module])) {
        s->out->modules[s->out->n++] = module;
        return;
    }
    for (uint32_t child = module + 1; child < modules[module].end; child = modules[child].end)
        visit(s, child);
}

/* The embedding is the first piece, and its first parameter the one that a head shares. */
static uint32_t tied_embedding(const struct model *model)
{
    return model->params[model->piece_params[model->pieces[0].param]].module;
}

void plan_unit_modules(const struct plan *plan, uint32_t unit, struct arena *arena,
                       struct unit_modules *out)
{
    const struct model *model = plan->model;
    const struct unit *u = &plan->units[unit];
    bool *owned = arena_array(arena, bool, model->n_param);
    struct search s = {.plan = plan, .owned = owned, .out = out};

    *out = (struct unit_modules){.modules = arena_array(arena, uint32_t, model->n_module)};
    for (uint32_t i = 0; i < u->n_param; i++)
        owned[plan->unit_params[u->param + i]] = true;
    visit(&s, 0);
    if (model->tied_head != 0 && owns_weight(&s, tied_embedding(model)))
        out->modules[out->n++] = model->tied_head;
}

void plan_units_text(const struct plan *plan, struct arena *arena, struct text *out)
{
    if (plan->n_unit == plan->has_root) {
        text_add(out, "whole");
        return;
    }
    text_add(out, "[");
    for (uint32_t u = plan->has_root; u < plan->n_unit; u++) {
        struct unit_modules unit;
        plan_unit_modules(plan, u, arena, &unit);
        text_add(out, "%s[", u > plan->has_root ? "," : "");
        for (uint32_t i = 0; i < unit.n; i++)
            text_add(out, "%s\"%s\"", i > 0 ? "," : "", plan->model->modules[unit.modules[i]].path);
        text_add(out, "]");
    }
    text_add(out, "]");
}
