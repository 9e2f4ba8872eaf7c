/*
 * The gated delta rule of KDA: a d x d matrix S per head, row i of key feature i, that each token
 * decays, corrects and reads. Forward keeps S before each token; backward goes back over them.
 */
#include <math.h>

#include "tests/reference/ref_ops.h"

enum { Q, K, V, G, BETA };

/* Where one head stands in one token. */
struct place {
    uint64_t d, at;    /* of its first feature, in q, k, v, g and o */
    uint64_t beta;     /* of its number in beta */
    const double *old; /* S before the token */
};

static struct place place_of(const struct ref_shape *shape, const double *states, uint64_t row,
                             uint64_t head)
{
    const uint64_t d = shape->head_dim, index = row * shape->heads + head;
    return (struct place){.d = d, .at = index * d, .beta = index, .old = states + index * d * d};
}

/* S after the decay, and what the value misses: v - S^T k. */
static void decayed(struct ref_value *const in[], const struct place *place, double *s,
                    double *miss)
{
    const double *k = in[K]->at + place->at, *g = in[G]->at + place->at;

    for (uint64_t j = 0; j < place->d; j++)
        miss[j] = in[V]->at[place->at + j];
    for (uint64_t i = 0; i < place->d; i++)
        for (uint64_t j = 0; j < place->d; j++) {
            s[i * place->d + j] = exp(g[i]) * place->old[i * place->d + j];
            miss[j] -= s[i * place->d + j] * k[i];
        }
}

/* S after the token. */
static void step(struct ref_value *const in[], const struct place *place, double *s, double *miss)
{
    decayed(in, place, s, miss);
    for (uint64_t i = 0; i < place->d; i++)
        for (uint64_t j = 0; j < place->d; j++)
            s[i * place->d + j] += in[K]->at[place->at + i] * in[BETA]->at[place->beta] * miss[j];
}

static void read(struct ref_value *const in[], const struct place *place, const double *s,
                 double *o)
{
    for (uint64_t i = 0; i < place->d; i++)
        for (uint64_t j = 0; j < place->d; j++)
            o[place->at + j] +=
                s[i * place->d + j] * in[Q]->at[place->at + i] / sqrt((double)place->d);
}

/* o = S^T q d^-1/2: adds to the gradient of S, which is so far that of what comes later. */
static void read_backward(const struct ref_node *node, const struct place *place, const double *s,
                          double *d_s, double *d_q)
{
    const double *q = node->in[Q]->at + place->at, *d_o = node->out->grad + place->at;
    const double scale = 1 / sqrt((double)place->d);

    for (uint64_t i = 0; i < place->d; i++)
        for (uint64_t j = 0; j < place->d; j++) {
            d_q[place->at + i] += scale * s[i * place->d + j] * d_o[j];
            d_s[i * place->d + j] += scale * q[i] * d_o[j];
        }
}

/*
 * S' = Diag(exp g) old, m = v - S'^T k, S = S' + beta k m^T. With u = d_S^T k: d_beta = u m,
 * d_v = d_m = beta u, d_k = beta d_S m - S' d_m, d_S' = d_S - k d_m^T. s is S', d_s becomes d_old.
 */
static void step_backward(const struct ref_node *node, const struct place *place, const double *s,
                          const double *miss, double *d_s, double *const d[5])
{
    const double *k = node->in[K]->at + place->at, *g = node->in[G]->at + place->at;
    const double beta = node->in[BETA]->at[place->beta];
    double *d_v = d[V] + place->at;

    for (uint64_t j = 0; j < place->d; j++) {
        double u = 0;
        for (uint64_t i = 0; i < place->d; i++)
            u += d_s[i * place->d + j] * k[i];
        d[BETA][place->beta] += u * miss[j];
        d_v[j] = beta * u;
    }
    for (uint64_t i = 0; i < place->d; i++)
        for (uint64_t j = 0; j < place->d; j++) {
            const uint64_t at = i * place->d + j;
            d[K][place->at + i] += beta * d_s[at] * miss[j] - s[at] * d_v[j];
            d_s[at] -= k[i] * d_v[j];
            d[G][place->at + i] += d_s[at] * s[at];
            d_s[at] *= exp(g[i]);
        }
}

static void head_backward(const struct ref_node *node, uint64_t first, uint64_t head, double *room,
                          double *const d[5])
{
    const uint64_t width = node->shape.head_dim, n = width * width;
    double *s = room, *d_s = room + n, *miss = room + 2 * n;

    for (uint64_t i = 0; i < n; i++)
        d_s[i] = 0;
    for (uint64_t t = node->shape.seq; t-- > 0;) {
        const struct place place = place_of(&node->shape, node->kept, first + t, head);
        step(node->in, &place, s, miss);
        read_backward(node, &place, s, d_s, d[Q]);
        decayed(node->in, &place, s, miss);
        step_backward(node, &place, s, miss, d_s, d);
    }
}

static void delta_rule_backward(struct ref_tape *tape, const struct ref_node *node)
{
    const struct ref_shape *shape = &node->shape;
    const uint64_t d = shape->head_dim;
    double *room = ref_doubles(tape, 2 * d * d + d), *grads[5];

    for (int i = 0; i < 5; i++)
        grads[i] = ref_doubles(tape, node->in[i]->n);
    for (uint64_t b = 0; b < shape->batch; b++)
        for (uint64_t head = 0; head < shape->heads; head++)
            head_backward(node, b * shape->seq, head, room, grads);
    for (int i = 0; i < 5; i++)
        ref_flow(tape, node->in[i], grads[i]);
}

struct ref_value *ref_delta_rule(struct ref_tape *tape, struct ref_value *const in[5],
                                 const struct ref_shape *shape)
{
    const uint64_t d = shape->head_dim, rows = shape->batch * shape->seq;
    struct ref_value *o = ref_value_new(tape, rows, in[Q]->width, REF_EXACT);
    double *states = ref_doubles(tape, (rows + 1) * shape->heads * d * d);
    double *room = ref_doubles(tape, d * d + d), *miss = room + d * d;

    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t head = 0; head < shape->heads; head++) {
            const struct place place = place_of(shape, states, row, head);
            double *next = states + ((row + 1) * shape->heads + head) * d * d;
            step(in, &place, room, miss);
            read(in, &place, room, o->at);
            for (uint64_t i = 0; i < d * d && (row + 1) % shape->seq > 0; i++)
                next[i] = room[i];
        }
    struct ref_node node = {
        .backward = delta_rule_backward, .out = o, .kept = states, .shape = *shape};
    for (int i = 0; i < 5; i++)
        node.in[i] = in[i];
    return ref_push(tape, node);
}
