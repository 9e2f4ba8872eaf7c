/*
 * From drafts to units: who owns which parameter, and the order of compute as segments.
 *
 * Refuses what bodies or schedule could not run: a unit that owns nothing or lies in two others, a
 * border inside a piece, a block that is cut under checkpointing.
 */
#ifndef SRC_PLAN_CUT_H
#define SRC_PLAN_CUT_H

#include "src/plan.h"
#include "src/plan_units.h"

/* Fills units, segments, unit_params, inner_units, grad_places and has_root. Reads model, options and
   policy. */
enum status plan_cut(struct plan *plan, const struct unit_drafts *drafts, struct arena *arena,
                     struct err *err);

#endif
