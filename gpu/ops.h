/*
 * The operators of profile native: what a body's tape names, with the addresses filled in.
 *
 * Storage is as the tensors say (BF16, FP16 or FP32), every sum and every function is FP32, and a
 * result is rounded once, when it is stored. A result that is added to (OP_UPDATE) is rounded to the
 * tensor's dtype first and then added there with one more rounding, as autograd sums gradients. A
 * tensor that nobody wants has no address and is not computed. Sums run in one fixed order, so that
 * a step is reproducible bit by bit. No operator keeps state or allocates what outlives its call.
 *
 * Operands by operator, in order; ? is one that may be absent, = one that is written, + one that is
 * written or added to. Shapes: T = batch * seq tokens, H hidden, Q = heads * head_dim, KV, F, V vocab,
 * P positions, D head_dim, NH heads. ids and labels are int64.
 *
 *  OP_EMBEDDING    forward   ids[T], table[V,H], =out[T,H]
 *                  wgrad     ids[T], d_out[T,H], +d_table[V,H]
 *  OP_POSITIONS    forward   table[P,H], =x[T,H] (an update: row t % seq is added)
 *                  wgrad     d_out[T,H], +d_table[P,H]: summed over sequences, rounded, zero beyond seq
 *  OP_MM           forward   x[T,k], w, bias[n]?, =y[T,n]
 *                  dgrad     d_y[T,n], w, +d_x[T,k]
 *                  wgrad     d_y[T,n], x[T,k], +d_w
 *                  w is [n,k], or [k,n] where the call says weight_in_first. m, n, k of the op are
 *                  those of the product: forward (T, n, k), dgrad (T, k, n), wgrad (n, k, T).
 *  OP_SUM          wgrad     d_y[T,n], +d_bias[n]
 *  OP_RMS          forward   x[T,H], w[H], =y[T,H], =rstd[T] FP32
 *                  dgrad     x, w, rstd, d_y, +d_x[T,H]
 *                  wgrad     x, rstd, d_y, +d_w[H]
 *  OP_LAYER_NORM   forward   x, w, bias?, =y, =mean[T] FP32, =rstd[T] FP32
 *                  dgrad     x, w, mean, rstd, d_y, +d_x
 *                  wgrad     x, mean, rstd, d_y, +d_w?, +d_bias?
 *  OP_SDPA         forward   q[T,Q], k[T,KV], v[T,KV], =out[T,Q], =lse[T,NH] FP32
 *                  dgrad     q, k, v, out, lse, d_out, =d_q, =d_k, =d_v
 *                  Where k and v are absent q is [T,Q+2KV], all three in each row, and d_q likewise.
 *                  Causal; query head h reads key head h * kv_heads / heads; scale D^-1/2. Where the
 *                  shape has a rope_base queries and keys are rotated, in FP32, as they are loaded;
 *                  d_q and d_k are those of the tensors as they lie there.
 *  OP_SWIGLU       forward   gate[T,F], up[T,F], =y[T,F]
 *                  dgrad     gate, up, d_y, =d_gate, =d_up
 *  OP_GELU         forward   x[T,F], =y[T,F]; the tanh form
 *                  dgrad     x, d_y, =d_x
 *  OP_ADD          forward   a, b, =y
 *                  dgrad     a, +y
 *  OP_SHORT_CONV   forward   x[T,Q], w[Q,1,4], =y[T,Q]: causal in each sequence, then SiLU
 *                  dgrad     x, w, d_y, =d_x;   wgrad   x, w, d_y, +d_w
 *  OP_L2_NORM      forward   x[T,Q], =y[T,Q] FP32, =rstd[T,NH] FP32; per head, eps 1e-6
 *                  dgrad     y, rstd, d_y[T,Q] FP32, =d_x[T,Q]
 *  OP_SIGMOID      forward   x[T,NH], =y[T,NH] FP32;   dgrad   y, d_y FP32, =d_x
 *  OP_DECAY        forward   f[T,Q], A_log[NH], dt_bias[Q], =g[T,Q] FP32: -exp(A_log) softplus(f + dt_bias)
 *                  dgrad     f, A_log, dt_bias, d_g FP32, =d_f
 *                  wgrad     f, A_log, dt_bias, d_g, +d_A_log?, +d_dt_bias?
 *  OP_DELTA_RULE   forward   q FP32, k FP32, v, g FP32, beta FP32, =o[T,Q] FP32, =states FP32
 *                  dgrad     q, k, v, g, beta, states, d_o FP32, =d_q FP32, =d_k FP32, =d_v, =d_g FP32,
 *                            =d_beta FP32
 *                  S <- Diag(exp g) S; e = beta (v - S^T k); S <- S + k e^T; o = S^T (q D^-1/2). states:
 *                  S as it is before each chunk of DELTA_CHUNK tokens, [batch, ceil(seq/chunk), NH, D, D]
 *  OP_GATED_RMS    forward   o[T,Q] FP32, w[D], gate[T,Q], =y[T,Q], =rstd[T,NH] FP32; per head, times
 *                            sigmoid(gate)
 *                  dgrad     o, w, gate, rstd, d_y, =d_o FP32, =d_gate
 *                  wgrad     o, gate, rstd, d_y, +d_w
 *  OP_CROSS_ENTROPY forward  logits[T,V], labels[T], =lse[T] FP32, =loss[1] FP32, the mean
 *                  dgrad     logits, labels, lse, =d_logits[T,V]: times the call's grad_scale
 *  OP_MEAN         forward   x[T,H], =loss[1] FP32;   dgrad   =d_x: grad_scale / (T H)
 *  OP_TO           any       x, =y: a cast
 *
 * Sources of the formulas: tests/oracle/README.md (what the modules compute), and for KDA spec
 * INPUTS 2.2 and the recurrence. Norms: eps 1e-5.
 */
#ifndef GPU_OPS_H
#define GPU_OPS_H

#include "src/body.h"

struct op_tensor {
    void *at; /* NULL: absent */
    uint64_t n;
    uint8_t dtype; /* enum dtype; of ids and labels without meaning */
    uint8_t mode;  /* enum op_mode, of src/body.h */
};

/* Sizes that no tensor tells. */
struct op_shape {
    uint64_t batch, seq, heads, kv_heads, head_dim, vocab;
    double rope_base; /* 0: no rotation */
};

enum { OP_MAX_TENSORS = 16 };

/* What steps leave to one another; on the device. One for a rank. */
struct step_state {
    double loss;       /* of this step so far: mean over its microbatches */
    float grad_scale;  /* of a microbatch's loss: loss_scale * loss_factor */
    float loss_factor; /* 1 / microbatches, or 1 where their gradients are summed */
    float loss_scale;  /* of a scaler, else 1 */
    uint32_t microbatches;
    uint32_t good_steps; /* since the scale was changed */
    uint64_t not_finite; /* elements of gradients that this step's optimizer read */
    bool scales;         /* there is a scaler */
    bool inf_found;      /* its verdict of this step, over all ranks */
};

struct op_call {
    uint8_t kind, pass; /* enum op_kind, enum op_pass; PASS_RECOMPUTE is as forward */
    uint8_t n_tensor;
    bool weight_in_first;
    uint64_t m, n, k;
    const struct op_shape *shape;
    struct step_state *state;
    void *workspace; /* of the program's, for a matrix library; NULL: there is none */
    uint64_t workspace_bytes;
    struct op_tensor tensors[OP_MAX_TENSORS];
};

typedef void host_op(const struct op_call *call);

/* NULL where the host has no such operator in this pass. */
host_op *host_op_find(enum op_kind kind, enum op_pass pass);

/* n elements as FP32 and back, rounded to nearest even; adds them where mode is OP_UPDATE. */
void host_widen(const struct op_tensor *from, uint64_t first, uint64_t n, float *out);
void host_store(const struct op_tensor *to, uint64_t first, uint64_t n, const float *values);

#endif
