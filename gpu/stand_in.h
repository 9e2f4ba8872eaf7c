/*
 * A collective of a rank that is alone: it moves the bytes that the rank itself would read and write,
 * and lasts as long as it is told. No bytes come from anywhere else, so that what it leaves means
 * nothing.
 *
 * An all-gather writes its own slice into everybody's; a reduce-scatter reads each slice of its input
 * and writes it over its result, its own last; an all-reduce reads and writes the whole. That is in
 * pieces, each of which has its time, so that memory is busy from the begin to the end.
 *
 * Here is what moves; C that a CUDA compiler takes too. How long it waits is the device's. Invariant:
 * a byte of the destination is written in one piece, by every copy of it in their order.
 */
#ifndef GPU_STAND_IN_H
#define GPU_STAND_IN_H

#include "gpu/convert.h"
#include "gpu/work.h"

enum { STAND_IN_PIECES = 16, STAND_IN_ALIGN = 16 };

/* n copies of bytes each; addresses go on by steps. */
struct stand_in {
    const char *from;
    char *to;
    int64_t from_step, to_step;
    uint64_t bytes;
    uint32_t n;
    int64_t ns; /* how long it lasts */
};

/* Where a piece of each copy begins; the one before it ends there. */
HOST_DEVICE uint64_t stand_in_cut(const struct stand_in *in, uint32_t piece)
{
    const uint64_t part = in->bytes / STAND_IN_PIECES / STAND_IN_ALIGN * STAND_IN_ALIGN;
    return piece < STAND_IN_PIECES ? piece * part : in->bytes;
}

/* When it is over, from the begin. */
HOST_DEVICE int64_t stand_in_due_ns(const struct stand_in *in, uint32_t piece)
{
    return (int64_t)((double)in->ns * (piece + 1) / STAND_IN_PIECES);
}

/* Of a collective that is emulated. */
struct stand_in stand_in_of(const struct work_collective *collective);
/* On the host. */
void stand_in_move(const struct stand_in *in, uint32_t piece);

#endif
