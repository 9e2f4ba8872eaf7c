/*
 * The host's gated delta rule of KDA, token by token, a head of a sequence at a time.
 *
 * S is D x D, row i belongs to feature i of the keys, zero before a sequence. With a = exp(g) and
 * q already times D^-1/2, a token does
 *     S <- Diag(a) S;  u = v - S' k;  e = beta u;  S <- S + k e';  o = S' q
 * Forward keeps S as it is before each chunk. Backward takes chunks from last to first, repeats one
 * from its state with S kept at every token, and goes back through it with dS, the gradient of S:
 *     d_q = S d_o, dS += q d_o';  d_k = dS e, d_e = dS' k;                     (S after the token)
 *     d_v = beta d_e, d_beta = d_e . u;  d_k -= Diag(a) S d_v, dS -= k d_v';   (S before it)
 *     d_g = a rowsum(dS * S);  dS <- Diag(a) dS
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"

/* Operands by meaning; those that the pass has. */
struct delta_operands {
    const struct op_tensor *q, *k, *v, *g, *beta, *states, *o;
    const struct op_tensor *d_o, *d_q, *d_k, *d_v, *d_g, *d_beta;
};

/* One head of one sequence. */
struct delta {
    struct delta_operands of;
    uint64_t seq, heads, d, n_chunk, sequence, head;
    float scale;                            /* D^-1/2 */
    float *q, *a, *e;                       /* [D] each, of one token */
    float *o, *d_o, *d_q, *d_k, *d_v, *d_g; /* the same */
    float *k, *u;                           /* [DELTA_CHUNK, D]: of a chunk's tokens */
    float *states;                          /* [1 + DELTA_CHUNK, D, D]: before each of them, and
                                                  behind the last; forward: one, as it is now */
    float *d_state;                         /* [D, D] */
    float beta[DELTA_CHUNK];
};

static void delta_init(struct delta *delta, const struct op_call *call, uint64_t n_state,
                       struct delta_operands operands)
{
    const struct op_shape *shape = call->shape;
    const uint64_t d = shape->head_dim;
    *delta = (struct delta){.of = operands,
                            .seq = shape->seq,
                            .heads = shape->heads,
                            .d = d,
                            .n_chunk = (shape->seq + DELTA_CHUNK - 1) / DELTA_CHUNK,
                            .scale = 1 / sqrtf((float)d)};
    float **const rows[] = {&delta->q,   &delta->a,   &delta->e,   &delta->o,  &delta->d_o,
                            &delta->d_q, &delta->d_k, &delta->d_v, &delta->d_g};
    enum { N_ROW = sizeof rows / sizeof rows[0] };
    float *at = host_floats(N_ROW + 2 * DELTA_CHUNK, d);
    for (int i = 0; i < N_ROW; i++, at += d)
        *rows[i] = at;
    delta->k = at;
    delta->u = at + DELTA_CHUNK * d;
    delta->states = host_floats(n_state * d, d);
    delta->d_state = host_floats(d, d);
}

static void delta_release(struct delta *delta)
{
    free(delta->q);
    free(delta->states);
    free(delta->d_state);
}

/* Of this token in [batch, seq, heads]; times D in [batch, seq, heads, D]. */
static uint64_t find_head(const struct delta *delta, uint64_t t)
{
    return (delta->sequence * delta->seq + t) * delta->heads + delta->head;
}

static uint64_t find_state(const struct delta *delta, uint64_t chunk)
{
    const uint64_t d = delta->d;
    return ((delta->sequence * delta->n_chunk + chunk) * delta->heads + delta->head) * d * d;
}

/* q and a of a token. */
static void load_token(struct delta *delta, uint64_t t)
{
    const uint64_t d = delta->d, at = find_head(delta, t) * d;
    host_widen(delta->of.q, at, d, delta->q);
    lanes_scale(delta->q, delta->scale, d);
    host_widen(delta->of.g, at, d, delta->a);
    for (uint64_t i = 0; i < d; i++)
        delta->a[i] = expf(delta->a[i]);
}

static void find_e(struct delta *delta, uint64_t slot)
{
    for (uint64_t i = 0; i < delta->d; i++)
        delta->e[i] = delta->beta[slot] * delta->u[slot * delta->d + i];
}

/* Takes the state over a token; leaves q, a and e, and in the token's slot k, u and beta. */
static void advance(struct delta *delta, uint64_t t, float *state)
{
    const uint64_t d = delta->d, at = find_head(delta, t) * d, slot = t % DELTA_CHUNK;
    float *k = delta->k + slot * d, *u = delta->u + slot * d;
    load_token(delta, t);
    host_widen(delta->of.k, at, d, k);
    host_widen(delta->of.v, at, d, u);
    host_widen(delta->of.beta, find_head(delta, t), 1, &delta->beta[slot]);
    for (uint64_t i = 0; i < d; i++) {
        lanes_scale(state + i * d, delta->a[i], d);
        lanes_add(u, -k[i], state + i * d, d);
    }
    find_e(delta, slot);
    for (uint64_t i = 0; i < d; i++)
        lanes_add(state + i * d, k[i], delta->e, d);
}

static void forward_head(struct delta *delta)
{
    const uint64_t d = delta->d;
    float *state = delta->states;
    memset(state, 0, d * d * sizeof *state);
    for (uint64_t t = 0; t < delta->seq; t++) {
        if (t % DELTA_CHUNK == 0)
            host_store(delta->of.states, find_state(delta, t / DELTA_CHUNK), d * d, state);
        advance(delta, t, state);
        memset(delta->o, 0, d * sizeof *delta->o);
        for (uint64_t i = 0; i < d; i++)
            lanes_add(delta->o, delta->q[i], state + i * d, d);
        host_store(delta->of.o, find_head(delta, t) * d, d, delta->o);
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Through o = S' q and S + k e': d_q, d_e (in d_v), and of d_k the first part. */
static void retreat_output(struct delta *delta, const float *after, const float *k)
{
    const uint64_t d = delta->d;
    memset(delta->d_v, 0, d * sizeof *delta->d_v);
    for (uint64_t i = 0; i < d; i++) {
        float *d_row = delta->d_state + i * d;
        delta->d_q[i] = delta->scale * lanes_dot(after + i * d, delta->d_o, d);
        lanes_add(d_row, delta->q[i], delta->d_o, d);
        delta->d_k[i] = lanes_dot(d_row, delta->e, d);
        lanes_add(delta->d_v, k[i], d_row, d);
    }
}

/* Through v - S' k and Diag(a) S: the rest of d_k, d_g, and dS before the token. */
static void retreat_state(struct delta *delta, const float *before, const float *k)
{
    const uint64_t d = delta->d;
    for (uint64_t i = 0; i < d; i++) {
        float *d_row = delta->d_state + i * d;
        delta->d_k[i] -= delta->a[i] * lanes_dot(before + i * d, delta->d_v, d);
        lanes_add(d_row, -k[i], delta->d_v, d);
        delta->d_g[i] = delta->a[i] * lanes_dot(d_row, before + i * d, d);
        lanes_scale(d_row, delta->a[i], d);
    }
}

static void retreat(struct delta *delta, uint64_t t)
{
    const uint64_t d = delta->d, at = find_head(delta, t) * d, slot = t % DELTA_CHUNK;
    const float *before = delta->states + slot * d * d, *k = delta->k + slot * d;
    load_token(delta, t);
    find_e(delta, slot);
    host_widen(delta->of.d_o, at, d, delta->d_o);
    retreat_output(delta, before + d * d, k);
    const float d_beta = lanes_dot(delta->d_v, delta->u + slot * d, d);
    lanes_scale(delta->d_v, delta->beta[slot], d);
    retreat_state(delta, before, k);
    host_store(delta->of.d_q, at, d, delta->d_q);
    host_store(delta->of.d_k, at, d, delta->d_k);
    host_store(delta->of.d_v, at, d, delta->d_v);
    host_store(delta->of.d_g, at, d, delta->d_g);
    host_store(delta->of.d_beta, find_head(delta, t), 1, &d_beta);
}

static void backward_chunk(struct delta *delta, uint64_t chunk)
{
    const uint64_t d = delta->d, first = chunk * DELTA_CHUNK;
    const uint64_t end = host_min(first + DELTA_CHUNK, delta->seq);
    float *state = delta->states;
    host_widen(delta->of.states, find_state(delta, chunk), d * d, state);
    for (uint64_t t = first; t < end; t++, state += d * d) {
        memcpy(state + d * d, state, d * d * sizeof *state);
        advance(delta, t, state + d * d);
    }
    for (uint64_t t = end; t-- > first;)
        retreat(delta, t);
}

static void backward_head(struct delta *delta)
{
    memset(delta->d_state, 0, delta->d * delta->d * sizeof *delta->d_state);
    for (uint64_t chunk = delta->n_chunk; chunk-- > 0;)
        backward_chunk(delta, chunk);
}

static void each_head(struct delta *delta, const struct op_shape *shape,
                      void (*run)(struct delta *delta))
{
    for (delta->sequence = 0; delta->sequence < shape->batch; delta->sequence++)
        for (delta->head = 0; delta->head < shape->heads; delta->head++)
            run(delta);
}

void host_delta_rule(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    struct delta delta;
    delta_init(&delta, call, 1,
               (struct delta_operands){.q = &t[0],
                                       .k = &t[1],
                                       .v = &t[2],
                                       .g = &t[3],
                                       .beta = &t[4],
                                       .o = &t[5],
                                       .states = &t[6]});
    each_head(&delta, call->shape, forward_head);
    delta_release(&delta);
}

void host_delta_rule_dgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    struct delta delta;
    delta_init(&delta, call, 1 + DELTA_CHUNK,
               (struct delta_operands){.q = &t[0],
                                       .k = &t[1],
                                       .v = &t[2],
                                       .g = &t[3],
                                       .beta = &t[4],
                                       .states = &t[5],
                                       .d_o = &t[6],
                                       .d_q = &t[7],
                                       .d_k = &t[8],
                                       .d_v = &t[9],
                                       .d_g = &t[10],
                                       .d_beta = &t[11]});
    each_head(&delta, call->shape, backward_head);
    delta_release(&delta);
}
