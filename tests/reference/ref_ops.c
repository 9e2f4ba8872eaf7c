/*
 * What all families have: embedding, linear layers, norms, activations, losses. Formulas and their
 * order: tests/oracle/README.md.
 */
#include <math.h>
#include <stddef.h>

#include "tests/reference/ref_ops.h"

/* ---- embedding ---------------------------------------------------------------------------- */

static void embedding_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *table = node->in[0], *out = node->out;
    double *d_table = ref_doubles(tape, table->n);

    for (uint64_t t = 0; t < out->rows; t++)
        for (uint64_t i = 0; i < out->width; i++)
            d_table[(uint64_t)node->ids[t] * out->width + i] += out->grad[t * out->width + i];
    ref_flow(tape, table, d_table);
}

struct ref_value *ref_embedding(struct ref_tape *tape, struct ref_value *table, const int64_t *ids,
                                uint64_t rows)
{
    struct ref_value *out = ref_value_new(tape, rows, table->width, table->format);

    for (uint64_t t = 0; t < rows; t++)
        for (uint64_t i = 0; i < out->width; i++)
            out->at[t * out->width + i] = table->at[(uint64_t)ids[t] * out->width + i];
    return ref_push(
        tape,
        (struct ref_node){.backward = embedding_backward, .out = out, .in = {table}, .ids = ids});
}

/* ---- linear ------------------------------------------------------------------------------- */

static uint64_t weight_index(const struct ref_value *w, uint64_t out, uint64_t in, bool in_first)
{
    return in_first ? in * w->width + out : out * w->width + in;
}

static void linear_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0], *w = node->in[1], *bias = node->in[2], *y = node->out;
    double *d_x = ref_doubles(tape, x->n), *d_w = ref_doubles(tape, w->n);
    double *d_bias = ref_doubles(tape, y->width);

    for (uint64_t t = 0; t < y->rows; t++)
        for (uint64_t o = 0; o < y->width; o++) {
            const double d = y->grad[t * y->width + o];
            d_bias[o] += d;
            for (uint64_t i = 0; i < x->width; i++) {
                const uint64_t at = weight_index(w, o, i, node->flag);
                d_x[t * x->width + i] += d * w->at[at];
                d_w[at] += d * x->at[t * x->width + i];
            }
        }
    ref_flow(tape, x, d_x);
    ref_flow(tape, w, d_w);
    if (bias)
        ref_flow(tape, bias, d_bias);
}

struct ref_value *ref_linear(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                             struct ref_value *bias, bool in_first)
{
    struct ref_value *y = ref_value_new(tape, x->rows, in_first ? w->width : w->rows, x->format);

    for (uint64_t t = 0; t < y->rows; t++)
        for (uint64_t o = 0; o < y->width; o++) {
            double sum = 0;
            for (uint64_t i = 0; i < x->width; i++)
                sum += x->at[t * x->width + i] * w->at[weight_index(w, o, i, in_first)];
            y->at[t * y->width + o] = sum + (bias ? bias->at[o] : 0);
        }
    return ref_push(
        tape, (struct ref_node){
                  .backward = linear_backward, .out = y, .in = {x, w, bias}, .flag = in_first});
}

/* ---- norms -------------------------------------------------------------------------------- */

static double mean_of(const double *at, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += at[i];
    return sum / (double)n;
}

static double mean_product(const double *a, const double *b, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum / (double)n;
}

/*
 * y = h w + bias, where h is x (or x less its mean) times r, the inverse root of the mean square.
 * With a = d_y w: d_x = r (a - mean(a h) h), less the mean of that where x lost its mean.
 */
static void norm_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0], *w = node->in[1], *bias = node->in[2];
    const uint64_t n = x->width;
    double *d_x = ref_doubles(tape, x->n), *a = ref_doubles(tape, n);
    double *d_w = ref_doubles(tape, n), *d_bias = ref_doubles(tape, n);

    for (uint64_t t = 0; t < x->rows; t++) {
        const double *h = node->kept + t * (n + 1), *d_y = node->out->grad + t * n;
        for (uint64_t i = 0; i < n; i++) {
            a[i] = d_y[i] * w->at[i];
            d_w[i] += d_y[i] * h[i];
            d_bias[i] += d_y[i];
        }
        const double along = mean_product(a, h, n), mean = node->flag ? mean_of(a, n) : 0;
        for (uint64_t i = 0; i < n; i++)
            d_x[t * n + i] = h[n] * (a[i] - mean - along * h[i]);
    }
    ref_flow(tape, x, d_x);
    ref_flow(tape, w, d_w);
    if (bias)
        ref_flow(tape, bias, d_bias);
}

/* Keeps h of each row, and r behind it. */
static struct ref_value *norm(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                              struct ref_value *bias, bool centred)
{
    const uint64_t n = x->width;
    struct ref_value *y = ref_value_new(tape, x->rows, n, x->format);
    double *kept = ref_doubles(tape, x->rows * (n + 1));

    for (uint64_t t = 0; t < x->rows; t++) {
        double *h = kept + t * (n + 1);
        const double mean = centred ? mean_of(x->at + t * n, n) : 0;
        for (uint64_t i = 0; i < n; i++)
            h[i] = x->at[t * n + i] - mean;
        h[n] = 1 / sqrt(mean_product(h, h, n) + REF_NORM_EPS);
        for (uint64_t i = 0; i < n; i++) {
            h[i] *= h[n];
            y->at[t * n + i] = h[i] * w->at[i] + (bias ? bias->at[i] : 0);
        }
    }
    return ref_push(tape, (struct ref_node){.backward = norm_backward,
                                            .out = y,
                                            .in = {x, w, bias},
                                            .kept = kept,
                                            .flag = centred});
}

struct ref_value *ref_rms(struct ref_tape *tape, struct ref_value *x, struct ref_value *w)
{
    return norm(tape, x, w, NULL, false);
}

struct ref_value *ref_layer_norm(struct ref_tape *tape, struct ref_value *x, struct ref_value *w,
                                 struct ref_value *bias)
{
    return norm(tape, x, w, bias, true);
}

/* ---- element by element ------------------------------------------------------------------- */

static void add_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *a = node->in[0], *b = node->in[1];
    double *d_b = ref_doubles(tape, b->n);

    for (uint64_t i = 0; i < a->n; i++)
        d_b[i % b->n] += node->out->grad[i];
    ref_flow(tape, a, node->out->grad);
    ref_flow(tape, b, d_b);
}

struct ref_value *ref_add(struct ref_tape *tape, struct ref_value *a, struct ref_value *b)
{
    struct ref_value *y = ref_value_new(tape, a->rows, a->width, a->format);

    for (uint64_t i = 0; i < a->n; i++)
        y->at[i] = a->at[i] + b->at[i % b->n];
    return ref_push(tape, (struct ref_node){.backward = add_backward, .out = y, .in = {a, b}});
}

double ref_logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static void swiglu_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *gate = node->in[0], *up = node->in[1];
    double *d_gate = ref_doubles(tape, gate->n), *d_up = ref_doubles(tape, up->n);

    for (uint64_t i = 0; i < gate->n; i++) {
        const double x = gate->at[i], s = ref_logistic(x), d = node->out->grad[i];
        d_gate[i] = d * up->at[i] * s * (1 + x * (1 - s));
        d_up[i] = d * x * s;
    }
    ref_flow(tape, up, d_up);
    ref_flow(tape, gate, d_gate);
}

struct ref_value *ref_swiglu(struct ref_tape *tape, struct ref_value *gate, struct ref_value *up)
{
    struct ref_value *y = ref_value_new(tape, gate->rows, gate->width, gate->format);

    for (uint64_t i = 0; i < gate->n; i++)
        y->at[i] = gate->at[i] * ref_logistic(gate->at[i]) * up->at[i];
    return ref_push(tape,
                    (struct ref_node){.backward = swiglu_backward, .out = y, .in = {gate, up}});
}

#define GELU_CUBIC 0.044715
static double gelu_inner(double x)
{
    return sqrt(2 / acos(-1)) * (x + GELU_CUBIC * x * x * x);
}

static void gelu_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0];
    double *d_x = ref_doubles(tape, x->n);

    for (uint64_t i = 0; i < x->n; i++) {
        const double v = x->at[i], th = tanh(gelu_inner(v));
        const double slope = sqrt(2 / acos(-1)) * (1 + 3 * GELU_CUBIC * v * v);
        d_x[i] = node->out->grad[i] * (0.5 * (1 + th) + 0.5 * v * (1 - th * th) * slope);
    }
    ref_flow(tape, x, d_x);
}

struct ref_value *ref_gelu(struct ref_tape *tape, struct ref_value *x)
{
    struct ref_value *y = ref_value_new(tape, x->rows, x->width, x->format);

    for (uint64_t i = 0; i < x->n; i++)
        y->at[i] = 0.5 * x->at[i] * (1 + tanh(gelu_inner(x->at[i])));
    return ref_push(tape, (struct ref_node){.backward = gelu_backward, .out = y, .in = {x}});
}

static void columns_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0], *y = node->out;
    double *d_x = ref_doubles(tape, x->n);

    for (uint64_t t = 0; t < y->rows; t++)
        for (uint64_t i = 0; i < y->width; i++)
            d_x[t * x->width + node->first + i] = y->grad[t * y->width + i];
    ref_flow(tape, x, d_x);
}

struct ref_value *ref_columns(struct ref_tape *tape, struct ref_value *x, uint64_t first,
                              uint64_t width)
{
    struct ref_value *y = ref_value_new(tape, x->rows, width, x->format);

    for (uint64_t t = 0; t < y->rows; t++)
        for (uint64_t i = 0; i < width; i++)
            y->at[t * width + i] = x->at[t * x->width + first + i];
    return ref_push(
        tape, (struct ref_node){.backward = columns_backward, .out = y, .in = {x}, .first = first});
}

/* ---- losses ------------------------------------------------------------------------------- */

static double log_sum_exp(const double *at, uint64_t n)
{
    double most = at[0], sum = 0;

    for (uint64_t i = 1; i < n; i++)
        most = fmax(most, at[i]);
    for (uint64_t i = 0; i < n; i++)
        sum += exp(at[i] - most);
    return most + log(sum);
}

static void cross_entropy_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0];
    const double factor = *node->out->grad / (double)x->rows;
    double *d_x = ref_doubles(tape, x->n);

    for (uint64_t t = 0; t < x->rows; t++) {
        const double *row = x->at + t * x->width, lse = log_sum_exp(row, x->width);
        for (uint64_t i = 0; i < x->width; i++)
            d_x[t * x->width + i] =
                factor * (exp(row[i] - lse) - (i == (uint64_t)node->ids[t] ? 1 : 0));
    }
    ref_flow(tape, x, d_x);
}

struct ref_value *ref_cross_entropy(struct ref_tape *tape, struct ref_value *logits,
                                    const int64_t *labels)
{
    struct ref_value *loss = ref_value_new(tape, 1, 1, REF_EXACT);

    for (uint64_t t = 0; t < logits->rows; t++) {
        const double *row = logits->at + t * logits->width;
        *loss->at += (log_sum_exp(row, logits->width) - row[labels[t]]) / (double)logits->rows;
    }
    return ref_push(
        tape, (struct ref_node){
                  .backward = cross_entropy_backward, .out = loss, .in = {logits}, .ids = labels});
}

static void mean_backward(struct ref_tape *tape, const struct ref_node *node)
{
    struct ref_value *x = node->in[0];
    double *d_x = ref_doubles(tape, x->n);

    for (uint64_t i = 0; i < x->n; i++)
        d_x[i] = *node->out->grad / (double)x->n;
    ref_flow(tape, x, d_x);
}

struct ref_value *ref_mean(struct ref_tape *tape, struct ref_value *x)
{
    struct ref_value *loss = ref_value_new(tape, 1, 1, REF_EXACT);

    *loss->at = mean_of(x->at, x->n);
    return ref_push(tape, (struct ref_node){.backward = mean_backward, .out = loss, .in = {x}});
}
