/*
 * The host's attention, forward: blocks of queries over the blocks of keys up to them, with a running
 * maximum and sum of each row (online softmax), and what both passes share of reading blocks.
 *
 * Of a row with scores s_j seen so far: max = max s_j, sum = sum exp(s_j - max), and out is the sum
 * of exp(s_j - max) v_j; a new maximum scales sum and out down. At the end out / sum is stored, and
 * lse = max + log(sum).
 */
#include "gpu/host_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lanes.h"

/* ---- blocks ------------------------------------------------------------------------------- */

/* Angles in FP64, so that far places turn as exactly as near ones. */
static void make_turns(struct attention *attention)
{
    const uint64_t seq = attention->shape->seq, half = attention->d / 2;
    attention->cosines = host_floats(2 * seq, half);
    attention->sines = attention->cosines + seq * half;
    for (uint64_t i = 0; i < half; i++) {
        const double step = pow(attention->shape->rope_base, -2.0 * (double)i / (double)(2 * half));
        for (uint64_t t = 0; t < seq; t++) {
            attention->cosines[t * half + i] = (float)cos((double)t * step);
            attention->sines[t * half + i] = (float)sin((double)t * step);
        }
    }
}

void attention_init(struct attention *attention, const struct op_call *call)
{
    const struct op_shape *shape = call->shape;
    *attention = (struct attention){.shape = shape,
                                    .d = shape->head_dim,
                                    .group = shape->heads / shape->kv_heads,
                                    .scale = 1 / sqrtf((float)shape->head_dim),
                                    .line = host_floats(1, shape->head_dim),
                                    .packed = !call->tensors[1].at};
    if (shape->rope_base > 0)
        make_turns(attention);
    attention_find_heads(attention, call->tensors, &attention->q, &attention->k, &attention->v);
}

void attention_release(struct attention *attention)
{
    free(attention->line);
    free(attention->cosines);
}

void attention_find_heads(const struct attention *attention, const struct op_tensor *three,
                          struct heads *q, struct heads *k, struct heads *v)
{
    const uint64_t of_q = attention->shape->heads * attention->d;
    const uint64_t of_k = attention->shape->kv_heads * attention->d;
    const bool rotated = attention->cosines != NULL;
    *q = (struct heads){&three[0], of_q, 0, rotated};
    *k = (struct heads){&three[1], of_k, 0, rotated};
    *v = (struct heads){&three[2], of_k, 0, false};
    if (attention->packed) {
        k->tensor = v->tensor = &three[0];
        q->row = k->row = v->row = of_q + 2 * of_k;
        k->first = of_q;
        v->first = of_q + of_k;
    }
}

struct block attention_block(const struct attention *attention, uint64_t sequence, uint64_t head,
                             uint64_t place)
{
    const uint64_t seq = attention->shape->seq;
    return (struct block){.head = head,
                          .place = place,
                          .token = sequence * seq + place,
                          .n = host_min(ATTENTION_BLOCK, seq - place)};
}

struct tile attention_tile(uint64_t rows, uint64_t columns)
{
    const uint64_t padded = tile_padded(columns);
    return (struct tile){host_floats(rows, padded), padded, 1};
}

/* sign -1 turns back */
static void rotate(const struct attention *attention, uint64_t place, float sign, float *row)
{
    const uint64_t half = attention->d / 2;
    const float *cosine = attention->cosines + place * half;
    const float *sine = attention->sines + place * half;
    for (uint64_t i = 0; i < half; i++) {
        const float x = row[i], y = row[i + half], s = sign * sine[i];
        row[i] = x * cosine[i] - y * s;
        row[i + half] = y * cosine[i] + x * s;
    }
}

static uint64_t find_row(const struct attention *attention, const struct heads *heads,
                         const struct block *block, uint64_t i)
{
    return (block->token + i) * heads->row + heads->first + block->head * attention->d;
}

static void load_row(const struct attention *attention, const struct heads *heads,
                     const struct block *block, uint64_t i, float *out)
{
    host_widen(heads->tensor, find_row(attention, heads, block, i), attention->d, out);
    if (heads->rotated)
        rotate(attention, block->place + i, 1, out);
}

void attention_load(const struct attention *attention, const struct heads *heads,
                    const struct block *block, struct tile out)
{
    for (uint64_t i = 0; i < block->n; i++)
        load_row(attention, heads, block, i, out.at + i * out.row);
}

void attention_load_across(const struct attention *attention, const struct heads *heads,
                           const struct block *block, struct tile out)
{
    for (uint64_t i = 0; i < block->n; i++) {
        load_row(attention, heads, block, i, attention->line);
        for (uint64_t c = 0; c < attention->d; c++)
            out.at[c * out.row + i] = attention->line[c];
    }
}

void attention_store(const struct attention *attention, const struct heads *heads,
                     const struct block *block, struct tile in)
{
    for (uint64_t i = 0; i < block->n; i++) {
        float *row = in.at + i * in.row;
        if (heads->rotated)
            rotate(attention, block->place + i, -1, row);
        host_store(heads->tensor, find_row(attention, heads, block, i), attention->d, row);
    }
}

void attention_score(const struct attention *attention, const struct block *queries,
                     const struct block *keys, struct tile q, struct tile k_across, struct tile out)
{
    memset(out.at, 0, queries->n * out.row * sizeof *out.at);
    tile_product(q, k_across, out, queries->n, keys->n, attention->d);
    for (uint64_t i = 0; i < queries->n; i++) {
        float *row = out.at + i * out.row;
        lanes_scale(row, attention->scale, keys->n);
        for (uint64_t j = i + 1; queries->place == keys->place && j < keys->n; j++)
            row[j] = -INFINITY;
    }
}

/* ---- forward ------------------------------------------------------------------------------ */

struct forward {
    struct attention attention;
    struct heads to; /* out, which lies like the queries of three tensors */
    const struct op_tensor *lse;
    struct tile q, k_across, v, score, out; /* of one block */
    float max[ATTENTION_BLOCK], sum[ATTENTION_BLOCK];
};

static void forward_init(struct forward *forward, const struct op_call *call)
{
    struct attention *attention = &forward->attention;
    attention_init(attention, call);
    forward->to =
        (struct heads){.tensor = &call->tensors[3], .row = attention->shape->heads * attention->d};
    forward->lse = &call->tensors[4];
    forward->q = attention_tile(ATTENTION_BLOCK, attention->d);
    forward->k_across = attention_tile(attention->d, ATTENTION_BLOCK);
    forward->v = attention_tile(ATTENTION_BLOCK, attention->d);
    forward->score = attention_tile(ATTENTION_BLOCK, ATTENTION_BLOCK);
    forward->out = attention_tile(ATTENTION_BLOCK, attention->d);
}

static void forward_release(struct forward *forward)
{
    free(forward->q.at);
    free(forward->k_across.at);
    free(forward->v.at);
    free(forward->score.at);
    free(forward->out.at);
    attention_release(&forward->attention);
}

/* Scores of a row become weights, relative to the greatest score so far. */
static void weigh_row(struct forward *forward, uint64_t i, uint64_t n)
{
    float *row = forward->score.at + i * forward->score.row;
    float max = forward->max[i];
    for (uint64_t j = 0; j < n; j++)
        max = row[j] > max ? row[j] : max;
    const float down = expf(forward->max[i] - max);
    for (uint64_t j = 0; j < n; j++)
        row[j] = expf(row[j] - max);
    forward->max[i] = max;
    forward->sum[i] = forward->sum[i] * down + lanes_sum(row, n);
    lanes_scale(forward->out.at + i * forward->out.row, down, forward->attention.d);
}

static void finish_rows(struct forward *forward, const struct block *queries)
{
    const struct attention *attention = &forward->attention;
    for (uint64_t i = 0; i < queries->n; i++) {
        const float lse = forward->max[i] + logf(forward->sum[i]);
        lanes_scale(forward->out.at + i * forward->out.row, 1 / forward->sum[i], attention->d);
        host_store(forward->lse, (queries->token + i) * attention->shape->heads + queries->head, 1,
                   &lse);
    }
    attention_store(attention, &forward->to, queries, forward->out);
}

static void forward_block(struct forward *forward, uint64_t sequence, uint64_t head, uint64_t place)
{
    const struct attention *attention = &forward->attention;
    const struct block queries = attention_block(attention, sequence, head, place);
    attention_load(attention, &attention->q, &queries, forward->q);
    memset(forward->out.at, 0, queries.n * forward->out.row * sizeof(float));
    for (uint64_t i = 0; i < queries.n; i++) {
        forward->max[i] = -INFINITY;
        forward->sum[i] = 0;
    }
    for (uint64_t from = 0; from <= place; from += ATTENTION_BLOCK) {
        const struct block keys =
            attention_block(attention, sequence, head / attention->group, from);
        attention_load_across(attention, &attention->k, &keys, forward->k_across);
        attention_load(attention, &attention->v, &keys, forward->v);
        attention_score(attention, &queries, &keys, forward->q, forward->k_across, forward->score);
        for (uint64_t i = 0; i < queries.n; i++)
            weigh_row(forward, i, keys.n);
        tile_product(forward->score, forward->v, forward->out, queries.n, attention->d, keys.n);
    }
    finish_rows(forward, &queries);
}

void host_attention(const struct op_call *call)
{
    const struct op_shape *shape = call->shape;
    struct forward forward;
    forward_init(&forward, call);
    for (uint64_t sequence = 0; sequence < shape->batch; sequence++)
        for (uint64_t head = 0; head < shape->heads; head++)
            for (uint64_t place = 0; place < shape->seq; place += ATTENTION_BLOCK)
                forward_block(&forward, sequence, head, place);
    forward_release(&forward);
}
