/*
 * The plans that a search tries: a fine plan, and what may vary of it.
 *
 * A point says for each atom (a unit of the fine plan, in order) whether it begins a unit, joins the
 * one before or goes to the root, and of each unit whether it keeps its parameters from forward to
 * backward; and how many units ahead prefetching looks. Points are small integers, so that they are
 * made, compared and told apart without a plan.
 *
 * Invariants of a point: who joins can, and so can the atom before, which is not in the root; what must
 * go to the root is in it, and nothing that may not; only a unit's first atom keeps anything. What an
 * axis that is off would vary is as the start has it; depths of prefetching are then those of the fine
 * plan's options. Equal plans are equal points.
 */
#ifndef SIM_SPACE_H
#define SIM_SPACE_H

#include "src/plan_merge.h"
#include "src/text.h"

/* X(ENUM, name, what varies) */
#define AXES(X)                                                                        \
    X(GROUPING, "grouping", "how blocks are put together to units, uneven ones too")   \
    X(TAIL, "tail", "embedding, last norm and head: units, with a neighbour, or root") \
    X(RESHARD, "reshard", "of each unit, whether parameters are freed after forward")  \
    X(PREFETCH, "prefetch", "how many units ahead, forward and backward")

enum axis {
#define X(id, name, what) AXIS_##id,
    AXES(X)
#undef X
        AXIS_N
};
enum { AXES_ALL = (1 << AXIS_N) - 1 };

/* KEEPS is there where axis reshard is on; else the plan's option says what is kept. */
enum atom_flags { ATOM_JOINS = 1, ATOM_ROOT = 2, ATOM_KEEPS = 4 };

/* Bytes of a point: the depths of prefetching, as in struct plan_options, then the flags of atoms. */
enum { POINT_PREFETCH, POINT_PREFETCH_BACKWARD, POINT_ATOMS };
enum { SPACE_MAX_PREFETCH = 2 };

struct space {
    struct merge_source source;
    uint32_t n_atom, point_bytes;
    unsigned axes;  /* bits */
    uint8_t *may;   /* by atom: the flags that vary */
    uint8_t *start; /* a point */
    bool *is_block; /* by atom: of a block, whole or half */
};

/*
 * fine: resolved, its units as small as they may become, and it outlives the space; start: a coarser
 * plan of the same model, or fine itself. STATUS_USAGE where units cannot be joined, or the start is
 * not made of those of fine or looks farther ahead than a point can say.
 */
enum status space_init(const struct plan *fine, const struct plan *start, unsigned axes,
                       struct arena *arena, struct space *out, struct err *err);

/* The atom's place stays as it is at the start, on either side; what it keeps may still vary. */
void space_fix(struct space *space, uint32_t atom);

/* The point of a plan that is made of units of fine; false where it is none of this space. */
bool space_point(const struct space *space, const struct plan *plan, uint8_t *point);

/* The plan of a point. */
void space_plan(const struct space *space, const uint8_t *point, struct arena *arena,
                struct plan *out);

/* Whether the unit that begins with the atom keeps its parameters from forward to backward; of the
   root the first atom of it says so. */
bool space_keeps(const struct space *space, const uint8_t *point, uint32_t atom);

/* Units of a point, the root included. */
uint32_t space_units(const struct space *space, const uint8_t *point);

/* Runs of equal units, one behind the other: 1 is a model cut evenly, ends apart. */
uint32_t space_runs(const struct space *space, const uint8_t *point);

/* How many points there are; a double, since it soon passes 2^64. */
double space_size(const struct space *space);

/* One point after the other: the first, and the next one or false after the last. */
void space_first(const struct space *space, uint8_t *point);
bool space_next(const struct space *space, uint8_t *point);

/*
 * Points that a search begins with, n of them in a row in the arena: blocks in equal units of every
 * size, ends in each kind of place, units that keep all, one or nothing.
 */
uint32_t space_seeds(const struct space *space, struct arena *arena, uint8_t **out);

/*
 * Points one step from this one, same shape of an answer: a border made, removed or moved by an atom, an end
 * in another place, a unit that keeps its parameters or no longer, another depth of prefetching.
 */
uint32_t space_neighbours(const struct space *space, const uint8_t *point, struct arena *arena,
                          uint8_t **out);

/*
 * A point in words: what is in the root, then the units in order, equal ones counted: "root(emb) 16x2
 * norm+head" is 16 units of two blocks and one of the last norm and the head. Halves of blocks are
 * counted as .5; k behind a unit: it keeps its parameters.
 */
void space_text(const struct space *space, const uint8_t *point, struct text *out);

#endif
