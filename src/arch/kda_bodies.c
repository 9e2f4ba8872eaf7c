/*
 * kda: the operators of its attention, as tables of lifetimes (src/body_builder.h tells how to read
 * them). The MLP and the norms are llama's.
 *
 * What is saved, and what backward rebuilds: spec MEMORY 3.7, after the chunk kernels of fla. Chunks
 * are of 64 tokens. Bytes moved are what each kernel has to read and write, once; no list has them.
 * The FLOPs of all chunk kernels are counted at the one that carries the state from chunk to chunk
 * (op_flops() has the formula).
 *
 * These kernels are opaque to torch.compile and break its graph, so that a block runs the same in
 * all profiles; what a compiler would fuse of the MLP is not modelled.
 */
#include "src/arch/arch.h"
#include "src/arch/block_parts.h"
#include "src/arch/body_tensors.h"
#include "src/arch/outer_bodies.h"
#include "src/body_builder.h"

#define SHORT_CONVOLVE(x, convolved)                                      \
    {                                                                     \
        RUN(SHORT_CONV), MOVES(PER_TOKEN(4, Q)), BORN(convolved), DIES(x) \
    }
#define UNIT_LENGTH(x, unit, rstd)                                                    \
    {                                                                                 \
        RUN(L2_NORM), MOVES(PER_TOKEN(4, Q), FP32_PER_TOKEN(4, NH)), BORN(unit, rstd) \
    }
#define CARRY_STATE RUN(DELTA_RULE), .m = DIM_T, .n = DIM_NH, .k = DIM_D

static const struct body_row attention[] = {
    {LINEAR(Q, H), BORN(Q)},
    SHORT_CONVOLVE(Q, Q_CONV),
    {LINEAR(Q, H), BORN(K)},
    SHORT_CONVOLVE(K, K_CONV),
    {LINEAR(Q, H), BORN(V)},
    SHORT_CONVOLVE(V, V_CONV),
    {LINEAR(D, H), BORN(F_MID)},
    {LINEAR(Q, D), BORN(DECAY), DIES(F_MID)},
    {LINEAR(NH, H), BORN(BETA_RAW)},
    {RUN(SIGMOID), MOVES(PER_TOKEN(2, NH), FP32_PER_TOKEN(4, NH)), BORN(BETA), DIES(BETA_RAW)},
    UNIT_LENGTH(Q_CONV, Q_UNIT, Q_RSTD),
    UNIT_LENGTH(K_CONV, K_UNIT, K_RSTD),
    {RUN(DECAY), MOVES(PER_TOKEN(2, Q), FP32_PER_TOKEN(4, Q)), BORN(DECAY_SUM)},
    {RUN(CHUNK), MOVES(PER_TOKEN(4, Q), FP32_PER_TOKEN(4, Q), PER_TOKEN(4, C)), BORN(A_QK, A_KK)},
    {RUN(CHUNK), MOVES(PER_TOKEN(10, Q), FP32_PER_TOKEN(4, Q), PER_TOKEN(2, C)),
     BORN(W, U, K_DECAYED)},
    {CARRY_STATE, MOVES(PER_TOKEN(8, Q), PER_TOKEN(2, STATE)), BORN(STATES, V_NEW)},
    {RUN(CHUNK), MOVES(PER_TOKEN(6, Q), FP32_PER_TOKEN(4, Q), PER_TOKEN(2, C), PER_TOKEN(2, STATE)),
     BORN(O)},
    ENDS(W, U, K_DECAYED, STATES, V_NEW, DECAY_SUM, A_QK, A_KK, Q_UNIT, K_UNIT, Q_RSTD, K_RSTD),
    {LINEAR(D, H), BORN(G_MID)},
    {LINEAR(Q, D), BORN(OUT_GATE), DIES(G_MID)},
    {RUN(RMS), MOVES(PER_TOKEN(6, Q)), BORN(O_NORMED, O_RSTD), DIES(O, OUT_GATE, O_RSTD)},
    {LINEAR(H, Q), BORN(BRANCH), DIES(NORMED, Q_CONV, K_CONV, V_CONV, DECAY, BETA, O_NORMED)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(BRANCH, IN)},
};

#define SUM_IN_PLACE(summand)                                              \
    {                                                                      \
        RUN(ADD), MOVES(PER_TOKEN(6, H)), CHANGES(D_NORMED), DIES(summand) \
    }
/*
 * A node of autograd that computes all of its gradients, whichever are wanted; so are the gated norm
 * and the chunk kernels.
 */
#define SHORT_CONVOLVE_BACKWARD(x, d_convolved, d_x, g_conv)                                    \
    {                                                                                           \
        RUN(SHORT_CONV), MORE_KERNELS(1), MOVES(PER_TOKEN(6, Q)), BORN(d_x, g_conv), USES(d_x), \
            DIES(x, d_convolved)                                                                \
    }
#define UNIT_LENGTH_BACKWARD(unit, rstd, d_unit, d_x)                          \
    {                                                                          \
        RUN(L2_NORM), MOVES(PER_TOKEN(4, Q), FP32_PER_TOKEN(4, Q)), BORN(d_x), \
            DIES(unit, rstd, d_unit)                                           \
    }

static const struct body_row gate_backward[] = {
    {LINEAR_DGRAD(H, Q), BORN(D_O_NORMED), USES(D_OUT)},
    {LINEAR_WGRAD(H, Q), BORN(G_O), USES(D_OUT), DIES(O_NORMED)},
    {RUN(RMS), MORE_KERNELS(1), MOVES(PER_TOKEN(10, Q)), BORN(D_O, D_OUT_GATE, G_O_NORM),
     USES(D_O, D_OUT_GATE), DIES(O_RSTD, O, OUT_GATE, D_O_NORMED)},
    {LINEAR_DGRAD(Q, D), BORN(D_G_MID), USES(D_OUT_GATE)},
    {LINEAR_WGRAD(Q, D), BORN(G_G_B), DIES(G_MID, D_OUT_GATE)},
    {LINEAR_DGRAD(D, H), BORN(D_NORMED), USES(D_G_MID)},
    {LINEAR_WGRAD(D, H), BORN(G_G_A), USES(NORMED), DIES(D_G_MID)},
};

/* The first three rebuild what forward has let go of. */
static const struct body_row chunk_backward[] = {
    {RUN(DECAY), MOVES(PER_TOKEN(2, Q), FP32_PER_TOKEN(4, Q)), BORN(DECAY_SUM), USES(DECAY)},
    {RUN(CHUNK), MOVES(PER_TOKEN(14, Q), FP32_PER_TOKEN(4, Q), PER_TOKEN(2, C)),
     BORN(W, U, Q_DECAYED, K_DECAYED), USES(Q_UNIT, K_UNIT, V_CONV, BETA, A_KK, DECAY_SUM)},
    {RUN(CHUNK), MOVES(PER_TOKEN(8, Q), PER_TOKEN(2, STATE)), BORN(STATES, V_NEW),
     USES(W, U, K_DECAYED)},
    {RUN(CHUNK), MOVES(PER_TOKEN(6, Q), PER_TOKEN(2, C), FP32_PER_TOKEN(4, C)),
     BORN(D_V_NEW, D_A_QK), USES(A_QK, V_NEW, D_O)},
    {CARRY_STATE, MOVES(PER_TOKEN(12, Q), PER_TOKEN(2, STATE)), BORN(D_STATES), CHANGES(D_V_NEW),
     USES(W, Q_DECAYED, K_DECAYED, D_O)},
    {RUN(CHUNK),
     MOVES(PER_TOKEN(14, Q), FP32_PER_TOKEN(16, Q), FP32_PER_TOKEN(4, C), PER_TOKEN(4, STATE)),
     BORN(D_Q_UNIT, D_K_UNIT, D_DECAY_SUM, D_V_CONV, D_BETA, D_A_KK),
     USES(STATES, D_STATES, V_NEW, D_V_NEW, W, U)},
    {RUN(CHUNK), MOVES(PER_TOKEN(4, Q), FP32_PER_TOKEN(28, Q), FP32_PER_TOKEN(8, C)),
     CHANGES(D_Q_UNIT, D_K_UNIT, D_DECAY_SUM, D_V_CONV, D_BETA),
     USES(D_Q_UNIT, D_K_UNIT, D_DECAY_SUM, D_V_CONV, D_BETA),
     DIES(W, U, Q_DECAYED, K_DECAYED, STATES, V_NEW, D_STATES, D_V_NEW, D_A_QK, D_A_KK, A_QK, A_KK,
          V_CONV, BETA, D_O)},
    {RUN(DECAY), MORE_KERNELS(1), MOVES(PER_TOKEN(4, Q), FP32_PER_TOKEN(4, Q)),
     BORN(D_DECAY, G_A_LOG, G_DT_BIAS), USES(D_DECAY), DIES(DECAY, DECAY_SUM, D_DECAY_SUM)},
    UNIT_LENGTH_BACKWARD(K_UNIT, K_RSTD, D_K_UNIT, D_K_CONV),
    UNIT_LENGTH_BACKWARD(Q_UNIT, Q_RSTD, D_Q_UNIT, D_Q_CONV),
};

static const struct body_row projections_backward[] = {
    {RUN(SIGMOID), MOVES(PER_TOKEN(4, NH), FP32_PER_TOKEN(4, NH)), BORN(D_BETA_RAW),
     DIES(BETA_RAW, D_BETA)},
    {LINEAR_DGRAD(NH, H), BORN(D_NORMED2), USES(D_BETA_RAW)},
    {LINEAR_WGRAD(NH, H), BORN(G_B), USES(NORMED), DIES(D_BETA_RAW)},
    SUM_IN_PLACE(D_NORMED2),
    {LINEAR_DGRAD(Q, D), BORN(D_F_MID), USES(D_DECAY)},
    {LINEAR_WGRAD(Q, D), BORN(G_F_B), DIES(F_MID, D_DECAY)},
    {LINEAR_DGRAD(D, H), BORN(D_NORMED3), USES(D_F_MID)},
    {LINEAR_WGRAD(D, H), BORN(G_F_A), USES(NORMED), DIES(D_F_MID)},
    SUM_IN_PLACE(D_NORMED3),
    SHORT_CONVOLVE_BACKWARD(V, D_V_CONV, D_V, G_V_CONV),
    {LINEAR_DGRAD(Q, H), BORN(D_NORMED4), USES(D_V)},
    {LINEAR_WGRAD(Q, H), BORN(G_V), USES(NORMED), DIES(D_V)},
    SUM_IN_PLACE(D_NORMED4),
    SHORT_CONVOLVE_BACKWARD(K, D_K_CONV, D_K, G_K_CONV),
    {LINEAR_DGRAD(Q, H), BORN(D_NORMED5), USES(D_K)},
    {LINEAR_WGRAD(Q, H), BORN(G_K), USES(NORMED), DIES(D_K)},
    SUM_IN_PLACE(D_NORMED5),
    SHORT_CONVOLVE_BACKWARD(Q, D_Q_CONV, D_Q, G_Q_CONV),
    {LINEAR_DGRAD(Q, H), BORN(D_NORMED6), USES(D_Q)},
    {LINEAR_WGRAD(Q, H), BORN(G_Q), DIES(NORMED, D_Q)},
    SUM_IN_PLACE(D_NORMED6),
};

#define CORE(...)                                                                              \
    {                                                                                          \
        .forward = {BODY_ROWS(attention)},                                                     \
        .backward = {BODY_ROWS(gate_backward), BODY_ROWS(chunk_backward),                      \
                     BODY_ROWS(projections_backward)},                                         \
        .late_backward = EAGER_REGION_END, .boundary = EAGER_RESIDUAL, .grads = {__VA_ARGS__}, \
        .same = norm_same,                                                                     \
    }
static const struct body_part attention_cores[2] = {
    CORE(KDA_MATRIX_GRADS, G_A_LOG, G_DT_BIAS, G_NORM),
    CORE(G_A_LOG, G_DT_BIAS, KDA_MATRIX_GRADS, G_NORM),
};

enum status kda_bodies(const struct model *model, struct body_builder *builder, struct err *err)
{
    const struct body_norm *norm = &rms_norms[builder->table->options.norm];
    const struct body_part attention_part = block_part(&attention_cores[model->dims.flat], norm);
    const struct body_part mlp = block_part(&swiglu_core, norm);

    builder->tensors = body_tensors;
    enum status status = block_bodies(builder, &attention_part, &mlp, PRODUCT, err);
    return status ? status : outer_bodies(model, norm, false, builder, err);
}
