/*
 * The host's norms over one head of KDA: the L2 norm of queries and keys, and the gated RMSNorm of
 * what attention yields.
 *
 * A row is one head of one token, D numbers; the weight of the gated norm is shared by all heads.
 *     L2:     y = x rstd, rstd = (sum x^2 + 1e-6)^-1/2;  d_x = rstd (d_y - y (y . d_y))
 *     gated:  y = n w s, n = o rstd, rstd = (mean o^2 + 1e-5)^-1/2, s = sigmoid(gate);
 *             with g = d_y w s:  d_o = rstd (g - n mean(g n)),  d_gate = d_y n w s (1 - s),
 *             d_w = sum over tokens and heads of d_y n s
 */
#include <math.h>
#include <stdlib.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"

void host_l2_norm(const struct op_call *call)
{
    const struct op_tensor *x = &call->tensors[0], *y = &call->tensors[1];
    const uint64_t d = call->shape->head_dim;
    float *row = host_floats(1, d);
    for (uint64_t r = 0; r < x->n / d; r++) {
        host_widen(x, r * d, d, row);
        const float rstd = 1 / sqrtf(lanes_dot(row, row, d) + 1e-6f);
        lanes_scale(row, rstd, d);
        host_store(y, r * d, d, row);
        host_store(&call->tensors[2], r, 1, &rstd);
    }
    free(row);
}

void host_l2_norm_dgrad(const struct op_call *call)
{
    const struct op_tensor *y = &call->tensors[0], *rstd = &call->tensors[1];
    const uint64_t d = call->shape->head_dim;
    float *row = host_floats(2, d), *d_y = row + d;
    for (uint64_t r = 0; r < y->n / d; r++) {
        host_widen(y, r * d, d, row);
        host_widen(&call->tensors[2], r * d, d, d_y);
        lanes_add(d_y, -lanes_dot(row, d_y, d), row, d);
        lanes_scale(d_y, host_load(rstd, r), d);
        host_store(&call->tensors[3], r * d, d, d_y);
    }
    free(row);
}

/* Of one row: the normed numbers, the gate's sigmoid, the gradient of y; of all: w. */
struct gated {
    float *normed, *gate, *d_y, *w;
};

static void gated_init(struct gated *gated, uint64_t d)
{
    gated->normed = host_floats(4, d);
    gated->gate = gated->normed + d;
    gated->d_y = gated->gate + d;
    gated->w = gated->d_y + d;
}

static void gated_release(struct gated *gated)
{
    free(gated->normed);
}

void host_gated_rms(const struct op_call *call)
{
    const struct op_tensor *o = &call->tensors[0], *gate = &call->tensors[2];
    const uint64_t d = call->shape->head_dim;
    struct gated row;
    gated_init(&row, d);
    host_widen(&call->tensors[1], 0, d, row.w);
    for (uint64_t r = 0; r < o->n / d; r++) {
        host_widen(o, r * d, d, row.normed);
        host_widen(gate, r * d, d, row.gate);
        const float rstd = 1 / sqrtf(lanes_dot(row.normed, row.normed, d) / (float)d + 1e-5f);
        for (uint64_t i = 0; i < d; i++)
            row.normed[i] = row.normed[i] * rstd * row.w[i] * host_sigmoid_of(row.gate[i]);
        host_store(&call->tensors[3], r * d, d, row.normed);
        host_store(&call->tensors[4], r, 1, &rstd);
    }
    gated_release(&row);
}

/* Backward's row: three tensors and rstd, as they stand in the call. */
static void gated_load(struct gated *row, uint64_t r, uint64_t d, const struct op_tensor *o,
                       const struct op_tensor *gate, const struct op_tensor *rstd,
                       const struct op_tensor *d_y)
{
    host_widen(o, r * d, d, row->normed);
    lanes_scale(row->normed, host_load(rstd, r), d);
    host_widen(gate, r * d, d, row->gate);
    for (uint64_t i = 0; i < d; i++)
        row->gate[i] = host_sigmoid_of(row->gate[i]);
    host_widen(d_y, r * d, d, row->d_y);
}

void host_gated_rms_dgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors, *o = &t[0], *gate = &t[2], *rstd = &t[3];
    const uint64_t d = call->shape->head_dim;
    struct gated row;
    gated_init(&row, d);
    host_widen(&t[1], 0, d, row.w);
    for (uint64_t r = 0; r < o->n / d; r++) {
        gated_load(&row, r, d, o, gate, rstd, &t[4]);
        for (uint64_t i = 0; i < d; i++) {
            const float s = row.gate[i], d_n = row.d_y[i] * row.w[i] * s;
            row.gate[i] = d_n * row.normed[i] * (1 - s);
            row.d_y[i] = d_n;
        }
        const float along = lanes_dot(row.d_y, row.normed, d) / (float)d;
        lanes_add(row.d_y, -along, row.normed, d);
        lanes_scale(row.d_y, host_load(rstd, r), d);
        host_store(&t[5], r * d, d, row.d_y);
        host_store(&t[6], r * d, d, row.gate);
    }
    gated_release(&row);
}

void host_gated_rms_wgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    const uint64_t d = call->shape->head_dim;
    struct gated row;
    gated_init(&row, d);
    for (uint64_t r = 0; r < t[0].n / d; r++) {
        gated_load(&row, r, d, &t[0], &t[1], &t[2], &t[3]);
        for (uint64_t i = 0; i < d; i++)
            row.w[i] += row.d_y[i] * row.normed[i] * row.gate[i];
    }
    host_store(&t[4], 0, d, row.w);
    gated_release(&row);
}
