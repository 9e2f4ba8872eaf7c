/*
 * From units back to calls; see plan_calls.h. Each unit looks at every parameter once.
 */
#include "src/plan_calls.h"

#include <string.h>

#include "src/plan_units.h"

/* Whose a parameter is, seen from one unit; of a module all of its subtree's together. */
enum { OWN = 1, INNER = 2, NOBODY = 4, OTHER = 8 };

struct call {
    const struct plan *plan;
    const struct model *model;
    const uint8_t *whose; /* by parameter */
    struct unit_modules *out;
};

static bool is_inside(const struct plan *plan, uint32_t inner, uint32_t unit)
{
    uint32_t around = plan->units[inner].outer;
    while (around != NO_UNIT && around != unit)
        around = plan->units[around].outer;
    return around == unit;
}

static void mark(const struct plan *plan, uint32_t unit, uint8_t mark, uint8_t *whose)
{
    const struct unit *u = &plan->units[unit];
    for (uint32_t i = 0; i < u->n_param; i++)
        whose[plan->unit_params[u->param + i]] = mark;
}

static void mark_all(const struct plan *plan, uint32_t unit, uint8_t *whose)
{
    for (uint32_t p = 0; p < plan->model->n_param; p++)
        whose[p] = plan->policy[p].managed ? OTHER : NOBODY;
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        const uint32_t first = u - plan->units[u].group;
        if (first == unit)
            mark(plan, u, OWN, whose);
        else if (is_inside(plan, first, unit))
            mark(plan, u, INNER, whose);
    }
}

static uint8_t marks_of(const struct call *call, uint32_t module)
{
    const struct module *m = &call->model->modules[module];
    uint8_t marks = 0;
    for (uint32_t p = m->first_param; p < m->end_param; p++)
        marks |= call->whose[p];
    return marks;
}

static bool has_params(const struct call *call, uint32_t module)
{
    const struct module *m = &call->model->modules[module];
    for (uint32_t p = m->first_param; p < m->end_param; p++)
        if (call->model->params[p].module == module)
            return true;
    return false;
}

static bool is_number(const char *word)
{
    return *word && word[strspn(word, "0123456789")] == '\0';
}

/* Members are numbers, as in a ModuleList. A Sequential is taken for one as well, which is no harm. */
static bool is_container(const struct call *call, uint32_t module)
{
    const struct module *modules = call->model->modules;
    for (uint32_t child = module + 1; child < modules[module].end; child = modules[child].end)
        if (!is_number(modules[child].path + strlen(modules[module].path) + 1))
            return false;
    return modules[module].end > module + 1 && !has_params(call, module);
}

/* The only child that has something of a unit, where beside it there is only what nobody manages. */
static uint32_t only_child(const struct call *call, uint32_t module)
{
    const struct module *modules = call->model->modules;
    uint32_t only = NO_MODULE;

    if (!(marks_of(call, module) & NOBODY) || has_params(call, module))
        return NO_MODULE;
    for (uint32_t child = module + 1; child < modules[module].end; child = modules[child].end) {
        if (!(marks_of(call, child) & (OWN | INNER)))
            continue;
        if (only != NO_MODULE)
            return NO_MODULE;
        only = child;
    }
    return only;
}

static void take(const struct call *call, uint32_t module)
{
    const struct module *modules = call->model->modules;

    for (uint32_t child; (child = only_child(call, module)) != NO_MODULE;)
        module = child;
    if (!is_container(call, module)) {
        call->out->modules[call->out->n++] = module;
        return;
    }
    for (uint32_t child = module + 1; child < modules[module].end; child = modules[child].end)
        if (marks_of(call, child) & OWN)
            take(call, child);
}

static void visit(const struct call *call, uint32_t module)
{
    const struct module *modules = call->model->modules;
    const uint8_t marks = marks_of(call, module);

    if (!(marks & OWN))
        return;
    if (module > 0 && !(marks & OTHER)) {
        take(call, module);
        return;
    }
    for (uint32_t child = module + 1; child < modules[module].end; child = modules[child].end)
        visit(call, child);
}

/* A head that has no weight of its own belongs to the unit of the embedding, whose weight it is. */
static bool lacks_head(const struct call *call)
{
    const struct model *model = call->model;
    const uint32_t head = model->tied_head;

    if (head == 0 || call->whose[model->piece_params[model->pieces[0].param]] != OWN)
        return false;
    for (uint32_t i = 0; i < call->out->n; i++) {
        const uint32_t module = call->out->modules[i];
        if (head >= module && head < model->modules[module].end)
            return false;
    }
    return true;
}

void plan_call_modules(const struct plan *plan, uint32_t unit, struct arena *arena,
                       struct unit_modules *out)
{
    uint8_t *whose = arena_array(arena, uint8_t, plan->model->n_param);
    const struct call call = {.plan = plan, .model = plan->model, .whose = whose, .out = out};

    *out = (struct unit_modules){.modules = arena_array(arena, uint32_t, plan->model->n_module)};
    mark_all(plan, unit, whose);
    visit(&call, 0);
    if (lacks_head(&call))
        out->modules[out->n++] = plan->model->tied_head;
}
