/*
 * Whether parameters may share a unit: the rules of each behavior on storage, compute and reduce
 * dtypes, and which arrangements of a mixed model it can execute.
 *
 * Source: spec FSDP2 0.1 (eligible unit, arrangements) and table (c). A rule that is broken is
 * named, never bent: no weight is cast up and no reduce dtype changed to make something fit.
 */
#ifndef SRC_ELIGIBLE_H
#define SRC_ELIGIBLE_H

#include "src/policy.h"
#include "src/text.h"

/* How parameters of several compute dtypes come into units: spec FSDP2 0.1. X(ENUM, name) */
#define ARRANGES(X)         \
    X(NATIVE, "native")     \
    X(BY_DTYPE, "by-dtype") \
    X(PRECAST, "precast")

enum arrange {
#define X(id, name) ARRANGE_##id,
    ARRANGES(X)
#undef X
        ARRANGE_N
};
const char *arrange_name(enum arrange arrange);

/* What is looked at: the managed parameters of one unit. */
struct eligible_unit {
    const char *name;
    const struct model *model;
    const struct param_policy *policy; /* by parameter of the model */
    const uint32_t *params;
    uint32_t n_param;
};

/* Why the behavior cannot execute the arrangement at all, or NULL. */
const char *eligible_arrange(enum behavior behavior, enum arrange arrange);

/* One line for each rule that the unit breaks, without newline at the end; 0: none is broken. */
uint32_t eligible_unit(const struct eligible_unit *unit, enum behavior behavior,
                       enum arrange arrange, struct text *out);

#endif
