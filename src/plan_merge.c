/*
 * Joining units; see plan_merge.h. All passes run over units, segments or parameters once.
 */
#include "src/plan_merge.h"

#include <string.h>

#include "src/plan_system.h"

struct merge {
    const struct merge_source *source;
    const struct plan *fine;
    struct plan *plan;
    uint16_t *unit_of; /* by unit of fine: the unit that it is part of now */
    uint32_t *member;  /* by parameter: of its unit's gradients the how-many-th is its own */
};

static uint32_t segments_of(const struct plan *plan, uint32_t unit)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->n_segment; s++)
        n += plan->segments[s].unit == unit;
    return n;
}

static bool joins(const struct plan *fine, uint32_t unit)
{
    const struct unit *u = &fine->units[unit];
    return !plan_is_root(fine, unit) &&
           segments_of(fine, unit) == u->last_segment - u->first_segment + 1;
}

static enum status check(const struct plan *fine, struct err *err)
{
    for (uint32_t s = 0; s < fine->n_segment; s++)
        if (fine->segments[s].n_inner > 0)
            return err_set(err, STATUS_USAGE, "unit '%s' lies inside of another one",
                           fine->units[fine->inner_units[fine->segments[s].inner]].name);
    for (uint32_t u = 0; u < fine->n_unit; u++) {
        const struct unit *unit = &fine->units[u];
        if (unit->group > 0 || unit->on_second_mesh)
            return err_set(err, STATUS_USAGE, "unit '%s' is on a second mesh", unit->name);
        if (unit->host_sync || !unit->unshard_in_backward)
            return err_set(err, STATUS_USAGE, "unit '%s' has a switch of its own", unit->name);
        if (unit->outer != NO_UNIT && !plan_is_root(fine, unit->outer))
            return err_set(err, STATUS_USAGE, "unit '%s' lies inside of another one", unit->name);
    }
    return STATUS_OK;
}

enum status merge_source_init(const struct plan *fine, struct arena *arena,
                              struct merge_source *out, struct err *err)
{
    const enum status status = check(fine, err);
    if (status != STATUS_OK)
        return status;
    uint32_t *order = arena_array(arena, uint32_t, fine->model->n_param);
    struct merge_source source = {.fine = fine,
                                  .rank = arena_array(arena, uint32_t, fine->model->n_param),
                                  .joins = arena_array(arena, bool, fine->n_unit)};
    plan_system_order(fine->options.system, fine->model, order);
    for (uint32_t i = 0; i < fine->model->n_param; i++)
        source.rank[order[i]] = i;
    for (uint32_t u = 0; u < fine->n_unit; u++)
        source.joins[u] = joins(fine, u);
    *out = source;
    return STATUS_OK;
}

/* Hooks of the unit fire around all that its parts compute. */
static void join(struct unit *to, const struct unit *part)
{
    if (part->first_segment < to->first_segment) {
        to->first_segment = part->first_segment;
        to->input_has_grad = part->input_has_grad;
    }
    if (part->last_segment >= to->last_segment) {
        to->last_segment = part->last_segment;
        to->has_backward = part->has_backward;
    }
    to->n_param += part->n_param;
}

static void make_root(struct merge *m)
{
    const struct plan *fine = m->fine;
    const uint32_t last = fine->n_segment - 1;
    struct plan *plan = m->plan;
    plan->units[0] =
        (struct unit){.name = "(root)",
                      .outer = NO_UNIT,
                      .next_group = NO_UNIT,
                      .last_segment = last,
                      .has_backward = fine->units[fine->segments[last].unit].has_backward,
                      .unshard_in_backward = true};
    plan->has_root = true;
    plan->n_unit = 1;
}

static bool has_root(const struct plan *fine, const uint16_t *group_of)
{
    for (uint32_t u = 0; u < fine->n_unit; u++)
        if (group_of[u] == MERGE_ROOT)
            return true;
    return false;
}

static void make_units(struct merge *m, const uint16_t *group_of)
{
    const struct plan *fine = m->fine;
    struct plan *plan = m->plan;

    plan->n_unit = 0;
    plan->has_root = false;
    if (has_root(fine, group_of))
        make_root(m);
    const uint16_t base = (uint16_t)plan->n_unit;
    for (uint32_t u = 0; u < fine->n_unit; u++) {
        const bool in_root = group_of[u] == MERGE_ROOT;
        const uint16_t to = in_root ? 0 : (uint16_t)(base + group_of[u]);
        m->unit_of[u] = to;
        if (to == plan->n_unit) {
            plan->units[plan->n_unit++] = fine->units[u];
            plan->units[to].outer = plan->has_root ? 0 : NO_UNIT;
            plan->units[to].reshard_after_forward = true;
        } else if (in_root) {
            plan->units[0].n_param += fine->units[u].n_param;
        } else {
            join(&plan->units[to], &fine->units[u]);
        }
    }
}

/* Into the order in which the system finds them: a part mostly comes behind all that is there. */
static void add_params(const struct merge *m, struct unit *to, const struct unit *part)
{
    const uint32_t *rank = m->source->rank, *from = &m->fine->unit_params[part->param];
    uint32_t *params = &m->plan->unit_params[to->param], i = 0;

    if (to->n_param == 0 || rank[params[to->n_param - 1]] < rank[from[0]]) {
        memcpy(params + to->n_param, from, part->n_param * sizeof *from);
        to->n_param += i = part->n_param;
    }
    for (; i < part->n_param; i++) {
        uint32_t at = to->n_param++;
        for (; at > 0 && rank[params[at - 1]] > rank[from[i]]; at--)
            params[at] = params[at - 1];
        params[at] = from[i];
    }
}

static void place_params(struct merge *m)
{
    const struct plan *fine = m->fine;
    struct plan *plan = m->plan;
    uint32_t next = 0;

    for (uint32_t u = 0; u < plan->n_unit; u++) {
        plan->units[u].param = next;
        next += plan->units[u].n_param;
        plan->units[u].n_param = 0;
    }
    for (uint32_t u = 0; u < fine->n_unit; u++)
        add_params(m, &plan->units[m->unit_of[u]], &fine->units[u]);
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        const struct unit *unit = &plan->units[u];
        uint32_t n_grad = 0;
        for (uint32_t i = unit->param; i < unit->param + unit->n_param; i++) {
            m->member[plan->unit_params[i]] = n_grad;
            n_grad += plan->policy[plan->unit_params[i]].has_grad;
        }
    }
}

/* No unit lies inside another one, so that each gradient is one of its segment's own unit. */
static void place_grads(struct merge *m)
{
    const struct model *model = m->fine->model;
    for (uint32_t k = 0; k < model->n_piece_param; k++)
        m->plan->grad_places[k] =
            (struct grad_place){.part = 0, .member = m->member[model->piece_params[k]]};
}

/* Halves of a block that are in one unit compute as one. */
static bool joins_next(const struct merge *m, uint32_t s)
{
    const struct plan *fine = m->fine;
    const struct segment *segment = &fine->segments[s];
    return segment->kind != BODY_BLOCK && s + 1 < fine->n_segment &&
           body_piece_starts_block(fine->model, segment->piece) &&
           m->unit_of[segment->unit] == m->unit_of[segment[1].unit];
}

/* new_of: by segment of fine; a half of a block has that of the block. */
static void make_segments(struct merge *m, uint32_t *new_of)
{
    const struct plan *fine = m->fine;
    struct plan *plan = m->plan;

    plan->n_segment = 0;
    for (uint32_t s = 0; s < fine->n_segment; s++) {
        struct segment segment = fine->segments[s];
        segment.unit = m->unit_of[segment.unit];
        new_of[s] = plan->n_segment;
        if (joins_next(m, s)) {
            segment.kind = BODY_BLOCK;
            new_of[++s] = plan->n_segment;
        }
        plan->segments[plan->n_segment++] = segment;
    }
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        plan->units[u].first_segment = new_of[plan->units[u].first_segment];
        plan->units[u].last_segment = new_of[plan->units[u].last_segment];
    }
}

void plan_merge(const struct merge_source *source, const uint16_t *group_of, struct arena *arena,
                struct plan *out)
{
    const struct plan *fine = source->fine;
    const uint32_t n_param = fine->model->n_param, n_place = fine->model->n_piece_param;
    struct merge m = {.source = source, .fine = fine, .plan = out};

    *out = *fine;
    m.unit_of = arena_take(arena, fine->n_unit * sizeof *m.unit_of);
    m.member = arena_take(arena, n_param * sizeof *m.member);
    out->units = arena_take(arena, (fine->n_unit + 1) * sizeof *out->units);
    out->segments = arena_take(arena, fine->n_segment * sizeof *out->segments);
    out->unit_params = arena_take(arena, n_param * sizeof *out->unit_params);
    out->grad_places = arena_take(arena, n_place * sizeof *out->grad_places);
    make_units(&m, group_of);
    place_params(&m);
    place_grads(&m);
    make_segments(&m, arena_take(arena, fine->n_segment * sizeof(uint32_t)));
}
