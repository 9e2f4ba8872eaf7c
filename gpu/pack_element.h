/*
 * One element of packing, or a vector of them: cast, scaled and added.
 *
 * Plain C, compiled by the host's compiler and by nvcc. dtypes are constants wherever these are
 * called, so that one of the branches is left. Not here: which elements (gpu/pack_body.h).
 *
 * Invariant: a rounding after each of scale, cast and sum. Source: spec GPU 1.4.
 */
#ifndef GPU_PACK_ELEMENT_H
#define GPU_PACK_ELEMENT_H

#include "gpu/pack.h"
#include "gpu/pack_memory.h"

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

/* ---- vectors ------------------------------------------------------------------------------- */

/* Element i of a vector; what stands above its bits is not its own. */
PACK_INLINE uint32_t pack_pick(struct pack_vector in, uint32_t i, uint32_t dtype)
{
    const uint32_t bit = 8 * pack_bytes(dtype) * i;
    return (uint32_t)((bit < 64 ? in.low : in.high) >> bit % 64);
}

/* Puts element i where there is 0 yet. */
PACK_INLINE void pack_place(struct pack_vector *out, uint32_t i, uint32_t dtype, uint32_t bits)
{
    const uint32_t bit = 8 * pack_bytes(dtype) * i;
    if (bit < 64)
        out->low |= (uint64_t)bits << bit % 64;
    else
        out->high |= (uint64_t)bits << bit % 64;
}

PACK_INLINE struct pack_vector pack_cast_vector(struct pack_vector in, uint32_t from_dtype,
                                                uint32_t to_dtype)
{
    struct pack_vector out = {0, 0};
    if (from_dtype == to_dtype)
        return in;
    for (uint32_t i = 0; i < pack_per_vector(from_dtype, to_dtype); i++)
        pack_place(&out, i, to_dtype,
                   pack_cast(pack_pick(in, i, from_dtype), from_dtype, to_dtype));
    return out;
}

PACK_INLINE struct pack_vector pack_post_vector(struct pack_vector in, struct pack_vector old,
                                                float scale, bool accumulates, uint32_t from_dtype,
                                                uint32_t to_dtype)
{
    struct pack_vector out = {0, 0};
    for (uint32_t i = 0; i < pack_per_vector(from_dtype, to_dtype); i++)
        pack_place(&out, i, to_dtype,
                   pack_post(pack_pick(in, i, from_dtype), pack_pick(old, i, to_dtype), scale,
                             accumulates, from_dtype, to_dtype));
    return out;
}

/* ---- elements in memory -------------------------------------------------------------------- */

PACK_INLINE uint32_t pack_get(const char *at, uint32_t i, uint32_t dtype)
{
    return pack_read_bytes(at + i * pack_bytes(dtype), pack_bytes(dtype));
}

PACK_INLINE void pack_put(char *at, uint32_t i, uint32_t dtype, uint32_t bits)
{
    pack_write_bytes(at + i * pack_bytes(dtype), pack_bytes(dtype), bits);
}

PACK_INLINE void pack_move(const char *from, char *to, uint32_t i, uint32_t from_dtype,
                           uint32_t to_dtype)
{
    pack_put(to, i, to_dtype, pack_cast(pack_get(from, i, from_dtype), from_dtype, to_dtype));
}

#endif
