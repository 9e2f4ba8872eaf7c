/*
 * The loads and stores of packing: vectors of 8 or 16 bytes, and elements at any address.
 *
 * Compiled by the host's compiler and by nvcc; only here the two differ. Not here: what the bytes
 * mean (gpu/pack_element.h) and who moves which (gpu/pack_body.h).
 *
 * Invariant: a vector access is aligned to its size. Source of the paths through a device's caches:
 * spec GPU 1.3; results are streamed past them.
 */
#ifndef GPU_PACK_MEMORY_H
#define GPU_PACK_MEMORY_H

#include <stdbool.h>

#include "gpu/convert.h"

/* Tests look at each access: PACK_TRACE(address, bytes, writes). */
#ifndef PACK_TRACE
#define PACK_TRACE(at, bytes, writes) ((void)0)
#endif

/* Inlined, so that dtypes become constants and what is not taken goes away. */
#ifndef PACK_INLINE
#define PACK_INLINE HOST_DEVICE __attribute__((always_inline))
#endif

/* Before a loop of few turns, which a device's compiler would unroll to nothing but more code. */
#ifdef __CUDA_ARCH__
#define PACK_ROLLED _Pragma("unroll 1")
#else
#define PACK_ROLLED
#endif

/* 16 bytes, or 8 in low; the first byte in memory is the lowest. */
struct pack_vector {
    uint64_t low, high;
} __attribute__((aligned(16), may_alias));
typedef uint64_t pack_word __attribute__((may_alias));
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are taken out of words lowest byte first"
#endif

enum { PACK_VECTOR_BYTES = 16 };

/* What is read once passes by a device's first cache, what is read again stays there, and what the
   same kernel writes may not come by the path of what nobody writes. */
enum pack_path { PACK_ONCE, PACK_AGAIN, PACK_OWN };

#ifdef __CUDA_ARCH__

PACK_INLINE struct pack_vector pack_read(const char *at, uint32_t bytes, enum pack_path path)
{
    const size_t global = __cvta_generic_to_global(at);
    struct pack_vector in = {0, 0};
    if (path == PACK_OWN && bytes == PACK_VECTOR_BYTES)
        return *(const struct pack_vector *)at;
    if (path == PACK_OWN)
        in.low = *(const pack_word *)at;
    else if (path == PACK_ONCE && bytes == PACK_VECTOR_BYTES)
        asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
            : "=l"(in.low), "=l"(in.high)
            : "l"(global));
    else if (path == PACK_ONCE)
        asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(in.low) : "l"(global));
    else if (bytes == PACK_VECTOR_BYTES)
        asm("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(in.low), "=l"(in.high) : "l"(global));
    else
        asm("ld.global.nc.u64 %0, [%1];" : "=l"(in.low) : "l"(global));
    return in;
}

PACK_INLINE void pack_write(char *at, uint32_t bytes, struct pack_vector out)
{
    if (bytes == PACK_VECTOR_BYTES)
        __stcs((ulonglong2 *)at, make_ulonglong2(out.low, out.high));
    else
        __stcs((unsigned long long *)at, (unsigned long long)out.low);
}

/* Byte by byte where a device could not do it at once. */
PACK_INLINE uint32_t pack_read_bytes(const char *at, uint32_t bytes)
{
    uint32_t bits = 0;
    if ((uintptr_t)at % bytes == 0)
        return bytes == 4   ? *(const uint32_t *)at
               : bytes == 2 ? *(const uint16_t *)at
                            : *(const uint8_t *)at;
    PACK_ROLLED
    for (uint32_t i = 0; i < bytes; i++)
        bits |= (uint32_t)(uint8_t)at[i] << 8 * i;
    return bits;
}

PACK_INLINE void pack_write_bytes(char *at, uint32_t bytes, uint32_t bits)
{
    if ((uintptr_t)at % bytes != 0) {
        PACK_ROLLED
        for (uint32_t i = 0; i < bytes; i++)
            at[i] = (char)(bits >> 8 * i);
    } else if (bytes == 4)
        *(uint32_t *)at = bits;
    else if (bytes == 2)
        *(uint16_t *)at = (uint16_t)bits;
    else
        *at = (char)bits;
}

#else

PACK_INLINE struct pack_vector pack_read(const char *at, uint32_t bytes, enum pack_path path)
{
    struct pack_vector in = {0, 0};
    (void)path;
    if (bytes == PACK_VECTOR_BYTES)
        in = *(const struct pack_vector *)at;
    else
        in.low = *(const pack_word *)at;
    return in;
}

PACK_INLINE void pack_write(char *at, uint32_t bytes, struct pack_vector out)
{
    if (bytes == PACK_VECTOR_BYTES)
        *(struct pack_vector *)at = out;
    else
        *(pack_word *)at = out.low;
}

PACK_INLINE uint32_t pack_read_bytes(const char *at, uint32_t bytes)
{
    uint32_t word = 0;
    uint16_t half = 0;
    if (bytes == 1)
        return (uint8_t)*at;
    if (bytes == sizeof word)
        memcpy(&word, at, sizeof word);
    else
        memcpy(&half, at, sizeof half);
    return word | half;
}

PACK_INLINE void pack_write_bytes(char *at, uint32_t bytes, uint32_t bits)
{
    uint16_t half = (uint16_t)bits;
    if (bytes == 1)
        *at = (char)bits;
    else if (bytes == sizeof bits)
        memcpy(at, &bits, sizeof bits);
    else
        memcpy(at, &half, sizeof half);
}

#endif

PACK_INLINE struct pack_vector pack_load(const char *at, uint32_t bytes, enum pack_path path)
{
    PACK_TRACE(at, bytes, false);
    return pack_read(at, bytes, path);
}

PACK_INLINE void pack_store(char *at, uint32_t bytes, struct pack_vector out)
{
    PACK_TRACE(at, bytes, true);
    pack_write(at, bytes, out);
}

/* Eight bytes that begin so many, 0 to 7, behind the start of low. */
PACK_INLINE uint64_t pack_funnel(uint64_t low, uint64_t high, uint32_t bytes)
{
    return low >> (8 * bytes) | high << 1 << (63 - 8 * bytes);
}

/* The vector that begins skew bytes behind an aligned place. */
PACK_INLINE struct pack_vector pack_load_skewed(const char *aligned, uint32_t bytes, uint32_t skew)
{
    if (skew == 0)
        return pack_load(aligned, bytes, PACK_ONCE);
    struct pack_vector a = pack_load(aligned, bytes, PACK_AGAIN);
    struct pack_vector b = pack_load(aligned + bytes, bytes, PACK_AGAIN), in = {0, 0};
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

#endif
