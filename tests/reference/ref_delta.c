/*
 * What a KDA block has of its own, one token after the other: no chunks.
 */
#include <math.h>

#include "tests/reference/ref_ops.h"

#define L2_EPS 1e-6

/* ---- short convolution -------------------------------------------------------------------- */

/* Taps j end at place t; before the sequence there are zeros. */
static double convolved(const struct ref_value *x, const struct ref_value *w, uint64_t row,
                        uint64_t seq, uint64_t c)
{
    double sum = 0;

    for (uint64_t j = 0; j < w->width; j++) {
        const uint64_t back = w->width - 1 - j;
        if (back <= row % seq)
            sum += w->at[c * w->width + j] * x->at[(row - back) * x->width + c];
    }
    return sum;
}

static void short_conv_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0], *w = node->in[1];
    double *d_x = ref_doubles(tape, x->n), *d_w = ref_doubles(tape, w->n);

    for (uint64_t row = 0; row < x->rows; row++)
        for (uint64_t c = 0; c < x->width; c++) {
            const double y = convolved(x, w, row, node->shape.seq, c), s = ref_logistic(y);
            const double d = node->out->grad[row * x->width + c] * s * (1 + y * (1 - s));
            for (uint64_t j = 0; j < w->width; j++) {
                const uint64_t back = w->width - 1 - j;
                if (back > row % node->shape.seq)
                    continue;
                d_x[(row - back) * x->width + c] += d * w->at[c * w->width + j];
                d_w[c * w->width + j] += d * x->at[(row - back) * x->width + c];
            }
        }
    ref_flow(tape, x, d_x);
    ref_flow(tape, w, d_w);
}

struct ref_value *ref_short_conv(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                                 const struct ref_shape *shape)
{
    struct ref_value *out = ref_value_new(tape, x->rows, x->width, x->format);

    for (uint64_t row = 0; row < x->rows; row++)
        for (uint64_t c = 0; c < x->width; c++) {
            const double y = convolved(x, w, row, shape->seq, c);
            out->at[row * x->width + c] = y * ref_logistic(y);
        }
    return ref_push(
        tape, (struct ref_node){
                  .backward = short_conv_backward, .out = out, .in = {x, w}, .shape = *shape});
}

/* ---- unit length, gates ------------------------------------------------------------------- */

static double dot(const double *a, const double *b, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void l2_norm_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0], *y = node->out;
    const uint64_t d = node->shape.head_dim;
    double *d_x = ref_doubles(tape, x->n);

    for (uint64_t at = 0; at < x->n; at += d) {
        const double r = 1 / sqrt(dot(x->at + at, x->at + at, d) + L2_EPS);
        const double along = dot(y->grad + at, y->at + at, d);
        for (uint64_t i = at; i < at + d; i++)
            d_x[i] = r * (y->grad[i] - along * y->at[i]);
    }
    ref_flow(tape, x, d_x);
}

struct ref_value *ref_l2_norm(struct ref_tape *tape, struct ref_value *x,
                              const struct ref_shape *shape)
{
    struct ref_value *y = ref_value_new(tape, x->rows, x->width, REF_EXACT);
    const uint64_t d = shape->head_dim;

    for (uint64_t at = 0; at < x->n; at += d)
        for (uint64_t i = at; i < at + d; i++)
            y->at[i] = x->at[i] / sqrt(dot(x->at + at, x->at + at, d) + L2_EPS);
    return ref_push(tape, (struct ref_node){
                              .backward = l2_norm_backward, .out = y, .in = {x}, .shape = *shape});
}

static void sigmoid_backward(struct ref_tape *tape, const struct ref_node *node)
{
    const struct ref_value *y = node->out;
    double *d_x = ref_doubles(tape, y->n);

    for (uint64_t i = 0; i < y->n; i++)
        d_x[i] = y->grad[i] * y->at[i] * (1 - y->at[i]);
    ref_flow(tape, node->in[0], d_x);
}

struct ref_value *ref_sigmoid(struct ref_tape *tape, struct ref_value *x)
{
    struct ref_value *y = ref_value_new(tape, x->rows, x->width, REF_EXACT);

    for (uint64_t i = 0; i < x->n; i++)
        y->at[i] = ref_logistic(x->at[i]);
    return ref_push(tape, (struct ref_node){.backward = sigmoid_backward, .out = y, .in = {x}});
}

static void decay_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *f = node->in[0], *a_log = node->in[1], *dt_bias = node->in[2];
    double *d_f = ref_doubles(tape, f->n), *d_a_log = ref_doubles(tape, a_log->n);
    double *d_dt_bias = ref_doubles(tape, dt_bias->n);

    for (uint64_t i = 0; i < f->n; i++) {
        const uint64_t c = i % f->width, head = c / node->shape.head_dim;
        const double d = node->out->grad[i];
        d_f[i] = -d * exp(a_log->at[head]) * ref_logistic(f->at[i] + dt_bias->at[c]);
        d_dt_bias[c] += d_f[i];
        d_a_log[head] += d * node->out->at[i];
    }
    ref_flow(tape, dt_bias, d_dt_bias);
    ref_flow(tape, a_log, d_a_log);
    ref_flow(tape, f, d_f);
}

struct ref_value *ref_decay(struct ref_tape *tape, struct ref_value *f, struct ref_value *a_log,
                            struct ref_value *dt_bias, const struct ref_shape *shape)
{
    struct ref_value *g = ref_value_new(tape, f->rows, f->width, REF_EXACT);

    for (uint64_t i = 0; i < f->n; i++) {
        const uint64_t c = i % f->width;
        g->at[i] = -exp(a_log->at[c / shape->head_dim]) * log1p(exp(f->at[i] + dt_bias->at[c]));
    }
    return ref_push(tape, (struct ref_node){.backward = decay_backward,
                                            .out = g,
                                            .in = {f, a_log, dt_bias},
                                            .shape = *shape});
}

static void gated_rms_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *o = node->in[0], *w = node->in[1], *gate = node->in[2];
    const uint64_t d = w->n;
    double *d_o = ref_doubles(tape, o->n), *d_w = ref_doubles(tape, d);
    double *d_gate = ref_doubles(tape, o->n);

    for (uint64_t at = 0; at < o->n; at += d) {
        const double r = 1 / sqrt(dot(o->at + at, o->at + at, d) / (double)d + REF_NORM_EPS);
        double along = 0; /* mean of the gradient of the normed o, times that */
        for (uint64_t i = 0; i < d; i++) {
            const double h = o->at[at + i] * r, s = ref_logistic(gate->at[at + i]);
            const double d_y = node->out->grad[at + i];
            d_w[i] += d_y * h * s;
            d_gate[at + i] = d_y * h * w->at[i] * s * (1 - s);
            d_o[at + i] = d_y * w->at[i] * s;
            along += d_o[at + i] * h / (double)d;
        }
        for (uint64_t i = at; i < at + d; i++)
            d_o[i] = r * (d_o[i] - along * o->at[i] * r);
    }
    ref_flow(tape, gate, d_gate);
    ref_flow(tape, w, d_w);
    ref_flow(tape, o, d_o);
}

struct ref_value *ref_gated_rms(struct ref_tape *tape, struct ref_value *o, struct ref_value *w,
                                struct ref_value *gate, const struct ref_shape *shape)
{
    const uint64_t d = shape->head_dim;
    struct ref_value *y = ref_value_new(tape, o->rows, o->width, gate->format);

    for (uint64_t at = 0; at < o->n; at += d) {
        const double r = 1 / sqrt(dot(o->at + at, o->at + at, d) / (double)d + REF_NORM_EPS);
        for (uint64_t i = 0; i < d; i++)
            y->at[at + i] = o->at[at + i] * r * w->at[i] * ref_logistic(gate->at[at + i]);
    }
    return ref_push(
        tape, (struct ref_node){.backward = gated_rms_backward, .out = y, .in = {o, w, gate}});
}
