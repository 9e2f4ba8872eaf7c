/*
 * The host's attention, backward: weights are computed again, block by block, from scores and lse.
 *
 * With weights p = exp(s - lse) of scores s = scale q k', and d_p = d_out v':
 *     d_v = p' d_out,  d_s = p (d_p - delta) scale,  d_q = d_s k,  d_k = d_s' q,
 * where delta of a query is the sum over its keys of p d_p. That equals the sum of out d_out, but for
 * the rounding of out when it was stored: a pass of its own over the blocks keeps that out of the
 * gradients. Sums run over keys in rising order for d_q; over query heads of the group, then queries,
 * for d_k and d_v; each is rounded once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host_attention.h"
#include "gpu/lanes.h"

struct backward {
    struct attention attention;
    struct heads d_out, to_q, to_k, to_v;
    const struct op_tensor *lse;
    struct tile q, of_out, k, k_across, v_across, p, d_p; /* of one block */
    struct tile d_k, d_v;                                 /* of one block of keys */
    struct tile d_q;                                      /* [group * seq, D] */
    float *delta;                                         /* [group, seq] */
};

static void backward_init(struct backward *backward, const struct op_call *call)
{
    struct attention *attention = &backward->attention;
    const struct op_tensor *tensors = call->tensors;
    attention_init(attention, call);
    attention_find_heads(attention, &tensors[6], &backward->to_q, &backward->to_k, &backward->to_v);
    const uint64_t d = attention->d, rows = attention->group * attention->shape->seq;
    backward->d_out =
        (struct heads){.tensor = &tensors[5], .row = attention->shape->heads * attention->d};
    backward->lse = &tensors[4];
    backward->q = attention_tile(ATTENTION_BLOCK, d);
    backward->of_out = attention_tile(ATTENTION_BLOCK, d);
    backward->k = attention_tile(ATTENTION_BLOCK, d);
    backward->k_across = attention_tile(d, ATTENTION_BLOCK);
    backward->v_across = attention_tile(d, ATTENTION_BLOCK);
    backward->p = attention_tile(ATTENTION_BLOCK, ATTENTION_BLOCK);
    backward->d_p = attention_tile(ATTENTION_BLOCK, ATTENTION_BLOCK);
    backward->d_k = attention_tile(ATTENTION_BLOCK, d);
    backward->d_v = attention_tile(ATTENTION_BLOCK, d);
    backward->d_q = attention_tile(rows, d);
    backward->delta = host_floats(1, rows);
}

static void backward_release(struct backward *backward)
{
    free(backward->q.at);
    free(backward->of_out.at);
    free(backward->k.at);
    free(backward->k_across.at);
    free(backward->v_across.at);
    free(backward->p.at);
    free(backward->d_p.at);
    free(backward->d_k.at);
    free(backward->d_v.at);
    free(backward->d_q.at);
    free(backward->delta);
    attention_release(&backward->attention);
}

static struct tile transposed(struct tile tile)
{
    return (struct tile){tile.at, tile.column, tile.row};
}

static void clear(struct tile tile, uint64_t rows)
{
    memset(tile.at, 0, rows * tile.row * sizeof *tile.at);
}

static void load_keys(struct backward *backward, const struct block *keys)
{
    const struct attention *attention = &backward->attention;
    attention_load_across(attention, &attention->k, keys, backward->k_across);
    attention_load_across(attention, &attention->v, keys, backward->v_across);
}

/* q, d_out, p and d_p of these queries with the keys that are loaded. */
static void weigh(struct backward *backward, const struct block *queries, const struct block *keys)
{
    const struct attention *attention = &backward->attention;
    const uint64_t heads = attention->shape->heads;
    attention_load(attention, &attention->q, queries, backward->q);
    attention_load(attention, &backward->d_out, queries, backward->of_out);
    attention_score(attention, queries, keys, backward->q, backward->k_across, backward->p);
    for (uint64_t i = 0; i < queries->n; i++) {
        const float lse = host_load(backward->lse, (queries->token + i) * heads + queries->head);
        float *row = backward->p.at + i * backward->p.row;
        for (uint64_t j = 0; j < keys->n; j++)
            row[j] = expf(row[j] - lse);
    }
    clear(backward->d_p, queries->n);
    tile_product(backward->of_out, backward->v_across, backward->d_p, queries->n, keys->n,
                 attention->d);
}

/* Of the queries' rows in d_q and delta. */
static uint64_t find_row(const struct backward *backward, const struct block *queries)
{
    const struct attention *attention = &backward->attention;
    return queries->head % attention->group * attention->shape->seq + queries->place;
}

static void find_delta(struct backward *backward, uint64_t sequence, uint64_t head, uint64_t place)
{
    const struct attention *attention = &backward->attention;
    const struct block queries = attention_block(attention, sequence, head, place);
    float *delta = backward->delta + find_row(backward, &queries);
    memset(delta, 0, queries.n * sizeof *delta);
    for (uint64_t from = 0; from <= place; from += ATTENTION_BLOCK) {
        const struct block keys =
            attention_block(attention, sequence, head / attention->group, from);
        load_keys(backward, &keys);
        weigh(backward, &queries, &keys);
        for (uint64_t i = 0; i < queries.n; i++)
            delta[i] += lanes_dot(backward->p.at + i * backward->p.row,
                                  backward->d_p.at + i * backward->d_p.row, keys.n);
    }
}

/* Adds to d_q, d_k and d_v what these queries and keys have with one another. */
static void add_block(struct backward *backward, const struct block *queries,
                      const struct block *keys)
{
    const uint64_t d = backward->attention.d, row = find_row(backward, queries);
    const struct tile p = backward->p, d_s = backward->d_p;
    struct tile d_q = backward->d_q;
    d_q.at += row * d_q.row;
    weigh(backward, queries, keys);
    tile_product(transposed(p), backward->of_out, backward->d_v, keys->n, d, queries->n);
    for (uint64_t i = 0; i < queries->n; i++)
        for (uint64_t j = 0; j < keys->n; j++) {
            float *at = &d_s.at[i * d_s.row + j];
            *at =
                p.at[i * p.row + j] * (*at - backward->delta[row + i]) * backward->attention.scale;
        }
    tile_product(transposed(d_s), backward->q, backward->d_k, keys->n, d, queries->n);
    tile_product(d_s, backward->k, d_q, queries->n, d, keys->n);
}

static void backward_keys(struct backward *backward, uint64_t sequence, uint64_t head,
                          uint64_t from)
{
    const struct attention *attention = &backward->attention;
    const struct block keys = attention_block(attention, sequence, head, from);
    load_keys(backward, &keys);
    attention_load(attention, &attention->k, &keys, backward->k);
    clear(backward->d_k, keys.n);
    clear(backward->d_v, keys.n);
    for (uint64_t h = head * attention->group; h < (head + 1) * attention->group; h++)
        for (uint64_t place = from; place < attention->shape->seq; place += ATTENTION_BLOCK) {
            const struct block queries = attention_block(attention, sequence, h, place);
            add_block(backward, &queries, &keys);
        }
    attention_store(attention, &backward->to_k, &keys, backward->d_k);
    attention_store(attention, &backward->to_v, &keys, backward->d_v);
}

static void store_queries(struct backward *backward, uint64_t sequence, uint64_t head,
                          uint64_t place)
{
    const struct block queries = attention_block(&backward->attention, sequence, head, place);
    struct tile d_q = backward->d_q;
    d_q.at += find_row(backward, &queries) * d_q.row;
    attention_store(&backward->attention, &backward->to_q, &queries, d_q);
}

/* One key head with the query heads that read it. */
static void backward_head(struct backward *backward, uint64_t sequence, uint64_t head)
{
    const uint64_t group = backward->attention.group, seq = backward->attention.shape->seq;
    clear(backward->d_q, group * seq);
    for (uint64_t h = head * group; h < (head + 1) * group; h++)
        for (uint64_t place = 0; place < seq; place += ATTENTION_BLOCK)
            find_delta(backward, sequence, h, place);
    for (uint64_t from = 0; from < seq; from += ATTENTION_BLOCK)
        backward_keys(backward, sequence, head, from);
    for (uint64_t h = head * group; h < (head + 1) * group; h++)
        for (uint64_t place = 0; place < seq; place += ATTENTION_BLOCK)
            store_queries(backward, sequence, h, place);
}

void host_attention_dgrad(const struct op_call *call)
{
    struct backward backward;
    backward_init(&backward, call);
    for (uint64_t sequence = 0; sequence < call->shape->batch; sequence++)
        for (uint64_t head = 0; head < call->shape->kv_heads; head++)
            backward_head(&backward, sequence, head);
    backward_release(&backward);
}
