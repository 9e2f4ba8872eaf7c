/*
 * Norms, SwiGLU and residuals as tables of lifetimes (src/body_builder.h tells how to read them).
 *
 * Orders and lifetimes: spec MEMORY 2.4, 3.1 and 3.4. Bytes moved: spec COST 3, list (c).
 */
#include "src/arch/block_parts.h"

#include "src/arch/body_tensors.h"
#include "src/arch/lora_parts.h"

/* ---- norms -------------------------------------------------------------------------------- */

static const struct body_row fused_norm[] = {
    {RUN(RMS), MOVES(PER_TOKEN(4, H)), BORN(NORMED, RSTD), DIES(RSTD)},
};
static const struct body_row fused_norm_backward[] = {
    {RUN(RMS), OF_WEIGHT, MOVES(PER_TOKEN(4, H)), BORN(G_NORM), USES(RSTD, IN, D_NORMED)},
    {ALSO(RMS), MOVES(PER_TOKEN(6, H)), BORN(D_BRANCH), DIES(RSTD, IN, D_NORMED)},
};

static const struct body_row composite_norm[] = {
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, H)), BORN(X32)},
    {RUN(POW), MOVES(FP32_PER_TOKEN(8, H)), BORN(SQUARE)},
    {RUN(MEAN), MOVES(FP32_PER_TOKEN(4, H)), BORN(MEAN), DIES(SQUARE)},
    {RUN(ADD), BORN(VARIANCE), DIES(MEAN)},
    {RUN(RSQRT), BORN(RSTD), DIES(VARIANCE)},
    {RUN(MUL), MOVES(FP32_PER_TOKEN(8, H)), BORN(SCALED)},
    ENDS_WHEN(WHEN_CAST, X32),
    ENDS(RSTD),
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, H)), BORN(UNWEIGHTED), DIES(SCALED)},
    {RUN(MULW), MOVES(PER_TOKEN(4, H)), BORN(NORMED), DIES(UNWEIGHTED)},
};
/*
 * x reaches the result twice: through the product and through the mean of squares. List (c) has the
 * bytes of these steps (80 d) but none for the two sums in place, here and after the norm.
 */
static const struct body_row composite_norm_backward[] = {
    {RUN(MULW), MOVES(PER_TOKEN(4, H)), BORN(D_UNWEIGHTED), USES(D_NORMED)},
    {ALSO(MULW), OF_WEIGHT, MORE_KERNELS(1), MOVES(PER_TOKEN(8, H)), BORN(D_WEIGHT_ROWS, G_NORM),
     DIES(D_WEIGHT_ROWS, UNWEIGHTED, D_NORMED)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, H)), BORN(D_SCALED), DIES(D_UNWEIGHTED)},
    {RUN(MUL), MORE_KERNELS(2), MOVES(FP32_PER_TOKEN(24, H)), BORN(D_X32, D_RSTD_ROWS, D_RSTD),
     USES(X32, RSTD), DIES(D_RSTD_ROWS, D_SCALED)},
    {RUN(RSQRT), BORN(D_MEAN), DIES(RSTD, D_RSTD)},
    {RUN(MEAN), MOVES(FP32_PER_TOKEN(4, H)), BORN(D_SQUARE), DIES(D_MEAN)},
    {RUN(POW), MOVES(FP32_PER_TOKEN(8, H)), BORN(POWER), USES(X32)},
    {RUN(POW), MOVES(FP32_PER_TOKEN(8, H)), BORN(SLOPE), DIES(POWER)},
    {RUN(POW), MOVES(FP32_PER_TOKEN(12, H)), BORN(D_BY_SQUARE), DIES(SLOPE, X32, D_SQUARE)},
    {RUN(ADD), CHANGES(D_X32), DIES(D_BY_SQUARE)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, H)), BORN(D_BRANCH), DIES(D_X32)},
};

/* The branch's gradient is added into the residual's buffer. */
static const struct body_row residual_backward[] = {
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), CHANGES(D_OUT), DIES(D_BRANCH)},
};
static const struct body_row composite_residual_backward[] = {
    {RUN(ADD), CHANGES(D_OUT), DIES(D_BRANCH)},
};

static const struct body_row layer_norm_forward[] = {
    {RUN(LAYER_NORM), MOVES(PER_TOKEN(4, H)), BORN(NORMED, MEAN, RSTD), DIES(MEAN, RSTD)},
};
static const struct body_row layer_norm_forward_backward[] = {
    {RUN(LAYER_NORM), MOVES(PER_TOKEN(6, H)), BORN(D_BRANCH), DIES(MEAN, RSTD, IN, D_NORMED)},
    {ALSO(LAYER_NORM), OF_WEIGHT, MOVES(PER_TOKEN(4, H)), BORN(G_NORM, G_NORM_BIAS),
     USES(MEAN, RSTD, IN, D_NORMED)},
};

const struct body_same norm_same[] = {NORM_CASTS, {NO_TENSOR, NO_TENSOR, 0}};

#define NORM(kind, sum)                                                     \
    {                                                                       \
        .forward = BODY_ROWS(kind), .backward = BODY_ROWS(kind##_backward), \
        .residual = BODY_ROWS(sum),                                         \
    }
const struct body_norm rms_norms[NORM_KIND_N] = {
    [NORM_FUSED] = NORM(fused_norm, residual_backward),
    [NORM_COMPOSITE] = NORM(composite_norm, composite_residual_backward),
};
const struct body_norm layer_norm = NORM(layer_norm_forward, residual_backward);

/* ---- SwiGLU ------------------------------------------------------------------------------- */

static const struct body_row swiglu[] = {
    {LINEAR(F, H), BORN(GATE)},
    {RUN(SILU), MOVES(PER_TOKEN(4, F)), BORN(ACTIVE), DIES(GATE)},
    {LINEAR(F, H), BORN(UP)},
    {RUN(MUL), MOVES(PER_TOKEN(6, F)), BORN(PRODUCT), DIES(ACTIVE, UP)},
    {LINEAR(H, F), BORN(BRANCH), DIES(PRODUCT, NORMED)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};

static const struct body_row swiglu_backward[] = {
    {LINEAR_DGRAD(H, F), BORN(D_PRODUCT), USES(D_OUT)},
    {LINEAR_WGRAD(H, F), BORN(G_DOWN), USES(D_OUT), DIES(PRODUCT)},
    {RUN(MUL), MOVES(PER_TOKEN(6, F)), BORN(D_ACTIVE), USES(D_PRODUCT), DIES(UP)},
    {ALSO(MUL), MOVES(PER_TOKEN(6, F)), BORN(D_UP), DIES(ACTIVE, D_PRODUCT)},
    {LINEAR_DGRAD(F, H), BORN(D_NORMED), USES(D_UP)},
    {LINEAR_WGRAD(F, H), BORN(G_UP), USES(NORMED), DIES(D_UP)},
    {RUN(SILU), MOVES(PER_TOKEN(10, F)), BORN(D_GATE), DIES(GATE, D_ACTIVE)},
    {LINEAR_DGRAD(F, H), BORN(D_NORMED2), USES(D_GATE)},
    {LINEAR_WGRAD(F, H), BORN(G_GATE), DIES(NORMED, D_GATE)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), CHANGES(D_NORMED), DIES(D_NORMED2)},
};

const struct body_part swiglu_core = {
    .forward = {BODY_ROWS(swiglu)},
    .backward = {BODY_ROWS(swiglu_backward)},
    .boundary = EAGER_RESIDUAL,
    .grads = {G_GATE, G_UP, G_DOWN, G_NORM},
    .same = norm_same,
};

/* ---- blocks ------------------------------------------------------------------------------- */

const struct body_row eager_region_end[1] = {HELD(IN)};

struct body_part block_part(const struct body_part *core, const struct body_norm *norm)
{
    struct body_part part = *core;
    uint32_t n_backward = 0;
    while (core->backward[n_backward].n > 0)
        n_backward++;
    part.forward[0] = norm->forward;
    part.forward[1] = core->forward[0];
    part.backward[n_backward] = norm->backward;
    part.backward[n_backward + 1] = norm->residual;
    return part;
}

enum status block_bodies(struct body_builder *builder, const struct body_part *attention,
                         const struct body_part *mlp, uint8_t stopped_at, struct err *err)
{
    struct body_part parts[BLOCK_PARTS] = {[BLOCK_ATTENTION] = *attention, [BLOCK_MLP] = *mlp};
    const struct body_recipe halves[] = {
        {.kind = BODY_ATTENTION, .parts = {&parts[BLOCK_ATTENTION]}, .n_part = 1},
        {.kind = BODY_MLP, .parts = {&parts[BLOCK_MLP]}, .n_part = 1},
    };
    struct body_recipe block = {.kind = BODY_BLOCK,
                                .parts = {&parts[BLOCK_ATTENTION], &parts[BLOCK_MLP]},
                                .n_part = 2,
                                .stopped_at = stopped_at};
    enum status status = STATUS_OK;
    if (builder->model->lora)
        lora_adapt(builder, parts);
    for (int ac = 0; ac < AC_N && !status; ac++) {
        block.ac = (enum checkpointing)ac;
        status = body_builder_add(builder, &block, err);
    }
    for (size_t i = 0; i < sizeof halves / sizeof *halves && !status; i++)
        status = body_builder_add(builder, &halves[i], err);
    return status;
}
