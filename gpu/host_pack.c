/*
 * The host's kernels over packing: the loop over tiles, and what follows a reduce-scatter.
 *
 * One thread; whoever has several gives each its own table. What a tile and an element become is
 * gpu/pack_body.h's, as on a GPU.
 */
#include "gpu/pack_body.h"

#include <assert.h>

void host_pack(const struct pack_table *table, const void *from, void *to)
{
    for (uint32_t i = 0; i < table->n_tile; i++)
        pack_tile_run(&table->tiles[i], table->rows, from, to, 0, 1);
}

/* So many elements, of which all are read before one is written: from may be to. */
PACK_INLINE void post_block(const char *from, char *to, uint32_t n, float scale, bool accumulates,
                            uint32_t from_dtype, uint32_t to_dtype)
{
    uint32_t bits[PACK_BLOCK];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t old = accumulates ? pack_get(to, i, to_dtype) : 0;
        bits[i] =
            pack_post(pack_get(from, i, from_dtype), old, scale, accumulates, from_dtype, to_dtype);
    }
    for (uint32_t i = 0; i < n; i++)
        pack_put(to, i, to_dtype, bits[i]);
}

PACK_INLINE void post_all(const struct post_reduce *post, bool accumulates, uint32_t from_dtype,
                          uint32_t to_dtype)
{
    const char *from = post->from;
    char *to = post->to;
    uint64_t n = post->n;
    for (; n >= PACK_BLOCK; n -= PACK_BLOCK) {
        post_block(from, to, PACK_BLOCK, post->scale, accumulates, from_dtype, to_dtype);
        from += PACK_BLOCK * pack_bytes(from_dtype);
        to += PACK_BLOCK * pack_bytes(to_dtype);
    }
    post_block(from, to, (uint32_t)n, post->scale, accumulates, from_dtype, to_dtype);
}

void host_post_reduce(const struct post_reduce *post)
{
    switch (PACK_KIND(post->from_dtype, post->to_dtype)) {
#define X(from_id, to_id)                                          \
    case PACK_KIND(DTYPE_##from_id, DTYPE_##to_id):                \
        if (post->accumulates)                                     \
            post_all(post, true, DTYPE_##from_id, DTYPE_##to_id);  \
        else                                                       \
            post_all(post, false, DTYPE_##from_id, DTYPE_##to_id); \
        break;
        PACK_PAIRS(X)
#undef X
    default:
        assert(!"a reduce-scatter of bytes");
    }
}
