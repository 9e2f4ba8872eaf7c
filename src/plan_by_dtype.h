/*
 * Arrangement by-dtype: units that mix compute dtypes are cut further, until each has one.
 *
 * After NVIDIA AutoModel's wrapper (spec FSDP2 section 8): of a unit's dtypes the one with most
 * elements keeps the unit; of every other one each maximal subtree of modules that is all of it
 * becomes a unit inside. A parameter that stands beside one of another dtype in the same module
 * cannot be parted from it, and is named.
 */
#ifndef SRC_PLAN_BY_DTYPE_H
#define SRC_PLAN_BY_DTYPE_H

#include "src/plan.h"
#include "src/plan_units.h"

/* Adds drafts; reads model and policy. STATUS_NO with two parameters that cannot be parted. */
enum status plan_by_dtype(const struct plan *plan, struct arena *arena, struct unit_drafts *drafts,
                          struct err *err);

#endif
