/*
 * A plan: how a model is cut into FSDP units and run, with every name resolved.
 *
 * It fixes all that the program depends on and holds no rate of any cluster: the world, the shapes
 * of a step, the units with their parameters, the order of compute as segments, and the switches of
 * fully_shard. Invariants: each parameter is in exactly one unit; each segment computes with the
 * parameters of one unit; units are in the order of their first segment, outer before inner; the
 * root, where it owns parameters, is unit 0.
 */
#ifndef SRC_PLAN_H
#define SRC_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "src/body.h"
#include "src/model.h"

enum { PLAN_MAX_UNITS = 65534, PLAN_MAX_RANKS = 1 << 20, PLAN_MAX_ACCUM = 1024 };
/* Segments times microbatches: a program is unrolled. */
enum { PLAN_MAX_UNROLLED = 1 << 18 };
#define NO_UNIT UINT16_MAX

enum reshard { RESHARD_AUTO, RESHARD_YES, RESHARD_NO, RESHARD_ALL_BUT_LAST, RESHARD_N };

/* What a person asks for; see plan_options_default(). */
struct plan_options {
    uint64_t gpus, nodes;  /* nodes 0: gpus / 8, rounded up */
    uint64_t seq;          /* 0: the model's */
    uint64_t batch, accum; /* sequences per microbatch and rank; microbatches per step */
    const char *units;     /* scheme, comma-separated patterns, or @FILE.json: src/plan_units.h */
    enum reshard reshard;
    uint64_t prefetch, prefetch_backward; /* 0: implicit; k: explicit lists of depth k */
    enum checkpointing ac;
    enum ops_profile ops;
    enum norm_kind norm;
    struct policy_options policy;
    uint64_t workspace_bytes; /* of the matrix library, one per host thread that uses it */
};
struct plan_options plan_options_default(void);

struct unit {
    const char *name;
    uint32_t param, n_param; /* in plan.unit_params, registration order */
    /*
     * The span of its hooks in forward order: all that its modules compute, inner units included;
     * of the root everything. Which segments are its own says segment.unit.
     */
    uint32_t first_segment, last_segment;
    uint16_t outer; /* the innermost unit around it, or NO_UNIT */
    bool reshard_after_forward;
    bool input_has_grad; /* else its post_backward waits for the end of backward */
};

struct segment {
    uint16_t unit;
    uint16_t layer;
    uint8_t kind;   /* enum body_kind, never LOSS */
    uint32_t piece; /* of the model: the one it is, or the first of a block */
    uint32_t grad;  /* in plan.grad_member: for grad slot i of the body, the member of the unit */
};

struct plan {
    const struct model *model;
    struct plan_options options; /* with every default filled in */
    uint64_t world, gpus_per_node;
    const struct param_policy *policy;    /* by parameter of the model */
    enum dtype param_dtype, reduce_dtype; /* of most; policy has each parameter's own */
    struct unit *units;
    struct segment *segments; /* forward order */
    uint32_t *unit_params;    /* parameter ids */
    uint32_t *grad_member;
    uint32_t n_unit, n_segment;
    bool has_root; /* unit 0 is the root; a root without parameters is not in units */
};

/*
 * Resolve. STATUS_USAGE with the pattern and the nearest names: a pattern that matches nothing, a
 * parameter in two units, a unit without parameters, a cut through a piece, a block that is cut
 * under full checkpointing, zero counts, gpus that nodes do not divide. STATUS_INPUT for a file.
 */
enum status plan_resolve(const struct model *model, const struct plan_options *options,
                         struct arena *arena, struct plan *out, struct err *err);

/* The bodies' view of the plan. */
struct body_options plan_body_options(const struct plan *plan);

/* Index of a segment's pair. */
static inline uint32_t segment_pair(const struct body_table *bodies, const struct segment *segment)
{
    return (segment->kind == BODY_BLOCK ? bodies->of_block : bodies->of_piece)[segment->piece];
}

#endif
