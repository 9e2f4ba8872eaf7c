/*
 * What one unit costs in a step, read off a program in which it occurs: times by stream and
 * communicator, and bytes that are alive when its gradients are packed.
 *
 * Of a program that sim/judge.h built, and of FSDP2, whose units launch the same tasks whatever the
 * others are; so that sums over units hold for programs that nobody built (sim/bounds.h).
 */
#ifndef SIM_UNIT_COST_H
#define SIM_UNIT_COST_H

#include "sim/cost.h"

/* One unit in a step, whatever the others are. */
struct unit_cost {
    int64_t compute_ns;      /* on stream C */
    int64_t comm_ns[COMM_N]; /* on other streams */
    int64_t gather_ns;       /* copied in and gathered for the first time */
    int64_t finish_ns;       /* reduced and cast once its gradients are packed for the last time */
    bool may_finish;         /* nothing before it carries a gradient, so that it may be the last */
    uint64_t left_bytes;     /* what its forward leaves for backward */
    uint64_t out_bytes;      /* its output, where that is not freed earlier */
    uint64_t packing_bytes;  /* its gradients, and the largest packed ones */
    uint64_t reduced_bytes, full_bytes;
};

/* unit: NO_UNIT is what belongs to none, of which there are only times. */
void unit_cost_read(const struct program *program, const struct prices *prices, uint32_t unit,
                    struct unit_cost *out);

#endif
