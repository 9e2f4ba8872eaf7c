/*
 * Bodies: what one module's forward or backward launches and allocates, in order.
 *
 * A body is a straight tape over slots. It exists once per module kind, shapes, dtypes, gradients
 * that are wanted, checkpoint mode and operator profile, and is shared by all modules that are equal
 * in these. It knows no
 * unit, no rank and no address. A pair of bodies (forward, backward) shares one slot table: what
 * forward allocates and does not free, backward frees.
 *
 * The first slots are the boundary, tensors that the unit program owns: the tape says at which
 * exact place they are born or die, the unit program says which buffer they are.
 *
 *     slot 0  SLOT_IN     forward's input          born outside, dies in this pair or outside; of
 *                                                  the model's first piece outside
 *     slot 1  SLOT_OUT    forward's output         born in forward's tape
 *     slot 2  SLOT_D_OUT  gradient of the output   born outside, dies in backward's tape
 *     slot 3  SLOT_D_IN   gradient of the input    born in backward's tape
 *     slot 4+i            grad[i], of the i-th parameter of the piece(s), born in backward's tape;
 *                         without bytes and on no tape where the parameter has no gradient
 *
 * The gradient of a tied weight is born in the backward of the head, which runs first; the
 * embedding's tape adds to it and neither bears nor frees that slot.
 *
 * Where the gradient of the input is written over that of the output (the residual's buffer, summed
 * in place), d_in_place is set and neither SLOT_D_OUT nor SLOT_D_IN is on the tape. An input has a
 * gradient where it was computed from a trainable parameter; an output, where its input or a
 * parameter has one. An output without one has an empty backward, and no SLOT_D_OUT is born.
 *
 * Invariants: each slot is allocated at most once and freed at most once over forward followed by
 * backward; no slot is used before its birth or after its death; net and rise are exact, boundary
 * events on the tape included. Lifetimes and sizes: spec MEMORY 2.4, 3 and 4.
 */
#ifndef SRC_BODY_H
#define SRC_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/memory_class.h"
#include "src/policy.h"

enum { SLOT_IN, SLOT_OUT, SLOT_D_OUT, SLOT_D_IN, SLOT_GRAD };

struct slot {
    uint64_t bytes;
    const char *name;     /* what people call the tensor */
    uint8_t memory_class; /* of internal slots; the boundary's is the buffer's */
};

/*
 * Operators. The name is what tapes and traces print; the cost class says which formula prices one.
 * X(ENUM, name, COST)
 */
#define OP_KINDS(X)                         \
    X(EMBEDDING, "embedding", MEMORY)       \
    X(RMS, "rms", MEMORY)                   \
    X(TO, "to", MEMORY)                     \
    X(POW, "pow", MEMORY)                   \
    X(MEAN, "mean", MEMORY)                 \
    X(ADD, "add", MEMORY)                   \
    X(RSQRT, "rsqrt", MEMORY)               \
    X(MUL, "mul", MEMORY)                   \
    X(MULW, "mulw", MEMORY)                 \
    X(MM, "mm", GEMM)                       \
    X(CMUL, "cmul", MEMORY)                 \
    X(REPEAT, "repeat", MEMORY)             \
    X(SDPA, "sdpa", ATTENTION)              \
    X(SILU, "silu", MEMORY)                 \
    X(FUSED, "fused", MEMORY)               \
    X(LOG_SOFTMAX, "log_softmax", MEMORY)   \
    X(NLL, "nll", MEMORY)                   \
    X(LAYER_NORM, "layer_norm", MEMORY)     \
    X(GELU, "gelu", MEMORY)                 \
    X(SUM, "sum", MEMORY)                   \
    X(CAT, "cat", MEMORY)                   \
    X(SHORT_CONV, "short_conv", MEMORY)     \
    X(L2_NORM, "l2_norm", MEMORY)           \
    X(SIGMOID, "sigmoid", MEMORY)           \
    X(DECAY, "decay", MEMORY)               \
    X(CHUNK, "chunk", MEMORY)               \
    X(DELTA_RULE, "delta_rule", DELTA_RULE) \
    X(POSITIONS, "positions", MEMORY)       \
    X(SWIGLU, "swiglu", MEMORY)             \
    X(GATED_RMS, "gated_rms", MEMORY)       \
    X(CROSS_ENTROPY, "cross_entropy", MEMORY)

enum op_kind {
#define X(id, name, cost) OP_##id,
    OP_KINDS(X)
#undef X
        OP_KIND_N
};
enum op_cost { COST_MEMORY, COST_GEMM, COST_ATTENTION, COST_DELTA_RULE };
const char *op_kind_name(enum op_kind kind);
enum op_cost op_kind_cost(enum op_kind kind);

/* Which of a module's passes an operator belongs to. */
enum op_pass { PASS_FORWARD, PASS_RECOMPUTE, PASS_DGRAD, PASS_WGRAD };

/*
 * One launch, or a few of the same kind. GEMM: m, n, k. ATTENTION: m = batch * heads, n = sequence,
 * k = head dimension, causal. DELTA_RULE: m = tokens, n = heads, k = head dimension, of keys and of
 * values; and bytes. MEMORY: bytes read + written (spec COST 3).
 */
struct op {
    uint8_t kind, pass;
    uint16_t kernels;
    uint32_t operand : 24, n_operand : 8; /* in body_table.operands; none but of profile native */
    uint64_t m, n, k;
    uint64_t bytes;
};

/* UPDATE: adds to what is there. */
enum op_mode { OP_READ, OP_WRITE, OP_UPDATE };

/*
 * What an operator of profile native computes with, in the order of gpu/ops.h. NONE: absent, or not
 * wanted. SLOT: of the pair. PARAM: of the piece or pieces, the i-th is that of SLOT_GRAD + i.
 * LABELS: those of the microbatch.
 */
enum operand_kind { OPERAND_NONE, OPERAND_SLOT, OPERAND_PARAM, OPERAND_LABELS };
struct operand {
    uint8_t kind, mode; /* enum operand_kind, enum op_mode */
    uint8_t dtype;      /* enum dtype; U8 for indices of 8 bytes */
    uint32_t id;        /* slot, or index of the parameter */
};

/* 0 for MEMORY. False where the number does not fit. */
bool op_flops(const struct op *op, uint64_t *out);

enum tape_act { TAPE_OP, TAPE_ALLOC, TAPE_FREE };

struct tape {
    uint8_t act;
    uint32_t id; /* op: index in body_table.ops; alloc, free: slot of the pair */
};

struct body {
    uint32_t op, n_op;     /* in body_table.ops */
    uint32_t tape, n_tape; /* in body_table.tape */
    int64_t net_bytes;     /* requested bytes live at the end less those live at the start */
    uint64_t rise_bytes;   /* highest requested bytes above the start */
    uint64_t flops;        /* matrix products and attention, recompute included */
    uint32_t kernels;      /* launches in all */
    bool uses_gemm;        /* needs the matrix library's workspace */
};

struct body_pair {
    uint8_t kind;               /* enum body_kind */
    uint32_t piece;             /* the first of the model's that it serves, or none */
    uint32_t forward, backward; /* in body_table.bodies; also task.body */
    uint32_t slot, n_slot;      /* in body_table.slots, boundary included */
    uint32_t n_grad;
    bool in_dies_in_forward;  /* SLOT_IN is freed on forward's tape */
    bool in_dies_in_backward; /* SLOT_IN is freed on backward's tape; neither: dies outside */
    bool d_in_place;          /* the gradient of the input is that of the output, in place */
    bool has_d_in, has_d_out; /* the input carries a gradient, the output does */
};

/* Whose operators they are, and how PyTorch is taken to run its own: fields of the plan that bodies
   depend on. */
enum ops_profile { OPS_TORCH_EAGER, OPS_TORCH_COMPILE, OPS_NATIVE, OPS_PROFILE_N };
enum norm_kind { NORM_FUSED, NORM_COMPOSITE, NORM_KIND_N };
enum checkpointing { AC_NONE, AC_FULL, AC_OP, AC_N };

/*
 * Cross entropy of the logits (spec MEMORY 4): their cast to FP32 is the loss's (EAGER), or the
 * model's, whose caller keeps it (EAGER_MODEL), or there is none (EAGER_BF16); or one kernel for
 * all of it, handwritten or a compiler's. X(ENUM, name)
 */
#define LOSSES(X)                 \
    X(EAGER, "eager")             \
    X(EAGER_MODEL, "eager-model") \
    X(EAGER_BF16, "eager-bf16")   \
    X(FUSED, "fused")             \
    X(COMPILED, "compiled")

enum loss_kind {
#define X(id, name) LOSS_##id,
    LOSSES(X)
#undef X
        LOSS_N
};

/* Tokens of a chunk of the delta rule, as fla's kernels have it. */
enum { DELTA_CHUNK = 64 };

struct body_options {
    uint64_t batch, seq; /* sequences per microbatch and rank, tokens per sequence */
    enum dtype compute;  /* of activations: src/body_builder.h says how exact */
    enum ops_profile ops;
    enum norm_kind norm;
    enum loss_kind loss;
    enum checkpointing ac;
    uint64_t ac_every;   /* blocks K, 2K, ... are checkpointed, the others not; 0: all are */
    uint64_t ac_layers;  /* the first so many blocks are, the others not; 0: all are */
    bool full_recompute; /* to the block's end: set_checkpoint_early_stop(False) */
    /* Cross entropies of the logits behind each backward, without gradients; the caller keeps the
       logits for them. */
    uint64_t train_metrics;
};

/* Of the block with this layer. */
static inline enum checkpointing body_options_ac(const struct body_options *options, uint16_t layer)
{
    const bool is_between = options->ac_every > 0 && (layer + 1) % options->ac_every != 0;
    const bool is_behind = options->ac_layers > 0 && layer >= options->ac_layers;
    return is_between || is_behind ? AC_NONE : options->ac;
}

#define NO_PAIR UINT32_MAX

/* All bodies that a model's plans with these options can name. Owned by one arena. */
struct body_table {
    struct body_options options;
    struct op *ops;
    struct operand *operands;
    struct tape *tape;
    struct slot *slots;
    struct body *bodies;
    struct body_pair *pairs;
    uint32_t n_op, n_operand, n_tape, n_slot, n_body, n_pair;
    /* Indices in pairs, or NO_PAIR: by piece of the model, computed by itself, and as the first of
       a whole block; of the loss, and of one metric. */
    uint32_t *of_piece, *of_block, of_loss, of_metric;
};

/* policy: of the model's parameters. Checked sizes: STATUS_INPUT where a slot passes 2^62 bytes. */
enum status body_table_build(const struct model *model, const struct param_policy *policy,
                             const struct body_options *options, struct arena *arena,
                             struct body_table *out, struct err *err);

/* Whether the model's blocks are a compiler's graphs: only some families are compiled. */
bool body_blocks_compile(const struct model *model, enum ops_profile ops);

/* The attention piece of a block of which the next piece is the MLP. */
bool body_piece_starts_block(const struct model *model, uint32_t piece);

/* Recompute net, rise, flops and kernels of a body from its tape. */
void body_summarize(const struct body_table *table, const struct body_pair *pair,
                    struct body *body);

#endif
