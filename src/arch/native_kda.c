/*
 * Profile native: kda's attention; see native_parts.h. The MLP and the norms are llama's.
 *
 * Queries and keys of unit length, decays, their gradients and the state are FP32, as the recurrence
 * computes with them; the state is kept at the start of each chunk of DELTA_CHUNK tokens, from which
 * backward goes through it again.
 */
#include "src/arch/arch.h"
#include "src/arch/native_parts.h"

#define CONVOLVE(x, of, y)                                       \
    {                                                            \
        RUN(SHORT_CONV), ARGS(x, PARAM(of), y), BORN(y), DIES(x) \
    }
#define UNIT_LENGTH(x, unit, rstd)                                         \
    {                                                                      \
        RUN(L2_NORM), ARGS(x, unit, rstd), BORN(unit, rstd), DIES(x, rstd) \
    }
#define RECUR RUN(DELTA_RULE), .m = DIM_T, .n = DIM_NH, .k = DIM_D

static const struct body_row attention[] = {
    {PROJECT(Q, H, NORMED, Q, Q)},
    CONVOLVE(Q, Q_CONV, Q_CONV),
    UNIT_LENGTH(Q_CONV, Q_UNIT32, Q_RSTD),
    {PROJECT(Q, H, NORMED, K, K)},
    CONVOLVE(K, K_CONV, K_CONV),
    UNIT_LENGTH(K_CONV, K_UNIT32, K_RSTD),
    {PROJECT(Q, H, NORMED, V, V)},
    CONVOLVE(V, V_CONV, V_CONV),
    {PROJECT(D, H, NORMED, F_A, F_MID)},
    {PROJECT(Q, D, F_MID, F_B, DECAY), DIES(F_MID)},
    {RUN(DECAY), ARGS(DECAY, PARAM(A_LOG), PARAM(DT_BIAS), LOG_DECAY), BORN(LOG_DECAY),
     DIES(DECAY)},
    {PROJECT(NH, H, NORMED, B, BETA_RAW)},
    {RUN(SIGMOID), ARGS(BETA_RAW, BETA), BORN(BETA), DIES(BETA_RAW)},
    {RECUR, ARGS(Q_UNIT32, K_UNIT32, V_CONV, LOG_DECAY, BETA, O32, CHUNK_STATES),
     BORN(O32, CHUNK_STATES), DIES(Q_UNIT32, K_UNIT32, V_CONV, LOG_DECAY, BETA, CHUNK_STATES)},
    {PROJECT(D, H, NORMED, G_A, G_MID), DIES(NORMED)},
    {PROJECT(Q, D, G_MID, G_B, OUT_GATE), DIES(G_MID)},
    {RUN(GATED_RMS), ARGS(O32, PARAM(O_NORM), OUT_GATE, O_NORMED, O_RSTD), BORN(O_NORMED, O_RSTD),
     DIES(O32, OUT_GATE, O_RSTD)},
    {PROJECT(H, Q, O_NORMED, O, BRANCH), DIES(O_NORMED)},
    ADD_RESIDUAL,
};

#define CONVOLVE_BACKWARD(x, of, d_y, d_x)                                        \
    {RUN(SHORT_CONV), ARGS(x, PARAM(of), d_y, d_x), BORN(d_x)},                   \
    {                                                                             \
        RUN(SHORT_CONV), OF_WEIGHT, ARGS(x, PARAM(of), d_y, G_##of), BORN(G_##of) \
    }

static const struct body_row gate_backward[] = {
    NEW_DGRAD(H, Q, D_OUT, O, D_O_NORMED),
    WGRAD(H, Q, D_OUT, O_NORMED, O),
    {RUN(GATED_RMS), ARGS(O32, PARAM(O_NORM), OUT_GATE, O_RSTD, D_O_NORMED, D_O32, D_OUT_GATE),
     BORN(D_O32, D_OUT_GATE)},
    {RUN(GATED_RMS), OF_WEIGHT, ARGS(O32, OUT_GATE, O_RSTD, D_O_NORMED, G_O_NORM), BORN(G_O_NORM)},
    NEW_DGRAD(Q, D, D_OUT_GATE, G_B, D_G_MID),
    WGRAD(Q, D, D_OUT_GATE, G_MID, G_B),
    NEW_DGRAD(D, H, D_G_MID, G_A, D_NORMED),
    WGRAD(D, H, D_G_MID, NORMED, G_A),
};
static const struct body_row recurrence_backward[] = {
    {RECUR,
     ARGS(Q_UNIT32, K_UNIT32, V_CONV, LOG_DECAY, BETA, CHUNK_STATES, D_O32, D_Q_UNIT, D_K_UNIT,
          D_V_CONV, D_LOG_DECAY, D_BETA),
     BORN(D_Q_UNIT, D_K_UNIT, D_V_CONV, D_LOG_DECAY, D_BETA)},
    {RUN(SIGMOID), ARGS(BETA, D_BETA, D_BETA_RAW), BORN(D_BETA_RAW)},
    MORE_DGRAD(NH, H, D_BETA_RAW, B, D_NORMED),
    WGRAD(NH, H, D_BETA_RAW, NORMED, B),
    {RUN(DECAY), ARGS(DECAY, PARAM(A_LOG), PARAM(DT_BIAS), D_LOG_DECAY, D_DECAY), BORN(D_DECAY)},
    {RUN(DECAY), OF_WEIGHT,
     ARGS(DECAY, PARAM(A_LOG), PARAM(DT_BIAS), D_LOG_DECAY, G_A_LOG, G_DT_BIAS),
     BORN(G_A_LOG, G_DT_BIAS)},
    NEW_DGRAD(Q, D, D_DECAY, F_B, D_F_MID),
    WGRAD(Q, D, D_DECAY, F_MID, F_B),
    MORE_DGRAD(D, H, D_F_MID, F_A, D_NORMED),
    WGRAD(D, H, D_F_MID, NORMED, F_A),
};
static const struct body_row inputs_backward[] = {
    CONVOLVE_BACKWARD(V, V_CONV, D_V_CONV, D_V),
    MORE_DGRAD(Q, H, D_V, V, D_NORMED),
    WGRAD(Q, H, D_V, NORMED, V),
    {RUN(L2_NORM), ARGS(K_UNIT32, K_RSTD, D_K_UNIT, D_K_CONV), BORN(D_K_CONV)},
    CONVOLVE_BACKWARD(K, K_CONV, D_K_CONV, D_K),
    MORE_DGRAD(Q, H, D_K, K, D_NORMED),
    WGRAD(Q, H, D_K, NORMED, K),
    {RUN(L2_NORM), ARGS(Q_UNIT32, Q_RSTD, D_Q_UNIT, D_Q_CONV), BORN(D_Q_CONV)},
    CONVOLVE_BACKWARD(Q, Q_CONV, D_Q_CONV, D_Q),
    MORE_DGRAD(Q, H, D_Q, Q, D_NORMED),
    WGRAD(Q, H, D_Q, NORMED, Q),
};

#define CORE(...)                                                                              \
    {                                                                                          \
        .forward = {BODY_ROWS(attention)},                                                     \
        .backward = {BODY_ROWS(gate_backward), BODY_ROWS(recurrence_backward),                 \
                     BODY_ROWS(inputs_backward)},                                              \
        .late_backward = EAGER_REGION_END, .boundary = EAGER_RESIDUAL, .grads = {__VA_ARGS__}, \
    }
static const struct body_part attention_cores[2] = {
    CORE(KDA_MATRIX_GRADS, G_A_LOG, G_DT_BIAS, G_NORM),
    CORE(G_A_LOG, G_DT_BIAS, KDA_MATRIX_GRADS, G_NORM),
};

enum status kda_native_bodies(const struct model *model, struct body_builder *builder,
                              struct err *err)
{
    const struct body_part attention_part =
        block_part(&attention_cores[model->dims.flat], &native_rms);
    const struct body_part mlp = block_part(&native_swiglu_core, &native_rms);

    builder->tensors = body_tensors;
    enum status status = block_bodies(builder, &attention_part, &mlp, NO_TENSOR, err);
    return status ? status : native_outer_bodies(model, false, builder, err);
}
