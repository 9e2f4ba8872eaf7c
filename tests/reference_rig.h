#ifndef TESTS_REFERENCE_RIG_H
#define TESTS_REFERENCE_RIG_H
/*
 * The reference (tests/reference/) for a plan of the product: the same sizes, ranks, microbatches and
 * dtypes, and the recorded cases' rule for what parameters start as and tokens are.
 */
#include "src/plan.h"
#include "tests/reference/reference.h"

/* [microbatch][rank] throughout. */
struct reference_rig {
    const struct plan *plan;
    struct reference reference;
    struct ref_step step; /* the loss factor is 1: the loss of a microbatch is not divided */
    struct ref_batch *batches;
    struct ref_result *results;
    struct arena arena;
};

/* exact: no rounding; else that of the plan's dtypes. Ends the test where the product's parameters
   are not the reference's, or the family has none. */
void reference_rig_init(struct reference_rig *rig, const struct plan *plan, bool exact);
void reference_rig_release(struct reference_rig *rig);

/* Parameters are those of the start, moments zero. */
void reference_rig_restart(struct reference_rig *rig);
/* Forward and backward of this step, from 0; returns the norm of all gradients. Fills in tokens and
   labels; the input of a model without a vocabulary is the caller's. */
double reference_rig_run(struct reference_rig *rig, uint64_t step);

#endif
