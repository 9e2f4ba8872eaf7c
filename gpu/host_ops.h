/*
 * What the files of the host's operators share: the list of them, and memory for one call.
 *
 * Each operator widens a row, a block or a line of its operands, computes in FP32, and stores.
 * Operands stand in call->tensors in the order of gpu/ops.h. What may be absent is asked by
 * tensor.at; host_store passes over what is.
 */
#ifndef GPU_HOST_OPS_H
#define GPU_HOST_OPS_H

#include "gpu/ops.h"

/* X(kind, pass, function) */
#define HOST_OPS(X)                                   \
    X(EMBEDDING, FORWARD, host_embedding)             \
    X(EMBEDDING, WGRAD, host_embedding_wgrad)         \
    X(POSITIONS, FORWARD, host_positions)             \
    X(POSITIONS, WGRAD, host_positions_wgrad)         \
    X(MM, FORWARD, host_linear)                       \
    X(MM, DGRAD, host_linear_dgrad)                   \
    X(MM, WGRAD, host_linear_wgrad)                   \
    X(SUM, WGRAD, host_bias_wgrad)                    \
    X(RMS, FORWARD, host_rms)                         \
    X(RMS, DGRAD, host_rms_dgrad)                     \
    X(RMS, WGRAD, host_rms_wgrad)                     \
    X(LAYER_NORM, FORWARD, host_layer_norm)           \
    X(LAYER_NORM, DGRAD, host_layer_norm_dgrad)       \
    X(LAYER_NORM, WGRAD, host_layer_norm_wgrad)       \
    X(SDPA, FORWARD, host_attention)                  \
    X(SDPA, DGRAD, host_attention_dgrad)              \
    X(SWIGLU, FORWARD, host_swiglu)                   \
    X(SWIGLU, DGRAD, host_swiglu_dgrad)               \
    X(GELU, FORWARD, host_gelu)                       \
    X(GELU, DGRAD, host_gelu_dgrad)                   \
    X(ADD, FORWARD, host_add)                         \
    X(ADD, DGRAD, host_cast)                          \
    X(SHORT_CONV, FORWARD, host_short_conv)           \
    X(SHORT_CONV, DGRAD, host_short_conv_dgrad)       \
    X(SHORT_CONV, WGRAD, host_short_conv_wgrad)       \
    X(L2_NORM, FORWARD, host_l2_norm)                 \
    X(L2_NORM, DGRAD, host_l2_norm_dgrad)             \
    X(SIGMOID, FORWARD, host_sigmoid)                 \
    X(SIGMOID, DGRAD, host_sigmoid_dgrad)             \
    X(DECAY, FORWARD, host_decay)                     \
    X(DECAY, DGRAD, host_decay_dgrad)                 \
    X(DECAY, WGRAD, host_decay_wgrad)                 \
    X(DELTA_RULE, FORWARD, host_delta_rule)           \
    X(DELTA_RULE, DGRAD, host_delta_rule_dgrad)       \
    X(GATED_RMS, FORWARD, host_gated_rms)             \
    X(GATED_RMS, DGRAD, host_gated_rms_dgrad)         \
    X(GATED_RMS, WGRAD, host_gated_rms_wgrad)         \
    X(CROSS_ENTROPY, FORWARD, host_cross_entropy)     \
    X(CROSS_ENTROPY, DGRAD, host_cross_entropy_dgrad) \
    X(MEAN, FORWARD, host_mean)                       \
    X(MEAN, DGRAD, host_mean_dgrad)                   \
    X(TO, FORWARD, host_cast)                         \
    X(TO, DGRAD, host_cast)                           \
    X(TO, WGRAD, host_cast)

#define X(kind, pass, function) host_op function;
HOST_OPS(X)
#undef X

/* Numbers that are widened at a time where an operator takes each by itself. */
enum { HOST_LINE = 1024 };

static inline uint64_t host_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t host_tokens(const struct op_call *call)
{
    return call->shape->batch * call->shape->seq;
}

/* Zeros, rows * width of them; to be freed in the call. Ends the program where there is no room. */
float *host_floats(uint64_t rows, uint64_t width) __attribute__((malloc));

static inline float host_load(const struct op_tensor *from, uint64_t at)
{
    float value;
    host_widen(from, at, 1, &value);
    return value;
}

/* sigmoid, in a form that no x overflows; and silu' = s (1 + x (1 - s)), s = sigmoid(x). */
float host_sigmoid_of(float x);
float host_silu_slope(float x);

#endif
