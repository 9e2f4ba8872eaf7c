/*
 * The host's norms over a whole row: RMSNorm, and LayerNorm, which also takes the mean away.
 *
 * One code for both: an RMSNorm has no mean and no bias. A normed row is n = (x - mean) rstd, the
 * output n w + bias. Backward, with g = d_y w:
 *     d_x = rstd (g - mean(g) - n mean(g n)), without mean(g) where no mean was taken;
 *     d_w = sum over tokens of d_y n,  d_bias = sum of d_y.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"

static const float eps = 1e-5f;

/* Operands; NULL where the norm has none. Outputs are what the pass writes. */
struct norm {
    const struct op_tensor *x, *w, *bias, *mean, *rstd, *y, *d_y, *d_x, *d_w, *d_bias;
    uint64_t tokens;
};

static void subtract(float *row, float value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        row[i] -= value;
}

static void norm_forward(const struct norm *norm)
{
    const uint64_t n = norm->x->n / norm->tokens;
    const bool has_bias = norm->bias && norm->bias->at;
    float *row = host_floats(3, n), *w = row + n, *bias = w + n;
    host_widen(norm->w, 0, n, w);
    if (has_bias)
        host_widen(norm->bias, 0, n, bias);
    for (uint64_t t = 0; t < norm->tokens; t++) {
        host_widen(norm->x, t * n, n, row);
        if (norm->mean) {
            const float mean = lanes_sum(row, n) / (float)n;
            subtract(row, mean, n);
            host_store(norm->mean, t, 1, &mean);
        }
        const float rstd = 1 / sqrtf(lanes_dot(row, row, n) / (float)n + eps);
        for (uint64_t i = 0; i < n; i++)
            row[i] = row[i] * rstd * w[i];
        for (uint64_t i = 0; has_bias && i < n; i++)
            row[i] += bias[i];
        host_store(norm->y, t * n, n, row);
        host_store(norm->rstd, t, 1, &rstd);
    }
    free(row);
}

/* The normed row of a token, as forward had it. */
static void norm_load(const struct norm *norm, uint64_t t, float *out)
{
    const uint64_t n = norm->x->n / norm->tokens;
    host_widen(norm->x, t * n, n, out);
    if (norm->mean)
        subtract(out, host_load(norm->mean, t), n);
    lanes_scale(out, host_load(norm->rstd, t), n);
}

static void norm_dgrad(const struct norm *norm)
{
    const uint64_t n = norm->x->n / norm->tokens;
    float *normed = host_floats(3, n), *g = normed + n, *w = g + n;
    host_widen(norm->w, 0, n, w);
    for (uint64_t t = 0; t < norm->tokens; t++) {
        norm_load(norm, t, normed);
        host_widen(norm->d_y, t * n, n, g);
        for (uint64_t i = 0; i < n; i++)
            g[i] *= w[i];
        const float along = lanes_dot(g, normed, n) / (float)n;
        if (norm->mean)
            subtract(g, lanes_sum(g, n) / (float)n, n);
        lanes_add(g, -along, normed, n);
        lanes_scale(g, host_load(norm->rstd, t), n);
        host_store(norm->d_x, t * n, n, g);
    }
    free(normed);
}

static void norm_wgrad(const struct norm *norm)
{
    const uint64_t n = norm->x->n / norm->tokens;
    float *normed = host_floats(4, n), *d_y = normed + n, *d_w = d_y + n, *d_bias = d_w + n;
    for (uint64_t t = 0; t < norm->tokens; t++) {
        norm_load(norm, t, normed);
        host_widen(norm->d_y, t * n, n, d_y);
        for (uint64_t i = 0; i < n; i++)
            d_w[i] += d_y[i] * normed[i];
        lanes_add(d_bias, 1, d_y, n);
    }
    host_store(norm->d_w, 0, n, d_w);
    if (norm->d_bias)
        host_store(norm->d_bias, 0, n, d_bias);
    free(normed);
}

void host_rms(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    norm_forward(&(struct norm){
        .tokens = host_tokens(call), .x = &t[0], .w = &t[1], .y = &t[2], .rstd = &t[3]});
}

void host_rms_dgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    norm_dgrad(&(struct norm){.tokens = host_tokens(call),
                              .x = &t[0],
                              .w = &t[1],
                              .rstd = &t[2],
                              .d_y = &t[3],
                              .d_x = &t[4]});
}

void host_rms_wgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    norm_wgrad(&(struct norm){
        .tokens = host_tokens(call), .x = &t[0], .rstd = &t[1], .d_y = &t[2], .d_w = &t[3]});
}

void host_layer_norm(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    norm_forward(&(struct norm){.tokens = host_tokens(call),
                                .x = &t[0],
                                .w = &t[1],
                                .bias = &t[2],
                                .y = &t[3],
                                .mean = &t[4],
                                .rstd = &t[5]});
}

void host_layer_norm_dgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    norm_dgrad(&(struct norm){.tokens = host_tokens(call),
                              .x = &t[0],
                              .w = &t[1],
                              .mean = &t[2],
                              .rstd = &t[3],
                              .d_y = &t[4],
                              .d_x = &t[5]});
}

void host_layer_norm_wgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    norm_wgrad(&(struct norm){.tokens = host_tokens(call),
                              .x = &t[0],
                              .mean = &t[1],
                              .rstd = &t[2],
                              .d_y = &t[3],
                              .d_w = &t[4],
                              .d_bias = &t[5]});
}
