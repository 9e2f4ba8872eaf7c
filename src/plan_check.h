/*
 * Switches that a resolved plan's units do not allow, found once the units are known.
 */
#ifndef SRC_PLAN_CHECK_H
#define SRC_PLAN_CHECK_H

#include "src/plan.h"

/* STATUS_USAGE or STATUS_NO with the unit or parameter that stands against it. */
enum status plan_check(const struct plan *plan, struct arena *arena, struct err *err);

/* The same of another plan of a model and options for which all was checked: of its units alone. */
enum status plan_check_units(const struct plan *plan, struct arena *arena, struct err *err);

/* Whether some unit's forward begins, or ends, with the segment: where hooks cast. */
bool plan_unit_begins(const struct plan *plan, uint32_t segment);
bool plan_unit_ends(const struct plan *plan, uint32_t segment);

#endif
