/*
 * What one lane of a warp does of one tile: of a packing, and of what follows a reduce-scatter.
 *
 * Plain C, compiled by the host's compiler and by nvcc: no shared memory, no barrier, no shuffle, so
 * that a loop over lanes computes what a warp computes. Not here: tables (gpu/pack.h), the loop over
 * tiles, launches.
 *
 * The wider side moves 16 bytes for each lane, the narrower one as many elements: both sides then
 * touch whole sectors. Vectors are aligned by the destination; a source that lies askew to it is
 * read as two aligned neighbours, shifted together. Narrow rows go by vectors where all of them
 * begin and end on one.
 *
 * Invariants: each destination byte is written once, by one lane; a vector access is aligned to its
 * size; nothing is read outside of the tile but what PACK_LO_OK and PACK_HI_OK allow.
 * Source of the design: spec GPU 2.2.
 */
#ifndef GPU_PACK_BODY_H
#define GPU_PACK_BODY_H

#include "gpu/pack_element.h"

enum {
    PACK_IN_FLIGHT = 4,     /* vectors that a lane loads before it stores the first */
    PACK_FEW_IN_FLIGHT = 2, /* the same, where one takes twice the registers */
    PACK_BLOCK = 256        /* elements in one turn of a loop that a host compiler vectorises */
};

/* ---- elements that lie together ------------------------------------------------------------ */

/* n vectors, whose destination is aligned. in_flight: at most PACK_IN_FLIGHT. */
PACK_INLINE void pack_vectors(const char *from, char *to, uint32_t n, uint32_t skew,
                              uint32_t in_flight, uint32_t lane, uint32_t lanes,
                              uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t per = pack_per_vector(from_dtype, to_dtype);
    const uint32_t load_bytes = per * pack_bytes(from_dtype), bytes = per * pack_bytes(to_dtype);
    PACK_ROLLED
    for (uint32_t v = lane; v < n; v += in_flight * lanes) {
        struct pack_vector in[PACK_IN_FLIGHT];
        for (uint32_t i = 0; i < in_flight && v + i * lanes < n; i++)
            in[i] = pack_load_skewed(from + (v + i * lanes) * load_bytes - skew, load_bytes, skew);
        for (uint32_t i = 0; i < in_flight && v + i * lanes < n; i++)
            pack_store(to + (v + i * lanes) * bytes, bytes,
                       pack_cast_vector(in[i], from_dtype, to_dtype));
    }
}

/* One by one what vectors left: elements before the first of them, and those behind the last. */
PACK_INLINE void pack_elements(const char *from, char *to, uint32_t first, uint32_t behind,
                               uint32_t end, uint32_t lane, uint32_t lanes, uint32_t from_dtype,
                               uint32_t to_dtype)
{
    PACK_ROLLED
    for (uint32_t left = lane; left < first + end - behind; left += lanes) {
        const uint32_t i = left < first ? left : left - first + behind;
        PACK_TRACE(from + i * pack_bytes(from_dtype), pack_bytes(from_dtype), false);
        PACK_TRACE(to + i * pack_bytes(to_dtype), pack_bytes(to_dtype), true);
        pack_move(from, to, i, from_dtype, to_dtype);
    }
}

/* The elements of a tile, shared out among the lanes: vectors, and one by one what is before the
   first place where the destination is aligned, what has no guard, and what is left. */
PACK_INLINE void pack_share(const char *from, char *to, uint32_t n, uint32_t arg, uint32_t lane,
                            uint32_t lanes, uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t from_bytes = pack_bytes(from_dtype), to_bytes = pack_bytes(to_dtype);
    const uint32_t per = pack_per_vector(from_dtype, to_dtype), load_bytes = per * from_bytes;
    uint32_t gap = (uint32_t)(0 - (uintptr_t)to) % (per * to_bytes);
    uint32_t first = gap % to_bytes == 0 && gap / to_bytes < n ? gap / to_bytes : n;
    uint32_t skew = (uint32_t)(uintptr_t)(from + first * from_bytes) % load_bytes;
    if (first * from_bytes < skew && !(arg & PACK_LO_OK))
        first += per;
    uint32_t n_vector = first < n ? (n - first) / per : 0;
    uint32_t left_bytes = first < n ? (n - first) % per * from_bytes : 0;
    if (n_vector && skew && left_bytes + skew < load_bytes && !(arg & PACK_HI_OK))
        n_vector--;
    first = first < n ? first : n;

    const char *in = from + first * from_bytes;
    char *out = to + first * to_bytes;
    if (skew)
        pack_vectors(in, out, n_vector, skew, PACK_FEW_IN_FLIGHT, lane, lanes, from_dtype,
                     to_dtype);
    else
        pack_vectors(in, out, n_vector, 0, PACK_IN_FLIGHT, lane, lanes, from_dtype, to_dtype);
    pack_elements(from, to, first, first + n_vector * per, n, lane, lanes, from_dtype, to_dtype);
}

/* The same by a lane that is alone. A host's caches do not care who reads what, and its compiler
   makes vectors of its own of a loop whose length it knows. */
PACK_INLINE void pack_alone(const char *__restrict__ from, char *__restrict__ to, uint32_t n,
                            uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t from_bytes = pack_bytes(from_dtype), to_bytes = pack_bytes(to_dtype);
    PACK_TRACE(from, n * from_bytes, false);
    PACK_TRACE(to, n * to_bytes, true);
    if (from_dtype == to_dtype) {
        memcpy(to, from, n * to_bytes);
        return;
    }
    for (; n >= PACK_BLOCK; n -= PACK_BLOCK) {
        for (uint32_t i = 0; i < PACK_BLOCK; i++)
            pack_move(from, to, i, from_dtype, to_dtype);
        from += PACK_BLOCK * from_bytes;
        to += PACK_BLOCK * to_bytes;
    }
    for (uint32_t i = 0; i < n; i++)
        pack_move(from, to, i, from_dtype, to_dtype);
}

PACK_INLINE void pack_run(const char *from, char *to, uint32_t n, uint32_t arg, uint32_t lane,
                          uint32_t lanes, uint32_t from_dtype, uint32_t to_dtype)
{
    if (lanes == 1)
        pack_alone(from, to, n, from_dtype, to_dtype);
    else
        pack_share(from, to, n, arg, lane, lanes, from_dtype, to_dtype);
}

/* ---- zeros --------------------------------------------------------------------------------- */

PACK_INLINE void pack_zeros(char *to, uint32_t n, uint32_t lane, uint32_t lanes)
{
    const struct pack_vector zero = {0, 0};
    uint32_t gap = (uint32_t)(0 - (uintptr_t)to) % PACK_VECTOR_BYTES;
    uint32_t first = gap < n ? gap : n;
    uint32_t vectors = (n - first) / PACK_VECTOR_BYTES * PACK_VECTOR_BYTES;
    for (uint32_t i = lane * PACK_VECTOR_BYTES; i < vectors; i += lanes * PACK_VECTOR_BYTES)
        pack_store(to + first + i, PACK_VECTOR_BYTES, zero);
    PACK_ROLLED
    for (uint32_t left = lane; left < n - vectors; left += lanes) {
        const uint32_t i = left < first ? left : left + vectors;
        PACK_TRACE(to + i, 1, true);
        to[i] = 0;
    }
}

/* ---- narrow rows --------------------------------------------------------------------------- */

/* Whether each row, and its zeros, begins and ends on a vector, on both sides. */
PACK_INLINE bool pack_rows_aligned(const struct pack_rows *rows, const char *from, const char *to,
                                   uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t per = pack_per_vector(from_dtype, to_dtype);
    const uint64_t load = (uintptr_t)from | rows->from_pitch;
    const uint64_t store = (uintptr_t)to | rows->to_pitch;
    return load % (per * pack_bytes(from_dtype)) == 0 &&
           store % (per * pack_bytes(to_dtype)) == 0 && (rows->n | rows->n_zero) % per == 0;
}

/* So many elements at once: a vector's or one. */
PACK_INLINE struct pack_vector pack_take(const char *at, uint32_t per, uint32_t dtype)
{
    struct pack_vector in = {0, 0};
    if (per > 1)
        return pack_load(at, per * pack_bytes(dtype), PACK_ONCE);
    PACK_TRACE(at, pack_bytes(dtype), false);
    in.low = pack_get(at, 0, dtype);
    return in;
}

PACK_INLINE void pack_give(char *at, uint32_t per, struct pack_vector in, uint32_t from_dtype,
                           uint32_t to_dtype)
{
    if (per > 1) {
        pack_store(at, per * pack_bytes(to_dtype), pack_cast_vector(in, from_dtype, to_dtype));
        return;
    }
    PACK_TRACE(at, pack_bytes(to_dtype), true);
    pack_put(at, 0, to_dtype, pack_cast((uint32_t)in.low, from_dtype, to_dtype));
}

/* All rows as one loop over their pieces of per elements. A lane walks from piece to piece by adding
   what a quotient and a rest would be; a zero is the cast of a zero. */
PACK_INLINE void pack_rows_share(const struct pack_rows *rows, const char *from, char *to,
                                 uint32_t n_row, uint32_t lane, uint32_t lanes, uint32_t per,
                                 uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t full = rows->n / per, width = full + rows->n_zero / per, n = n_row * width;
    const uint32_t rows_on = lanes / width, on = lanes % width;
    const uint32_t in_flight = per > 1 ? PACK_FEW_IN_FLIGHT : PACK_IN_FLIGHT;
    uint32_t row = lane / width, at = lane % width;
    PACK_ROLLED
    for (uint32_t v = lane; v < n; v += in_flight * lanes) {
        struct pack_vector in[PACK_IN_FLIGHT];
        char *out[PACK_IN_FLIGHT];
        for (uint32_t i = 0; i < in_flight && v + i * lanes < n; i++) {
            const char *source = from + row * rows->from_pitch + at * per * pack_bytes(from_dtype);
            const struct pack_vector zero = {0, 0};
            in[i] = at < full ? pack_take(source, per, from_dtype) : zero;
            out[i] = to + row * rows->to_pitch + at * per * pack_bytes(to_dtype);
            row += rows_on + (at + on >= width);
            at += at + on >= width ? on - width : on;
        }
        for (uint32_t i = 0; i < in_flight && v + i * lanes < n; i++)
            pack_give(out[i], per, in[i], from_dtype, to_dtype);
    }
}

PACK_INLINE void pack_rows_alone(const struct pack_rows *rows, const char *from, char *to,
                                 uint32_t n_row, uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t n_bytes = rows->n * pack_bytes(to_dtype);
    for (uint32_t i = 0; i < n_row; i++) {
        char *row = to + i * rows->to_pitch;
        pack_alone(from + i * rows->from_pitch, row, rows->n, from_dtype, to_dtype);
        pack_zeros(row + n_bytes, rows->n_zero * pack_bytes(to_dtype), 0, 1);
    }
}

PACK_INLINE void pack_rows_run(const struct pack_rows *rows, const char *from, char *to,
                               uint32_t n_row, uint32_t lane, uint32_t lanes, uint32_t from_dtype,
                               uint32_t to_dtype)
{
    const uint32_t per = pack_per_vector(from_dtype, to_dtype);
    if (lanes == 1)
        pack_rows_alone(rows, from, to, n_row, from_dtype, to_dtype);
    else if (pack_rows_aligned(rows, from, to, from_dtype, to_dtype))
        pack_rows_share(rows, from, to, n_row, lane, lanes, per, from_dtype, to_dtype);
    else
        pack_rows_share(rows, from, to, n_row, lane, lanes, 1, from_dtype, to_dtype);
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* X(from, to): the pairs that are casts. */
#define PACK_CASTS(X) \
    X(FP32, BF16)     \
    X(FP32, FP16)     \
    X(BF16, FP32)     \
    X(BF16, FP16)     \
    X(FP16, FP32)     \
    X(FP16, BF16)

PACK_INLINE void pack_by_kind(const struct pack_tile *tile, const char *from, char *to,
                              uint32_t lane, uint32_t lanes)
{
    switch (tile->kind) {
#define X(from_id, to_id)                                                                    \
    case PACK_KIND(DTYPE_##from_id, DTYPE_##to_id):                                          \
        pack_run(from, to, tile->n, tile->arg, lane, lanes, DTYPE_##from_id, DTYPE_##to_id); \
        break;
        PACK_CASTS(X)
#undef X
    default:
        pack_run(from, to, tile->n * pack_bytes(tile->kind % 8), tile->arg, lane, lanes, DTYPE_U8,
                 DTYPE_U8);
    }
}

/* What is not cast is moved in elements of its size. */
PACK_INLINE void pack_rows_by_kind(const struct pack_tile *tile, const struct pack_rows *rows,
                                   const char *from, char *to, uint32_t lane, uint32_t lanes)
{
    switch (tile->kind - PACK_ROWS) {
#define X(from_id, to_id)                                                                    \
    case PACK_KIND(DTYPE_##from_id, DTYPE_##to_id):                                          \
        pack_rows_run(rows, from, to, tile->n, lane, lanes, DTYPE_##from_id, DTYPE_##to_id); \
        break;
        PACK_CASTS(X)
        X(FP32, FP32)
        X(U8, U8)
    case PACK_KIND(DTYPE_FP16, DTYPE_FP16):
        X(BF16, BF16)
#undef X
    }
}

/* The part of a tile that is lane's, of so many lanes. rows: the table's; from and to: what offsets
   count from; from is not looked at where there are no elements. */
HOST_DEVICE void pack_tile_run(const struct pack_tile *tile, const struct pack_rows *rows,
                               const void *from, void *to, uint32_t lane, uint32_t lanes)
{
    const char *source = (const char *)from + (tile->n ? tile->from : 0);
    char *start = (char *)to + tile->to;
    if (tile->kind & PACK_ROWS) {
        pack_rows_by_kind(tile, &rows[tile->arg], source, start, lane, lanes);
        return;
    }
    if (tile->n)
        pack_by_kind(tile, source, start, lane, lanes);
    pack_zeros(start + (uint64_t)tile->n * pack_bytes(tile->kind % 8), tile->n_zero, lane, lanes);
}

/* ---- post-reduce --------------------------------------------------------------------------- */

/* What all tiles of a post-reduce have in common. */
struct pack_after {
    float scale;
    bool accumulates;
};

PACK_INLINE void pack_post_vectors(const char *from, char *to, uint32_t n, struct pack_after after,
                                   uint32_t lane, uint32_t lanes, uint32_t from_dtype,
                                   uint32_t to_dtype)
{
    const uint32_t per = pack_per_vector(from_dtype, to_dtype);
    const uint32_t load_bytes = per * pack_bytes(from_dtype), bytes = per * pack_bytes(to_dtype);
    PACK_ROLLED
    for (uint32_t v = lane; v < n; v += PACK_FEW_IN_FLIGHT * lanes) {
        struct pack_vector in[PACK_FEW_IN_FLIGHT], old[PACK_FEW_IN_FLIGHT] = {{0, 0}};
        for (uint32_t i = 0; i < PACK_FEW_IN_FLIGHT && v + i * lanes < n; i++) {
            in[i] = pack_load(from + (v + i * lanes) * load_bytes, load_bytes, PACK_OWN);
            if (after.accumulates)
                old[i] = pack_load(to + (v + i * lanes) * bytes, bytes, PACK_OWN);
        }
        for (uint32_t i = 0; i < PACK_FEW_IN_FLIGHT && v + i * lanes < n; i++)
            pack_store(to + (v + i * lanes) * bytes, bytes,
                       pack_post_vector(in[i], old[i], after.scale, after.accumulates, from_dtype,
                                        to_dtype));
    }
}

PACK_INLINE void pack_post_elements(const char *from, char *to, uint32_t first, uint32_t behind,
                                    uint32_t end, struct pack_after after, uint32_t lane,
                                    uint32_t lanes, uint32_t from_dtype, uint32_t to_dtype)
{
    PACK_ROLLED
    for (uint32_t left = lane; left < first + end - behind; left += lanes) {
        const uint32_t i = left < first ? left : left - first + behind;
        PACK_TRACE(from + i * pack_bytes(from_dtype), pack_bytes(from_dtype), false);
        PACK_TRACE(to + i * pack_bytes(to_dtype), pack_bytes(to_dtype), true);
        uint32_t old = after.accumulates ? pack_get(to, i, to_dtype) : 0;
        pack_put(to, i, to_dtype,
                 pack_post(pack_get(from, i, from_dtype), old, after.scale, after.accumulates,
                           from_dtype, to_dtype));
    }
}

/* Vectors where both sides lie on them alike, which a bucket and its gradients do. */
PACK_INLINE void pack_post_share(const char *from, char *to, uint32_t n, struct pack_after after,
                                 uint32_t lane, uint32_t lanes, uint32_t from_dtype,
                                 uint32_t to_dtype)
{
    const uint32_t from_bytes = pack_bytes(from_dtype), to_bytes = pack_bytes(to_dtype);
    const uint32_t per = pack_per_vector(from_dtype, to_dtype);
    uint32_t gap = (uint32_t)(0 - (uintptr_t)to) % (per * to_bytes);
    uint32_t first = gap % to_bytes == 0 && gap / to_bytes < n ? gap / to_bytes : n;
    if ((uintptr_t)(from + first * from_bytes) % (per * from_bytes) != 0)
        first = n;
    uint32_t n_vector = (n - first) / per;
    pack_post_vectors(from + first * from_bytes, to + first * to_bytes, n_vector, after, lane,
                      lanes, from_dtype, to_dtype);
    pack_post_elements(from, to, first, first + n_vector * per, n, after, lane, lanes, from_dtype,
                       to_dtype);
}

/* X(from, to): all pairs of numbers. */
#define PACK_PAIRS(X) \
    PACK_CASTS(X)     \
    X(FP32, FP32)     \
    X(BF16, BF16)     \
    X(FP16, FP16)

/* As pack_tile_run(), of a tile that has no zeros and no rows. */
HOST_DEVICE void pack_post_run(const struct pack_tile *tile, struct pack_after after,
                               const void *from, void *to, uint32_t lane, uint32_t lanes)
{
    const char *source = (const char *)from + tile->from;
    char *start = (char *)to + tile->to;
    switch (tile->kind) {
#define X(from_id, to_id)                                                            \
    case PACK_KIND(DTYPE_##from_id, DTYPE_##to_id):                                  \
        pack_post_share(source, start, tile->n, after, lane, lanes, DTYPE_##from_id, \
                        DTYPE_##to_id);                                              \
        break;
        PACK_PAIRS(X)
#undef X
    }
}

#endif
