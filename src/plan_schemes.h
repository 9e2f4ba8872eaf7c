/*
 * The named ways to cut a model into units (spec FSDP2 section 0.3).
 */
#ifndef SRC_PLAN_SCHEMES_H
#define SRC_PLAN_SCHEMES_H

#include "src/plan_units.h"

/* Makes the scheme's drafts; *found is false, and nothing is done, where text names no scheme. */
enum status plan_scheme_draft(const struct model *model, const char *text, struct arena *arena,
                              struct unit_drafts *drafts, bool *found, struct err *err);

/* The module of a block: the innermost one that holds all parameters of the layer. */
uint32_t plan_block_module(const struct model *model, uint32_t layer);

/* For hints and help; "block*K" stands for all K. */
extern const char *const plan_scheme_names[];
extern const uint32_t n_plan_schemes;

#endif
