/*
 * Ownership: the innermost claimed module above a parameter has it, and the root what is left. All
 * passes run over modules, parameters or pieces once; only messages search.
 *
 * Invariant: the root counts as the draft after the last one, so that every module has an owner.
 */
#include "src/plan_cut.h"

#include <assert.h>

#include "src/plan_cut_inner.h"

static void note_module(struct cut *cut, uint32_t draft, uint32_t module, uint32_t outer)
{
    struct cut_unit *unit = &cut->units[draft];
    if (unit->n_module == 0)
        unit->outer = outer;
    if (unit->n_module == 0 || outer != unit->outer)
        unit->other_outer = outer;
    const struct module *modules = cut->model->modules;
    unit->in_a_row = unit->n_module == 0 || (unit->in_a_row && modules[unit->last].end == module &&
                                             modules[unit->last].parent == modules[module].parent);
    if (unit->n_module < sizeof(unit->shown) / sizeof(*unit->shown))
        unit->shown[unit->n_module] = module;
    unit->n_module++;
    unit->last = module;
}

static void own_modules(struct cut *cut)
{
    const struct module *modules = cut->model->modules;
    uint32_t *owner = cut->module_owner;
    owner[0] = cut_root(cut);
    for (uint32_t i = 1; i < cut->model->n_module; i++) {
        uint32_t draft = cut->drafts->of_module[i], outer = owner[modules[i].parent];
        owner[i] = draft == NO_DRAFT ? outer : draft;
        if (owner[i] != outer)
            note_module(cut, draft, i, outer);
    }
    for (uint32_t i = 0; i < cut->model->n_param; i++) {
        cut->units[cut_owner(cut, i)].n_param++;
        cut->units[cut_owner(cut, i)].n_fp32 += cut->plan->policy[i].compute == DTYPE_FP32;
    }
}

const char *cut_unit_name(const struct cut *cut, uint32_t draft)
{
    if (draft == cut_root(cut))
        return "(root)";
    const struct cut_unit *unit = &cut->units[draft];
    const struct module *modules = cut->model->modules;
    uint32_t named_after = cut->drafts->drafts[draft].named_after;
    if (named_after != NO_MODULE)
        return modules[named_after].path;
    const char *first = modules[unit->shown[0]].path;
    if (unit->n_module == 1)
        return first;
    if (unit->in_a_row)
        return arena_printf(cut->arena, "%s..%s", first, modules[unit->last].path);
    const char *second = modules[unit->shown[1]].path;
    if (unit->n_module == 2)
        return arena_printf(cut->arena, "%s, %s", first, second);
    if (unit->n_module == 3)
        return arena_printf(cut->arena, "%s, %s, %s", first, second, modules[unit->shown[2]].path);
    return arena_printf(cut->arena, "%s and %u more", first, unit->n_module - 1);
}

static enum status own_pieces(struct cut *cut, struct err *err)
{
    const struct model *model = cut->model;
    for (uint32_t i = 0; i < model->n_piece; i++) {
        const struct piece *piece = &model->pieces[i];
        const uint32_t *params = &model->piece_params[piece->param];
        assert(piece->n_param > 0);
        uint32_t owner = cut_owner(cut, params[0]);
        for (uint32_t k = 1; k < piece->n_param; k++)
            if (cut_owner(cut, params[k]) != owner)
                return cut_fail_piece(cut, i, params[k], err);
        cut->piece_owner[i] = owner;
    }
    return STATUS_OK;
}

/* Segments come in order, so that the last one to come is the last. */
static void note_segment(struct cut *cut, uint32_t param, uint32_t segment)
{
    if (cut->first_segment_of[param] == UINT32_MAX)
        cut->first_segment_of[param] = segment;
    cut->last_segment_of[param] = segment;
}

static void make_segments(struct cut *cut)
{
    const struct model *model = cut->model;
    struct plan *plan = cut->plan;
    for (uint32_t i = 0; i < model->n_param; i++)
        cut->first_segment_of[i] = UINT32_MAX;
    plan->segments = arena_array(cut->arena, struct segment, model->n_piece);
    for (uint32_t i = 0; i < model->n_piece; i++) {
        const struct piece *piece = &model->pieces[i];
        struct segment segment = {
            .layer = piece->layer, .kind = piece->kind, .piece = i, .grad = piece->param};
        uint32_t end = piece->param + piece->n_param;
        if (body_piece_starts_block(model, i) && cut->piece_owner[i] == cut->piece_owner[i + 1]) {
            segment.kind = BODY_BLOCK;
            end = piece[1].param + piece[1].n_param;
            i++;
        }
        for (uint32_t k = piece->param; k < end; k++)
            note_segment(cut, model->piece_params[k], plan->n_segment);
        plan->segments[plan->n_segment++] = segment;
    }
}

/* A unit's hooks fire where its modules begin and end, whoever owns what is there. */
static void find_spans(struct cut *cut)
{
    const struct model *model = cut->model;
    uint32_t root = cut_root(cut);
    for (uint32_t i = 0; i < root; i++)
        cut->units[i].first_segment = UINT32_MAX;
    cut->units[root].last_segment = cut->plan->n_segment - 1;
    for (uint32_t i = 1; i < model->n_module; i++) {
        uint32_t draft = cut->drafts->of_module[i];
        if (draft == NO_DRAFT)
            continue;
        struct cut_unit *unit = &cut->units[draft];
        for (uint32_t k = model->modules[i].first_param; k < model->modules[i].end_param; k++) {
            if (cut->first_segment_of[k] < unit->first_segment)
                unit->first_segment = cut->first_segment_of[k];
            if (cut->last_segment_of[k] > unit->last_segment)
                unit->last_segment = cut->last_segment_of[k];
        }
    }
}

static bool has_outer(const struct cut *cut, uint32_t draft)
{
    return draft != cut_root(cut) &&
           (cut->units[draft].outer != cut_root(cut) || cut->plan->has_root);
}

/* A unit takes the next place, after those around it that begin with the same segment. */
static void number_unit(struct cut *cut, uint32_t draft)
{
    struct cut_unit *from = &cut->units[draft];
    struct plan *plan = cut->plan;
    if (from->unit != NO_UNIT)
        return;
    if (has_outer(cut, draft))
        number_unit(cut, from->outer);
    from->unit = (uint16_t)plan->n_unit++;
    plan->units[from->unit] =
        (struct unit){.name = cut_unit_name(cut, draft),
                      .n_param = from->n_param,
                      .first_segment = from->first_segment,
                      .last_segment = from->last_segment,
                      .outer = has_outer(cut, draft) ? cut->units[from->outer].unit : NO_UNIT};
}

static void number_units(struct cut *cut)
{
    struct plan *plan = cut->plan;
    const struct model *model = cut->model;
    uint32_t root = cut_root(cut);
    plan->units = arena_array(cut->arena, struct unit, root + 1);
    plan->has_root = cut->units[root].n_param > 0;
    for (uint32_t i = 0; i <= root; i++)
        cut->units[i].unit = NO_UNIT;
    if (plan->has_root)
        number_unit(cut, root);
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        struct segment *segment = &plan->segments[i];
        uint32_t draft = cut_owner(cut, model->piece_params[segment->grad]);
        number_unit(cut, draft);
        segment->unit = cut->units[draft].unit;
    }
}

static void place_params(struct cut *cut)
{
    struct plan *plan = cut->plan;
    const struct model *model = cut->model;
    uint32_t next = 0;
    for (uint32_t i = 0; i < plan->n_unit; i++) {
        plan->units[i].param = next;
        next += plan->units[i].n_param;
    }
    assert(next == model->n_param);
    uint32_t *filled = arena_array(cut->arena, uint32_t, plan->n_unit);
    uint32_t *member = arena_array(cut->arena, uint32_t, model->n_param);
    plan->unit_params = arena_array(cut->arena, uint32_t, model->n_param);
    for (uint32_t i = 0; i < model->n_param; i++) {
        uint16_t unit = cut->units[cut_owner(cut, i)].unit;
        member[i] = filled[unit]++;
        plan->unit_params[plan->units[unit].param + member[i]] = i;
    }
    plan->grad_member = arena_array(cut->arena, uint32_t, model->n_piece_param);
    for (uint32_t i = 0; i < model->n_piece_param; i++)
        plan->grad_member[i] = member[model->piece_params[i]];
}

static bool reshards(const struct plan *plan, uint32_t unit)
{
    bool is_root = plan->has_root && unit == 0;
    switch (plan->options.reshard) {
    case RESHARD_YES:
        return true;
    case RESHARD_NO:
        return false;
    case RESHARD_ALL_BUT_LAST:
        return !is_root && unit != plan->n_unit - 1;
    default:
        return !is_root;
    }
}

static void set_switches(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_unit; i++) {
        struct unit *unit = &plan->units[i];
        unit->reshard_after_forward = reshards(plan, i);
        /* a step begins with token ids, which carry no gradient */
        unit->input_has_grad = unit->first_segment != 0;
    }
}

enum status plan_cut(struct plan *plan, const struct unit_drafts *drafts, struct arena *arena,
                     struct err *err)
{
    const struct model *model = plan->model;
    struct cut cut = {.plan = plan,
                      .model = model,
                      .drafts = drafts,
                      .arena = arena,
                      .units = arena_array(arena, struct cut_unit, drafts->n_draft + 1),
                      .module_owner = arena_array(arena, uint32_t, model->n_module),
                      .piece_owner = arena_array(arena, uint32_t, model->n_piece),
                      .first_segment_of = arena_array(arena, uint32_t, model->n_param),
                      .last_segment_of = arena_array(arena, uint32_t, model->n_param)};
    own_modules(&cut);
    enum status status = cut_refuse_units(&cut, err);
    if (!status)
        status = own_pieces(&cut, err);
    if (!status)
        status = cut_refuse_regions(&cut, err);
    if (status)
        return status;
    make_segments(&cut);
    find_spans(&cut);
    number_units(&cut);
    place_params(&cut);
    set_switches(plan);
    return STATUS_OK;
}
