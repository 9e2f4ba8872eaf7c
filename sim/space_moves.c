/*
 * From where a search begins and where it can go from a point; see space.h.
 *
 * A move changes flags without care and settle() makes a point of it again, or the same as before.
 */
#include <string.h>

#include "sim/space.h"

struct points {
    const struct space *space;
    struct arena *arena;
    uint8_t *at;
    uint32_t n, cap;
};

/* What may not vary as the start has it; nothing joins what is not there; one atom of a unit keeps. */
static void settle(const struct space *space, uint8_t *point)
{
    const uint8_t *start = space->start + POINT_ATOMS;
    uint8_t *atoms = point + POINT_ATOMS;
    bool any_root = false;

    if (!(space->axes >> AXIS_PREFETCH & 1))
        memcpy(point, space->start, POINT_ATOMS);
    for (uint32_t a = 0; a < space->n_atom; a++) {
        const uint8_t may = space->may[a];
        uint8_t flags = (uint8_t)((atoms[a] & may) | (start[a] & ~may));
        if (flags & ATOM_ROOT)
            flags &= (uint8_t)~ATOM_JOINS;
        if (a > 0 && atoms[a - 1] & ATOM_ROOT)
            flags &= (uint8_t)~ATOM_JOINS;
        if (flags & ATOM_JOINS || (flags & ATOM_ROOT && any_root))
            flags &= (uint8_t)~ATOM_KEEPS;
        any_root |= (flags & ATOM_ROOT) != 0;
        atoms[a] = flags;
    }
}

/* Room for one more, to be filled in; it counts once it is kept. */
static uint8_t *next_point(struct points *points, const uint8_t *from)
{
    const uint32_t bytes = points->space->point_bytes;

    points->at = arena_grow(points->arena, points->at, &points->cap, points->n + 1, bytes);
    uint8_t *point = points->at + (size_t)points->n * bytes;
    memcpy(point, from, bytes);
    return point;
}

static void keep_point(struct points *points, uint8_t *point, const uint8_t *unless)
{
    settle(points->space, point);
    if (!unless || memcmp(point, unless, points->space->point_bytes) != 0)
        points->n++;
}

/* ---- seeds -------------------------------------------------------------------------------------- */

enum ends { ENDS_AS_START, ENDS_ALONE, ENDS_WITH_NEIGHBOURS, ENDS_IN_ROOT, ENDS_N };
enum keeps { KEEPS_ROOT, KEEPS_LAST, KEEPS_ALL, KEEPS_N };

/* The first block has its place too: with the embedding before it or not. */
static void place_ends(const struct space *space, uint8_t *atoms, enum ends ends)
{
    for (uint32_t a = 0; a < space->n_atom; a++) {
        const bool follows_end = a > 0 && !space->is_block[a - 1];
        if (ends == ENDS_AS_START || (space->is_block[a] && !follows_end))
            continue;
        if (ends == ENDS_IN_ROOT)
            atoms[a] = space->is_block[a] ? 0 : ATOM_ROOT;
        else
            atoms[a] = ends == ENDS_WITH_NEIGHBOURS && a > 0 ? ATOM_JOINS : 0;
    }
}

static void group_blocks(const struct space *space, uint8_t *atoms, uint32_t per_unit)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < space->n_atom; a++)
        if (space->is_block[a] && n++ % per_unit != 0)
            atoms[a] |= ATOM_JOINS;
        else if (space->is_block[a] && n > 1)
            atoms[a] &= (uint8_t)~ATOM_JOINS;
}

static void set_keeps(const struct space *space, uint8_t *point, enum keeps keeps)
{
    uint8_t *atoms = point + POINT_ATOMS;
    uint32_t last = 0;

    settle(space, point);
    for (uint32_t a = 0; a < space->n_atom; a++) {
        const bool begins = !(atoms[a] & (ATOM_JOINS | ATOM_ROOT));
        last = begins ? a : last;
        atoms[a] &= (uint8_t)~ATOM_KEEPS;
        if (keeps == KEEPS_ALL || atoms[a] & ATOM_ROOT)
            atoms[a] |= ATOM_KEEPS;
    }
    if (keeps == KEEPS_LAST)
        atoms[last] |= ATOM_KEEPS;
}

/* Where an axis is off, its variants are the same points. */
static unsigned variants(const struct space *space, enum axis axis, unsigned n)
{
    return space->axes >> axis & 1 ? n : 1;
}

static void seed(struct points *points, uint32_t per_unit, enum ends ends, enum keeps keeps)
{
    uint8_t *point = next_point(points, points->space->start);

    if (points->space->axes >> AXIS_PREFETCH & 1)
        memset(point, 0, POINT_ATOMS);
    group_blocks(points->space, point + POINT_ATOMS, per_unit);
    place_ends(points->space, point + POINT_ATOMS, ends);
    set_keeps(points->space, point, keeps);
    keep_point(points, point, NULL);
}

uint32_t space_seeds(const struct space *space, struct arena *arena, uint8_t **out)
{
    struct points points = {.space = space, .arena = arena};
    uint32_t n_block = 0;

    for (uint32_t a = 0; a < space->n_atom; a++)
        n_block += space->is_block[a];
    keep_point(&points, next_point(&points, space->start), NULL);
    for (uint32_t k = 1; k <= variants(space, AXIS_GROUPING, n_block); k++)
        for (unsigned ends = 0; ends < variants(space, AXIS_TAIL, ENDS_N); ends++)
            for (unsigned keeps = 0; keeps < variants(space, AXIS_RESHARD, KEEPS_N); keeps++)
                seed(&points, k, (enum ends)ends, (enum keeps)keeps);
    *out = points.at;
    return points.n;
}

/* ---- neighbours --------------------------------------------------------------------------------- */

/* What the unit of an atom keeps, said by its first one. */
static uint8_t keeps_of_unit(const uint8_t *atoms, uint32_t a)
{
    while (a > 0 && atoms[a] & ATOM_JOINS)
        a--;
    return atoms[a] & ATOM_KEEPS;
}

/* A border before the atom is made or removed; the new unit keeps what the old one did. */
static void toggle_border(uint8_t *atoms, uint32_t a)
{
    const uint8_t keeps = keeps_of_unit(atoms, a);
    atoms[a] = atoms[a] & ATOM_JOINS ? keeps : ATOM_JOINS;
}

static void move_borders(struct points *points, const uint8_t *from, uint32_t a)
{
    for (int by = -1; by <= 1; by += 2) {
        const uint32_t to = a + (uint32_t)by;
        const uint8_t *atoms = from + POINT_ATOMS;
        if (a == 0 || to == 0 || to >= points->space->n_atom ||
            atoms[a] & (ATOM_JOINS | ATOM_ROOT) || !(atoms[to] & ATOM_JOINS))
            continue;
        uint8_t *point = next_point(points, from);
        point[POINT_ATOMS + to] = from[POINT_ATOMS + a];
        point[POINT_ATOMS + a] = ATOM_JOINS;
        keep_point(points, point, from);
    }
}

static void change_atom(struct points *points, const uint8_t *from, uint32_t a)
{
    const uint8_t may = points->space->may[a];

    if (may & ATOM_JOINS) {
        uint8_t *point = next_point(points, from);
        toggle_border(point + POINT_ATOMS, a);
        keep_point(points, point, from);
        move_borders(points, from, a);
    }
    if (may & ATOM_ROOT) { /* the root keeps what it has, unless somebody says otherwise */
        uint8_t *point = next_point(points, from);
        point[POINT_ATOMS + a] = from[POINT_ATOMS + a] & ATOM_ROOT ? 0 : ATOM_ROOT | ATOM_KEEPS;
        keep_point(points, point, from);
    }
    if (may & ATOM_KEEPS) {
        uint8_t *point = next_point(points, from);
        point[POINT_ATOMS + a] ^= ATOM_KEEPS;
        keep_point(points, point, from);
    }
}

static void change_prefetch(struct points *points, const uint8_t *from)
{
    for (unsigned i = 0; i < POINT_ATOMS; i++)
        for (uint8_t depth = 0; depth <= SPACE_MAX_PREFETCH; depth++) {
            uint8_t *point = next_point(points, from);
            point[i] = depth;
            keep_point(points, point, from);
        }
}

uint32_t space_neighbours(const struct space *space, const uint8_t *point, struct arena *arena,
                          uint8_t **out)
{
    struct points points = {.space = space, .arena = arena};

    for (uint32_t a = 0; a < space->n_atom; a++)
        change_atom(&points, point, a);
    change_prefetch(&points, point);
    *out = points.at;
    return points.n;
}
