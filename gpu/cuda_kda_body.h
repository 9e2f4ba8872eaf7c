/*
 * Bodies of the CUDA operators of KDA: short convolution, norms over a head, decay, delta rule. Items
 * of gpu/cuda_item.h; formulas: gpu/ops.h and the host's files of the same operators.
 *
 * Forward the columns of a head's state never meet, so that one is an item; backward they do, and a
 * whole head is one item, with its states in scratch.
 */
#ifndef GPU_CUDA_KDA_BODY_H
#define GPU_CUDA_KDA_BODY_H

#include "gpu/cuda_item.h"

/* ---- short convolution --------------------------------------------------------------------- */

enum { CONV_TAPS = 4 };

HOST_DEVICE uint64_t conv_width(const struct cuda_op *op)
{
    return op->call.tensors[0].n / op_tokens(op);
}

/* The sum over taps, before SiLU. */
HOST_DEVICE float conv_sum(const struct cuda_op *op, uint64_t token, uint64_t c)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t n = conv_width(op);
    float z = 0;
    for (uint64_t j = 0; j < CONV_TAPS; j++)
        if (token % op->shape.seq + j >= CONV_TAPS - 1)
            z +=
                load(&t[1], c * CONV_TAPS + j) * load(&t[0], (token + j - (CONV_TAPS - 1)) * n + c);
    return z;
}

HOST_DEVICE void short_conv_item(const struct cuda_op *op, uint64_t i)
{
    const uint64_t n = conv_width(op);
    const float z = conv_sum(op, i / n, i % n);
    store(&op->call.tensors[2], i, z * sigmoid_of(z));
}

HOST_DEVICE float conv_slope(const struct cuda_op *op, uint64_t token, uint64_t c)
{
    return load(&op->call.tensors[2], token * conv_width(op) + c) *
           silu_slope(conv_sum(op, token, c));
}

HOST_DEVICE void short_conv_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    const uint64_t n = conv_width(op), token = i / n, c = i % n;
    float sum = 0;
    for (uint64_t j = 0; j < CONV_TAPS; j++) {
        const uint64_t ahead = CONV_TAPS - 1 - j;
        if (token % op->shape.seq + ahead < op->shape.seq)
            sum += load(&op->call.tensors[1], c * CONV_TAPS + j) * conv_slope(op, token + ahead, c);
    }
    store(&op->call.tensors[3], i, sum);
}

HOST_DEVICE void short_conv_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    const uint64_t n = conv_width(op), c = i / CONV_TAPS, j = i % CONV_TAPS;
    float sum = 0;
    for (uint64_t t = 0; t < op_tokens(op); t++)
        if (t % op->shape.seq + j >= CONV_TAPS - 1)
            sum += conv_slope(op, t, c) *
                   load(&op->call.tensors[0], (t + j - (CONV_TAPS - 1)) * n + c);
    store(&op->call.tensors[3], i, sum);
}

/* ---- norms over a head --------------------------------------------------------------------- */

HOST_DEVICE void l2_norm_item(const struct cuda_op *op, uint64_t row)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t d = op->shape.head_dim, at = row * d;
    const float squares =
        lanes_over(d, [=](uint64_t i) { return load(&t[0], at + i) * load(&t[0], at + i); });
    const float rstd = 1 / sqrtf(squares + 1e-6f);
    for (uint64_t i = 0; i < d; i++)
        store(&t[1], at + i, load(&t[0], at + i) * rstd);
    store(&t[2], row, rstd);
}

HOST_DEVICE void l2_norm_dgrad_item(const struct cuda_op *op, uint64_t row)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t d = op->shape.head_dim, at = row * d;
    const float along =
        lanes_over(d, [=](uint64_t i) { return load(&t[0], at + i) * load(&t[2], at + i); });
    for (uint64_t i = 0; i < d; i++)
        store(&t[3], at + i,
              (load(&t[2], at + i) + -along * load(&t[0], at + i)) * load(&t[1], row));
}

HOST_DEVICE void gated_rms_item(const struct cuda_op *op, uint64_t row)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t d = op->shape.head_dim, at = row * d;
    const float squares =
        lanes_over(d, [=](uint64_t i) { return load(&t[0], at + i) * load(&t[0], at + i); });
    const float rstd = 1 / sqrtf(squares / (float)d + 1e-5f);
    for (uint64_t i = 0; i < d; i++)
        store(&t[3], at + i,
              load(&t[0], at + i) * rstd * load(&t[1], i) * sigmoid_of(load(&t[2], at + i)));
    store(&t[4], row, rstd);
}

HOST_DEVICE void gated_rms_dgrad_item(const struct cuda_op *op, uint64_t row)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t d = op->shape.head_dim, at = row * d;
    const float rstd = load(&t[3], row);
    const auto n = [=](uint64_t i) { return load(&t[0], at + i) * rstd; };
    const auto d_n = [=](uint64_t i) {
        return load(&t[4], at + i) * load(&t[1], i) * sigmoid_of(load(&t[2], at + i));
    };
    const float along = lanes_over(d, [=](uint64_t i) { return d_n(i) * n(i); }) / (float)d;
    for (uint64_t i = 0; i < d; i++) {
        const float s = sigmoid_of(load(&t[2], at + i)), d_normed = d_n(i), normed = n(i);
        store(&t[5], at + i, (d_normed + -along * normed) * rstd);
        store(&t[6], at + i, d_normed * normed * (1 - s));
    }
}

HOST_DEVICE void gated_rms_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t d = op->shape.head_dim;
    float sum = 0;
    for (uint64_t row = 0; row < t[0].n / d; row++) {
        const uint64_t at = row * d + i;
        sum += load(&t[3], at) * (load(&t[0], at) * load(&t[2], row)) * sigmoid_of(load(&t[1], at));
    }
    store(&t[4], i, sum);
}

/* ---- decay --------------------------------------------------------------------------------- */

HOST_DEVICE float softplus(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

HOST_DEVICE uint64_t decay_width(const struct cuda_op *op)
{
    return op->shape.heads * op->shape.head_dim;
}

/* -exp(A_log) of a head */
HOST_DEVICE float decay_rate(const struct cuda_op *op, uint64_t head)
{
    return -expf(load(&op->call.tensors[1], head));
}

/* f + dt_bias of element i */
HOST_DEVICE float decay_at(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    return load(&t[0], i) + load(&t[2], i % decay_width(op));
}

HOST_DEVICE void decay_item(const struct cuda_op *op, uint64_t i)
{
    const uint64_t head = i % decay_width(op) / op->shape.head_dim;
    store(&op->call.tensors[3], i, decay_rate(op, head) * softplus(decay_at(op, i)));
}

HOST_DEVICE float decay_slope(const struct cuda_op *op, uint64_t i)
{
    const uint64_t head = i % decay_width(op) / op->shape.head_dim;
    return load(&op->call.tensors[3], i) * (decay_rate(op, head) * sigmoid_of(decay_at(op, i)));
}

HOST_DEVICE void decay_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    store(&op->call.tensors[4], i, decay_slope(op, i));
}

/* Of a head. */
HOST_DEVICE void decay_rates_wgrad_item(const struct cuda_op *op, uint64_t head)
{
    const uint64_t d = op->shape.head_dim;
    float total = 0;
    for (uint64_t t = 0; t < op_tokens(op); t++) {
        const uint64_t at = t * decay_width(op) + head * d;
        float sum = 0;
        for (uint64_t i = 0; i < d; i++)
            sum += load(&op->call.tensors[3], at + i) * softplus(decay_at(op, at + i));
        total += decay_rate(op, head) * sum;
    }
    store(&op->call.tensors[4], head, total);
}

HOST_DEVICE void decay_bias_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    float sum = 0;
    for (uint64_t t = 0; t < op_tokens(op); t++)
        sum += decay_slope(op, t * decay_width(op) + i);
    store(&op->call.tensors[5], i, sum);
}

/* ---- delta rule ---------------------------------------------------------------------------- */

/* A head of a sequence. */
struct op_delta {
    uint64_t sequence, head, d, n_chunk;
};

HOST_DEVICE uint64_t delta_chunks(const struct cuda_op *op)
{
    return (op->shape.seq + DELTA_CHUNK - 1) / DELTA_CHUNK;
}

HOST_DEVICE struct op_delta delta_of(const struct cuda_op *op, uint64_t item)
{
    const struct op_delta delta = {item / op->shape.heads, item % op->shape.heads,
                                   op->shape.head_dim, delta_chunks(op)};
    return delta;
}

/* Of this token in [batch, seq, heads]; times D in [batch, seq, heads, D]. */
HOST_DEVICE uint64_t delta_token(const struct cuda_op *op, const struct op_delta *delta, uint64_t t)
{
    return (delta->sequence * op->shape.seq + t) * op->shape.heads + delta->head;
}

HOST_DEVICE uint64_t delta_state(const struct cuda_op *op, const struct op_delta *delta,
                                 uint64_t chunk)
{
    return ((delta->sequence * delta->n_chunk + chunk) * op->shape.heads + delta->head) * delta->d *
           delta->d;
}

HOST_DEVICE float delta_scale(const struct op_delta *delta)
{
    return 1 / sqrtf((float)delta->d);
}

/* One column of the state through all tokens of a sequence. */
HOST_DEVICE void delta_rule_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_tensor *t = op->call.tensors;
    const struct op_delta delta = delta_of(op, item / op->shape.head_dim);
    const uint64_t d = delta.d, j = item % d;
    float state[CUDA_MAX_HEAD_DIM];
    for (uint64_t i = 0; i < d; i++)
        state[i] = 0;
    for (uint64_t token = 0; token < op->shape.seq; token++) {
        const uint64_t row = delta_token(op, &delta, token), at = row * d;
        if (token % DELTA_CHUNK == 0)
            for (uint64_t i = 0; i < d; i++)
                store(&t[6], delta_state(op, &delta, token / DELTA_CHUNK) + i * d + j, state[i]);
        float u = load(&t[2], at + j), o = 0;
        for (uint64_t i = 0; i < d; i++) {
            state[i] *= expf(load(&t[3], at + i));
            u += -load(&t[1], at + i) * state[i];
        }
        const float e = load(&t[4], row) * u;
        for (uint64_t i = 0; i < d; i++) {
            state[i] += load(&t[1], at + i) * e;
            o += load(&t[0], at + i) * delta_scale(&delta) * state[i];
        }
        store(&t[5], at + j, o);
    }
}

/* What backward keeps of a head in scratch: states [1 + DELTA_CHUNK, D, D] before each token of a
   chunk and behind the last, their gradient, u of each token, and rows of one token. */
HOST_DEVICE uint64_t delta_room(uint64_t d)
{
    return (2 + DELTA_CHUNK) * d * d + DELTA_CHUNK * d + 3 * d;
}

struct op_retreat {
    const struct cuda_op *op;
    struct op_delta delta;
    float *states, *d_state, *u, *e, *d_k, *d_v;
};

HOST_DEVICE struct op_retreat retreat_of(const struct cuda_op *op, uint64_t item)
{
    const uint64_t d = op->shape.head_dim;
    struct op_retreat of;
    of.op = op;
    of.delta = delta_of(op, item);
    of.states = op->scratch + item * delta_room(d);
    of.d_state = of.states + (1 + DELTA_CHUNK) * d * d;
    of.u = of.d_state + d * d;
    of.e = of.u + DELTA_CHUNK * d;
    of.d_k = of.e + d;
    of.d_v = of.d_k + d;
    return of;
}

/* Takes the state before the token to the one behind it; leaves u. */
HOST_DEVICE void delta_advance(const struct op_retreat *of, uint64_t token)
{
    const struct op_tensor *t = of->op->call.tensors;
    const uint64_t d = of->delta.d, slot = token % DELTA_CHUNK;
    const uint64_t row = delta_token(of->op, &of->delta, token), at = row * d;
    const float *before = of->states + slot * d * d;
    float *after = of->states + (slot + 1) * d * d, *u = of->u + slot * d;
    for (uint64_t j = 0; j < d; j++)
        u[j] = load(&t[2], at + j);
    for (uint64_t i = 0; i < d; i++) {
        const float a = expf(load(&t[3], at + i)), k = load(&t[1], at + i);
        for (uint64_t j = 0; j < d; j++) {
            after[i * d + j] = before[i * d + j] * a;
            u[j] += -k * after[i * d + j];
        }
    }
    for (uint64_t i = 0; i < d; i++)
        for (uint64_t j = 0; j < d; j++)
            after[i * d + j] += load(&t[1], at + i) * (load(&t[4], row) * u[j]);
}

/* Through o = S' q and S + k e': d_q, d_e (in d_v), and of d_k the first part. */
HOST_DEVICE void retreat_output(const struct op_retreat *of, uint64_t slot, uint64_t at)
{
    const struct op_tensor *t = of->op->call.tensors;
    const uint64_t d = of->delta.d;
    const float scale = delta_scale(&of->delta);
    for (uint64_t i = 0; i < d; i++) {
        const float *after = of->states + (slot + 1) * d * d + i * d;
        float *d_row = of->d_state + i * d;
        const float q = load(&t[0], at + i) * scale, k = load(&t[1], at + i);
        store(&t[7], at + i,
              scale * lanes_over(d, [=](uint64_t j) { return after[j] * load(&t[6], at + j); }));
        for (uint64_t j = 0; j < d; j++)
            d_row[j] += q * load(&t[6], at + j);
        of->d_k[i] = lanes_over(d, [=](uint64_t j) { return d_row[j] * of->e[j]; });
        for (uint64_t j = 0; j < d; j++)
            of->d_v[j] += k * d_row[j];
    }
}

/* Through v - S' k and Diag(a) S: the rest of d_k, d_g, and dS before the token. */
HOST_DEVICE void retreat_state(const struct op_retreat *of, uint64_t slot, uint64_t at)
{
    const struct op_tensor *t = of->op->call.tensors;
    const uint64_t d = of->delta.d;
    for (uint64_t i = 0; i < d; i++) {
        const float *before = of->states + slot * d * d + i * d;
        float *d_row = of->d_state + i * d;
        const float a = expf(load(&t[3], at + i)), k = load(&t[1], at + i);
        const float d_k = a * lanes_over(d, [=](uint64_t j) { return before[j] * of->d_v[j]; });
        store(&t[8], at + i, of->d_k[i] - d_k);
        for (uint64_t j = 0; j < d; j++)
            d_row[j] += -k * of->d_v[j];
        store(&t[10], at + i, a * lanes_over(d, [=](uint64_t j) { return d_row[j] * before[j]; }));
        for (uint64_t j = 0; j < d; j++)
            d_row[j] *= a;
    }
}

HOST_DEVICE void delta_retreat(const struct op_retreat *of, uint64_t token)
{
    const struct op_tensor *t = of->op->call.tensors;
    const uint64_t d = of->delta.d, slot = token % DELTA_CHUNK;
    const uint64_t row = delta_token(of->op, &of->delta, token), at = row * d;
    const float beta = load(&t[4], row), *u = of->u + slot * d;
    for (uint64_t j = 0; j < d; j++) {
        of->e[j] = beta * u[j];
        of->d_v[j] = 0;
    }
    retreat_output(of, slot, at);
    store(&t[11], row, lanes_over(d, [=](uint64_t j) { return of->d_v[j] * u[j]; }));
    for (uint64_t j = 0; j < d; j++) {
        of->d_v[j] *= beta;
        store(&t[9], at + j, of->d_v[j]);
    }
    retreat_state(of, slot, at);
}

/* Chunks from last to first: each repeated from its state, then gone back through. */
HOST_DEVICE void delta_rule_dgrad_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_retreat of = retreat_of(op, item);
    const uint64_t d = of.delta.d;
    for (uint64_t i = 0; i < d * d; i++)
        of.d_state[i] = 0;
    for (uint64_t chunk = of.delta.n_chunk; chunk-- > 0;) {
        const uint64_t first = chunk * DELTA_CHUNK;
        const uint64_t end = op_min(first + DELTA_CHUNK, op->shape.seq);
        for (uint64_t i = 0; i < d * d; i++)
            of.states[i] = load(&op->call.tensors[5], delta_state(op, &of.delta, chunk) + i);
        for (uint64_t token = first; token < end; token++)
            delta_advance(&of, token);
        for (uint64_t token = end; token-- > first;)
            delta_retreat(&of, token);
    }
}

#endif
