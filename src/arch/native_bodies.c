/*
 * Profile native: the blocks of llama and gpt2, and norms and the gated MLP for all; see
 * native_parts.h. The rotation of queries and keys is attention's own, so that nothing but what it
 * reads is kept of them.
 */
#include "src/arch/arch.h"
#include "src/arch/native_parts.h"

/* ---- norms -------------------------------------------------------------------------------- */

static const struct body_row rms[] = {
    {RUN(RMS), ARGS(IN, PARAM(NORM), NORMED, RSTD), BORN(NORMED, RSTD), DIES(RSTD)},
};
static const struct body_row rms_backward[] = {
    {RUN(RMS), OF_WEIGHT, ARGS(IN, RSTD, D_NORMED, G_NORM), BORN(G_NORM)},
    {RUN(RMS), ARGS(IN, PARAM(NORM), RSTD, D_NORMED, D_OUT), CHANGES(D_OUT)},
};
const struct body_norm native_rms = {.forward = BODY_ROWS(rms),
                                     .backward = BODY_ROWS(rms_backward)};

static const struct body_row layer_norm_rows[] = {
    {RUN(LAYER_NORM), ARGS(IN, PARAM(NORM), PARAM(NORM_BIAS), NORMED, MEAN, RSTD),
     BORN(NORMED, MEAN, RSTD), DIES(MEAN, RSTD)},
};
static const struct body_row layer_norm_backward[] = {
    {RUN(LAYER_NORM), OF_WEIGHT, ARGS(IN, MEAN, RSTD, D_NORMED, G_NORM, G_NORM_BIAS),
     BORN(G_NORM, G_NORM_BIAS)},
    {RUN(LAYER_NORM), ARGS(IN, PARAM(NORM), MEAN, RSTD, D_NORMED, D_OUT), CHANGES(D_OUT)},
};
const struct body_norm native_layer_norm = {.forward = BODY_ROWS(layer_norm_rows),
                                            .backward = BODY_ROWS(layer_norm_backward)};

/* ---- llama -------------------------------------------------------------------------------- */

static const struct body_row attention[] = {
    {PROJECT(Q, H, NORMED, Q, Q)},
    {PROJECT(KV, H, NORMED, K, K)},
    {PROJECT(KV, H, NORMED, V, V), DIES(NORMED)},
    {ATTEND, ARGS(Q, K, V, ATTENDED, LSE), BORN(ATTENDED, LSE), DIES(Q, K, V, LSE)},
    {PROJECT(H, Q, ATTENDED, O, BRANCH), DIES(ATTENDED)},
    ADD_RESIDUAL,
};
static const struct body_row attention_backward[] = {
    NEW_DGRAD(H, Q, D_OUT, O, D_ATTENDED),
    WGRAD(H, Q, D_OUT, ATTENDED, O),
    {ATTEND, ARGS(Q, K, V, ATTENDED, LSE, D_ATTENDED, D_Q, D_K, D_V), BORN(D_Q, D_K, D_V)},
    NEW_DGRAD(KV, H, D_V, V, D_NORMED),
    WGRAD(KV, H, D_V, NORMED, V),
    MORE_DGRAD(KV, H, D_K, K, D_NORMED),
    WGRAD(KV, H, D_K, NORMED, K),
    MORE_DGRAD(Q, H, D_Q, Q, D_NORMED),
    WGRAD(Q, H, D_Q, NORMED, Q),
};
static const struct body_part attention_core = {
    .forward = {BODY_ROWS(attention)},
    .backward = {BODY_ROWS(attention_backward)},
    .late_backward = EAGER_REGION_END,
    .boundary = EAGER_RESIDUAL,
    .grads = {G_Q, G_K, G_V, G_O, G_NORM},
};

static const struct body_row swiglu[] = {
    {PROJECT(F, H, NORMED, GATE, GATE)},
    {PROJECT(F, H, NORMED, UP, UP), DIES(NORMED)},
    {RUN(SWIGLU), ARGS(GATE, UP, PRODUCT), BORN(PRODUCT), DIES(GATE, UP)},
    {PROJECT(H, F, PRODUCT, DOWN, BRANCH), DIES(PRODUCT)},
    ADD_RESIDUAL,
};
static const struct body_row swiglu_backward[] = {
    NEW_DGRAD(H, F, D_OUT, DOWN, D_PRODUCT),
    WGRAD(H, F, D_OUT, PRODUCT, DOWN),
    {RUN(SWIGLU), ARGS(GATE, UP, D_PRODUCT, D_GATE, D_UP), BORN(D_GATE, D_UP)},
    NEW_DGRAD(F, H, D_UP, UP, D_NORMED),
    WGRAD(F, H, D_UP, NORMED, UP),
    MORE_DGRAD(F, H, D_GATE, GATE, D_NORMED),
    WGRAD(F, H, D_GATE, NORMED, GATE),
};
const struct body_part native_swiglu_core = {
    .forward = {BODY_ROWS(swiglu)},
    .backward = {BODY_ROWS(swiglu_backward)},
    .boundary = EAGER_RESIDUAL,
    .grads = {G_GATE, G_UP, G_DOWN, G_NORM},
};

enum status llama_native_bodies(const struct model *model, struct body_builder *builder,
                                struct err *err)
{
    const struct body_part attention_part = block_part(&attention_core, &native_rms);
    const struct body_part mlp = block_part(&native_swiglu_core, &native_rms);

    builder->tensors = body_tensors;
    enum status status = block_bodies(builder, &attention_part, &mlp, NO_TENSOR, err);
    return status ? status : native_outer_bodies(model, false, builder, err);
}

/* ---- gpt2 --------------------------------------------------------------------------------- */

#define PROJECT_BIASED(out, in, x, of, y) \
    LINEAR(out, in), ARGS(x, PARAM(of), PARAM(of##_BIAS), y), BORN(y)

/* Queries, keys and values stay in one matrix. */
static const struct body_row joint_attention[] = {
    {PROJECT_BIASED(QKV, H, NORMED, QKV, QKV), DIES(NORMED)},
    {ATTEND, ARGS(QKV, ABSENT, ABSENT, ATTENDED, LSE), BORN(ATTENDED, LSE), DIES(QKV, LSE)},
    {PROJECT_BIASED(H, Q, ATTENDED, O, BRANCH), DIES(ATTENDED)},
    ADD_RESIDUAL,
};
static const struct body_row joint_attention_backward[] = {
    NEW_DGRAD(H, Q, D_OUT, O, D_ATTENDED),
    WGRAD(H, Q, D_OUT, ATTENDED, O),
    BIAS_GRAD(D_OUT, O_BIAS),
    {ATTEND, ARGS(QKV, ABSENT, ABSENT, ATTENDED, LSE, D_ATTENDED, D_QKV, ABSENT, ABSENT),
     BORN(D_QKV)},
    NEW_DGRAD(QKV, H, D_QKV, QKV, D_NORMED),
    WGRAD(QKV, H, D_QKV, NORMED, QKV),
    BIAS_GRAD(D_QKV, QKV_BIAS),
};
static const struct body_part joint_attention_core = {
    .forward = {BODY_ROWS(joint_attention)},
    .backward = {BODY_ROWS(joint_attention_backward)},
    .late_backward = EAGER_REGION_END,
    .boundary = EAGER_RESIDUAL,
    .grads = {G_QKV, G_QKV_BIAS, G_O, G_O_BIAS, G_NORM, G_NORM_BIAS},
};

static const struct body_row gelu_mlp[] = {
    {PROJECT_BIASED(F, H, NORMED, UP, UP), DIES(NORMED)},
    {RUN(GELU), ARGS(UP, ACTIVE), BORN(ACTIVE), DIES(UP)},
    {PROJECT_BIASED(H, F, ACTIVE, DOWN, BRANCH), DIES(ACTIVE)},
    ADD_RESIDUAL,
};
static const struct body_row gelu_mlp_backward[] = {
    NEW_DGRAD(H, F, D_OUT, DOWN, D_ACTIVE),
    WGRAD(H, F, D_OUT, ACTIVE, DOWN),
    BIAS_GRAD(D_OUT, DOWN_BIAS),
    {RUN(GELU), ARGS(UP, D_ACTIVE, D_UP), BORN(D_UP)},
    NEW_DGRAD(F, H, D_UP, UP, D_NORMED),
    WGRAD(F, H, D_UP, NORMED, UP),
    BIAS_GRAD(D_UP, UP_BIAS),
};
static const struct body_part gelu_mlp_core = {
    .forward = {BODY_ROWS(gelu_mlp)},
    .backward = {BODY_ROWS(gelu_mlp_backward)},
    .boundary = EAGER_RESIDUAL,
    .grads = {G_UP, G_UP_BIAS, G_DOWN, G_DOWN_BIAS, G_NORM, G_NORM_BIAS},
};

enum status gpt2_native_bodies(const struct model *model, struct body_builder *builder,
                               struct err *err)
{
    const struct body_part attention_part = block_part(&joint_attention_core, &native_layer_norm);
    const struct body_part mlp = block_part(&gelu_mlp_core, &native_layer_norm);

    builder->tensors = body_tensors;
    enum status status = block_bodies(builder, &attention_part, &mlp, NO_TENSOR, err);
    return status ? status : native_outer_bodies(model, true, builder, err);
}
