/*
 * Bodies of the CUDA attention: a query, or a key, of one head is one item; items of
 * gpu/cuda_item.h.
 *
 * Blocks of keys as on the host (gpu/host_attention.c, gpu/host_attention_dgrad.c: the formulas), with
 * a running maximum and sum, so that no s x s matrix exists and sums have the host's order. What a
 * thread keeps is one row of the head and the weights of one block. Scratch: the turns of all places,
 * then in backward delta of each query.
 */
#ifndef GPU_CUDA_ATTENTION_BODY_H
#define GPU_CUDA_ATTENTION_BODY_H

#include "gpu/cuda_item.h"

enum { KEY_BLOCK = 64 };

/* ---- places -------------------------------------------------------------------------------- */

/* Element i of head h of token t is number t * row + first + h * D + i. */
struct op_heads {
    const struct op_tensor *tensor;
    uint64_t row, first;
    bool rotated;
};

struct op_three {
    struct op_heads q, k, v;
};

/* q, k and v, or their gradients; in one tensor where the call's k is absent. */
HOST_DEVICE struct op_three heads_of(const struct cuda_op *op, int operand)
{
    const struct op_tensor *t = &op->call.tensors[operand];
    const uint64_t of_q = op->shape.heads * op->shape.head_dim;
    const uint64_t of_k = op->shape.kv_heads * op->shape.head_dim;
    const bool rotated = op->shape.rope_base > 0, packed = !op->call.tensors[1].at;
    const uint64_t row = of_q + 2 * of_k;
    const struct op_three apart = {
        {&t[0], of_q, 0, rotated}, {&t[1], of_k, 0, rotated}, {&t[2], of_k, 0, false}};
    const struct op_three together = {
        {&t[0], row, 0, rotated}, {&t[0], row, of_q, rotated}, {&t[0], row, of_q + of_k, false}};
    return packed ? together : apart;
}

/* out and its gradient lie like the queries of three tensors. */
HOST_DEVICE struct op_heads out_of(const struct cuda_op *op, int operand)
{
    const struct op_heads heads = {&op->call.tensors[operand], op->shape.heads * op->shape.head_dim,
                                   0, false};
    return heads;
}

/* A token of a head: the item's, or another of its sequence. */
struct op_row {
    uint64_t head, place, token; /* token: of the batch; place: of its sequence */
};

HOST_DEVICE struct op_row row_of(const struct cuda_op *op, uint64_t item, uint64_t heads)
{
    const uint64_t token = item / heads;
    const struct op_row row = {item % heads, token % op->shape.seq, token};
    return row;
}

HOST_DEVICE struct op_row row_at(struct op_row of, uint64_t head, uint64_t place)
{
    const struct op_row row = {head, place, of.token - of.place + place};
    return row;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* An angle's cosine and sine, in FP64, so that far places turn as exactly as near ones. */
HOST_DEVICE void turn_item(const struct cuda_op *op, uint64_t i)
{
    const uint64_t half = op->shape.head_dim / 2, n = op->shape.seq * half;
    const double step = pow(op->shape.rope_base, -2.0 * (double)(i % half) / (double)(2 * half));
    op->scratch[i] = (float)cos((double)(i / half) * step);
    op->scratch[n + i] = (float)sin((double)(i / half) * step);
}

HOST_DEVICE float *deltas_of(const struct cuda_op *op)
{
    return op->scratch + op->shape.seq * op->shape.head_dim;
}

HOST_DEVICE uint64_t row_start(const struct cuda_op *op, const struct op_heads *heads,
                               struct op_row row)
{
    return row.token * heads->row + heads->first + row.head * op->shape.head_dim;
}

/* Element i of x and y turned by the place; sign -1: back. */
HOST_DEVICE float turned(const struct cuda_op *op, uint64_t place, uint64_t i, float x, float y,
                         float sign)
{
    const uint64_t half = op->shape.head_dim / 2, n = op->shape.seq * half;
    const uint64_t at = place * half + i % half;
    const float cosine = op->scratch[at], sine = sign * op->scratch[n + at];
    return i < half ? x * cosine - y * sine : y * cosine + x * sine;
}

HOST_DEVICE float row_load(const struct cuda_op *op, const struct op_heads *heads,
                           struct op_row row, uint64_t i)
{
    const uint64_t at = row_start(op, heads, row), half = op->shape.head_dim / 2;
    if (!heads->rotated)
        return load(heads->tensor, at + i);
    return turned(op, row.place, i, load(heads->tensor, at + i % half),
                  load(heads->tensor, at + i % half + half), 1);
}

HOST_DEVICE void row_load_all(const struct cuda_op *op, const struct op_heads *heads,
                              struct op_row row, float *out)
{
    for (uint64_t i = 0; i < op->shape.head_dim; i++)
        out[i] = row_load(op, heads, row, i);
}

/* From in, turned back where the heads are rotated. */
HOST_DEVICE void row_store(const struct cuda_op *op, const struct op_heads *heads,
                           struct op_row row, const float *in)
{
    const uint64_t at = row_start(op, heads, row), half = op->shape.head_dim / 2;
    for (uint64_t i = 0; i < op->shape.head_dim; i++)
        store(heads->tensor, at + i,
              heads->rotated ? turned(op, row.place, i, in[i % half], in[i % half + half], -1)
                             : in[i]);
}

HOST_DEVICE float row_dot(const struct cuda_op *op, const struct op_heads *heads, struct op_row row,
                          const float *with)
{
    float sum = 0;
    for (uint64_t i = 0; i < op->shape.head_dim; i++)
        sum += with[i] * row_load(op, heads, row, i);
    return sum;
}

HOST_DEVICE float score_scale(const struct cuda_op *op)
{
    return 1 / sqrtf((float)op->shape.head_dim);
}

HOST_DEVICE uint64_t key_head(const struct cuda_op *op, uint64_t head)
{
    return head / (op->shape.heads / op->shape.kv_heads);
}

/* to[i] += sum over the n rows from this place on of weights[j] row_j[i] */
HOST_DEVICE void add_rows(const struct cuda_op *op, const struct op_heads *heads,
                          struct op_row first, uint64_t n, const float *weights, float *to)
{
    for (uint64_t i = 0; i < op->shape.head_dim; i++) {
        float sum = 0;
        for (uint64_t j = 0; j < n; j++)
            sum += weights[j] * row_load(op, heads, row_at(first, first.head, first.place + j), i);
        to[i] += sum;
    }
}

HOST_DEVICE void clear(float *row, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        row[i] = 0;
}

/* ---- forward ------------------------------------------------------------------------------- */

HOST_DEVICE void attention_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_three in = heads_of(op, 0);
    const struct op_heads to = out_of(op, 3);
    const struct op_row query = row_of(op, item, op->shape.heads);
    const uint64_t d = op->shape.head_dim, head = key_head(op, query.head);
    float q[CUDA_MAX_HEAD_DIM], out[CUDA_MAX_HEAD_DIM], weights[KEY_BLOCK];
    float max = -INFINITY, sum = 0;
    row_load_all(op, &in.q, query, q);
    clear(out, d);
    for (uint64_t from = 0; from <= query.place; from += KEY_BLOCK) {
        const uint64_t n = op_min(KEY_BLOCK, query.place + 1 - from);
        const float before = max;
        for (uint64_t j = 0; j < n; j++) {
            weights[j] = row_dot(op, &in.k, row_at(query, head, from + j), q) * score_scale(op);
            max = weights[j] > max ? weights[j] : max;
        }
        for (uint64_t j = 0; j < n; j++)
            weights[j] = expf(weights[j] - max);
        const float down = expf(before - max);
        sum = sum * down + lanes_over(n, [&](uint64_t j) { return weights[j]; });
        for (uint64_t i = 0; i < d; i++)
            out[i] *= down;
        add_rows(op, &in.v, row_at(query, head, from), n, weights, out);
    }
    for (uint64_t i = 0; i < d; i++)
        out[i] *= 1 / sum;
    store(&op->call.tensors[4], item, max + logf(sum));
    row_store(op, &to, query, out);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* Of one block: weights of a query's keys, and their gradients, from the query's row and that of
   the gradient of out. */
struct op_block {
    float p[KEY_BLOCK], d_p[KEY_BLOCK];
};

HOST_DEVICE void weigh_keys(const struct cuda_op *op, const struct op_three *in,
                            struct op_row query, struct op_row first, uint64_t n, const float *q,
                            const float *d_out, struct op_block *block)
{
    const float lse = load(&op->call.tensors[4], query.token * op->shape.heads + query.head);
    for (uint64_t j = 0; j < n; j++) {
        const struct op_row key = row_at(first, first.head, first.place + j);
        block->p[j] = expf(row_dot(op, &in->k, key, q) * score_scale(op) - lse);
        block->d_p[j] = row_dot(op, &in->v, key, d_out);
    }
}

HOST_DEVICE void attention_delta_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_three in = heads_of(op, 0);
    const struct op_heads of_out = out_of(op, 5);
    const struct op_row query = row_of(op, item, op->shape.heads);
    float q[CUDA_MAX_HEAD_DIM], d_out[CUDA_MAX_HEAD_DIM], delta = 0;
    struct op_block block;
    row_load_all(op, &in.q, query, q);
    row_load_all(op, &of_out, query, d_out);
    for (uint64_t from = 0; from <= query.place; from += KEY_BLOCK) {
        const uint64_t n = op_min(KEY_BLOCK, query.place + 1 - from);
        weigh_keys(op, &in, query, row_at(query, key_head(op, query.head), from), n, q, d_out,
                   &block);
        delta += lanes_over(n, [&](uint64_t j) { return block.p[j] * block.d_p[j]; });
    }
    deltas_of(op)[item] = delta;
}

HOST_DEVICE void attention_d_q_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_three in = heads_of(op, 0), to = heads_of(op, 6);
    const struct op_heads of_out = out_of(op, 5);
    const struct op_row query = row_of(op, item, op->shape.heads);
    float q[CUDA_MAX_HEAD_DIM], d_out[CUDA_MAX_HEAD_DIM], d_q[CUDA_MAX_HEAD_DIM];
    struct op_block block;
    row_load_all(op, &in.q, query, q);
    row_load_all(op, &of_out, query, d_out);
    clear(d_q, op->shape.head_dim);
    for (uint64_t from = 0; from <= query.place; from += KEY_BLOCK) {
        const uint64_t n = op_min(KEY_BLOCK, query.place + 1 - from);
        const struct op_row first = row_at(query, key_head(op, query.head), from);
        weigh_keys(op, &in, query, first, n, q, d_out, &block);
        for (uint64_t j = 0; j < n; j++)
            block.d_p[j] = block.p[j] * (block.d_p[j] - deltas_of(op)[item]) * score_scale(op);
        add_rows(op, &in.k, first, n, block.d_p, d_q);
    }
    row_store(op, &to.q, query, d_q);
}

/* Weights of a key's n queries from first on, of which the first ones may lie before the key. */
HOST_DEVICE void weigh_queries(const struct cuda_op *op, const struct op_three *in,
                               struct op_row key, struct op_row first, uint64_t n, const float *k,
                               const float *v, struct op_block *block)
{
    const struct op_heads of_out = out_of(op, 5);
    for (uint64_t j = 0; j < n; j++) {
        const struct op_row query = row_at(first, first.head, first.place + j);
        const uint64_t at = query.token * op->shape.heads + query.head;
        const float p =
            expf(row_dot(op, &in->q, query, k) * score_scale(op) - load(&op->call.tensors[4], at));
        const float d_p = row_dot(op, &of_out, query, v);
        const bool sees = query.place >= key.place;
        block->p[j] = sees ? p : 0;
        block->d_p[j] = sees ? p * (d_p - deltas_of(op)[at]) * score_scale(op) : 0;
    }
}

HOST_DEVICE void attention_d_kv_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_three in = heads_of(op, 0), to = heads_of(op, 6);
    const struct op_heads of_out = out_of(op, 5);
    const struct op_row key = row_of(op, item, op->shape.kv_heads);
    const uint64_t d = op->shape.head_dim, seq = op->shape.seq;
    const uint64_t group = op->shape.heads / op->shape.kv_heads;
    float k[CUDA_MAX_HEAD_DIM], v[CUDA_MAX_HEAD_DIM];
    float d_k[CUDA_MAX_HEAD_DIM], d_v[CUDA_MAX_HEAD_DIM];
    struct op_block block;
    row_load_all(op, &in.k, key, k);
    row_load_all(op, &in.v, key, v);
    clear(d_k, d);
    clear(d_v, d);
    for (uint64_t head = key.head * group; head < (key.head + 1) * group; head++)
        for (uint64_t from = key.place / KEY_BLOCK * KEY_BLOCK; from < seq; from += KEY_BLOCK) {
            const struct op_row first = row_at(key, head, from);
            const uint64_t n = op_min(KEY_BLOCK, seq - from);
            weigh_queries(op, &in, key, first, n, k, v, &block);
            add_rows(op, &of_out, first, n, block.p, d_v);
            add_rows(op, &in.q, first, n, block.d_p, d_k);
        }
    row_store(op, &to.k, key, d_k);
    row_store(op, &to.v, key, d_v);
}

#endif
