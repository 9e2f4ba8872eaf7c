/*
 * Ownership: the innermost claimed module above a parameter has it, and the root what is left. All
 * passes run over modules, parameters or pieces once; only messages search.
 *
 * Invariant: the root counts as the draft after the last one, so that every module has an owner.
 */
#include "src/plan_cut.h"

#include <assert.h>
#include <string.h>

/* What is known of one draft while it becomes a unit. */
struct cut_unit {
    uint32_t n_param;
    uint32_t outer, other_outer;          /* drafts around its modules: one, if all is well */
    uint32_t first_segment, last_segment; /* of all that is inside its modules */
    uint32_t n_module, shown[3], last;    /* its outermost modules, for the name */
    bool in_a_row;                        /* they are neighbours under one parent */
    uint16_t unit;                        /* in plan.units, NO_UNIT before it has a place */
};

struct cut {
    struct plan *plan;
    const struct model *model;
    const struct unit_drafts *drafts;
    struct arena *arena;
    struct cut_unit *units;     /* one for each draft and the root's */
    uint32_t *module_owner;     /* draft */
    uint32_t *piece_owner;      /* draft */
    uint32_t *segment_of_param; /* that computes with it */
};

static uint32_t root_of(const struct cut *cut)
{
    return cut->drafts->n_draft;
}

static uint32_t owner_of(const struct cut *cut, uint32_t param)
{
    return cut->module_owner[cut->model->params[param].module];
}

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
    owner[0] = root_of(cut);
    for (uint32_t i = 1; i < cut->model->n_module; i++) {
        uint32_t draft = cut->drafts->of_module[i], outer = owner[modules[i].parent];
        owner[i] = draft == NO_DRAFT ? outer : draft;
        if (owner[i] != outer)
            note_module(cut, draft, i, outer);
    }
    for (uint32_t i = 0; i < cut->model->n_param; i++)
        cut->units[owner_of(cut, i)].n_param++;
}

static const char *unit_name(const struct cut *cut, uint32_t draft)
{
    if (draft == root_of(cut))
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

static enum status refuse_empty(const struct cut *cut, struct err *err)
{
    uint32_t draft = 0;
    while (draft < root_of(cut) && cut->units[draft].n_param > 0)
        draft++;
    if (draft == root_of(cut))
        return STATUS_OK;

    const struct unit_draft *source = &cut->drafts->drafts[draft];
    uint32_t first = cut->units[draft].shown[0], inner = first;
    while (inner < cut->model->modules[first].end && cut->module_owner[inner] == draft)
        inner++;
    if (inner == cut->model->modules[first].end)
        return unit_draft_fail(source, err, "unit '%s' has no parameters", unit_name(cut, draft));
    return unit_draft_fail(source, err,
                           "unit '%s' has no parameters: inner units such as '%s' own all of them; "
                           "drop or narrow '%s', which names it",
                           unit_name(cut, draft), cut->model->modules[inner].path, source->origin);
}

/* Hooks have to nest: a unit that ends outside of one in which it began would reshard too early. */
static enum status refuse_straddling(const struct cut *cut, struct err *err)
{
    for (uint32_t i = 0; i < root_of(cut); i++) {
        const struct cut_unit *unit = &cut->units[i];
        if (unit->outer != unit->other_outer)
            return unit_draft_fail(&cut->drafts->drafts[i], err,
                                   "unit '%s' lies partly in unit '%s' and partly in '%s', it has "
                                   "to be inside of one; split it or drop the outer unit",
                                   unit_name(cut, i), unit_name(cut, unit->outer),
                                   unit_name(cut, unit->other_outer));
    }
    return STATUS_OK;
}

/* The draft to blame: the one that is not the root, the later one if both are not. */
static const struct unit_draft *source_of(const struct cut *cut, uint32_t a, uint32_t b)
{
    uint32_t draft = a == root_of(cut) || (b != root_of(cut) && b > a) ? b : a;
    return &cut->drafts->drafts[draft];
}

/* "self_attn" of "model.layers.0.self_attn": the name of the module that has the parameter. */
static const char *leaf_name(const struct model *model, uint32_t param)
{
    const char *path = model->modules[model->params[param].module].path;
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* A piece's norm comes last in the order of grad slots. */
static const char *norm_name(const struct model *model, uint32_t piece)
{
    const struct piece *p = &model->pieces[piece];
    return leaf_name(model, model->piece_params[p->param + p->n_param - 1]);
}

static bool is_block_half(const struct piece *piece)
{
    return piece->kind == BODY_ATTENTION || piece->kind == BODY_MLP;
}

static enum status fail_piece(const struct cut *cut, uint32_t piece, uint32_t param,
                              struct err *err)
{
    const struct model *model = cut->model;
    const struct piece *p = &model->pieces[piece];
    uint32_t first = model->piece_params[p->param];
    uint32_t a = owner_of(cut, first), b = owner_of(cut, param);
    const struct unit_draft *source = source_of(cut, a, b);
    const char *kind = body_kind_name(p->kind);
    if (!is_block_half(p))
        return unit_draft_fail(source, err,
                               "a unit border cuts through the %s: '%s' is in unit "
                               "'%s', '%s' in '%s'",
                               kind, model->params[first].name, unit_name(cut, a),
                               model->params[param].name, unit_name(cut, b));
    uint32_t attention = p->kind == BODY_ATTENTION ? piece : piece - 1;
    return unit_draft_fail(source, err,
                           "a unit border cuts through the %s of layer %u: '%s' is in unit '%s', "
                           "'%s' in '%s'; inside a block a border can only run between attention "
                           "with %s and mlp with %s, as in the scheme 'attn+mlp'",
                           kind, p->layer, model->params[first].name, unit_name(cut, a),
                           model->params[param].name, unit_name(cut, b),
                           norm_name(model, attention), norm_name(model, attention + 1));
}

static enum status own_pieces(struct cut *cut, struct err *err)
{
    const struct model *model = cut->model;
    for (uint32_t i = 0; i < model->n_piece; i++) {
        const struct piece *piece = &model->pieces[i];
        const uint32_t *params = &model->piece_params[piece->param];
        assert(piece->n_param > 0);
        uint32_t owner = owner_of(cut, params[0]);
        for (uint32_t k = 1; k < piece->n_param; k++)
            if (owner_of(cut, params[k]) != owner)
                return fail_piece(cut, i, params[k], err);
        cut->piece_owner[i] = owner;
    }
    return STATUS_OK;
}

static bool starts_block(const struct model *model, uint32_t piece)
{
    const struct piece *p = &model->pieces[piece];
    return p->kind == BODY_ATTENTION && piece + 1 < model->n_piece && p[1].kind == BODY_MLP &&
           p[1].layer == p->layer;
}

/* Full checkpointing recomputes a block as one region, so that its halves need one unit. */
static enum status refuse_cut_regions(const struct cut *cut, struct err *err)
{
    if (cut->plan->options.ac != AC_FULL)
        return STATUS_OK;
    for (uint32_t i = 0; i < cut->model->n_piece; i++) {
        uint32_t a = cut->piece_owner[i];
        if (!starts_block(cut->model, i) || cut->piece_owner[i + 1] == a)
            continue;
        uint32_t b = cut->piece_owner[i + 1];
        return unit_draft_fail(source_of(cut, a, b), err,
                               "units '%s' and '%s' cut layer %u, which full checkpointing "
                               "recomputes as a whole; until there are selective modes use whole "
                               "blocks or no checkpointing",
                               unit_name(cut, a), unit_name(cut, b), cut->model->pieces[i].layer);
    }
    return STATUS_OK;
}

static void make_segments(struct cut *cut)
{
    const struct model *model = cut->model;
    struct plan *plan = cut->plan;
    plan->segments = arena_array(cut->arena, struct segment, model->n_piece);
    for (uint32_t i = 0; i < model->n_piece; i++) {
        const struct piece *piece = &model->pieces[i];
        struct segment segment = {.layer = piece->layer, .kind = piece->kind, .grad = piece->param};
        uint32_t end = piece->param + piece->n_param;
        if (starts_block(model, i) && cut->piece_owner[i] == cut->piece_owner[i + 1]) {
            segment.kind = BODY_BLOCK;
            end = piece[1].param + piece[1].n_param;
            i++;
        }
        for (uint32_t k = piece->param; k < end; k++)
            cut->segment_of_param[model->piece_params[k]] = plan->n_segment;
        plan->segments[plan->n_segment++] = segment;
    }
}

/* A unit's hooks fire where its modules begin and end, whoever owns what is there. */
static void find_spans(struct cut *cut)
{
    const struct model *model = cut->model;
    uint32_t root = root_of(cut);
    for (uint32_t i = 0; i < root; i++)
        cut->units[i].first_segment = UINT32_MAX;
    cut->units[root].last_segment = cut->plan->n_segment - 1;
    for (uint32_t i = 1; i < model->n_module; i++) {
        uint32_t draft = cut->drafts->of_module[i];
        if (draft == NO_DRAFT)
            continue;
        struct cut_unit *unit = &cut->units[draft];
        for (uint32_t k = model->modules[i].first_param; k < model->modules[i].end_param; k++) {
            uint32_t segment = cut->segment_of_param[k];
            if (segment < unit->first_segment)
                unit->first_segment = segment;
            if (segment > unit->last_segment)
                unit->last_segment = segment;
        }
    }
}

static bool has_outer(const struct cut *cut, uint32_t draft)
{
    return draft != root_of(cut) &&
           (cut->units[draft].outer != root_of(cut) || cut->plan->has_root);
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
        (struct unit){.name = unit_name(cut, draft),
                      .n_param = from->n_param,
                      .first_segment = from->first_segment,
                      .last_segment = from->last_segment,
                      .outer = has_outer(cut, draft) ? cut->units[from->outer].unit : NO_UNIT};
}

static void number_units(struct cut *cut)
{
    struct plan *plan = cut->plan;
    const struct model *model = cut->model;
    uint32_t root = root_of(cut);
    plan->units = arena_array(cut->arena, struct unit, root + 1);
    plan->has_root = cut->units[root].n_param > 0;
    for (uint32_t i = 0; i <= root; i++)
        cut->units[i].unit = NO_UNIT;
    if (plan->has_root)
        number_unit(cut, root);
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        struct segment *segment = &plan->segments[i];
        uint32_t draft = owner_of(cut, model->piece_params[segment->grad]);
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
        uint16_t unit = cut->units[owner_of(cut, i)].unit;
        member[i] = filled[unit]++;
        plan->unit_params[plan->units[unit].param + member[i]] = i;
    }
    plan->grad_member = arena_array(cut->arena, uint32_t, model->n_param);
    for (uint32_t i = 0; i < model->n_param; i++)
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
                      .segment_of_param = arena_array(arena, uint32_t, model->n_param)};
    own_modules(&cut);
    enum status status = refuse_empty(&cut, err);
    if (!status)
        status = refuse_straddling(&cut, err);
    if (!status)
        status = own_pieces(&cut, err);
    if (!status)
        status = refuse_cut_regions(&cut, err);
    if (status)
        return status;
    make_segments(&cut);
    find_spans(&cut);
    number_units(&cut);
    place_params(&cut);
    set_switches(plan);
    return STATUS_OK;
}
