/*
 * The state of a cut while it is made: what plan_cut.c finds and plan_refuse.c judges. Internal to
 * the two.
 *
 * The root counts as the draft after the last one, so that every module has an owner.
 */
#ifndef SRC_PLAN_CUT_INNER_H
#define SRC_PLAN_CUT_INNER_H

#include "src/plan_cut.h"

enum { MESH_N = 2 }; /* the plan's, and the second */

/* What is known of one draft while it becomes a unit. */
struct cut_unit {
    uint32_t n_param;                     /* managed ones */
    uint32_t outer, other_outer;          /* drafts around its modules: one, if all is well */
    uint32_t first_segment, last_segment; /* of all that is inside its modules */
    uint32_t n_module, shown[3], last;    /* its outermost modules, for the name */
    bool in_a_row;                        /* they are neighbours under one parent */
    uint32_t on_mesh[MESH_N];             /* managed parameters */
    uint8_t first_mesh;                   /* that of its first one */
    uint16_t unit[MESH_N];                /* in plan.units, NO_UNIT where there is none (yet) */
};

struct cut {
    struct plan *plan;
    const struct model *model;
    const struct unit_drafts *drafts;
    struct arena *arena;
    struct cut_unit *units; /* one for each draft and the root's */
    uint32_t *module_owner; /* draft */
    uint32_t *order;        /* parameters as fully_shard finds them */
    uint8_t *mesh;          /* of a parameter */
    uint32_t *piece_owner;  /* draft: the one around all others that own parameters of it */
    uint32_t *segment_end;  /* one past its last in model.piece_params */
    uint32_t cap_inner;
    uint32_t *first_segment_of; /* of a parameter: that computes with it, the head's of a tied */
    uint32_t *last_segment_of;  /* weight included */
};

static inline uint32_t cut_root(const struct cut *cut)
{
    return cut->drafts->n_draft;
}

static inline uint32_t cut_owner(const struct cut *cut, uint32_t param)
{
    return cut->module_owner[cut->model->params[param].module];
}

/* Whether a draft is around another one, or the same. */
static inline bool cut_is_around(const struct cut *cut, uint32_t outer, uint32_t draft)
{
    while (draft != outer && draft != cut_root(cut))
        draft = cut->units[draft].outer;
    return draft == outer;
}

static inline bool cut_is_managed(const struct cut *cut, uint32_t param)
{
    return cut->plan->policy[param].managed;
}

/* The unit of a parameter, once it has a place. */
static inline uint16_t cut_unit_of(const struct cut *cut, uint32_t param)
{
    return cut->units[cut_owner(cut, param)].unit[cut->mesh[param]];
}

/* Of a unit's groups the first one. */
static inline uint16_t cut_first_unit(const struct cut *cut, uint32_t draft)
{
    const struct cut_unit *unit = &cut->units[draft];
    return unit->unit[unit->first_mesh];
}

/* plan_cut.c */
const char *cut_unit_name(const struct cut *cut, uint32_t draft);

/* plan_refuse.c: in each of these a complaint is about the draft that is to blame. */
/* Units as sets of modules, once each parameter has an owner; and the model as it is. */
enum status cut_refuse_units(const struct cut *cut, struct err *err);
/* A border inside of the piece, whose first parameter and this one have two owners. */
enum status cut_fail_piece(const struct cut *cut, uint32_t piece, uint32_t param, struct err *err);
/* Regions that are recomputed as a whole, once each piece has an owner. */
enum status cut_refuse_regions(const struct cut *cut, struct err *err);

#endif
