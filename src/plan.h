/*
 * A plan: how a model is cut into FSDP units and run, with every name resolved.
 *
 * It fixes all that the program depends on and holds no rate of any cluster: the world, the shapes
 * of a step, the units with their parameters, the order of compute as segments, and the switches of
 * fully_shard. Invariants: each managed parameter is in exactly one unit; each segment computes with the
 * parameters of its unit and of units inside of that; units are in the order of their first segment,
 * outer before inner; the root, where it owns parameters, is unit 0.
 */
#ifndef SRC_PLAN_H
#define SRC_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "src/body.h"
#include "src/eligible.h"
#include "src/model.h"

enum { PLAN_MAX_UNITS = 65534, PLAN_MAX_RANKS = 1 << 20, PLAN_MAX_ACCUM = 1024 };
/* Segments times microbatches: a program is unrolled. */
enum { PLAN_MAX_UNROLLED = 1 << 18 };
#define NO_UNIT UINT16_MAX

/* RANKS: to groups of so many ranks, in place of all. */
enum reshard {
    RESHARD_AUTO,
    RESHARD_YES,
    RESHARD_NO,
    RESHARD_ALL_BUT_LAST,
    RESHARD_RANKS,
    RESHARD_N
};

/* In which microbatches something is done. */
enum microbatches { MICROBATCH_EVERY, MICROBATCH_LAST, MICROBATCHES_N };

/*
 * What updates the shards: AdamW has two moments and a counter for each, SGD nothing. AdamW as one
 * kernel (fused), as one for each operation over lists of tensors (foreach), or as a loop over
 * tensors, composer's DecoupledAdamW.
 */
enum optimizer {
    OPTIMIZER_ADAMW,
    OPTIMIZER_SGD,
    OPTIMIZER_ADAMW_FOREACH,
    OPTIMIZER_ADAMW_COMPOSER,
    OPTIMIZER_N
};

/*
 * Whose attention kernel runs: that of PyTorch's scaled_dot_product_attention (FlashAttention 2),
 * FlashAttention 3 or 4, or the Triton one of 2023. It changes times alone. X(ENUM, name)
 */
#define ATTENTIONS(X) \
    X(SDPA, "sdpa")   \
    X(FA3, "fa3")     \
    X(FA4, "fa4")     \
    X(TRITON_2023, "triton-2023")

enum attention {
#define X(id, name) ATTENTION_##id,
    ATTENTIONS(X)
#undef X
        ATTENTION_N
};

/* Which system runs the units; a file of src/schedule/ each. X(ENUM, name) */
#define SYSTEMS(X)    \
    X(FSDP2, "fsdp2") \
    X(FSDP1, "fsdp1")

enum system {
#define X(id, name) SYSTEM_##id,
    SYSTEMS(X)
#undef X
        SYSTEM_N
};

/* What is cut of a flat parameter, and where it is freed: after forward or not before backward. */
enum fsdp1_strategy {
    FSDP1_FULL_SHARD,
    FSDP1_SHARD_GRAD_OP,
    FSDP1_NO_SHARD,
    FSDP1_HYBRID_SHARD,
    FSDP1_STRATEGY_N
};

/* When backward gathers the unit that comes next: before this one's, after it, or never ahead. */
enum fsdp1_prefetch { FSDP1_BACKWARD_PRE, FSDP1_BACKWARD_POST, FSDP1_BACKWARD_NONE };

/* FullyShardedDataParallel; see plan_options_default(). */
struct fsdp1_options {
    enum fsdp1_strategy strategy;
    enum fsdp1_prefetch backward_prefetch;
    bool forward_prefetch;
    bool limit_all_gathers; /* the host waits for frees, so that few are in flight */
    bool record_stream;     /* false: streams wait for one another before a FREE */
    bool pad_grads;         /* what is reduced is a copy, padded or not */
    bool use_orig_params;   /* the optimizer sees pieces of parameters, which begin on 16 bytes */
    /* DTYPE_N: as they are. Buffers are cast when FSDP sets itself up, so that no step changes. */
    enum dtype buffer_dtype;
};

/* What a person asks for; see plan_options_default(). */
struct plan_options {
    enum system system;
    struct fsdp1_options fsdp1;
    uint64_t gpus, nodes;  /* nodes 0: gpus / 8, rounded up */
    uint64_t replicas;     /* HSDP: how many times the shards are there; 1: plain FSDP */
    uint64_t seq;          /* 0: the model's */
    uint64_t batch, accum; /* sequences per microbatch and rank; microbatches per step */
    const char *units;     /* scheme, comma-separated patterns, or @FILE.json: src/plan_units.h */
    enum arrange arrange;
    enum reshard reshard;
    uint64_t reshard_ranks; /* of RESHARD_RANKS */
    const char
        *no_reshard; /* patterns of units that fully_shard gets False for all the same; NULL */
    enum microbatches reshard_backward; /* set_reshard_after_backward: free parameters after it */
    const char *no_unshard_backward; /* patterns of units: set_unshard_in_backward(False); NULL */
    uint64_t prefetch, prefetch_backward; /* 0: implicit; k: explicit lists of depth k */
    enum checkpointing ac;
    uint64_t ac_every, ac_layers; /* as in struct body_options */
    bool full_recompute;          /* the same */
    uint64_t train_metrics;       /* the same */
    enum ops_profile ops;
    enum norm_kind norm;
    enum loss_kind loss;
    enum attention attention;
    bool tf32;       /* products of FP32 round their inputs to TF32; changes times alone */
    bool linear_fp8; /* linear layers of blocks multiply in FP8; changes times alone */
    struct policy_options policy;
    enum microbatches sync;       /* set_requires_gradient_sync */
    enum microbatches all_reduce; /* set_requires_all_reduce, with replicas */
    enum microbatches finish;     /* set_is_last_backward */
    uint64_t reduce_inputs;       /* set_reduce_scatter_max_input_buffers */
    bool pack_on_reduce;          /* gradients are packed on RS, as before June 2024 */
    bool separate_reduce_comm;    /* set_separate_reduce_scatter_group */
    bool zero_unused;             /* set_reduce_scatter_unused_params */
    bool force_sum;               /* set_force_sum_reduction_for_comms */
    bool scaler;                  /* a loss scaler: unscale, look for infinities, host decides */
    bool clip;                    /* gradients are clipped to a norm */
    enum optimizer optimizer;     /* of the shards */
    bool log_loss;                /* the host reads the mean loss of all ranks after each step */
    bool cast_inputs;             /* cast_forward_inputs: a unit's inputs to the compute dtype */
    enum dtype output_dtype;      /* output_dtype of a unit, DTYPE_N: as it is computed */
    const char *host_sync;        /* patterns of units in whose forward the host waits; NULL */
    double divide_factor;         /* set_gradient_divide_factor; 0: the number of ranks */
    uint64_t workspace_bytes;     /* of the matrix library, one per host thread that uses it */
};
struct plan_options plan_options_default(void);

struct unit {
    const char *name;
    uint32_t param, n_param; /* in plan.unit_params: as the system finds them */
    /*
     * The span of its hooks in forward order: all that its modules compute, inner units included;
     * of the root everything. Which segments are its own says segment.unit.
     */
    uint32_t first_segment, last_segment;
    uint16_t outer; /* the innermost unit around it, or NO_UNIT */
    /*
     * Parameters on different meshes are groups, and each of them is a unit of the same modules: one
     * after the other, in the order in which their hooks fire in forward. Index among them, and the
     * next one or NO_UNIT.
     */
    uint8_t group;
    bool on_second_mesh;
    uint16_t next_group;
    bool reshard_after_forward;
    bool unshard_in_backward;
    bool host_sync;      /* the host waits for its forward */
    bool has_backward;   /* its output carries a gradient, so that hooks on it fire */
    bool input_has_grad; /* else its post_backward waits for the end of backward */
};

struct segment {
    uint16_t unit;
    uint16_t layer;
    uint8_t kind;            /* enum body_kind, never LOSS */
    uint32_t piece;          /* of the model: the one it is, or the first of a block */
    uint32_t inner, n_inner; /* in plan.inner_units: further units that it computes with */
    uint32_t grad;           /* in plan.grad_places: of grad slot i of the body */
};

/* Where the gradient of a piece's parameter belongs: to segment.unit (part 0) or its inner unit
   part - 1, as the member-th of those that have one. */
struct grad_place {
    uint32_t part, member;
};

struct plan {
    const struct model *model;
    struct plan_options options; /* with every default filled in */
    uint64_t world, gpus_per_node;
    uint64_t shard_ranks; /* that a parameter is cut over: world / replicas, neighbours */
    const struct param_policy *policy;    /* by parameter of the model */
    uint64_t ignored_bytes;               /* of what fully_shard was told to ignore */
    const uint32_t *like;                 /* by parameter: the first one of its sizes and policy */
    enum dtype param_dtype, reduce_dtype; /* of most; policy has each parameter's own */
    struct unit *units;
    struct segment *segments; /* forward order */
    uint32_t *unit_params;    /* parameter ids */
    uint16_t *inner_units;
    struct grad_place *grad_places;
    uint32_t n_unit, n_segment;
    bool
        has_root; /* unit 0 (and its next group) is the root; one without parameters is not there */
};

/*
 * Resolve. STATUS_USAGE with the pattern and the nearest names: a pattern that matches nothing, a
 * parameter in two units, a unit without parameters, a cut through a piece, a block that is cut
 * under checkpointing, zero counts, gpus that nodes do not divide. STATUS_INPUT for a file.
 */
enum status plan_resolve(const struct model *model, const struct plan_options *options,
                         struct arena *arena, struct plan *out, struct err *err);

/* Without gradient, and reduced as zeros all the same. */
static inline bool plan_fills_zeros(const struct plan *plan, const struct param_policy *policy)
{
    return plan->options.zero_unused && policy->managed && policy->trainable && !policy->has_grad;
}

static inline bool plan_is_root(const struct plan *plan, uint32_t unit)
{
    return plan->has_root && unit == plan->units[unit].group;
}

/* The bodies' view of the plan. */
struct body_options plan_body_options(const struct plan *plan);

/* Index of a segment's pair. */
static inline uint32_t segment_pair(const struct body_table *bodies, const struct segment *segment)
{
    return (segment->kind == BODY_BLOCK ? bodies->of_block : bodies->of_piece)[segment->piece];
}

#endif
