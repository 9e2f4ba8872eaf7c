/*
 * Sums over ranks, a block of elements at a time, so that the FP32 sums stay in the first cache.
 *
 * No transport and no threads: whoever has the ranks' bytes calls this. Of a block all parts are
 * read before out is written, which is why out may be one of them.
 */
#include "gpu/reduce_ranks.h"

#include "gpu/pack_body.h"

#include <assert.h>

enum { BLOCK = 1024 };

/* One call: what does not change from block to block. */
struct reduce {
    const void *const *parts;
    uint32_t n;
    float factor;
    bool averages;
};

/* A block, or the n elements that are left of the last one. */
PACK_INLINE void reduce_block(const struct reduce *reduce, uint64_t first, uint32_t n,
                              uint32_t dtype, char *out)
{
    const uint64_t offset = first * pack_bytes(dtype);
    float sum[BLOCK];
    for (uint32_t i = 0; i < n; i++)
        sum[i] = -0.0f; /* the number that changes none it is added to */
    for (uint32_t rank = 0; rank < reduce->n; rank++) {
        const char *part = (const char *)reduce->parts[rank] + offset;
        const float factor = reduce->factor;
        for (uint32_t i = 0; i < n; i++)
            sum[i] += pack_widen(pack_get(part, i, dtype), dtype) * factor;
    }
    if (reduce->averages) {
        for (uint32_t i = 0; i < n; i++)
            sum[i] /= (float)reduce->n;
    }
    for (uint32_t i = 0; i < n; i++)
        pack_put(out + offset, i, dtype, pack_narrow(sum[i], dtype));
}

PACK_INLINE void reduce_all(const struct reduce *reduce, uint64_t elements, uint32_t dtype,
                            char *out)
{
    uint64_t first = 0;
    for (; elements - first >= BLOCK; first += BLOCK)
        reduce_block(reduce, first, BLOCK, dtype, out);
    reduce_block(reduce, first, (uint32_t)(elements - first), dtype, out);
}

void reduce_ranks(enum dtype dtype, enum reduction reduction, double divisor,
                  const void *const *parts, uint32_t n, uint64_t elements, void *out)
{
    assert(n > 0 && reduction != REDUCE_NONE);
    const struct reduce reduce = {
        .parts = parts,
        .n = n,
        .factor = reduction == REDUCE_PREMUL ? (float)(1 / divisor) : 1.0f,
        .averages = reduction == REDUCE_AVG,
    };
    if (dtype == DTYPE_FP32)
        reduce_all(&reduce, elements, DTYPE_FP32, out);
    else if (dtype == DTYPE_BF16)
        reduce_all(&reduce, elements, DTYPE_BF16, out);
    else if (dtype == DTYPE_FP16)
        reduce_all(&reduce, elements, DTYPE_FP16, out);
    else
        assert(!"a sum of bytes");
}
