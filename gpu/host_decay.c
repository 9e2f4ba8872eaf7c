/*
 * The host's decay of KDA: g = -exp(A_log[h]) softplus(f + dt_bias), a logarithm, and its gradients.
 *
 *     d_f = -d_g exp(A_log) sigmoid(f + dt_bias),  d_dt_bias = sum over tokens of d_f,
 *     d_A_log = sum over tokens and the head's features of d_g g
 * Gradients are FP32 before they are summed; only d_f itself is rounded to the dtype of f.
 */
#include <math.h>
#include <stdlib.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"

struct decay {
    uint64_t heads, d, width;
    const struct op_tensor *f;
    float *rate;           /* [heads], -exp(A_log) */
    float *bias, *x, *d_g; /* [width]: dt_bias; of one token f + dt_bias, and the gradient */
};

/* The first three operands of every pass. */
static void decay_init(struct decay *decay, const struct op_call *call)
{
    const uint64_t heads = call->shape->heads, width = heads * call->shape->head_dim;
    *decay = (struct decay){
        .heads = heads, .d = call->shape->head_dim, .width = width, .f = &call->tensors[0]};
    decay->rate = host_floats(1, heads);
    decay->bias = host_floats(3, width);
    decay->x = decay->bias + width;
    decay->d_g = decay->x + width;
    host_widen(&call->tensors[1], 0, heads, decay->rate);
    for (uint64_t h = 0; h < heads; h++)
        decay->rate[h] = -expf(decay->rate[h]);
    host_widen(&call->tensors[2], 0, width, decay->bias);
}

static void decay_release(struct decay *decay)
{
    free(decay->rate);
    free(decay->bias);
}

static void decay_load(struct decay *decay, uint64_t token)
{
    host_widen(decay->f, token * decay->width, decay->width, decay->x);
    lanes_add(decay->x, 1, decay->bias, decay->width);
}

static float softplus(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

void host_decay(const struct op_call *call)
{
    struct decay decay;
    decay_init(&decay, call);
    for (uint64_t t = 0; t < host_tokens(call); t++) {
        decay_load(&decay, t);
        for (uint64_t i = 0; i < decay.width; i++)
            decay.x[i] = decay.rate[i / decay.d] * softplus(decay.x[i]);
        host_store(&call->tensors[3], t * decay.width, decay.width, decay.x);
    }
    decay_release(&decay);
}

/* Gradients of f + dt_bias, in place of d_g. */
static void decay_slope(struct decay *decay)
{
    for (uint64_t i = 0; i < decay->width; i++)
        decay->d_g[i] *= decay->rate[i / decay->d] * host_sigmoid_of(decay->x[i]);
}

void host_decay_dgrad(const struct op_call *call)
{
    struct decay decay;
    decay_init(&decay, call);
    for (uint64_t t = 0; t < host_tokens(call); t++) {
        decay_load(&decay, t);
        host_widen(&call->tensors[3], t * decay.width, decay.width, decay.d_g);
        decay_slope(&decay);
        host_store(&call->tensors[4], t * decay.width, decay.width, decay.d_g);
    }
    decay_release(&decay);
}

static void add_log_rates(const struct decay *decay, float *d_log)
{
    for (uint64_t h = 0; h < decay->heads; h++) {
        float sum = 0;
        for (uint64_t i = h * decay->d; i < (h + 1) * decay->d; i++)
            sum += decay->d_g[i] * softplus(decay->x[i]);
        d_log[h] += decay->rate[h] * sum;
    }
}

void host_decay_wgrad(const struct op_call *call)
{
    struct decay decay;
    decay_init(&decay, call);
    float *d_log = host_floats(1, decay.heads), *d_bias = host_floats(1, decay.width);
    for (uint64_t t = 0; t < host_tokens(call); t++) {
        decay_load(&decay, t);
        host_widen(&call->tensors[3], t * decay.width, decay.width, decay.d_g);
        add_log_rates(&decay, d_log);
        decay_slope(&decay);
        lanes_add(d_bias, 1, decay.d_g, decay.width);
    }
    host_store(&call->tensors[4], 0, decay.heads, d_log);
    host_store(&call->tensors[5], 0, decay.width, d_bias);
    free(d_log);
    free(d_bias);
    decay_release(&decay);
}
