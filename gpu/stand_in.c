/*
 * What a stand-in moves; see stand_in.h.
 */
#include "gpu/stand_in.h"

#include <assert.h>
#include <string.h>

struct stand_in stand_in_of(const struct work_collective *collective)
{
    const uint64_t bytes = collective->elements * dtype_bytes((enum dtype)collective->dtype);
    const uint32_t n = collective->emulated_ranks;
    struct stand_in in = {.from = collective->send,
                          .to = collective->recv,
                          .bytes = bytes,
                          .n = n,
                          .ns = collective->emulated_ns};

    assert(n > 1);
    if (collective->kind == TASK_ALL_GATHER) {
        in.to_step = (int64_t)bytes;
    } else if (collective->kind == TASK_REDUCE_SCATTER) {
        in.from += (n - 1) * bytes; /* down to the first slice, which is that of rank 0 */
        in.from_step = -(int64_t)bytes;
    } else {
        in.n = 1;
    }
    return in;
}

void stand_in_move(const struct stand_in *in, uint32_t piece)
{
    const uint64_t begin = stand_in_cut(in, piece), end = stand_in_cut(in, piece + 1);

    for (uint32_t i = 0; i < in->n; i++) {
        const char *from = in->from + i * in->from_step;
        char *to = in->to + i * in->to_step;
        if (from != to && end > begin)
            memmove(to + begin, from + begin, end - begin);
    }
}
