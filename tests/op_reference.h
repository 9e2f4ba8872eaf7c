/*
 * What each operator computes, in double and as plainly as the formula is written: forward only.
 *
 * Shares no code with the operators. Gradients are these functions' central differences
 * (tests/op_trial.h). Source of the formulas: tests/oracle/README.md.
 */
#ifndef TESTS_OP_REFERENCE_H
#define TESTS_OP_REFERENCE_H

#include <stdint.h>

struct op_sizes {
    uint64_t batch, seq, heads, kv_heads, head_dim;
    uint64_t hidden, inner, vocab, positions;
    double rope_base;
};

/* in and out: in the order of the operator's case, NULL where one is absent. labels: or ids. */
typedef void op_reference(const struct op_sizes *sizes, const int64_t *labels, double *const *in,
                          double *const *out);

op_reference reference_embedding;     /* table -> out */
op_reference reference_positions;     /* table -> x */
op_reference reference_linear;        /* x[T,H], w[F,H], bias -> y[T,F] */
op_reference reference_linear_first;  /* the same with w[H,F] */
op_reference reference_rms;           /* x, w -> y, rstd */
op_reference reference_layer_norm;    /* x, w, bias -> y, mean, rstd */
op_reference reference_attention;     /* q, k, v -> out, lse */
op_reference reference_packed;        /* qkv -> out, lse */
op_reference reference_swiglu;        /* gate, up -> y */
op_reference reference_gelu;          /* x -> y */
op_reference reference_add;           /* a, b -> y */
op_reference reference_short_conv;    /* x, w -> y */
op_reference reference_l2_norm;       /* x -> y, rstd */
op_reference reference_sigmoid;       /* x -> y */
op_reference reference_decay;         /* f, A_log, dt_bias -> g */
op_reference reference_delta_rule;    /* q, k, v, g, beta -> o, states */
op_reference reference_gated_rms;     /* o, w, gate -> y, rstd */
op_reference reference_cross_entropy; /* logits -> lse, loss */
op_reference reference_mean;          /* x -> loss */
op_reference reference_copy;          /* x -> y */

#endif
