/*
 * The tensors that the bodies of all families name, with their sizes. One name stands for one
 * tensor of each part of a module: attention and MLP have a NORMED of their own, a recompute has
 * another again. Parameters have gradients only: their own bytes are the unit's.
 */
#ifndef SRC_ARCH_BODY_TENSORS_H
#define SRC_ARCH_BODY_TENSORS_H

#include "src/body_builder.h"

/* X(ENUM, bytes of an element, its number as a product of two sizes) */
#define TENSORS(X)                                                   \
    X(IN, 2, T, H)          /* boundary: the residual */             \
    X(OUT, 2, T, H)                                                  \
    X(D_OUT, 2, T, H)                                                \
    X(D_IN, 2, T, H)                                                 \
    X(X32, 4, T, H)         /* norm */                               \
    X(SQUARE, 4, T, H)                                               \
    X(MEAN, 4, T, ONE)                                               \
    X(VARIANCE, 4, T, ONE)                                           \
    X(RSTD, 4, T, ONE)                                               \
    X(SCALED, 4, T, H)                                               \
    X(UNWEIGHTED, 2, T, H)                                           \
    X(NORMED, 2, T, H)                                               \
    X(D_UNWEIGHTED, 2, T, H)                                         \
    X(D_WEIGHT_ROWS, 2, T, H)                                        \
    X(D_SCALED, 4, T, H)                                             \
    X(D_X32, 4, T, H)                                                \
    X(D_RSTD_ROWS, 4, T, H)                                          \
    X(D_RSTD, 4, T, ONE)                                             \
    X(D_MEAN, 4, T, ONE)                                             \
    X(D_SQUARE, 4, T, H)                                             \
    X(POWER, 4, T, H)                                                \
    X(SLOPE, 4, T, H)                                                \
    X(D_BY_SQUARE, 4, T, H)                                          \
    X(D_BRANCH, 2, T, H)                                             \
    X(Q, 2, T, Q)           /* attention */                          \
    X(K, 2, T, KV)                                                   \
    X(V, 2, T, KV)                                                   \
    X(Q32, 4, T, Q)                                                  \
    X(K32, 4, T, KV)                                                 \
    X(Q_TURNED, 4, T, Q)                                             \
    X(K_TURNED, 4, T, KV)                                            \
    X(Q_ROPE, 2, T, Q)                                               \
    X(K_ROPE, 2, T, KV)                                              \
    X(K_ALL, 2, T, Q)       /* one for each query head */            \
    X(V_ALL, 2, T, Q)                                                \
    X(ATTENDED, 2, T, Q)                                             \
    X(LSE, 4, T, NH)                                                 \
    X(BRANCH, 2, T, H)                                               \
    X(D_ATTENDED, 2, T, Q)                                           \
    X(D_Q_ROPE, 2, T, Q)                                             \
    X(D_K_ALL, 2, T, Q)                                              \
    X(D_V_ALL, 2, T, Q)                                              \
    X(ROW_SUMS, 4, T, NH)                                            \
    X(D_Q_SUM, 4, T, Q)                                              \
    X(D_V, 2, T, KV)                                                 \
    X(D_K_ROPE, 2, T, KV)                                            \
    X(D_K32, 4, T, KV)                                               \
    X(D_Q32, 4, T, Q)                                                \
    X(D_K_TURNED, 4, T, KV)                                          \
    X(D_Q_TURNED, 4, T, Q)                                           \
    X(D_K, 2, T, KV)                                                 \
    X(D_Q, 2, T, Q)                                                  \
    X(D_NORMED, 2, T, H)    /* summed over the linears that read it */ \
    X(D_NORMED2, 2, T, H)                                            \
    X(D_NORMED3, 2, T, H)                                            \
    X(QKV, 2, T, QKV)           /* queries, keys and values in one */\
    X(D_QKV, 2, T, QKV)                                              \
    X(GATE, 2, T, F)        /* MLP */                                \
    X(ACTIVE, 2, T, F)                                               \
    X(UP, 2, T, F)                                                   \
    X(PRODUCT, 2, T, F)                                              \
    X(D_PRODUCT, 2, T, F)                                            \
    X(D_ACTIVE, 2, T, F)                                             \
    X(D_UP, 2, T, F)                                                 \
    X(D_GATE, 2, T, F)                                               \
    X(IDS, 8, T, ONE)       /* embedding, head, loss */              \
    X(SORTED_IDS, 8, T, ONE)                                         \
    X(SORTED_FROM, 8, T, ONE)                                        \
    X(TOKEN_ROWS, 2, T, H)                                           \
    X(POSITION_ROWS, 2, S, H)                                        \
    X(D_POSITION_ROWS, 2, S, H)                                      \
    X(SORTED_POSITIONS, 8, S, ONE)                                   \
    X(SORTED_POSITIONS_FROM, 8, S, ONE)                              \
    X(D_TABLE, 2, V, H)         /* added to a tied weight's gradient */\
    X(LOGITS, 2, T, V)                                               \
    X(D_LOGITS, 2, T, V)                                             \
    X(LOGITS32, 4, T, V)                                             \
    X(LOG_PROBS, 4, T, V)                                            \
    X(D_LOG_PROBS, 4, T, V)                                          \
    X(D_LOGITS32, 4, T, V)                                           \
    X(G_NORM, 2, H, ONE)    /* gradients of parameters */            \
    X(G_Q, 2, Q, H)                                                  \
    X(G_K, 2, KV, H)                                                 \
    X(G_V, 2, KV, H)                                                 \
    X(G_O, 2, H, Q)                                                  \
    X(G_GATE, 2, F, H)                                               \
    X(G_UP, 2, F, H)                                                 \
    X(G_DOWN, 2, H, F)                                               \
    X(G_VOCAB, 2, V, H)                                              \
    X(G_POSITIONS, 2, P, H)                                          \
    X(G_QKV, 2, QKV, H)                                              \
    X(G_QKV_BIAS, 2, QKV, ONE)                                       \
    X(G_O_BIAS, 2, H, ONE)                                           \
    X(G_UP_BIAS, 2, F, ONE)                                          \
    X(G_DOWN_BIAS, 2, H, ONE)                                        \
    X(G_NORM_BIAS, 2, H, ONE)

enum tensor {
    BEFORE_TENSORS = NO_TENSOR,
#define X(id, each, a, b) id,
    TENSORS(X)
#undef X
        TENSOR_N
};
_Static_assert((int)TENSOR_N <= BODY_MAX_TENSORS, "more tensors than the builder holds");

extern const struct body_tensor body_tensors[TENSOR_N];

#endif
