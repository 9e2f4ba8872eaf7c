/*
 * The tensors that the bodies of all families name, with their sizes. One name stands for one
 * tensor of each part of a module: attention and MLP have a NORMED of their own, a recompute has
 * another again. Parameters have gradients only: their own bytes are the unit's.
 */
#ifndef SRC_ARCH_BODY_TENSORS_H
#define SRC_ARCH_BODY_TENSORS_H

#include "src/body_builder.h"

/* X(ENUM, bytes of an element, its number as a product of two sizes, what people call it) */
#define TENSORS(X)                                                                             \
    X(IN, 2, T, H, "residual") /* boundary: the residual */                                    \
    X(OUT, 2, T, H, "residual")                                                                \
    X(D_OUT, 2, T, H, "gradient of residual")                                                  \
    X(D_IN, 2, T, H, "gradient of residual")                                                   \
    X(X32, 4, T, H, "norm input in FP32") /* norm */                                           \
    X(SQUARE, 4, T, H, "squares of the norm input")                                            \
    X(MEAN, 4, T, ONE, "norm mean")                                                            \
    X(VARIANCE, 4, T, ONE, "norm variance")                                                    \
    X(RSTD, 4, T, ONE, "norm scale")                                                           \
    X(SCALED, 4, T, H, "norm output in FP32")                                                  \
    X(UNWEIGHTED, 2, T, H, "norm output before its weight")                                    \
    X(NORMED, 2, T, H, "norm output")                                                          \
    X(D_UNWEIGHTED, 2, T, H, "gradient of norm output before its weight")                      \
    X(D_WEIGHT_ROWS, 2, T, H, "gradient of norm weight by row")                                \
    X(D_SCALED, 4, T, H, "gradient of norm output in FP32")                                    \
    X(D_X32, 4, T, H, "gradient of norm input in FP32")                                        \
    X(D_RSTD_ROWS, 4, T, H, "gradient of norm scale by row")                                   \
    X(D_RSTD, 4, T, ONE, "gradient of norm scale")                                             \
    X(D_MEAN, 4, T, ONE, "gradient of norm mean")                                              \
    X(D_SQUARE, 4, T, H, "gradient of squares of the norm input")                              \
    X(POWER, 4, T, H, "norm power")                                                            \
    X(SLOPE, 4, T, H, "norm slope")                                                            \
    X(D_BY_SQUARE, 4, T, H, "gradient of norm input by its square")                            \
    X(D_BRANCH, 2, T, H, "gradient of branch output")                                          \
    X(Q, 2, T, Q, "queries") /* attention */                                                   \
    X(K, 2, T, KV, "keys")                                                                     \
    X(V, 2, T, KV, "values")                                                                   \
    X(Q32, 4, T, Q, "queries in FP32")                                                         \
    X(K32, 4, T, KV, "keys in FP32")                                                           \
    X(Q_TURNED, 4, T, Q, "rotated queries in FP32")                                            \
    X(K_TURNED, 4, T, KV, "rotated keys in FP32")                                              \
    X(Q_ROPE, 2, T, Q, "rotated queries")                                                      \
    X(K_ROPE, 2, T, KV, "rotated keys")                                                        \
    X(K_ALL, 2, T, Q, "keys of all heads") /* one for each query head */                       \
    X(V_ALL, 2, T, Q, "values of all heads")                                                   \
    X(ATTENDED, 2, T, Q, "attention output")                                                   \
    X(LSE, 4, T, NH, "attention log-sum-exp")                                                  \
    X(BRANCH, 2, T, H, "branch output")                                                        \
    X(D_ATTENDED, 2, T, Q, "gradient of attention output")                                     \
    X(D_Q_ROPE, 2, T, Q, "gradient of rotated queries")                                        \
    X(D_K_ALL, 2, T, Q, "gradient of keys of all heads")                                       \
    X(D_V_ALL, 2, T, Q, "gradient of values of all heads")                                     \
    X(ROW_SUMS, 4, T, NH, "attention row sums")                                                \
    X(D_Q_SUM, 4, T, Q, "gradient of queries in FP32")                                         \
    X(D_V, 2, T, KV, "gradient of values")                                                     \
    X(D_K_ROPE, 2, T, KV, "gradient of rotated keys")                                          \
    X(D_K32, 4, T, KV, "gradient of keys in FP32")                                             \
    X(D_Q32, 4, T, Q, "gradient of queries in FP32")                                           \
    X(D_K_TURNED, 4, T, KV, "gradient of rotated keys in FP32")                                \
    X(D_Q_TURNED, 4, T, Q, "gradient of rotated queries in FP32")                              \
    X(D_K, 2, T, KV, "gradient of keys")                                                       \
    X(D_Q, 2, T, Q, "gradient of queries")                                                     \
    X(D_NORMED, 2, T, H, "gradient of norm output") /* summed over the linears that read it */ \
    X(D_NORMED2, 2, T, H, "gradient of norm output")                                           \
    X(D_NORMED3, 2, T, H, "gradient of norm output")                                           \
    X(QKV, 2, T, QKV, "queries, keys and values") /* queries, keys and values in one */        \
    X(D_QKV, 2, T, QKV, "gradient of queries, keys and values")                                \
    X(GATE, 2, T, F, "MLP gate") /* MLP */                                                     \
    X(ACTIVE, 2, T, F, "MLP activation")                                                       \
    X(UP, 2, T, F, "MLP up")                                                                   \
    X(GATE_UP, 2, T, GATE_UP, "MLP gate and up") /* both in one */                             \
    X(D_GATE_UP, 2, T, GATE_UP, "gradient of MLP gate and up")                                 \
    X(PRODUCT, 2, T, F, "MLP product")                                                         \
    X(D_PRODUCT, 2, T, F, "gradient of MLP product")                                           \
    X(D_ACTIVE, 2, T, F, "gradient of MLP activation")                                         \
    X(D_UP, 2, T, F, "gradient of MLP up")                                                     \
    X(D_GATE, 2, T, F, "gradient of MLP gate")                                                 \
    X(D_NORMED4, 2, T, H, "gradient of norm output")                                           \
    X(D_NORMED5, 2, T, H, "gradient of norm output")                                           \
    X(D_NORMED6, 2, T, H, "gradient of norm output")                                           \
    X(Q_CONV, 2, T, Q, "convolved queries") /* Kimi delta attention */                         \
    X(K_CONV, 2, T, Q, "convolved keys")                                                       \
    X(V_CONV, 2, T, Q, "convolved values")                                                     \
    X(F_MID, 2, T, D, "decay, low rank")                                                       \
    X(DECAY, 2, T, Q, "decay")                /* as projected */                               \
    X(DECAY_SUM, 4, T, Q, "summed log decay") /* logarithms, summed within chunks */           \
    X(BETA_RAW, 2, T, NH, "beta before its sigmoid")                                           \
    X(BETA, 4, T, NH, "beta")                                                                  \
    X(Q_UNIT, 2, T, Q, "normalised queries")                                                   \
    X(K_UNIT, 2, T, Q, "normalised keys")                                                      \
    X(Q_RSTD, 4, T, NH, "query norms")                                                         \
    X(K_RSTD, 4, T, NH, "key norms")                                                           \
    X(A_QK, 2, T, C, "scores of queries and keys")                                             \
    X(A_KK, 2, T, C, "scores of keys and keys")                                                \
    X(W, 2, T, Q, "delta rule w")                                                              \
    X(U, 2, T, Q, "delta rule u")                                                              \
    X(Q_DECAYED, 2, T, Q, "decayed queries")                                                   \
    X(K_DECAYED, 2, T, Q, "decayed keys")                                                      \
    X(STATES, 2, T, STATE, "chunk states")                                                     \
    X(V_NEW, 2, T, Q, "new values")                                                            \
    X(O, 2, T, Q, "delta rule output")                                                         \
    X(G_MID, 2, T, D, "output gate, low rank")                                                 \
    X(OUT_GATE, 2, T, Q, "output gate")                                                        \
    X(O_NORMED, 2, T, Q, "gated norm output")                                                  \
    X(O_RSTD, 4, T, NH, "gated norm scale")                                                    \
    X(D_O_NORMED, 2, T, Q, "gradient of gated norm output")                                    \
    X(D_O, 2, T, Q, "gradient of delta rule output")                                           \
    X(D_OUT_GATE, 2, T, Q, "gradient of output gate")                                          \
    X(D_G_MID, 2, T, D, "gradient of output gate, low rank")                                   \
    X(D_V_NEW, 2, T, Q, "gradient of new values")                                              \
    X(D_STATES, 2, T, STATE, "gradient of chunk states")                                       \
    X(D_A_QK, 4, T, C, "gradient of scores of queries and keys")                               \
    X(D_A_KK, 4, T, C, "gradient of scores of keys and keys")                                  \
    X(D_Q_UNIT, 4, T, Q, "gradient of normalised queries")                                     \
    X(D_K_UNIT, 4, T, Q, "gradient of normalised keys")                                        \
    X(D_DECAY_SUM, 4, T, Q, "gradient of summed log decay")                                    \
    X(D_BETA, 4, T, NH, "gradient of beta")                                                    \
    X(D_BETA_RAW, 2, T, NH, "gradient of beta before its sigmoid")                             \
    X(D_DECAY, 2, T, Q, "gradient of decay")                                                   \
    X(D_F_MID, 2, T, D, "gradient of decay, low rank")                                         \
    X(LOG_DECAY, 4, T, Q, "log decay") /* of profile native */                                 \
    X(Q_UNIT32, 4, T, Q, "normalised queries in FP32")                                         \
    X(K_UNIT32, 4, T, Q, "normalised keys in FP32")                                            \
    X(O32, 4, T, Q, "delta rule output in FP32")                                               \
    X(CHUNK_STATES, 4, CHUNKS, STATES, "chunk states in FP32")                                 \
    X(D_O32, 4, T, Q, "gradient of delta rule output in FP32")                                 \
    X(D_LOG_DECAY, 4, T, Q, "gradient of log decay")                                           \
    X(D_Q_CONV, 2, T, Q, "gradient of convolved queries")                                      \
    X(D_K_CONV, 2, T, Q, "gradient of convolved keys")                                         \
    X(D_V_CONV, 2, T, Q, "gradient of convolved values")                                       \
    X(IDS, 8, T, ONE, "token ids") /* embedding, head, loss */                                 \
    X(SORTED_IDS, 8, T, ONE, "sorted token ids")                                               \
    X(SORTED_FROM, 8, T, ONE, "places of sorted token ids")                                    \
    X(TOKEN_ROWS, 2, T, H, "token embeddings")                                                 \
    X(POSITION_ROWS, 2, S, H, "position embeddings")                                           \
    X(D_POSITION_ROWS, 2, S, H, "gradient of position embeddings")                             \
    X(SORTED_POSITIONS, 8, S, ONE, "sorted positions")                                         \
    X(SORTED_POSITIONS_FROM, 8, S, ONE, "places of sorted positions")                          \
    X(D_TABLE, 2, V, H, "gradient of embedding table") /* added to a tied weight's gradient */ \
    X(NUMBER, 2, ONE, ONE, "mean")                     /* without a head */                    \
    X(NUMBER_OUT, 2, ONE, ONE, "mean")                                                         \
    X(D_NUMBER_OUT, 2, ONE, ONE, "gradient of mean")                                           \
    X(D_NUMBER, 2, ONE, ONE, "gradient of mean")                                               \
    X(ROW_LSE, 4, T, ONE, "loss log-sum-exp") /* loss: log-sum-exp of a token's */             \
    X(LOGITS, 2, T, V, "logits")                                                               \
    X(D_LOGITS, 2, T, V, "gradient of logits")                                                 \
    X(LOGITS32, 4, T, V, "logits in FP32")                                                     \
    X(LOG_PROBS, 4, T, V, "log-probabilities")                                                 \
    X(D_LOG_PROBS, 4, T, V, "gradient of log-probabilities")                                   \
    X(LOG_PROBS16, 2, T, V, "log-probabilities in BF16")                                       \
    X(D_LOG_PROBS16, 2, T, V, "gradient of log-probabilities in BF16")                         \
    X(D_LOGITS32, 4, T, V, "gradient of logits in FP32")                                       \
    X(LOG_SUMS, 4, T, ONE, "loss log-sum-exp")                                                 \
    X(LOSS, 4, ONE, ONE, "loss")

/* X(ENUM): gradients of parameters, whose sizes the parameters and their policy give */
#define GRADS(X)                                                                             \
    X(G_NORM)                                                                                \
    X(G_NORM_BIAS)                                                                           \
    X(G_Q)                                                                                   \
    X(G_K) X(G_V) X(G_QKV) X(G_QKV_BIAS) X(G_O) X(G_O_BIAS) X(G_GATE) X(G_UP) X(G_UP_BIAS)   \
        X(G_GATE_UP) X(G_DOWN) X(G_DOWN_BIAS) X(G_Q_CONV) X(G_K_CONV) X(G_V_CONV) X(G_F_A)   \
            X(G_F_B) X(G_B) X(G_G_A) X(G_G_B) X(G_O_NORM) X(G_A_LOG) X(G_DT_BIAS) X(G_VOCAB) \
                X(G_POSITIONS)

/* kda's matrices in the order of registration: a flat model's FP32 parameters come before them. */
#define KDA_MATRIX_GRADS \
    G_Q, G_K, G_V, G_Q_CONV, G_K_CONV, G_V_CONV, G_F_A, G_F_B, G_B, G_G_A, G_G_B, G_O_NORM, G_O

enum tensor {
    BEFORE_TENSORS = NO_TENSOR,
#define X(id, each, a, b, name) id,
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
