/*
 * The policy: how each parameter is stored, computed with, differentiated and reduced.
 *
 * It comes from MixedPrecisionPolicy (param_dtype, reduce_dtype and per-parameter overrides), from
 * requires_grad and ignored_params, and from what the model is known to leave without a gradient.
 * One entry for each parameter of the model, in the model's order. It knows no unit and no rank.
 *
 * Invariants: what is not managed or not trainable has no gradient; compute is FP32, BF16 or FP16;
 * a shard dimension is one that the parameter has. Source of the dtypes: spec FSDP2 0.1 and 3.1.
 */
#ifndef SRC_POLICY_H
#define SRC_POLICY_H

#include "src/model.h"

/*
 * Which PyTorch is modelled. torch-2.15 is main of October 2026, in which autograd yields gradients
 * in the reduce dtype; the release 2.15.0 leaves them in the compute dtype until they accumulate,
 * and casts while it packs. X(ENUM, name)
 */
#define BEHAVIORS(X)                    \
    X(TORCH_2_11, "torch-2.11")         \
    X(TORCH_2_15, "torch-2.15")         \
    X(TORCH_2_15_0, "torch-2.15.0")     \
    X(TORCH_PR196626, "torch-pr196626") \
    X(UNSHARD, "unshard")

enum behavior {
#define X(id, name) BEHAVIOR_##id,
    BEHAVIORS(X)
#undef X
        BEHAVIOR_N
};
const char *behavior_name(enum behavior behavior);

struct policy_options {
    enum behavior behavior;
    enum dtype storage, param, reduce; /* storage is of all parameters */
    const char *keep_fp32;   /* patterns of names that compute in FP32; NULL: the family's own */
    const char *freeze;      /* patterns: requires_grad False; NULL: none */
    const char *ignore;      /* patterns: ignored_params of fully_shard; NULL: none */
    const char *shard_dim;   /* PATTERN=DIM,…: Shard(DIM); NULL: all along dimension 0 */
    const char *second_mesh; /* patterns that shard_placement_fn puts on another mesh; NULL: none */
};
struct policy_options policy_options_default(void);

struct param_policy {
    uint8_t storage, compute, grad, reduce; /* enum dtype; grad: what autograd yields */
    uint8_t shard_dim;
    bool managed;  /* false: ignored by fully_shard, each rank has all of it */
    bool has_grad; /* false: frozen, ignored, or without influence on the loss */
    bool trainable;
    bool second_mesh; /* of the same ranks, but with communicators of its own */
};

/* STATUS_USAGE with the pattern where it names no parameter, or a dimension that does not exist. */
enum status policy_resolve(const struct model *model, const struct policy_options *options,
                           struct arena *arena, struct param_policy **out, struct err *err);

#endif
