/*
 * Neighbouring units of a plan joined into fewer: what a search tries.
 *
 * A fine plan is resolved once, with names, patterns and all that can be wrong with them; a coarse
 * one is then made of it without a look at any text. Invariant: in everything but names it is the
 * plan that plan_resolve() makes of the same modules as lists (tests/plan_merge.c).
 *
 * Units that join lie one behind the other. A unit whose segments are not neighbours, as embedding
 * and head that share a weight, stays alone or goes to the root, where any unit may go.
 */
#ifndef SRC_PLAN_MERGE_H
#define SRC_PLAN_MERGE_H

#include "src/plan.h"

#define MERGE_ROOT UINT16_MAX

/* A plan whose units can be joined, with what that needs to know of it; in the arena. */
struct merge_source {
    const struct plan *fine;
    uint32_t *rank; /* by parameter: where its system finds it */
    bool *joins;    /* by unit: its segments are neighbours, and it is not the root */
};

/*
 * STATUS_USAGE with the unit that cannot be joined: it lies inside another one, is on a second mesh,
 * or has a switch of its own.
 */
enum status merge_source_init(const struct plan *fine, struct arena *arena,
                              struct merge_source *out, struct err *err);

/*
 * group_of, by unit of fine: 0 first, the same as that of the unit before or one more, those in the
 * root apart; MERGE_ROOT, and always for the root of fine. Units are resharded after forward, but the
 * root; who wants another one changes units[].reshard_after_forward. Everything lives in the arena,
 * but for what is of the fine plan. What rules forbid of the units together is for plan_check().
 */
void plan_merge(const struct merge_source *source, const uint16_t *group_of, struct arena *arena,
                struct plan *out);

#endif
