/*
 * What points are and which there are; see space.h. Steps between them are in space_moves.c.
 */
#include "sim/space.h"

#include <string.h>

static bool is_block(const struct plan *fine, uint32_t unit)
{
    const enum body_kind kind =
        (enum body_kind)fine->segments[fine->units[unit].first_segment].kind;
    return kind != BODY_EMBEDDING && kind != BODY_NORM && kind != BODY_HEAD;
}

/* Of a border the axis is that of blocks where there is one on both sides. */
static unsigned flags_that_may(const struct space *space, uint32_t atom)
{
    const bool *joins = space->source.joins, *block = space->is_block;
    const bool grouping = space->axes >> AXIS_GROUPING & 1, tail = space->axes >> AXIS_TAIL & 1;
    const bool in_blocks = atom > 0 && block[atom] && block[atom - 1];
    unsigned flags = 0;

    if (plan_is_root(space->source.fine, atom))
        return space->axes >> AXIS_RESHARD & 1 ? ATOM_KEEPS : 0;
    if (atom > 0 && joins[atom] && joins[atom - 1] && (in_blocks ? grouping : tail))
        flags |= ATOM_JOINS;
    if (!block[atom] && tail)
        flags |= ATOM_ROOT;
    if (space->axes >> AXIS_RESHARD & 1)
        flags |= ATOM_KEEPS;
    return flags;
}

/* False where they are deeper than a point can say. Where they do not vary it says nothing of them. */
static bool set_depths(const struct space *space, const struct plan *plan, uint8_t *point)
{
    const struct plan_options *options = &plan->options;

    memset(point, 0, POINT_ATOMS);
    if (!(space->axes >> AXIS_PREFETCH & 1))
        return true;
    point[POINT_PREFETCH] = (uint8_t)options->prefetch;
    point[POINT_PREFETCH_BACKWARD] = (uint8_t)options->prefetch_backward;
    return options->prefetch <= UINT8_MAX && options->prefetch_backward <= UINT8_MAX;
}

enum status space_init(const struct plan *fine, const struct plan *start, unsigned axes,
                       struct arena *arena, struct space *out, struct err *err)
{
    struct space space = {.n_atom = fine->n_unit, .axes = axes};
    const enum status status = merge_source_init(fine, arena, &space.source, err);

    if (status != STATUS_OK)
        return status;
    space.point_bytes = POINT_ATOMS + space.n_atom;
    space.may = arena_array(arena, uint8_t, space.n_atom);
    space.start = arena_array(arena, uint8_t, space.point_bytes);
    space.is_block = arena_array(arena, bool, space.n_atom);
    for (uint32_t a = 0; a < space.n_atom; a++)
        space.is_block[a] = is_block(fine, a);
    for (uint32_t a = 0; a < space.n_atom; a++)
        space.may[a] = (uint8_t)flags_that_may(&space, a);
    if (!set_depths(&space, start, space.start))
        return err_set(err, STATUS_USAGE, "it looks more than %d units ahead", UINT8_MAX);
    if (!space_point(&space, start, space.start))
        return err_set(err, STATUS_USAGE, "its units are not made of whole blocks or halves");
    *out = space;
    return STATUS_OK;
}

void space_fix(struct space *space, uint32_t atom)
{
    space->may[atom] &= (uint8_t) ~(ATOM_JOINS | ATOM_ROOT);
    if (atom + 1 < space->n_atom)
        space->may[atom + 1] &= (uint8_t)~ATOM_JOINS;
}

/* Of what is not managed there is no unit. */
static uint16_t unit_of_param(const struct plan *plan, uint32_t param)
{
    for (uint32_t u = 0; u < plan->n_unit; u++)
        for (uint32_t i = 0; i < plan->units[u].n_param; i++)
            if (plan->unit_params[plan->units[u].param + i] == param)
                return (uint16_t)u;
    return NO_UNIT;
}

/* All of an atom's parameters are in one unit, which is returned; NO_UNIT where they are not. */
static uint16_t unit_around(const struct plan *plan, const struct plan *fine, uint32_t atom)
{
    const struct unit *unit = &fine->units[atom];
    const uint16_t around = unit_of_param(plan, fine->unit_params[unit->param]);

    for (uint32_t i = 1; i < unit->n_param; i++)
        if (unit_of_param(plan, fine->unit_params[unit->param + i]) != around)
            return NO_UNIT;
    return around;
}

static uint32_t unit_end(const struct space *space, const uint8_t *atoms, uint32_t a)
{
    do
        a++;
    while (a < space->n_atom && atoms[a] & ATOM_JOINS);
    return a;
}

uint32_t space_runs(const struct space *space, const uint8_t *point)
{
    const uint8_t *atoms = point + POINT_ATOMS;
    uint32_t runs = 0, n_before = 0;
    bool kept_before = false;

    for (uint32_t a = 0, end; a < space->n_atom; a = end) {
        end = unit_end(space, atoms, a);
        if (!space->is_block[a] || atoms[a] & ATOM_ROOT)
            continue;
        const bool keeps = space_keeps(space, point, a);
        runs += end - a != n_before || keeps != kept_before;
        n_before = end - a;
        kept_before = keeps;
    }
    return runs;
}

/* Of the atoms before one: whether the last is in the root, and whether any is. */
struct before {
    bool last, any;
};

static struct before behind(struct before before, uint8_t flags)
{
    const bool root = flags & ATOM_ROOT;
    return (struct before){.last = root, .any = before.any || root};
}

static struct before before_of(const uint8_t *atoms, uint32_t atom)
{
    struct before before = {false, false};
    for (uint32_t a = 0; a < atom; a++)
        before = behind(before, atoms[a]);
    return before;
}

bool space_point(const struct space *space, const struct plan *plan, uint8_t *point)
{
    const struct plan *fine = space->source.fine;
    uint8_t *atoms = point + POINT_ATOMS;
    uint16_t before = NO_UNIT, highest = 0;

    if (!set_depths(space, plan, point))
        return false;
    for (uint32_t a = 0; a < space->n_atom; a++) {
        const uint16_t unit = unit_around(plan, fine, a);
        const bool in_root = unit != NO_UNIT && plan_is_root(plan, unit);
        const bool joins = !in_root && unit == before;
        if (unit == NO_UNIT || (joins && !space->source.joins[a]) ||
            (!joins && !in_root && a > 0 && unit <= highest && before != NO_UNIT))
            return false;
        atoms[a] = joins ? ATOM_JOINS : in_root ? ATOM_ROOT : 0;
        if ((space->axes >> AXIS_RESHARD & 1) && !joins && !(in_root && before_of(atoms, a).any) &&
            !plan->units[unit].reshard_after_forward)
            atoms[a] |= ATOM_KEEPS;
        before = in_root ? NO_UNIT : unit;
        highest = unit > highest ? unit : highest;
    }
    return true;
}

static uint32_t last_unit(const struct space *space, const uint8_t *atoms)
{
    uint32_t a = space->n_atom;
    while (a > 0 && atoms[a - 1] & (ATOM_JOINS | ATOM_ROOT))
        a--;
    return a - 1;
}

/* Where no axis says so, as plan_resolve() decides it. */
bool space_keeps(const struct space *space, const uint8_t *point, uint32_t atom)
{
    const uint8_t *atoms = point + POINT_ATOMS;

    if (space->axes >> AXIS_RESHARD & 1)
        return atoms[atom] & ATOM_KEEPS;
    switch (space->source.fine->options.reshard) {
    case RESHARD_YES:
    case RESHARD_RANKS:
        return false;
    case RESHARD_NO:
        return true;
    case RESHARD_ALL_BUT_LAST:
        return atoms[atom] & ATOM_ROOT || atom == last_unit(space, atoms);
    default:
        return atoms[atom] & ATOM_ROOT;
    }
}

void space_plan(const struct space *space, const uint8_t *point, struct arena *arena,
                struct plan *out)
{
    const uint8_t *atoms = point + POINT_ATOMS;
    uint16_t *group_of = arena_take(arena, space->n_atom * sizeof *group_of), n = 0;
    bool any_root = false;

    for (uint32_t a = 0; a < space->n_atom; a++) {
        n += !(atoms[a] & (ATOM_JOINS | ATOM_ROOT));
        group_of[a] = atoms[a] & ATOM_ROOT ? MERGE_ROOT : (uint16_t)(n - 1);
    }
    plan_merge(&space->source, group_of, arena, out);
    if (space->axes >> AXIS_PREFETCH & 1) {
        out->options.prefetch = point[POINT_PREFETCH];
        out->options.prefetch_backward = point[POINT_PREFETCH_BACKWARD];
    }
    for (uint32_t a = 0; a < space->n_atom; a++) {
        const bool root = atoms[a] & ATOM_ROOT;
        const uint32_t unit = root ? 0 : group_of[a] + (uint32_t)out->has_root;
        if (!(atoms[a] & ATOM_JOINS) && !(root && any_root))
            out->units[unit].reshard_after_forward = !space_keeps(space, point, a);
        any_root |= root;
    }
}

uint32_t space_units(const struct space *space, const uint8_t *point)
{
    uint32_t n = 0, root = 0;

    for (uint32_t a = 0; a < space->n_atom; a++) {
        root |= (point[POINT_ATOMS + a] & ATOM_ROOT) != 0;
        n += !(point[POINT_ATOMS + a] & (ATOM_JOINS | ATOM_ROOT));
    }
    return n + root;
}

/* What an atom may be, given those before it. */
static bool is_valid(const struct space *space, uint32_t a, struct before before, uint8_t flags)
{
    const uint8_t fixed = (uint8_t)~space->may[a] & (ATOM_JOINS | ATOM_ROOT);

    if (((flags ^ space->start[POINT_ATOMS + a]) & fixed) != 0 ||
        (flags & ATOM_KEEPS & ~space->may[a]) != 0)
        return false;
    if (flags & ATOM_JOINS)
        return flags == ATOM_JOINS && a > 0 && !before.last;
    return (flags & (ATOM_ROOT | ATOM_KEEPS)) != (ATOM_ROOT | ATOM_KEEPS) || !before.any;
}

enum { ANY_FLAGS = (ATOM_JOINS | ATOM_ROOT | ATOM_KEEPS) + 1 };

/* The first valid flags of these or higher ones, or ANY_FLAGS. */
static unsigned valid_from(const struct space *space, uint32_t a, struct before before,
                           unsigned flags)
{
    while (flags < ANY_FLAGS && !is_valid(space, a, before, (uint8_t)flags))
        flags++;
    return flags;
}

static void fill_from(const struct space *space, uint8_t *atoms, uint32_t a)
{
    struct before before = before_of(atoms, a);
    for (; a < space->n_atom; a++) {
        atoms[a] = (uint8_t)valid_from(space, a, before, 0);
        before = behind(before, atoms[a]);
    }
}

void space_first(const struct space *space, uint8_t *point)
{
    memcpy(point, space->start, POINT_ATOMS);
    if (space->axes >> AXIS_PREFETCH & 1)
        memset(point, 0, POINT_ATOMS);
    fill_from(space, point + POINT_ATOMS, 0);
}

static bool next_prefetch(const struct space *space, uint8_t *point)
{
    if (!(space->axes >> AXIS_PREFETCH & 1))
        return false;
    for (unsigned i = 0; i < POINT_ATOMS; i++) {
        if (point[i]++ < SPACE_MAX_PREFETCH)
            return true;
        point[i] = 0;
    }
    return false;
}

bool space_next(const struct space *space, uint8_t *point)
{
    uint8_t *atoms = point + POINT_ATOMS;

    if (next_prefetch(space, point))
        return true;
    for (uint32_t a = space->n_atom; a-- > 0;) {
        const unsigned next = valid_from(space, a, before_of(atoms, a), atoms[a] + 1u);
        if (next == ANY_FLAGS)
            continue;
        atoms[a] = (uint8_t)next;
        fill_from(space, atoms, a + 1);
        return true;
    }
    return false;
}

/* Ways to go on from an atom, by what those before it leave; from the last one back. */
double space_size(const struct space *space)
{
    double ways[2][2] = {{1, 1}, {1, 1}}; /* last, any */

    for (uint32_t a = space->n_atom; a-- > 0;) {
        double here[2][2] = {{0}};
        for (unsigned i = 0; i < 4; i++)
            for (unsigned flags = 0; flags < ANY_FLAGS; flags++) {
                const struct before before = {.last = i >> 1, .any = i & 1};
                const struct before after = behind(before, (uint8_t)flags);
                if (is_valid(space, a, before, (uint8_t)flags))
                    here[before.last][before.any] += ways[after.last][after.any];
            }
        memcpy(ways, here, sizeof ways);
    }
    const double depths = SPACE_MAX_PREFETCH + 1;
    return ways[0][0] * (space->axes >> AXIS_PREFETCH & 1 ? depths * depths : 1);
}
