/*
 * The operators of the reference: each yields a new value from others and puts its derivative on the
 * tape. Results have the format of the first operand unless said otherwise.
 *
 * T = batch * seq rows; a head h is columns h * d to h * d + d - 1.
 */
#ifndef TESTS_REFERENCE_REF_OPS_H
#define TESTS_REFERENCE_REF_OPS_H

#include "tests/reference/ref_tape.h"

#define REF_NORM_EPS 1e-5

/* ref_ops.c */
double ref_logistic(double x); /* 1 / (1 + exp(-x)) */
struct ref_value *ref_embedding(struct ref_tape *tape, struct ref_value *table, const int64_t *ids,
                                uint64_t rows);
/* w [out, in], or [in, out] where it is in_first; bias: or NULL */
struct ref_value *ref_linear(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                             struct ref_value *bias, bool in_first);
struct ref_value *ref_rms(struct ref_tape *tape, struct ref_value *x, struct ref_value *w);
struct ref_value *ref_layer_norm(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                                 struct ref_value *bias);
/* Where b has fewer rows they are repeated. */
struct ref_value *ref_add(struct ref_tape *tape, struct ref_value *a, struct ref_value *b);
struct ref_value *ref_swiglu(struct ref_tape *tape, struct ref_value *gate, struct ref_value *up);
struct ref_value *ref_gelu(struct ref_tape *tape, struct ref_value *x); /* the tanh form */
struct ref_value *ref_columns(struct ref_tape *tape, struct ref_value *x, uint64_t first,
                              uint64_t width);
/* Both yield the loss: one exact number. */
struct ref_value *ref_cross_entropy(struct ref_tape *tape, struct ref_value *logits,
                                    const int64_t *labels);
struct ref_value *ref_mean(struct ref_tape *tape, struct ref_value *x);

/* ref_attention.c: softmax over places 0 to t; queries and keys rotated, or not */
struct ref_value *ref_attention(struct ref_tape *tape, struct ref_value *q, struct ref_value *k,
                                struct ref_value *v, const struct ref_shape *shape, bool rotates);

/* ref_delta.c: the parts of KDA attention. What the text keeps in FP32 is exact here. */
struct ref_value *ref_short_conv(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                                 const struct ref_shape *shape); /* then SiLU */
struct ref_value *ref_l2_norm(struct ref_tape *tape, struct ref_value *x,
                              const struct ref_shape *shape);              /* exact */
struct ref_value *ref_sigmoid(struct ref_tape *tape, struct ref_value *x); /* exact */
/* -exp(A_log) softplus(f + dt_bias), exact */
struct ref_value *ref_decay(struct ref_tape *tape, struct ref_value *f, struct ref_value *a_log,
                            struct ref_value *dt_bias, const struct ref_shape *shape);
/* S <- Diag(exp g) S; e = beta (v - S^T k); S <- S + k e^T; o = S^T q d^-1/2; exact */
struct ref_value *ref_delta_rule(struct ref_tape *tape, struct ref_value *const in[5],
                                 const struct ref_shape *shape); /* in: q, k, v, g, beta */
/* o / sqrt(mean(o^2) + 1e-5) w sigmoid(gate) per head; in the gate's format */
struct ref_value *ref_gated_rms(struct ref_tape *tape, struct ref_value *o, struct ref_value *w,
                                struct ref_value *gate, const struct ref_shape *shape);

#endif
