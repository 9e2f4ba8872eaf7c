/*
 * The modules of a unit: what fully_shard was called with, found again from what the unit owns.
 *
 * Outermost modules of which the unit owns every parameter, in registration order; with the module
 * of a head whose weight is the embedding's, where the unit owns that. Of a unit with others inside
 * of it these are the modules that are left of its own.
 */
#ifndef SRC_PLAN_MODULES_H
#define SRC_PLAN_MODULES_H

#include "src/plan.h"
#include "src/text.h"

struct unit_modules {
    uint32_t *modules; /* ids, in the arena */
    uint32_t n;
};

void plan_unit_modules(const struct plan *plan, uint32_t unit, struct arena *arena,
                       struct unit_modules *out);

/* All units as text for --units: a JSON list of lists of paths, the root left out; or a scheme. */
void plan_units_text(const struct plan *plan, struct arena *arena, struct text *out);

#endif
