/*
 * Ownership: the innermost claimed module above a parameter has it, and the root what is left. All
 * passes run over modules, parameters or pieces once; only messages search.
 *
 * Invariant: the root counts as the draft after the last one, so that every module has an owner.
 */
#include "src/plan_cut.h"

#include <assert.h>
#include <string.h>

#include "src/plan_cut_inner.h"
#include "src/plan_system.h"
#include "src/text.h"

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
}

static void count_param(struct cut *cut, uint32_t param)
{
    struct cut_unit *unit = &cut->units[cut_owner(cut, param)];
    const uint8_t mesh = cut->plan->policy[param].second_mesh;

    if (unit->n_param++ == 0)
        unit->first_mesh = mesh;
    unit->on_mesh[mesh]++;
    cut->mesh[param] = mesh;
}

/* Groups come in the order of their first parameters. What a unit ignores is with the first one. */
static void own_params(struct cut *cut)
{
    cut->order = arena_array(cut->arena, uint32_t, cut->model->n_param);
    plan_system_order(cut->plan->options.system, cut->model, cut->order);
    for (uint32_t i = 0; i < cut->model->n_param; i++)
        if (cut_is_managed(cut, cut->order[i]))
            count_param(cut, cut->order[i]);
    for (uint32_t i = 0; i < cut->model->n_param; i++)
        if (!cut_is_managed(cut, i))
            cut->mesh[i] = cut->units[cut_owner(cut, i)].first_mesh;
}

const char *cut_unit_name(const struct cut *cut, uint32_t draft)
{
    if (draft == cut_root(cut))
        return "(root)";
    const struct cut_unit *unit = &cut->units[draft];
    const struct module *modules = cut->model->modules;
    uint32_t named_after = cut->drafts->drafts[draft].named_after;
    if (named_after != NO_MODULE && cut->module_owner[named_after] == draft)
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

/*
 * The innermost unit around all that own parameters of the piece: it computes it, the others are
 * unsharded on the way. It has to be one that exists.
 */
static enum status own_piece(struct cut *cut, uint32_t piece, struct err *err)
{
    const struct piece *p = &cut->model->pieces[piece];
    const uint32_t *params = &cut->model->piece_params[p->param];
    assert(p->n_param > 0);
    uint32_t owner = cut_owner(cut, params[0]), other = params[0];

    for (uint32_t k = 1; k < p->n_param; k++)
        while (!cut_is_around(cut, owner, cut_owner(cut, params[k]))) {
            owner = cut->units[owner].outer;
            other = params[k];
        }
    if (cut->units[owner].n_param == 0 && other != params[0])
        return cut_fail_piece(cut, piece, other, err);
    cut->piece_owner[piece] = owner;
    return STATUS_OK;
}

static enum status own_pieces(struct cut *cut, struct err *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < cut->model->n_piece && !status; i++)
        status = own_piece(cut, i, err);
    return status;
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
        cut->segment_end[plan->n_segment] = end;
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

static void number_group(struct cut *cut, uint32_t draft, uint8_t mesh)
{
    struct cut_unit *from = &cut->units[draft];
    struct plan *plan = cut->plan;
    const char *name = cut_unit_name(cut, draft);
    from->unit[mesh] = (uint16_t)plan->n_unit++;
    plan->units[from->unit[mesh]] =
        (struct unit){.name = mesh ? arena_printf(cut->arena, "%s on mesh 2", name) : name,
                      .n_param = from->on_mesh[mesh],
                      .first_segment = from->first_segment,
                      .last_segment = from->last_segment,
                      .outer = has_outer(cut, draft) ? cut_first_unit(cut, from->outer) : NO_UNIT,
                      .group = mesh != from->first_mesh,
                      .on_second_mesh = mesh,
                      .next_group = NO_UNIT};
}

/* A unit takes the next place, after those around it that begin with the same segment. */
static void number_unit(struct cut *cut, uint32_t draft)
{
    struct cut_unit *from = &cut->units[draft];
    struct plan *plan = cut->plan;
    if (cut_first_unit(cut, draft) != NO_UNIT)
        return;
    if (has_outer(cut, draft))
        number_unit(cut, from->outer);
    number_group(cut, draft, from->first_mesh);
    if (from->on_mesh[!from->first_mesh] > 0) {
        plan->units[from->unit[from->first_mesh]].next_group = (uint16_t)plan->n_unit;
        number_group(cut, draft, !from->first_mesh);
    }
}

/* A unit that owns parameters of the segment and is not its own; one without is none. */
static void note_inner(struct cut *cut, struct segment *segment, uint16_t unit)
{
    struct plan *plan = cut->plan;

    if (unit == segment->unit || unit == NO_UNIT)
        return;
    for (uint32_t i = 0; i < segment->n_inner; i++)
        if (plan->inner_units[segment->inner + i] == unit)
            return;
    plan->inner_units =
        arena_grow(cut->arena, plan->inner_units, &cut->cap_inner,
                   segment->inner + segment->n_inner + 1, sizeof *plan->inner_units);
    plan->inner_units[segment->inner + segment->n_inner++] = unit;
}

static uint32_t n_inner_units(const struct plan *plan, uint32_t segment)
{
    return segment == 0 ? 0
                        : plan->segments[segment - 1].inner + plan->segments[segment - 1].n_inner;
}

static void number_segment(struct cut *cut, uint32_t s)
{
    struct segment *segment = &cut->plan->segments[s];
    const uint32_t owner = cut->piece_owner[segment->piece];

    number_unit(cut, owner);
    segment->unit = cut_first_unit(cut, owner);
    segment->inner = n_inner_units(cut->plan, s);
    for (uint32_t k = segment->grad; k < cut->segment_end[s]; k++) {
        const uint32_t param = cut->model->piece_params[k];
        const uint32_t draft = cut_owner(cut, param);
        number_unit(cut, draft);
        note_inner(cut, segment, cut_first_unit(cut, draft));
        note_inner(cut, segment, cut_unit_of(cut, param));
    }
}

static void number_units(struct cut *cut)
{
    struct plan *plan = cut->plan;
    uint32_t root = cut_root(cut);
    plan->units = arena_array(cut->arena, struct unit, (size_t)MESH_N * (root + 1));
    plan->has_root = cut->units[root].n_param > 0;
    for (uint32_t i = 0; i <= root; i++)
        cut->units[i].unit[0] = cut->units[i].unit[1] = NO_UNIT;
    if (plan->has_root)
        number_unit(cut, root);
    for (uint32_t i = 0; i < plan->n_segment; i++)
        number_segment(cut, i);
}

/* Managed parameters by unit; member counts those that have a gradient. */
static void place_params(struct cut *cut, uint32_t *member)
{
    struct plan *plan = cut->plan;
    const struct model *model = cut->model;
    uint32_t *filled = arena_array(cut->arena, uint32_t, plan->n_unit);
    uint32_t *n_grad = arena_array(cut->arena, uint32_t, plan->n_unit);
    uint32_t next = 0;

    for (uint32_t i = 0; i < plan->n_unit; i++) {
        plan->units[i].param = next;
        next += plan->units[i].n_param;
    }
    plan->unit_params = arena_array(cut->arena, uint32_t, next + 1);
    for (uint32_t i = 0; i < model->n_param; i++) {
        const uint32_t param = cut->order[i];
        if (!cut_is_managed(cut, param))
            continue;
        const uint16_t unit = cut_unit_of(cut, param);
        plan->unit_params[plan->units[unit].param + filled[unit]++] = param;
        if (plan->policy[param].has_grad)
            member[param] = n_grad[unit]++;
    }
}

/* 0 for the segment's own unit, else one past its place among the inner ones. */
static uint32_t part_of(const struct plan *plan, const struct segment *segment, uint16_t unit)
{
    uint32_t part = 0;
    if (unit != segment->unit)
        while (plan->inner_units[segment->inner + part++] != unit) {
        }
    return part;
}

static void place_grads(struct cut *cut, const uint32_t *member)
{
    struct plan *plan = cut->plan;
    const struct model *model = cut->model;

    plan->grad_places = arena_array(cut->arena, struct grad_place, model->n_piece_param);
    for (uint32_t s = 0; s < plan->n_segment; s++)
        for (uint32_t k = plan->segments[s].grad; k < cut->segment_end[s]; k++) {
            const uint32_t param = model->piece_params[k];
            const uint16_t unit = cut_unit_of(cut, param);
            plan->grad_places[k] = (struct grad_place){
                .part = part_of(plan, &plan->segments[s], unit), .member = member[param]};
        }
}

static bool reshards(const struct plan *plan, uint32_t unit)
{
    const bool is_root = plan_is_root(plan, unit);
    switch (plan->options.reshard) {
    case RESHARD_YES:
    case RESHARD_RANKS:
        return true;
    case RESHARD_NO:
        return false;
    case RESHARD_ALL_BUT_LAST:
        return !is_root && unit + 1 != plan->n_unit &&
               plan->units[unit].next_group + 1u != plan->n_unit;
    default:
        return !is_root;
    }
}

/* By segment: whether something that is trained was computed with before it. */
static bool *find_grads(const struct cut *cut)
{
    const struct plan *plan = cut->plan;
    bool *before = arena_array(cut->arena, bool, plan->n_segment + 1);

    for (uint32_t s = 0; s < plan->n_segment; s++) {
        before[s + 1] = before[s];
        for (uint32_t k = plan->segments[s].grad; k < cut->segment_end[s]; k++)
            before[s + 1] |= plan->policy[cut->model->piece_params[k]].has_grad;
    }
    return before;
}

static bool matches_any(const char *patterns, const char *name, struct arena *arena)
{
    char *rest = patterns ? arena_strdup(arena, patterns) : NULL;
    for (char *pattern; (pattern = strsep(&rest, ","));)
        if (text_matches(pattern, name))
            return true;
    return false;
}

static void set_switches(struct cut *cut)
{
    struct plan *plan = cut->plan;
    const char *skipped = plan->options.no_unshard_backward;
    const bool *grads_before = find_grads(cut);

    for (uint32_t i = 0; i < plan->n_unit; i++) {
        struct unit *unit = &plan->units[i];
        const char *name = plan->units[i - unit->group].name;
        unit->reshard_after_forward =
            reshards(plan, i) && !matches_any(plan->options.no_reshard, name, cut->arena);
        unit->unshard_in_backward = !matches_any(skipped, name, cut->arena);
        unit->host_sync =
            unit->group == 0 && matches_any(plan->options.host_sync, name, cut->arena);
        /* a step begins with token ids, which carry no gradient */
        unit->input_has_grad = grads_before[unit->first_segment];
        unit->has_backward = grads_before[unit->last_segment + 1];
    }
    for (uint32_t s = 0; s < plan->n_segment; s++)
        for (uint32_t i = 0; i < plan->segments[s].n_inner; i++)
            /* inside of a body other parameters were used before; ids stay ids */
            plan->units[plan->inner_units[plan->segments[s].inner + i]].input_has_grad |=
                plan->segments[s].kind != BODY_EMBEDDING && grads_before[s + 1];
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
                      .mesh = arena_array(arena, uint8_t, model->n_param),
                      .piece_owner = arena_array(arena, uint32_t, model->n_piece),
                      .segment_end = arena_array(arena, uint32_t, model->n_piece),
                      .first_segment_of = arena_array(arena, uint32_t, model->n_param),
                      .last_segment_of = arena_array(arena, uint32_t, model->n_param)};
    own_modules(&cut);
    own_params(&cut);
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
    uint32_t *member = arena_array(arena, uint32_t, model->n_param);
    place_params(&cut, member);
    place_grads(&cut, member);
    set_switches(&cut);
    return STATUS_OK;
}
