/*
 * What one lane of a warp does of one tile, and of one element after a reduce-scatter.
 *
 * Plain C, compiled by the host's compiler and by nvcc: no shared memory, no barrier, no shuffle, so
 * that a loop over lanes computes what a warp computes. Not here: tables (gpu/pack.h), the loop over
 * tiles, launches.
 *
 * The wider side moves 16 bytes for each lane, the narrower one as many elements: both sides then
 * touch whole sectors. Vectors are aligned by the destination; a source that lies askew to it is
 * read as two aligned neighbours, shifted together.
 *
 * Invariants: each destination byte is written once, by one lane; a vector access is aligned to its
 * size; nothing is read outside of the tile but what PACK_LO_OK and PACK_HI_OK allow.
 * Source of the design: spec GPU 2.2, of the rounding order: spec GPU 1.4.
 */
#ifndef GPU_PACK_BODY_H
#define GPU_PACK_BODY_H

#include "gpu/convert.h"
#include "gpu/pack.h"

/* Tests look at each access: PACK_TRACE(address, bytes, writes). */
#ifndef PACK_TRACE
#define PACK_TRACE(at, bytes, writes) ((void)0)
#endif

/* Inlined, so that dtypes become constants and what is not taken goes away. */
#define PACK_INLINE HOST_DEVICE __attribute__((always_inline))

/* 16 bytes, or 8 in low; the first byte in memory is the lowest. */
struct pack_vector {
    uint64_t low, high;
} __attribute__((aligned(16), may_alias));
typedef uint64_t pack_word __attribute__((may_alias));
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are taken out of words lowest byte first"
#endif

enum {
    PACK_VECTOR_BYTES = 16,
    PACK_IN_FLIGHT = 4, /* vectors that a lane loads before it stores the first */
    PACK_BLOCK = 256    /* elements in one turn of a loop that a host compiler vectorises */
};

PACK_INLINE uint32_t pack_bytes(uint32_t dtype)
{
    return dtype == DTYPE_FP32 ? 4 : dtype == DTYPE_U8 ? 1 : 2;
}

/* The elements of a vector, counted by the wider side. */
PACK_INLINE uint32_t pack_per_vector(uint32_t from_dtype, uint32_t to_dtype)
{
    uint32_t from_bytes = pack_bytes(from_dtype), to_bytes = pack_bytes(to_dtype);
    return PACK_VECTOR_BYTES / (from_bytes > to_bytes ? from_bytes : to_bytes);
}

PACK_INLINE float pack_widen(uint32_t bits, uint32_t dtype)
{
    if (dtype == DTYPE_FP32)
        return f32_from_bits(bits);
    return dtype == DTYPE_BF16 ? bf16_to_f32((uint16_t)bits) : fp16_to_f32((uint16_t)bits);
}

PACK_INLINE uint32_t pack_narrow(float value, uint32_t dtype)
{
    if (dtype == DTYPE_FP32)
        return f32_bits(value);
    return dtype == DTYPE_BF16 ? f32_to_bf16(value) : f32_to_fp16(value);
}

PACK_INLINE uint32_t pack_cast(uint32_t bits, uint32_t from_dtype, uint32_t to_dtype)
{
    return from_dtype == to_dtype ? bits : pack_narrow(pack_widen(bits, from_dtype), to_dtype);
}

/* A product and a sum that no compiler makes one instruction of; on the host -ffp-contract=off does
   that. */
PACK_INLINE float pack_times(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

PACK_INLINE float pack_plus(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

/* K4 for an element: scaled and rounded, cast and rounded, added to old and rounded. */
PACK_INLINE uint32_t pack_post(uint32_t bits, uint32_t old, float scale, bool accumulates,
                               uint32_t from_dtype, uint32_t to_dtype)
{
    float scaled = pack_times(pack_widen(bits, from_dtype), scale);
    uint32_t cast = pack_cast(pack_narrow(scaled, from_dtype), from_dtype, to_dtype);
    if (!accumulates)
        return cast;
    return pack_narrow(pack_plus(pack_widen(old, to_dtype), pack_widen(cast, to_dtype)), to_dtype);
}

/* 16 or 8 bytes. Nobody writes a source meanwhile, so that a device may use its read-only path. */
PACK_INLINE struct pack_vector pack_load(const char *at, uint32_t bytes)
{
    struct pack_vector in = {0, 0};
    PACK_TRACE(at, bytes, false);
#ifdef __CUDA_ARCH__
    if (bytes == PACK_VECTOR_BYTES) {
        ulonglong2 pair = __ldg((const ulonglong2 *)at);
        in.low = pair.x;
        in.high = pair.y;
    } else {
        in.low = __ldg((const unsigned long long *)at);
    }
#else
    if (bytes == PACK_VECTOR_BYTES)
        in = *(const struct pack_vector *)at;
    else
        in.low = *(const pack_word *)at;
#endif
    return in;
}

PACK_INLINE void pack_store(char *at, uint32_t bytes, struct pack_vector out)
{
    PACK_TRACE(at, bytes, true);
#ifdef __CUDA_ARCH__
    if (bytes == PACK_VECTOR_BYTES)
        __stcs((ulonglong2 *)at, make_ulonglong2(out.low, out.high));
    else
        __stcs((unsigned long long *)at, (unsigned long long)out.low);
#else
    if (bytes == PACK_VECTOR_BYTES)
        *(struct pack_vector *)at = out;
    else
        *(pack_word *)at = out.low;
#endif
}

/* Eight bytes that begin so many, 0 to 7, behind the start of low. */
PACK_INLINE uint64_t pack_funnel(uint64_t low, uint64_t high, uint32_t bytes)
{
    return low >> (8 * bytes) | high << 1 << (63 - 8 * bytes);
}

/* The vector that begins skew bytes behind an aligned place. */
PACK_INLINE struct pack_vector pack_load_skewed(const char *aligned, uint32_t bytes, uint32_t skew)
{
    struct pack_vector a = pack_load(aligned, bytes);
    if (skew == 0)
        return a;
    struct pack_vector b = pack_load(aligned + bytes, bytes), in = {0, 0};
    if (bytes < PACK_VECTOR_BYTES) {
        in.low = pack_funnel(a.low, b.low, skew);
    } else if (skew < 8) {
        in.low = pack_funnel(a.low, a.high, skew);
        in.high = pack_funnel(a.high, b.low, skew);
    } else {
        in.low = pack_funnel(a.high, b.low, skew - 8);
        in.high = pack_funnel(b.low, b.high, skew - 8);
    }
    return in;
}

PACK_INLINE struct pack_vector pack_cast_vector(struct pack_vector in, uint32_t from_dtype,
                                                uint32_t to_dtype)
{
    if (from_dtype == to_dtype)
        return in;
    const uint32_t from_bits = 8 * pack_bytes(from_dtype), to_bits = 8 * pack_bytes(to_dtype);
    struct pack_vector out = {0, 0};
    for (uint32_t i = 0; i < pack_per_vector(from_dtype, to_dtype); i++) {
        uint64_t word = i * from_bits < 64 ? in.low : in.high;
        uint32_t bits = (uint32_t)(word >> (i * from_bits % 64));
        uint64_t cast = (uint64_t)pack_cast(bits, from_dtype, to_dtype) << (i * to_bits % 64);
        if (i * to_bits < 64)
            out.low |= cast;
        else
            out.high |= cast;
    }
    return out;
}

/* n vectors, whose destination is aligned. */
PACK_INLINE void pack_vectors(const char *from, char *to, uint32_t n, uint32_t skew, uint32_t lane,
                              uint32_t lanes, uint32_t from_dtype, uint32_t to_dtype)
{
    const uint32_t per = pack_per_vector(from_dtype, to_dtype);
    const uint32_t load_bytes = per * pack_bytes(from_dtype), bytes = per * pack_bytes(to_dtype);
    for (uint32_t v = lane; v < n; v += PACK_IN_FLIGHT * lanes) {
        struct pack_vector in[PACK_IN_FLIGHT];
        for (uint32_t i = 0; i < PACK_IN_FLIGHT && v + i * lanes < n; i++)
            in[i] = pack_load_skewed(from + (v + i * lanes) * load_bytes - skew, load_bytes, skew);
        for (uint32_t i = 0; i < PACK_IN_FLIGHT && v + i * lanes < n; i++)
            pack_store(to + (v + i * lanes) * bytes, bytes,
                       pack_cast_vector(in[i], from_dtype, to_dtype));
    }
}

/* Element i at any alignment, which is more than a device's own loads take. */
PACK_INLINE uint32_t pack_get(const char *at, uint32_t i, uint32_t dtype)
{
    uint32_t word = 0;
    uint16_t half = 0;
    if (dtype == DTYPE_U8)
        return (uint8_t)at[i];
    if (dtype == DTYPE_FP32)
        memcpy(&word, at + i * sizeof word, sizeof word);
    else
        memcpy(&half, at + i * sizeof half, sizeof half);
    return word | half;
}

PACK_INLINE void pack_put(char *at, uint32_t i, uint32_t dtype, uint32_t bits)
{
    uint16_t half = (uint16_t)bits;
    if (dtype == DTYPE_U8)
        at[i] = (char)bits;
    else if (dtype == DTYPE_FP32)
        memcpy(at + i * sizeof bits, &bits, sizeof bits);
    else
        memcpy(at + i * sizeof half, &half, sizeof half);
}

PACK_INLINE void pack_move(const char *from, char *to, uint32_t i, uint32_t from_dtype,
                           uint32_t to_dtype)
{
    pack_put(to, i, to_dtype, pack_cast(pack_get(from, i, from_dtype), from_dtype, to_dtype));
}

/* Elements from first to before end, one by one. */
PACK_INLINE void pack_elements(const char *from, char *to, uint32_t first, uint32_t end,
                               uint32_t lane, uint32_t lanes, uint32_t from_dtype,
                               uint32_t to_dtype)
{
    for (uint32_t i = first + lane; i < end; i += lanes) {
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
        pack_vectors(in, out, n_vector, skew, lane, lanes, from_dtype, to_dtype);
    else
        pack_vectors(in, out, n_vector, 0, lane, lanes, from_dtype, to_dtype);
    pack_elements(from, to, 0, first, lane, lanes, from_dtype, to_dtype);
    pack_elements(from, to, first + n_vector * per, n, lane, lanes, from_dtype, to_dtype);
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

PACK_INLINE void pack_zero_byte(char *at)
{
    PACK_TRACE(at, 1, true);
    *at = 0;
}

PACK_INLINE void pack_zeros(char *to, uint32_t n, uint32_t lane, uint32_t lanes)
{
    const struct pack_vector zero = {0, 0};
    uint32_t gap = (uint32_t)(0 - (uintptr_t)to) % PACK_VECTOR_BYTES;
    uint32_t first = gap < n ? gap : n;
    uint32_t n_vector = (n - first) / PACK_VECTOR_BYTES;
    for (uint32_t v = lane; v < n_vector; v += lanes)
        pack_store(to + first + v * PACK_VECTOR_BYTES, PACK_VECTOR_BYTES, zero);
    for (uint32_t i = lane; i < first; i += lanes)
        pack_zero_byte(to + i);
    for (uint32_t i = first + n_vector * PACK_VECTOR_BYTES + lane; i < n; i += lanes)
        pack_zero_byte(to + i);
}

PACK_INLINE void pack_run(const char *from, char *to, uint32_t n, uint32_t arg, uint32_t lane,
                          uint32_t lanes, uint32_t from_dtype, uint32_t to_dtype)
{
    if (lanes == 1)
        pack_alone(from, to, n, from_dtype, to_dtype);
    else
        pack_share(from, to, n, arg, lane, lanes, from_dtype, to_dtype);
}

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

/* The part of a tile that is lane's, of so many lanes. from and to: what its offsets count from;
   from is not looked at where there are no elements. */
HOST_DEVICE void pack_tile_run(const struct pack_tile *tile, const void *from, void *to,
                               uint32_t lane, uint32_t lanes)
{
    char *start = (char *)to + tile->to;
    if (tile->n)
        pack_by_kind(tile, (const char *)from + tile->from, start, lane, lanes);
    pack_zeros(start + (uint64_t)tile->n * pack_bytes(tile->kind % 8), tile->n_zero, lane, lanes);
}

#endif
