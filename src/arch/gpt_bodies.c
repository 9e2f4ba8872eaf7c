/*
 * gpt2 and mpt: the operators of their blocks, as tables of lifetimes (src/body_builder.h tells how
 * to read them): LayerNorm, queries, keys and values in one matrix, GELU, biases or none.
 *
 * Lifetimes: spec MEMORY 2.4, 3.4 and, for torch-compile, what 3.3 has for llama. Bytes moved: spec
 * COST 3, list (a); torch-compile, which has no list, fuses residuals and norms as list (b) does.
 */
#include "src/arch/arch.h"
#include "src/arch/block_parts.h"
#include "src/arch/body_tensors.h"
#include "src/arch/outer_bodies.h"
#include "src/body_builder.h"

/* ---- torch-eager -------------------------------------------------------------------------- */

/* The kernel reads its three inputs as views of one matrix, which is saved as a whole. */
static const struct body_row eager_attention[] = {
    {LINEAR(QKV, H), BORN(QKV)},
    {ATTEND, BORN(ATTENDED, LSE), DIES(LSE)},
    {LINEAR(H, Q), BORN(BRANCH), DIES(NORMED, QKV, ATTENDED)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};
/* Without a bias there is no gradient to bear, and no sum. */
#define BIAS_SUM(op, dim) RUN(op), OF_WEIGHT, MOVES(PER_TOKEN(2, dim))
static const struct body_row eager_attention_backward[] = {
    {LINEAR_DGRAD(H, Q), BORN(D_ATTENDED), USES(D_OUT)},
    {LINEAR_WGRAD(H, Q), BORN(G_O), USES(ATTENDED, D_OUT)},
    {BIAS_SUM(SUM, H), BORN(G_O_BIAS), USES(D_OUT)},
    {ATTEND, MORE_KERNELS(2), BORN(D_Q, D_K, D_V, ROW_SUMS, D_Q_SUM),
     DIES(ROW_SUMS, D_Q_SUM, LSE, ATTENDED, QKV, D_ATTENDED)},
    {RUN(CAT), MOVES(PER_TOKEN(4, QKV)), BORN(D_QKV), DIES(D_Q, D_K, D_V)},
    {LINEAR_DGRAD(QKV, H), BORN(D_NORMED), USES(D_QKV)},
    {LINEAR_WGRAD(QKV, H), BORN(G_QKV), USES(NORMED, D_QKV)},
    {BIAS_SUM(SUM, QKV), BORN(G_QKV_BIAS), USES(D_QKV)},
    ENDS(NORMED, D_QKV),
};

static const struct body_row eager_mlp[] = {
    {LINEAR(F, H), BORN(UP)},
    {RUN(GELU), MOVES(PER_TOKEN(4, F)), BORN(ACTIVE), DIES(UP)},
    {LINEAR(H, F), BORN(BRANCH), DIES(ACTIVE, NORMED)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};
static const struct body_row eager_mlp_backward[] = {
    {LINEAR_DGRAD(H, F), BORN(D_ACTIVE), USES(D_OUT)},
    {LINEAR_WGRAD(H, F), BORN(G_DOWN), USES(ACTIVE, D_OUT)},
    {BIAS_SUM(SUM, H), BORN(G_DOWN_BIAS), USES(D_OUT)},
    ENDS(ACTIVE),
    {RUN(GELU), MOVES(PER_TOKEN(6, F)), BORN(D_UP), DIES(UP, D_ACTIVE)},
    {LINEAR_DGRAD(F, H), BORN(D_NORMED), USES(D_UP)},
    {LINEAR_WGRAD(F, H), BORN(G_UP), USES(NORMED, D_UP)},
    {BIAS_SUM(SUM, F), BORN(G_UP_BIAS), USES(D_UP)},
    ENDS(NORMED, D_UP),
};

/* ---- torch-compile ------------------------------------------------------------------------ */

static const struct body_row compiled_norm[] = {
    {RUN(FUSED), .when = WHEN_FORWARD, MOVES(PER_TOKEN(4, H)), BORN(MEAN, RSTD, NORMED)},
    {RUN(FUSED), .when = WHEN_RECOMPUTE, MOVES(PER_TOKEN(4, H)), BORN(NORMED)},
};

static const struct body_row compiled_attention[] = {
    {LINEAR(QKV, H), BORN(QKV), DIES(NORMED)},
    {ATTEND, BORN(ATTENDED, LSE), DIES(QKV)},
    {LINEAR(H, Q), BORN(BRANCH)},
    {RUN(FUSED), MOVES(PER_TOKEN(4, H)), BORN(OUT), DIES(BRANCH)},
};
static const struct body_row compiled_attention_end[] = {ENDS(IN, MEAN, RSTD, ATTENDED, LSE)};

static const struct body_row compiled_attention_backward[] = {
    {LINEAR_WGRAD(H, Q), BORN(G_O), USES(ATTENDED, D_OUT)},
    {BIAS_SUM(FUSED, H), BORN(G_O_BIAS), USES(D_OUT)},
    {LINEAR_DGRAD(H, Q), BORN(D_ATTENDED), USES(D_OUT)},
    {ATTEND, MORE_KERNELS(2), BORN(D_Q, D_K, D_V, ROW_SUMS, D_Q_SUM), USES(ATTENDED, LSE),
     DIES(D_Q_SUM, ROW_SUMS, D_ATTENDED, QKV)},
    {RUN(FUSED), MOVES(PER_TOKEN(4, QKV)), BORN(D_QKV), DIES(D_Q, D_K, D_V)},
    {LINEAR_WGRAD(QKV, H), BORN(G_QKV), USES(NORMED, D_QKV)},
    {BIAS_SUM(FUSED, QKV), BORN(G_QKV_BIAS), USES(D_QKV)},
    {LINEAR_DGRAD(QKV, H), BORN(D_NORMED), DIES(D_QKV)},
    /* the input's gradient is written over that of the norm's result */
    {RUN(FUSED), MOVES(PER_TOKEN(8, H)), BORN(G_NORM, G_NORM_BIAS), CHANGES(D_NORMED),
     USES(IN, MEAN, RSTD, D_NORMED), DIES(D_OUT)},
};

static const struct body_row compiled_mlp[] = {
    {LINEAR(F, H), BORN(UP), DIES(NORMED)},
    {RUN(FUSED), MOVES(PER_TOKEN(4, F)), .over = UP, BORN(ACTIVE)},
    {LINEAR(H, F), BORN(OUT)},
    {RUN(FUSED), MOVES(PER_TOKEN(4, H))},
};
static const struct body_row compiled_mlp_end[] = {ENDS(IN, MEAN, RSTD, UP, ACTIVE)};

static const struct body_row compiled_mlp_backward[] = {
    {LINEAR_DGRAD(H, F), BORN(D_ACTIVE), USES(D_OUT)},
    {LINEAR_WGRAD(H, F), BORN(G_DOWN), USES(D_OUT), DIES(ACTIVE)},
    {BIAS_SUM(FUSED, H), BORN(G_DOWN_BIAS), USES(D_OUT)},
    /* the gradient of up is written over that of its activation */
    {RUN(FUSED), MOVES(PER_TOKEN(6, F)), CHANGES(D_ACTIVE), USES(D_ACTIVE), DIES(UP)},
    {LINEAR_WGRAD(F, H), BORN(G_UP), USES(NORMED, D_ACTIVE)},
    {BIAS_SUM(FUSED, F), BORN(G_UP_BIAS), USES(D_ACTIVE)},
    {LINEAR_DGRAD(F, H), BORN(D_NORMED), DIES(D_ACTIVE)},
    ENDS(NORMED),
    {RUN(FUSED), MOVES(PER_TOKEN(8, H)), BORN(D_IN, G_NORM, G_NORM_BIAS), USES(MEAN, RSTD, D_OUT),
     DIES(D_NORMED, IN)},
};

/*
 * What autograd holds for a compiled backward lives until that returns. With checkpointing the
 * recomputed tensors are variables of its own, and end with their last use or here.
 */
static const struct body_row compiled_attention_late[] = {
    ENDS(MEAN, RSTD),
    ENDS(LSE, ATTENDED, QKV, NORMED, IN),
};
static const struct body_row compiled_mlp_late[] = {
    ENDS(MEAN, RSTD),
    ENDS(ACTIVE, UP, NORMED, IN),
    ENDS(D_OUT),
};
static const struct body_row compiled_attention_late_full[] = {
    HELD(NORMED, ATTENDED, LSE, D_OUT),
    HELD(IN),
};
static const struct body_row compiled_mlp_late_full[] = {
    ENDS(NO_TENSOR), /* attention's first row comes before all of these */
    ENDS(D_OUT),
};
/* Without biases selective checkpointing keeps products too; its cache is let go of last. */
static const struct body_row compiled_attention_late_op[] = {
    HELD(NORMED, D_OUT),
    HELD(LSE, ATTENDED, QKV),
    HELD(IN),
};
static const struct body_row compiled_mlp_late_op[] = {
    ENDS(NO_TENSOR),
    HELD(UP),
    ENDS(D_OUT),
};

/* ---- parts: [without and with biases] ----------------------------------------------------- */

#define EAGER_ATTENTION(...)                                                                  \
    {                                                                                         \
        .forward = {BODY_ROWS(eager_attention)},                                              \
        .backward = {BODY_ROWS(eager_attention_backward)}, .late_backward = EAGER_REGION_END, \
        .boundary = EAGER_RESIDUAL, .grads = {__VA_ARGS__},                                   \
    }
#define EAGER_MLP(...)                                                                  \
    {                                                                                   \
        .forward = {BODY_ROWS(eager_mlp)}, .backward = {BODY_ROWS(eager_mlp_backward)}, \
        .boundary = EAGER_RESIDUAL, .grads = {__VA_ARGS__},                             \
    }
#define COMPILED(core, late_op, d_in, ...)                                               \
    {                                                                                    \
        .forward = {BODY_ROWS(compiled_norm), BODY_ROWS(core)},                          \
        .backward = {BODY_ROWS(core##_backward)}, .late_forward = BODY_ROWS(core##_end), \
        .late_backward = {[AC_NONE] = BODY_ROWS(core##_late),                            \
                          [AC_FULL] = BODY_ROWS(core##_late_full),                       \
                          [AC_OP] = BODY_ROWS(late_op)},                                 \
        .boundary = {IN, OUT, D_OUT, d_in}, .grads = {__VA_ARGS__},                      \
    }
#define ATTENTION_GRADS G_QKV, G_O, G_NORM
#define MLP_GRADS G_UP, G_DOWN, G_NORM
#define BIASED_ATTENTION_GRADS G_QKV, G_QKV_BIAS, G_O, G_O_BIAS, G_NORM, G_NORM_BIAS
#define BIASED_MLP_GRADS G_UP, G_UP_BIAS, G_DOWN, G_DOWN_BIAS, G_NORM, G_NORM_BIAS

static const struct body_part eager_cores[2][2] = {
    {EAGER_ATTENTION(ATTENTION_GRADS), EAGER_MLP(MLP_GRADS)},
    {EAGER_ATTENTION(BIASED_ATTENTION_GRADS), EAGER_MLP(BIASED_MLP_GRADS)},
};
static const struct body_part compiled_parts[2][2] = {
    {COMPILED(compiled_attention, compiled_attention_late_op, D_NORMED, ATTENTION_GRADS),
     COMPILED(compiled_mlp, compiled_mlp_late_op, D_IN, MLP_GRADS)},
    {COMPILED(compiled_attention, compiled_attention_late_full, D_NORMED, BIASED_ATTENTION_GRADS),
     COMPILED(compiled_mlp, compiled_mlp_late_full, D_IN, BIASED_MLP_GRADS)},
};

/* Compilation and checkpointing go block by block: the rest is the same in all profiles. */
enum status gpt_bodies(const struct model *model, struct body_builder *builder, struct err *err)
{
    const bool biased = model->dims.bias;
    const struct body_part *compiled = compiled_parts[biased], *cores = eager_cores[biased];
    const struct body_part attention = block_part(&cores[0], &layer_norm);
    const struct body_part mlp = block_part(&cores[1], &layer_norm);
    enum status status;

    builder->tensors = body_tensors;
    if (builder->table->options.ops == OPS_TORCH_COMPILE)
        status = block_bodies(builder, &compiled[0], &compiled[1], NO_TENSOR, err);
    else
        status = block_bodies(builder, &attention, &mlp, NO_TENSOR, err);
    return status ? status : outer_bodies(model, &layer_norm, biased, builder, err);
}
