/*
 * What fully_shard has to be called with to get the units of a plan: modules, and never a container
 * that has no forward of its own.
 *
 * Outermost modules whose parameters are the unit's, of units inside of it, or of nobody, in
 * registration order; so that a unit with others inside of it is the module around them, and not what
 * is left of it (src/plan_modules.h). In place of a list of modules stand its members. Invariant: called
 * for inner units before outer ones, and for the model last, fully_shard manages in each call what the
 * unit owns, in the same order. The root is no such call: it is the model itself.
 */
#ifndef SRC_PLAN_CALLS_H
#define SRC_PLAN_CALLS_H

#include "src/plan_modules.h"

/* unit: of several groups the first, which stands for all; not the root. */
void plan_call_modules(const struct plan *plan, uint32_t unit, struct arena *arena,
                       struct unit_modules *out);

#endif
