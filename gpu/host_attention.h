/*
 * Blocks of attention: how both passes read queries, keys and values, and weigh them.
 *
 * A block is up to ATTENTION_BLOCK tokens of one head of one sequence, widened, rotated where the
 * shape has a rope_base, its rows padded for tile_product. No s x s matrix exists anywhere.
 * Rotation of place t, for i < D/2 with angle a = t base^(-2i/D): (x_i, x_{i+D/2}) becomes
 * (x_i cos a - x_{i+D/2} sin a, x_{i+D/2} cos a + x_i sin a) (tests/oracle/README.md).
 */
#ifndef GPU_HOST_ATTENTION_H
#define GPU_HOST_ATTENTION_H

#include "gpu/host_ops.h"
#include "gpu/host_tile.h"

enum { ATTENTION_BLOCK = 64 };

/* Heads in a tensor: element i of head h of token t is number t * row + first + h * D + i. */
struct heads {
    const struct op_tensor *tensor;
    uint64_t row, first;
    bool rotated;
};

struct attention {
    const struct op_shape *shape;
    uint64_t d, group;      /* head dimension; query heads that share a key head */
    float scale;            /* D^-1/2 */
    float *line;            /* room for one row */
    float *cosines, *sines; /* [seq, D/2] */
    bool packed;            /* q, k and v lie in one tensor */
    struct heads q, k, v;
};

/* n tokens of a head, from this place of its sequence on; token: the same of the whole batch. */
struct block {
    uint64_t head, place, token, n;
};

/* Of a call whose first operands are q, k and v. */
void attention_init(struct attention *attention, const struct op_call *call);
void attention_release(struct attention *attention);

/* Where q, k and v, or their gradients, lie in three tensors of a call. */
void attention_find_heads(const struct attention *attention, const struct op_tensor *three,
                          struct heads *q, struct heads *k, struct heads *v);

struct block attention_block(const struct attention *attention, uint64_t sequence, uint64_t head,
                             uint64_t place);

/* Zeros; free(tile.at). */
struct tile attention_tile(uint64_t rows, uint64_t columns);

/* As [tokens, D], and as [D, tokens]. */
void attention_load(const struct attention *attention, const struct heads *heads,
                    const struct block *block, struct tile out);
void attention_load_across(const struct attention *attention, const struct heads *heads,
                           const struct block *block, struct tile out);

/* Writes [tokens, D] from in, rotated back; spoils in. */
void attention_store(const struct attention *attention, const struct heads *heads,
                     const struct block *block, struct tile in);

/* Scores of queries with keys, scaled; -inf where the key comes later. */
void attention_score(const struct attention *attention, const struct block *queries,
                     const struct block *keys, struct tile q, struct tile k_across,
                     struct tile out);

#endif
