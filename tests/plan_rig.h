#ifndef TESTS_PLAN_RIG_H
#define TESTS_PLAN_RIG_H
/*
 * What tests of plans share: a small model, files of units, and plans that have to resolve.
 */
#include "src/plan.h"

struct plan_rig {
    struct arena arena; /* of plans and texts; may be reset */
    struct arena model_arena;
    struct model small; /* llama3-8b cut to 3 blocks: 30 parameters */
    char file[32];      /* in the build folder */
};

void plan_rig_init(struct plan_rig *rig);
void plan_rig_release(struct plan_rig *rig);

/* Defaults but for the units. */
struct plan_options plan_rig_options(const char *units);
/* Ends the test where it fails. */
struct plan plan_rig_resolve(struct plan_rig *rig, const struct model *model,
                             const struct plan_options *options);
/* Writes the rig's file with " for each '; returns "@FILE". */
const char *plan_rig_write(struct plan_rig *rig, const char *text);

#endif
