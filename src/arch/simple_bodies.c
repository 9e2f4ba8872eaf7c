/*
 * simple-llm: the operators of its blocks, as tables of lifetimes (src/body_builder.h tells how to
 * read them). Attention projects queries, keys and values and lets them go; the MLP has gate and up
 * in one matrix, of which both are views. A compiler would not run the former: here eager PyTorch
 * is all that is modelled.
 */
#include "src/arch/arch.h"
#include "src/arch/block_parts.h"
#include "src/arch/body_tensors.h"
#include "src/arch/outer_bodies.h"
#include "src/body_builder.h"

static const struct body_row attention[] = {
    {LINEAR(QKV, H), BORN(QKV)},
    {LINEAR(H, Q), BORN(BRANCH), DIES(NORMED, QKV)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};
static const struct body_row attention_backward[] = {
    {LINEAR_DGRAD(H, Q), BORN(D_NORMED), USES(D_OUT)},
    {LINEAR_WGRAD(H, Q), BORN(G_O), USES(D_OUT), DIES(NORMED)},
};

static const struct body_row mlp[] = {
    {LINEAR(GATE_UP, H), BORN(GATE_UP)},
    {RUN(SILU), MOVES(PER_TOKEN(4, F)), BORN(ACTIVE)},
    {RUN(MUL), MOVES(PER_TOKEN(6, F)), BORN(PRODUCT), DIES(ACTIVE)},
    {LINEAR(H, F), BORN(BRANCH), DIES(PRODUCT, GATE_UP, NORMED)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};
static const struct body_row mlp_backward[] = {
    {LINEAR_DGRAD(H, F), BORN(D_PRODUCT), USES(D_OUT)},
    {LINEAR_WGRAD(H, F), BORN(G_DOWN), USES(D_OUT), DIES(PRODUCT)},
    {RUN(MUL), MOVES(PER_TOKEN(6, F)), BORN(D_ACTIVE), USES(GATE_UP, D_PRODUCT)},
    {ALSO(MUL), MOVES(PER_TOKEN(6, F)), BORN(D_UP), DIES(ACTIVE, D_PRODUCT)},
    {RUN(SILU), MOVES(PER_TOKEN(10, F)), BORN(D_GATE), DIES(GATE_UP, D_ACTIVE)},
    {RUN(CAT), MOVES(PER_TOKEN(4, GATE_UP)), BORN(D_GATE_UP), DIES(D_GATE, D_UP)},
    {LINEAR_DGRAD(GATE_UP, H), BORN(D_NORMED), USES(D_GATE_UP)},
    {LINEAR_WGRAD(GATE_UP, H), BORN(G_GATE_UP), DIES(NORMED, D_GATE_UP)},
};

static const struct body_part attention_core = {
    .forward = {BODY_ROWS(attention)},
    .backward = {BODY_ROWS(attention_backward)},
    .late_backward = EAGER_REGION_END,
    .boundary = EAGER_RESIDUAL,
    .grads = {G_QKV, G_O, G_NORM, G_NORM_BIAS},
};
static const struct body_part mlp_core = {
    .forward = {BODY_ROWS(mlp)},
    .backward = {BODY_ROWS(mlp_backward)},
    .boundary = EAGER_RESIDUAL,
    .grads = {G_GATE_UP, G_DOWN, G_NORM, G_NORM_BIAS},
};

enum status simple_bodies(const struct model *model, struct body_builder *builder, struct err *err)
{
    const struct body_part attention_part = block_part(&attention_core, &layer_norm);
    const struct body_part mlp_part = block_part(&mlp_core, &layer_norm);

    builder->tensors = body_tensors;
    enum status status = block_bodies(builder, &attention_part, &mlp_part, NO_TENSOR, err);
    return status ? status : outer_bodies(model, &layer_norm, true, builder, err);
}
