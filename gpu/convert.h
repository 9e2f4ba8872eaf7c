/*
 * BF16 and FP16 to FP32 and back, one number at a time.
 *
 * Plain C that a CUDA compiler takes too: host kernels, the packing body and device kernels share
 * it; on a device each is the instruction it has for it. Not here: loops, tensors and their dtypes
 * (gpu/ops.h, gpu/pack.h).
 *
 * Invariants: widening is exact, narrowing rounds to nearest, ties to even; subnormal numbers are
 * kept; FP16 beyond 65519.99 is infinite; a NaN stays a quiet NaN. Narrowed it becomes 0x7fff, as
 * NVIDIA's conversions have it, so that host and device agree in every bit (spec GPU 1.4). Holds in
 * the default rounding mode and where subnormal numbers are not flushed.
 */
#ifndef GPU_CONVERT_H
#define GPU_CONVERT_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HOST_DEVICE static __host__ __device__ inline
#else
#define HOST_DEVICE static inline
#endif

HOST_DEVICE uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

HOST_DEVICE float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

HOST_DEVICE float bf16_to_f32(uint16_t half)
{
    return f32_from_bits((uint32_t)half << 16);
}

#ifdef __CUDA_ARCH__

HOST_DEVICE uint16_t f32_to_bf16(float value)
{
    uint16_t half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

HOST_DEVICE float fp16_to_f32(uint16_t half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

HOST_DEVICE uint16_t f32_to_fp16(float value)
{
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

#else

HOST_DEVICE uint16_t f32_to_bf16(float value)
{
    const uint32_t bits = f32_bits(value);
    const uint32_t odd = bits >> 16 & 1; /* of the bits that stay: a tie goes to the even one */
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (uint16_t)((bits + 0x7fff + odd) >> 16);
}

HOST_DEVICE float fp16_to_f32(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    if (size < 0x0400) /* subnormal: a multiple of 2^-24 */
        return f32_from_bits(sign | f32_bits((float)size * 0x1p-24f));
    if (size > 0x7c00)
        return f32_from_bits(sign | 0x7fc00000 | size << 13);
    if (size == 0x7c00)
        return f32_from_bits(sign | 0x7f800000);
    return f32_from_bits(sign | ((size << 13) + ((127 - 15) << 23)));
}

HOST_DEVICE uint16_t f32_to_fp16(float value)
{
    const uint32_t bits = f32_bits(value), size = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (size > 0x7f800000)
        return 0x7fff;
    if (size >= 0x477ff000) /* 65520, half way from the largest number to the next power of two */
        return sign | 0x7c00;
    if (size < 0x38800000) /* below 2^-14; numbers in [1/2, 1) lie 2^-24 apart, as subnormals do */
        return sign | (uint16_t)(f32_bits(f32_from_bits(size) + 0.5f) - f32_bits(0.5f));
    const uint32_t odd = size >> 13 & 1;
    return sign | (uint16_t)((size - ((127 - 15) << 23) + 0xfff + odd) >> 13);
}

#endif

#endif
