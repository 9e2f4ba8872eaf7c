/*
 * Causal softmax attention with grouped heads and rotation, with the whole row of weights at hand.
 */
#include <math.h>

#include "tests/reference/ref_ops.h"

#define ROPE_BASE 10000.0

/* Place t, angle a = t base^(-2i/d): (x_i, x_{i+d/2}) turned by a, or back where way is -1. */
static double *turned(struct ref_tape *tape, const double *x, uint64_t width,
                      const struct ref_shape *shape, double way)
{
    const uint64_t half = shape->head_dim / 2;
    double *y = ref_doubles(tape, shape->batch * shape->seq * width);

    for (uint64_t row = 0; row < shape->batch * shape->seq; row++)
        for (uint64_t c = 0; c < width; c++) {
            const uint64_t i = c % shape->head_dim, at = row * width + c;
            const double power = (double)(i % half) / (double)half;
            const double a = (double)(row % shape->seq) * pow(ROPE_BASE, -power);
            y[at] = i < half ? x[at] * cos(a) - way * x[at + half] * sin(a)
                             : x[at] * cos(a) + way * x[at - half] * sin(a);
        }
    return y;
}

/* Softmax of the scores of places 0 to t of the sequence whose first row is given. */
static void weigh(const struct ref_shape *shape, const double *q, const double *k, uint64_t head,
                  uint64_t first, uint64_t t, double *weights)
{
    const uint64_t d = shape->head_dim, kv = head * shape->kv_heads / shape->heads;
    const double *query = q + ((first + t) * shape->heads + head) * d;
    double most = -INFINITY, sum = 0;

    for (uint64_t s = 0; s <= t; s++) {
        const double *key = k + ((first + s) * shape->kv_heads + kv) * d;
        weights[s] = 0;
        for (uint64_t i = 0; i < d; i++)
            weights[s] += query[i] * key[i] / sqrt((double)d);
        most = fmax(most, weights[s]);
    }
    for (uint64_t s = 0; s <= t; s++)
        sum += weights[s] = exp(weights[s] - most);
    for (uint64_t s = 0; s <= t; s++)
        weights[s] /= sum;
}

/* What one backward has at hand: queries and keys as they were turned, and sums of gradients. */
struct at_hand {
    const double *q, *k, *v, *d_out;
    double *d_q, *d_k, *d_v;
    double *weights, *d_weights; /* of one query */
};

/* Everything that the query of one head and place takes part in. */
static void place_backward(const struct ref_shape *shape, const struct at_hand *of, uint64_t head,
                           uint64_t first, uint64_t t)
{
    const uint64_t d = shape->head_dim, kv = head * shape->kv_heads / shape->heads;
    const uint64_t at = ((first + t) * shape->heads + head) * d;
    double sum = 0;

    weigh(shape, of->q, of->k, head, first, t, of->weights);
    for (uint64_t s = 0; s <= t; s++) {
        const uint64_t from = ((first + s) * shape->kv_heads + kv) * d;
        of->d_weights[s] = 0;
        for (uint64_t i = 0; i < d; i++) {
            of->d_weights[s] += of->d_out[at + i] * of->v[from + i];
            of->d_v[from + i] += of->weights[s] * of->d_out[at + i];
        }
        sum += of->weights[s] * of->d_weights[s];
    }
    for (uint64_t s = 0; s <= t; s++) {
        const uint64_t from = ((first + s) * shape->kv_heads + kv) * d;
        const double d_score = of->weights[s] * (of->d_weights[s] - sum) / sqrt((double)d);
        for (uint64_t i = 0; i < d; i++) {
            of->d_q[at + i] += d_score * of->k[from + i];
            of->d_k[from + i] += d_score * of->q[at + i];
        }
    }
}

static void attention_backward(struct ref_tape *tape, const struct ref_node *node)
{
    const struct ref_shape *shape = &node->shape;
    struct ref_value *q = node->in[0], *k = node->in[1], *v = node->in[2];
    const struct at_hand of = {
        .q = node->flag ? turned(tape, q->at, q->width, shape, 1) : q->at,
        .k = node->flag ? turned(tape, k->at, k->width, shape, 1) : k->at,
        .v = v->at,
        .d_out = node->out->grad,
        .d_q = ref_doubles(tape, q->n),
        .d_k = ref_doubles(tape, k->n),
        .d_v = ref_doubles(tape, v->n),
        .weights = ref_doubles(tape, shape->seq),
        .d_weights = ref_doubles(tape, shape->seq),
    };

    for (uint64_t b = 0; b < shape->batch; b++)
        for (uint64_t head = 0; head < shape->heads; head++)
            for (uint64_t t = 0; t < shape->seq; t++)
                place_backward(shape, &of, head, b * shape->seq, t);
    ref_flow(tape, v, of.d_v);
    ref_flow(tape, k, node->flag ? turned(tape, of.d_k, k->width, shape, -1) : of.d_k);
    ref_flow(tape, q, node->flag ? turned(tape, of.d_q, q->width, shape, -1) : of.d_q);
}

static void attend(const struct ref_shape *shape, const double *q, const double *k, const double *v,
                   double *out, double *weights)
{
    const uint64_t d = shape->head_dim;

    for (uint64_t row = 0; row < shape->batch * shape->seq; row++)
        for (uint64_t head = 0; head < shape->heads; head++) {
            const uint64_t t = row % shape->seq, kv = head * shape->kv_heads / shape->heads;
            weigh(shape, q, k, head, row - t, t, weights);
            for (uint64_t s = 0; s <= t; s++)
                for (uint64_t i = 0; i < d; i++)
                    out[(row * shape->heads + head) * d + i] +=
                        weights[s] * v[((row - t + s) * shape->kv_heads + kv) * d + i];
        }
}

struct ref_value *ref_attention(struct ref_tape *tape, struct ref_value *q, struct ref_value *k,
                                struct ref_value *v, const struct ref_shape *shape, bool rotates)
{
    struct ref_value *out = ref_value_new(tape, q->rows, q->width, q->format);

    attend(shape, rotates ? turned(tape, q->at, q->width, shape, 1) : q->at,
           rotates ? turned(tape, k->at, k->width, shape, 1) : k->at, v->at, out->at,
           ref_doubles(tape, shape->seq));
    return ref_push(tape, (struct ref_node){.backward = attention_backward,
                                            .out = out,
                                            .in = {q, k, v},
                                            .shape = *shape,
                                            .flag = rotates});
}
