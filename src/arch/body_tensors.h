/*
 * The tensors that the bodies of all families name, with their sizes. One name stands for one
 * tensor of each part of a module: attention and MLP have a NORMED of their own, a recompute has
 * another again. Parameters have gradients only: their own bytes are the unit's.
 */
#ifndef SRC_ARCH_BODY_TENSORS_H
#define SRC_ARCH_BODY_TENSORS_H

#include "src/body_builder.h"

/* X(ENUM, bytes of an element, its number as a product of two sizes) */
#define TENSORS(X)                                                  \
    X(IN, 2, T, H) /* boundary: the residual */                     \
    X(OUT, 2, T, H)                                                 \
    X(D_OUT, 2, T, H)                                               \
    X(D_IN, 2, T, H)                                                \
    X(X32, 4, T, H) /* norm */                                      \
    X(SQUARE, 4, T, H)                                              \
    X(MEAN, 4, T, ONE)                                              \
    X(VARIANCE, 4, T, ONE)                                          \
    X(RSTD, 4, T, ONE)                                              \
    X(SCALED, 4, T, H)                                              \
    X(UNWEIGHTED, 2, T, H)                                          \
    X(NORMED, 2, T, H)                                              \
    X(D_UNWEIGHTED, 2, T, H)                                        \
    X(D_WEIGHT_ROWS, 2, T, H)                                       \
    X(D_SCALED, 4, T, H)                                            \
    X(D_X32, 4, T, H)                                               \
    X(D_RSTD_ROWS, 4, T, H)                                         \
    X(D_RSTD, 4, T, ONE)                                            \
    X(D_MEAN, 4, T, ONE)                                            \
    X(D_SQUARE, 4, T, H)                                            \
    X(POWER, 4, T, H)                                               \
    X(SLOPE, 4, T, H)                                               \
    X(D_BY_SQUARE, 4, T, H)                                         \
    X(D_BRANCH, 2, T, H)                                            \
    X(Q, 2, T, Q) /* attention */                                   \
    X(K, 2, T, KV)                                                  \
    X(V, 2, T, KV)                                                  \
    X(Q32, 4, T, Q)                                                 \
    X(K32, 4, T, KV)                                                \
    X(Q_TURNED, 4, T, Q)                                            \
    X(K_TURNED, 4, T, KV)                                           \
    X(Q_ROPE, 2, T, Q)                                              \
    X(K_ROPE, 2, T, KV)                                             \
    X(K_ALL, 2, T, Q) /* one for each query head */                 \
    X(V_ALL, 2, T, Q)                                               \
    X(ATTENDED, 2, T, Q)                                            \
    X(LSE, 4, T, NH)                                                \
    X(BRANCH, 2, T, H)                                              \
    X(D_ATTENDED, 2, T, Q)                                          \
    X(D_Q_ROPE, 2, T, Q)                                            \
    X(D_K_ALL, 2, T, Q)                                             \
    X(D_V_ALL, 2, T, Q)                                             \
    X(ROW_SUMS, 4, T, NH)                                           \
    X(D_Q_SUM, 4, T, Q)                                             \
    X(D_V, 2, T, KV)                                                \
    X(D_K_ROPE, 2, T, KV)                                           \
    X(D_K32, 4, T, KV)                                              \
    X(D_Q32, 4, T, Q)                                               \
    X(D_K_TURNED, 4, T, KV)                                         \
    X(D_Q_TURNED, 4, T, Q)                                          \
    X(D_K, 2, T, KV)                                                \
    X(D_Q, 2, T, Q)                                                 \
    X(D_NORMED, 2, T, H) /* summed over the linears that read it */ \
    X(D_NORMED2, 2, T, H)                                           \
    X(D_NORMED3, 2, T, H)                                           \
    X(QKV, 2, T, QKV) /* queries, keys and values in one */         \
    X(D_QKV, 2, T, QKV)                                             \
    X(GATE, 2, T, F) /* MLP */                                      \
    X(ACTIVE, 2, T, F)                                              \
    X(UP, 2, T, F)                                                  \
    X(GATE_UP, 2, T, GATE_UP) /* both in one */                     \
    X(D_GATE_UP, 2, T, GATE_UP)                                     \
    X(PRODUCT, 2, T, F)                                             \
    X(D_PRODUCT, 2, T, F)                                           \
    X(D_ACTIVE, 2, T, F)                                            \
    X(D_UP, 2, T, F)                                                \
    X(D_GATE, 2, T, F)                                              \
    X(D_NORMED4, 2, T, H)                                           \
    X(D_NORMED5, 2, T, H)                                           \
    X(D_NORMED6, 2, T, H)                                           \
    X(Q_CONV, 2, T, Q) /* Kimi delta attention */                   \
    X(K_CONV, 2, T, Q)                                              \
    X(V_CONV, 2, T, Q)                                              \
    X(F_MID, 2, T, D)                                               \
    X(DECAY, 2, T, Q)     /* as projected */                        \
    X(DECAY_SUM, 4, T, Q) /* logarithms, summed within chunks */    \
    X(BETA_RAW, 2, T, NH)                                           \
    X(BETA, 4, T, NH)                                               \
    X(Q_UNIT, 2, T, Q)                                              \
    X(K_UNIT, 2, T, Q)                                              \
    X(Q_RSTD, 4, T, NH)                                             \
    X(K_RSTD, 4, T, NH)                                             \
    X(A_QK, 2, T, C)                                                \
    X(A_KK, 2, T, C)                                                \
    X(W, 2, T, Q)                                                   \
    X(U, 2, T, Q)                                                   \
    X(Q_DECAYED, 2, T, Q)                                           \
    X(K_DECAYED, 2, T, Q)                                           \
    X(STATES, 2, T, STATE)                                          \
    X(V_NEW, 2, T, Q)                                               \
    X(O, 2, T, Q)                                                   \
    X(G_MID, 2, T, D)                                               \
    X(OUT_GATE, 2, T, Q)                                            \
    X(O_NORMED, 2, T, Q)                                            \
    X(O_RSTD, 4, T, NH)                                             \
    X(D_O_NORMED, 2, T, Q)                                          \
    X(D_O, 2, T, Q)                                                 \
    X(D_OUT_GATE, 2, T, Q)                                          \
    X(D_G_MID, 2, T, D)                                             \
    X(D_V_NEW, 2, T, Q)                                             \
    X(D_STATES, 2, T, STATE)                                        \
    X(D_A_QK, 4, T, C)                                              \
    X(D_A_KK, 4, T, C)                                              \
    X(D_Q_UNIT, 4, T, Q)                                            \
    X(D_K_UNIT, 4, T, Q)                                            \
    X(D_DECAY_SUM, 4, T, Q)                                         \
    X(D_BETA, 4, T, NH)                                             \
    X(D_BETA_RAW, 2, T, NH)                                         \
    X(D_DECAY, 2, T, Q)                                             \
    X(D_F_MID, 2, T, D)                                             \
    X(LOG_DECAY, 4, T, Q) /* of profile native */                   \
    X(Q_UNIT32, 4, T, Q)                                            \
    X(K_UNIT32, 4, T, Q)                                            \
    X(O32, 4, T, Q)                                                 \
    X(CHUNK_STATES, 4, CHUNKS, STATES)                              \
    X(D_O32, 4, T, Q)                                               \
    X(D_LOG_DECAY, 4, T, Q)                                         \
    X(D_Q_CONV, 2, T, Q)                                            \
    X(D_K_CONV, 2, T, Q)                                            \
    X(D_V_CONV, 2, T, Q)                                            \
    X(IDS, 8, T, ONE) /* embedding, head, loss */                   \
    X(SORTED_IDS, 8, T, ONE)                                        \
    X(SORTED_FROM, 8, T, ONE)                                       \
    X(TOKEN_ROWS, 2, T, H)                                          \
    X(POSITION_ROWS, 2, S, H)                                       \
    X(D_POSITION_ROWS, 2, S, H)                                     \
    X(SORTED_POSITIONS, 8, S, ONE)                                  \
    X(SORTED_POSITIONS_FROM, 8, S, ONE)                             \
    X(D_TABLE, 2, V, H)    /* added to a tied weight's gradient */  \
    X(NUMBER, 2, ONE, ONE) /* without a head */                     \
    X(NUMBER_OUT, 2, ONE, ONE)                                      \
    X(D_NUMBER_OUT, 2, ONE, ONE)                                    \
    X(D_NUMBER, 2, ONE, ONE)                                        \
    X(ROW_LSE, 4, T, ONE) /* loss: log-sum-exp of a token's */      \
    X(LOGITS, 2, T, V)                                              \
    X(D_LOGITS, 2, T, V)                                            \
    X(LOGITS32, 4, T, V)                                            \
    X(LOG_PROBS, 4, T, V)                                           \
    X(D_LOG_PROBS, 4, T, V)                                         \
    X(LOG_PROBS16, 2, T, V)                                         \
    X(D_LOG_PROBS16, 2, T, V)                                       \
    X(D_LOGITS32, 4, T, V)                                          \
    X(LOG_SUMS, 4, T, ONE)                                          \
    X(LOSS, 4, ONE, ONE)

/* X(ENUM): gradients of parameters, whose sizes the parameters and their policy give */
#define GRADS(X)                                                                            \
    X(G_NORM)                                                                               \
    X(G_NORM_BIAS) X(G_Q) X(G_K) X(G_V) X(G_QKV) X(G_QKV_BIAS) X(G_O) X(G_O_BIAS) X(G_GATE) \
        X(G_UP) X(G_UP_BIAS) X(G_GATE_UP) X(G_DOWN) X(G_DOWN_BIAS) X(G_Q_CONV) X(G_K_CONV)  \
            X(G_V_CONV) X(G_F_A) X(G_F_B) X(G_B) X(G_G_A) X(G_G_B) X(G_O_NORM) X(G_A_LOG)   \
                X(G_DT_BIAS) X(G_VOCAB) X(G_POSITIONS)

/* kda's matrices in the order of registration: a flat model's FP32 parameters come before them. */
#define KDA_MATRIX_GRADS \
    G_Q, G_K, G_V, G_Q_CONV, G_K_CONV, G_V_CONV, G_F_A, G_F_B, G_B, G_G_A, G_G_B, G_O_NORM, G_O

enum tensor {
    BEFORE_TENSORS = NO_TENSOR,
#define X(id, each, a, b) id,
    TENSORS(X)
#undef X
#define X(id) id,
        GRADS(X)
#undef X
            TENSOR_N
};
_Static_assert((int)TENSOR_N <= BODY_MAX_TENSORS, "more tensors than the builder holds");

extern const struct body_tensor body_tensors[TENSOR_N];

#endif
