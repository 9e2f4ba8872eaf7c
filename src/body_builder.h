/*
 * From tables of lifetimes to tapes: what the families' bodies share.
 *
 * A family writes down its tensors with their sizes, and for each part of a module two lists of
 * rows, forward and backward. A row is one operator: tensors are born, it runs, tensors die. Deaths
 * in the forward list are those of a program that saves nothing (the ends of variables' scopes).
 *
 * The backward list is that of a part whose parameters and input all have gradients. Of another the
 * builder leaves out what autograd leaves out (body_autograd.c):
 *
 *     - A row runs if a tensor that it bears or changes is wanted: a gradient of a trainable
 *       parameter, that of an input which has one, or what a row that runs reads (USES, DIES).
 *     - What is not wanted is not born. A kernel that cannot help it uses its own results.
 *     - What forward has made and a row that runs reads is saved: its death in forward is passed
 *       over. So saved tensors need not be listed, and are those that are needed (a product saves
 *       one factor for the gradient of the other; attention, norms and activations save all).
 *     - What backward makes again under the name that it had in forward is its own.
 *     - A tensor dies after the last operator of backward that names it.
 *     - Where nothing has a gradient, backward is empty and forward saves nothing.
 *
 * An operator whose gradients can be had one by one has a row for each, the later ones marked as
 * belonging to it (ALSO). The bytes of a fused kernel are not split.
 *
 * One pair of lists serves checkpointing and its absence:
 *
 *     none   forward without the deaths of saved tensors; backward
 *     full   forward with all deaths but its input's; then the same forward again as under none, up
 *            to the birth of the last tensor that is saved (early stop: without the last linear,
 *            whose output nobody needs), and backward
 *     op     as full, but what attention and every second product make stays in the region's cache.
 *            The recompute takes it from there in place of the operator; what lies behind its end
 *            goes with the last tensor that autograd has saved. Products with a bias (addmm) are
 *            another operator than those that torchtitan's list names, and are computed again
 *
 * PyTorch stops where the last tensor is packed for backward, which is the same but for a block of
 * which hardly anything is trained. A full recompute goes on to the end, with an output of its own
 * that is let go at once (PyTorch before 2.1, and set_checkpoint_early_stop(False)); compiled blocks
 * leave out what nobody needs in any case. A pair is made of one part, or of several that are
 * computed one after another; the output of a part is the input of the next. Invariant: a tensor
 * that is not alive is never freed, and a pair frees neither its output nor the gradient of its
 * input. Rules: spec MEMORY 2.4.
 *
 * Rows of profile native name their operands, and thereby what they read: USES is for what is to live
 * on though no operator reads it. Bytes that operands tell are not stated, they are added to MOVES.
 *
 * Activations of two bytes are as the tables have them. Those of FP32 are an extrapolation: casts
 * fall away, tensors and traffic double, and attention is taken to save what it saves in BF16.
 */
#ifndef SRC_BODY_BUILDER_H
#define SRC_BODY_BUILDER_H

#include "src/body.h"

/*
 * The sizes that tables are written in: T tokens, Q and KV all heads, QKV the three in one matrix,
 * GATE_UP twice F, BH batch * heads, P learned positions. Of the delta rule, per token: C scores
 * with its chunk, STATE its share of the chunk's state, both of all heads; where chunks are counted
 * by themselves, CHUNKS of all sequences and STATES, what one of them has. R is the adapters' rank.
 */
enum body_dim {
    DIM_NONE,
    DIM_ONE,
    DIM_T,
    DIM_H,
    DIM_Q,
    DIM_KV,
    DIM_QKV,
    DIM_F,
    DIM_GATE_UP,
    DIM_NH,
    DIM_V,
    DIM_BH,
    DIM_S,
    DIM_D,
    DIM_P,
    DIM_C,
    DIM_STATE,
    DIM_CHUNKS,
    DIM_STATES,
    DIM_R,
    DIM_N
};

/*
 * each * a * b bytes; nothing where a is DIM_NONE. Tables are written for activations of two bytes:
 * where compute is in FP32 each is twice as large, but for what is FP32 or an index always.
 */
struct extent {
    uint8_t each, a, b;
    bool fixed;
};

enum {
    NO_TENSOR = 0, /* ends a list of tensors; a family's own begin at 1 */
    BODY_MAX_TENSORS = 255,
    BODY_MAX_PARTS = 2,
    BODY_LISTS = 5, /* of rows, one after another */
    BODY_MOVED = 4,
    BODY_ARGS = 16,
    BODY_NO_OP = OP_KIND_N, /* a row that runs nothing */
};

/*
 * Operands of a row: tensors in the order of gpu/ops.h, or these. PARAM is added to the name of a
 * gradient, and is the parameter that it is of.
 */
enum body_arg { BODY_PARAM = 256, BODY_ABSENT = 512, BODY_LABELS };

struct body_tensor {
    struct extent size;
    bool logits;      /* its class; the others' follows from whether it crosses into backward */
    const char *name; /* what people call it */
};

/* Where a row is left out, or two names are one tensor's. Several together: all must hold. */
enum row_when {
    WHEN_REPEATED = 1, /* several query heads share a key head */
    WHEN_UNREPEATED = 2,
    WHEN_FORWARD = 4, /* not in a recompute */
    WHEN_RECOMPUTE = 8,
    WHEN_BATCHED = 16, /* more than one sequence */
    WHEN_SINGLE = 32,
    WHEN_CAST = 64, /* to compute in FP32 takes a cast there and back */
    WHEN_UNCAST = 128,
};

struct body_row {
    uint8_t kind, when;
    uint8_t more_kernels; /* launches after the first */
    bool also;            /* of the operator of the row before */
    bool weight_grad;     /* PASS_WGRAD; any other's pass follows from where the row is */
    bool holds;           /* a region's: saved to here, read or not */
    bool unbiased;        /* a product without a bias, whatever the model's layers have */
    uint8_t m, n, k;      /* enum body_dim */
    uint8_t over;         /* the first birth takes this tensor's place where it is not kept */
    struct extent moved[BODY_MOVED]; /* bytes read and written, summed */
    uint8_t born[8], dies[16];
    uint8_t uses[8];    /* in backward: reads, besides what dies here */
    uint8_t changes[6]; /* in backward: adds to, or overwrites */
    /* Profile native: all operands. What the row neither bears nor changes is read. */
    uint16_t args[BODY_ARGS + 1];
};

/* The words that rows are written in: {RUN(SILU), MOVES(PER_TOKEN(4, F)), BORN(…), DIES(…)}. */
#define RUN(op) .kind = OP_##op
#define ALSO(op) RUN(op), .also = true
#define MORE_KERNELS(n) .more_kernels = (n)
#define OF_WEIGHT .weight_grad = true
#define PER_TOKEN(each, dim)            \
    {                                   \
        (each), DIM_T, DIM_##dim, false \
    }
#define FP32_PER_TOKEN(each, dim)      \
    {                                  \
        (each), DIM_T, DIM_##dim, true \
    }
#define MOVES(...) .moved = {__VA_ARGS__}
#define BORN(...) .born = {__VA_ARGS__}
#define USES(...) .uses = {__VA_ARGS__}
#define CHANGES(...) .changes = {__VA_ARGS__}
#define DIES(...) .dies = {__VA_ARGS__}
#define ARGS(...) .args = {__VA_ARGS__}
/* No operator: what is listed ends here, if it was not let go of before. */
#define ENDS_WHEN(holds, ...)                                        \
    {                                                                \
        .kind = BODY_NO_OP, .when = (holds), .dies = { __VA_ARGS__ } \
    }
#define ENDS(...) ENDS_WHEN(0, __VA_ARGS__)
/* The same of a region's variables: they are saved to here, read or not. */
#define HELD(...)                                                  \
    {                                                              \
        .kind = BODY_NO_OP, .holds = true, .dies = { __VA_ARGS__ } \
    }
/* A linear layer from in to out features, and its two products in backward. */
#define LINEAR(out, in) RUN(MM), .m = DIM_T, .n = DIM_##out, .k = DIM_##in
#define LINEAR_DGRAD(out, in) RUN(MM), .m = DIM_T, .n = DIM_##in, .k = DIM_##out
#define LINEAR_WGRAD(out, in) RUN(MM), OF_WEIGHT, .m = DIM_##in, .n = DIM_##out, .k = DIM_T
#define ATTEND RUN(SDPA), .m = DIM_BH, .n = DIM_S, .k = DIM_D

struct body_rows {
    const struct body_row *row;
    uint32_t n;
};
#define BODY_ROWS(array)                          \
    {                                             \
        (array), sizeof(array) / sizeof(array)[0] \
    }

/* One tensor under two names, where a step between them does not exist. */
struct body_same {
    uint8_t name, is; /* a list of them ends with NO_TENSOR; is may be the name of a later one */
    uint8_t when;
};

/* Late rows come after those of all parts, the first of each part before the second of any. */
struct body_part {
    struct body_rows forward[BODY_LISTS], backward[BODY_LISTS];
    struct body_rows late_forward, late_backward[AC_N];
    uint8_t boundary[SLOT_GRAD];  /* tensors that are in, out, d_out, d_in; or NO_TENSOR. One for
                                     the last two: the gradient is summed in place */
    uint8_t grads[20];            /* in the order of the piece's parameters; ends with NO_TENSOR */
    bool all_grads;               /* in place of grads: born as backward starts, by no row */
    const struct body_same *same; /* or NULL */
};

struct body_recipe {
    enum body_kind kind;
    const struct body_part *parts[BODY_MAX_PARTS];
    uint32_t n_part;
    enum checkpointing ac;
    bool in_outlives;   /* the input is a variable of the training loop, not the pair's to free */
    uint8_t stopped_at; /* what a recompute ends with: to the golden bodies of MEMORY 2.3 it is a
                           temporary of the stopped frame, though it dies in backward; or none */
};

struct body_builder {
    const struct model *model;
    const struct param_policy *policy;
    struct body_table *table;
    struct arena *arena;
    const struct body_tensor *tensors; /* of the family */
    uint64_t dims[DIM_N];
    uint32_t first_grad; /* the first piece of the model that has a gradient to compute */
    uint32_t cap_op, cap_operand, cap_tape, cap_slot, cap_body, cap_pair;
};

enum status body_builder_init(struct body_builder *builder, const struct model *model,
                              const struct param_policy *policy, struct arena *arena,
                              struct body_table *table, struct err *err);

/*
 * Append the recipe's pairs to the table: one for each set of gradients, the input's included, that
 * pieces of its kind and checkpointing have. STATUS_INPUT where one passes 2^62 bytes or FLOP.
 */
enum status body_builder_add(struct body_builder *builder, const struct body_recipe *recipe,
                             struct err *err);

#endif
