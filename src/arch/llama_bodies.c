/*
 * llama: the operators of its blocks, as tables of lifetimes (src/body_builder.h tells how to read
 * them). No rule lives here, only what is computed, in which order, and what then ends.
 *
 * Orders and lifetimes: spec MEMORY 2.4, 3.1, 3.3 and 4. Bytes moved: spec COST 3, lists (b) for
 * torch-compile and (c) for torch-eager. Weights cost a body nothing, they are the unit's.
 */
#include "src/arch/arch.h"
#include "src/arch/block_parts.h"
#include "src/arch/body_tensors.h"
#include "src/arch/outer_bodies.h"
#include "src/body_builder.h"

/* ---- torch-eager: attention --------------------------------------------------------------- */

/* RoPE's 28 bytes an element in list (c) contain the expansion of k and v. */
static const struct body_row eager_attention[] = {
    {LINEAR(Q, H), BORN(Q)},
    {LINEAR(KV, H), BORN(K)},
    {LINEAR(KV, H), BORN(V)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, Q)), BORN(Q32)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, KV)), BORN(K32)},
    {RUN(CMUL), .when = WHEN_REPEATED, MOVES(FP32_PER_TOKEN(12, Q)), BORN(Q_TURNED)},
    {RUN(CMUL), .when = WHEN_REPEATED, MOVES(FP32_PER_TOKEN(12, KV)), BORN(K_TURNED)},
    {RUN(CMUL), .when = WHEN_UNREPEATED, MOVES(FP32_PER_TOKEN(16, Q)), BORN(Q_TURNED)},
    {RUN(CMUL), .when = WHEN_UNREPEATED, MOVES(FP32_PER_TOKEN(16, KV)), BORN(K_TURNED)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, Q)), BORN(Q_ROPE)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, KV)), BORN(K_ROPE)},
    ENDS_WHEN(WHEN_CAST, Q32, K32, Q_TURNED, K_TURNED),
    ENDS(Q, K),
    {RUN(REPEAT), .when = WHEN_REPEATED, MOVES(PER_TOKEN(2, Q), PER_TOKEN(2, KV)), BORN(K_ALL)},
    {RUN(REPEAT), .when = WHEN_REPEATED, MOVES(PER_TOKEN(2, Q), PER_TOKEN(2, KV)), BORN(V_ALL),
     DIES(K_ROPE, V)},
    {ATTEND, BORN(ATTENDED, LSE), DIES(LSE)},
    {LINEAR(H, Q), BORN(BRANCH), DIES(NORMED, Q_ROPE, K_ALL, V_ALL, ATTENDED)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};

static const struct body_row eager_attention_backward[] = {
    {LINEAR_DGRAD(H, Q), BORN(D_ATTENDED), USES(D_OUT)},
    {LINEAR_WGRAD(H, Q), BORN(G_O), USES(ATTENDED, D_OUT)},
    {ATTEND, MORE_KERNELS(2), BORN(D_Q_ROPE, D_K_ALL, D_V_ALL, ROW_SUMS, D_Q_SUM),
     USES(D_Q_ROPE, D_K_ALL, D_V_ALL),
     DIES(ROW_SUMS, D_Q_SUM, LSE, ATTENDED, V_ALL, K_ALL, Q_ROPE, D_ATTENDED)},
    {RUN(REPEAT), .when = WHEN_REPEATED, MOVES(PER_TOKEN(2, Q), PER_TOKEN(2, KV)), BORN(D_V),
     DIES(D_V_ALL)},
    {RUN(REPEAT), .when = WHEN_REPEATED, MOVES(PER_TOKEN(2, Q), PER_TOKEN(2, KV)), BORN(D_K_ROPE),
     DIES(D_K_ALL)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, KV)), BORN(D_K32), DIES(D_K_ROPE)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, Q)), BORN(D_Q32), DIES(D_Q_ROPE)},
    {RUN(CMUL), .when = WHEN_REPEATED, MOVES(FP32_PER_TOKEN(12, KV)), BORN(D_K_TURNED),
     DIES(D_K32)},
    {RUN(CMUL), .when = WHEN_REPEATED, MOVES(FP32_PER_TOKEN(12, Q)), BORN(D_Q_TURNED), DIES(D_Q32)},
    {RUN(CMUL), .when = WHEN_UNREPEATED, MOVES(FP32_PER_TOKEN(16, KV)), BORN(D_K_TURNED),
     DIES(D_K32)},
    {RUN(CMUL), .when = WHEN_UNREPEATED, MOVES(FP32_PER_TOKEN(16, Q)), BORN(D_Q_TURNED),
     DIES(D_Q32)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, KV)), BORN(D_K), DIES(D_K_TURNED)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, Q)), BORN(D_Q), DIES(D_Q_TURNED)},
    {LINEAR_DGRAD(KV, H), BORN(D_NORMED), USES(D_V)},
    {LINEAR_WGRAD(KV, H), BORN(G_V), USES(NORMED), DIES(D_V)},
    {LINEAR_DGRAD(KV, H), BORN(D_NORMED2), USES(D_K)},
    {LINEAR_WGRAD(KV, H), BORN(G_K), USES(NORMED), DIES(D_K)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), CHANGES(D_NORMED), DIES(D_NORMED2)},
    {LINEAR_DGRAD(Q, H), BORN(D_NORMED3), USES(D_Q)},
    {LINEAR_WGRAD(Q, H), BORN(G_Q), DIES(NORMED, D_Q)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), CHANGES(D_NORMED), DIES(D_NORMED3)},
};

static const struct body_same eager_same[] = {
    {K_ALL, K_ROPE, WHEN_UNREPEATED},
    {V_ALL, V, WHEN_UNREPEATED},
    {D_K_ALL, D_K_ROPE, WHEN_UNREPEATED},
    {D_V_ALL, D_V, WHEN_UNREPEATED},
    {Q32, Q, WHEN_UNCAST}, /* RoPE */
    {K32, K, WHEN_UNCAST},
    {Q_ROPE, Q_TURNED, WHEN_UNCAST},
    {K_ROPE, K_TURNED, WHEN_UNCAST},
    {D_Q32, D_Q_ROPE, WHEN_UNCAST},
    {D_K32, D_K_ROPE, WHEN_UNCAST},
    {D_Q, D_Q_TURNED, WHEN_UNCAST},
    {D_K, D_K_TURNED, WHEN_UNCAST},
    NORM_CASTS,
    {NO_TENSOR, NO_TENSOR, 0},
};

/* ---- torch-compile ------------------------------------------------------------------------ */

static const struct body_row compiled_attention[] = {
    {RUN(FUSED), .when = WHEN_FORWARD, MOVES(PER_TOKEN(4, H)), BORN(RSTD, NORMED)},
    {RUN(FUSED), .when = WHEN_RECOMPUTE, MOVES(PER_TOKEN(4, H)), BORN(NORMED)},
    {LINEAR(Q, H), BORN(Q)},
    {LINEAR(KV, H), BORN(K)},
    {LINEAR(KV, H), BORN(V), DIES(NORMED)},
    {RUN(FUSED), .when = WHEN_REPEATED, MOVES(PER_TOKEN(4, Q), PER_TOKEN(2, KV)),
     BORN(Q_ROPE, K_ALL), DIES(Q, K)},
    {RUN(FUSED), .when = WHEN_REPEATED, MOVES(PER_TOKEN(2, KV)), BORN(V_ALL)},
    {RUN(FUSED), .when = WHEN_UNREPEATED, MOVES(PER_TOKEN(4, Q), PER_TOKEN(4, KV)),
     BORN(Q_ROPE, K_ALL), DIES(Q, K)},
    {ATTEND, BORN(ATTENDED, LSE), DIES(Q_ROPE, K_ALL, V_ALL)},
    {LINEAR(H, Q), BORN(BRANCH)},
    {RUN(FUSED), MOVES(PER_TOKEN(4, H)), BORN(OUT), DIES(BRANCH)},
};
static const struct body_row compiled_attention_end[] = {ENDS(IN, RSTD, V, ATTENDED, LSE)};

static const struct body_row compiled_attention_backward[] = {
    {LINEAR_WGRAD(H, Q), BORN(G_O), USES(ATTENDED, D_OUT)},
    {LINEAR_DGRAD(H, Q), BORN(D_ATTENDED), USES(D_OUT)},
    {ATTEND, MORE_KERNELS(2), BORN(D_Q_ROPE, D_K_ALL, D_V_ALL, ROW_SUMS, D_Q_SUM),
     USES(D_Q_ROPE, D_K_ALL, D_V_ALL, ATTENDED, LSE),
     DIES(D_Q_SUM, ROW_SUMS, D_ATTENDED, Q_ROPE, K_ALL, V_ALL)},
    {RUN(FUSED), .when = WHEN_REPEATED, MOVES(PER_TOKEN(4, Q), PER_TOKEN(4, KV)), BORN(D_K, D_V),
     CHANGES(D_Q_ROPE), DIES(D_K_ALL, D_V_ALL)},
    {RUN(FUSED), .when = WHEN_UNREPEATED, MOVES(PER_TOKEN(4, Q), PER_TOKEN(4, KV)),
     CHANGES(D_Q_ROPE, D_K_ALL)},
    {LINEAR_WGRAD(KV, H), BORN(G_V), USES(NORMED, D_V)},
    {LINEAR_DGRAD(KV, H), BORN(D_NORMED), DIES(D_V)},
    {LINEAR_WGRAD(KV, H), BORN(G_K), USES(NORMED, D_K)},
    {LINEAR_DGRAD(KV, H), BORN(D_NORMED2), DIES(D_K)},
    {LINEAR_WGRAD(Q, H), BORN(G_Q), USES(NORMED, D_Q_ROPE)},
    {LINEAR_DGRAD(Q, H), BORN(D_NORMED3), DIES(D_Q_ROPE)},
    /* the input's gradient is written over the last summand */
    {RUN(FUSED), MOVES(PER_TOKEN(20, H)), BORN(G_NORM), CHANGES(D_NORMED3),
     USES(IN, RSTD, D_NORMED3), DIES(D_OUT, D_NORMED, D_NORMED2)},
};

static const struct body_same compiled_same[] = {{V_ALL, V, WHEN_UNREPEATED},
                                                 {D_K_ALL, D_K, WHEN_UNREPEATED},
                                                 {D_V_ALL, D_V, WHEN_UNREPEATED},
                                                 {NO_TENSOR, NO_TENSOR, 0}};

static const struct body_row compiled_mlp[] = {
    {RUN(FUSED), .when = WHEN_FORWARD, MOVES(PER_TOKEN(4, H)), BORN(RSTD, NORMED)},
    {RUN(FUSED), .when = WHEN_RECOMPUTE, MOVES(PER_TOKEN(4, H)), BORN(NORMED)},
    {LINEAR(F, H), BORN(GATE)},
    {LINEAR(F, H), BORN(UP), DIES(NORMED)},
    {RUN(FUSED), MOVES(PER_TOKEN(6, F)), .over = UP, BORN(PRODUCT)},
    {LINEAR(H, F), BORN(OUT)},
    {RUN(FUSED), MOVES(PER_TOKEN(4, H))},
};
static const struct body_row compiled_mlp_end[] = {ENDS(IN, RSTD, GATE, UP, PRODUCT)};

static const struct body_row compiled_mlp_backward[] = {
    {LINEAR_DGRAD(H, F), BORN(D_PRODUCT), USES(D_OUT)},
    {LINEAR_WGRAD(H, F), BORN(G_DOWN), USES(D_OUT), DIES(PRODUCT)},
    /* the gradient of up is written over that of the product */
    {RUN(FUSED), MOVES(PER_TOKEN(11, F)), BORN(D_GATE), CHANGES(D_PRODUCT), USES(GATE, D_PRODUCT),
     DIES(UP)},
    {LINEAR_WGRAD(F, H), BORN(G_UP), USES(NORMED, D_PRODUCT)},
    {LINEAR_DGRAD(F, H), BORN(D_NORMED), DIES(D_PRODUCT)},
    {LINEAR_WGRAD(F, H), BORN(G_GATE), USES(NORMED, D_GATE)},
    {LINEAR_DGRAD(F, H), BORN(D_NORMED2), DIES(D_GATE)},
    ENDS(GATE, NORMED),
    {RUN(FUSED), MOVES(PER_TOKEN(14, H)), BORN(D_IN, G_NORM), USES(RSTD, D_OUT),
     DIES(D_NORMED, D_NORMED2, IN)},
};

/*
 * What autograd holds for a compiled backward lives until that returns. With checkpointing the
 * recomputed tensors are variables of its own, and end with their last use or here.
 */
static const struct body_row compiled_attention_late[] = {
    ENDS(RSTD),
    ENDS(LSE, ATTENDED, V_ALL, K_ALL, Q_ROPE, NORMED, IN),
};
static const struct body_row compiled_mlp_late[] = {
    ENDS(RSTD),
    ENDS(PRODUCT, UP, GATE, NORMED, IN),
    ENDS(D_OUT),
};
static const struct body_row compiled_attention_late_full[] = {
    HELD(NORMED, Q, V, ATTENDED, LSE, D_OUT, D_NORMED, D_NORMED2),
    HELD(IN),
};
static const struct body_row compiled_mlp_late_full[] = {
    ENDS(NO_TENSOR), /* attention's first row comes before all of these */
    ENDS(D_OUT),
};
/* The cache is let go of last, the latest result first. */
static const struct body_row compiled_attention_late_op[] = {
    HELD(NORMED, D_OUT, D_NORMED, D_NORMED2),
    HELD(LSE, ATTENDED, V, Q),
    HELD(IN),
};
static const struct body_row compiled_mlp_late_op[] = {
    ENDS(NO_TENSOR),
    HELD(GATE),
    ENDS(D_OUT),
};

/* ---- parts -------------------------------------------------------------------------------- */

#define ATTENTION_GRADS            \
    {                              \
        G_Q, G_K, G_V, G_O, G_NORM \
    }
#define MLP_GRADS                    \
    {                                \
        G_GATE, G_UP, G_DOWN, G_NORM \
    }

static const struct body_part eager_attention_core = {
    .forward = {BODY_ROWS(eager_attention)},
    .backward = {BODY_ROWS(eager_attention_backward)},
    .late_backward = EAGER_REGION_END,
    .boundary = EAGER_RESIDUAL,
    .grads = ATTENTION_GRADS,
    .same = eager_same,
};

static const struct body_part compiled_attention_part = {
    .forward = {BODY_ROWS(compiled_attention)},
    .backward = {BODY_ROWS(compiled_attention_backward)},
    .late_forward = BODY_ROWS(compiled_attention_end),
    .late_backward = {[AC_NONE] = BODY_ROWS(compiled_attention_late),
                      [AC_FULL] = BODY_ROWS(compiled_attention_late_full),
                      [AC_OP] = BODY_ROWS(compiled_attention_late_op)},
    .boundary = {IN, OUT, D_OUT, D_NORMED3},
    .grads = ATTENTION_GRADS,
    .same = compiled_same,
};

static const struct body_part compiled_mlp_part = {
    .forward = {BODY_ROWS(compiled_mlp)},
    .backward = {BODY_ROWS(compiled_mlp_backward)},
    .late_forward = BODY_ROWS(compiled_mlp_end),
    .late_backward = {[AC_NONE] = BODY_ROWS(compiled_mlp_late),
                      [AC_FULL] = BODY_ROWS(compiled_mlp_late_full),
                      [AC_OP] = BODY_ROWS(compiled_mlp_late_op)},
    .boundary = {IN, OUT, D_OUT, D_IN},
    .grads = MLP_GRADS,
};

/* Compilation and checkpointing go block by block: the rest is the same in all profiles. */
enum status llama_bodies(const struct model *model, struct body_builder *builder, struct err *err)
{
    const struct body_options *options = &builder->table->options;
    const struct body_norm *norm = &rms_norms[options->norm];
    const struct body_part attention = block_part(&eager_attention_core, norm);
    const struct body_part mlp = block_part(&swiglu_core, norm);
    enum status status;

    builder->tensors = body_tensors; /* the builder has the sizes, and no block differs */
    if (options->ops == OPS_TORCH_COMPILE)
        status =
            block_bodies(builder, &compiled_attention_part, &compiled_mlp_part, NO_TENSOR, err);
    else
        status = block_bodies(builder, &attention, &mlp, PRODUCT, err);
    return status ? status : outer_bodies(model, norm, false, builder, err);
}
