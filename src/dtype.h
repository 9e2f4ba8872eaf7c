/*
 * Element types and their sizes. No arithmetic on values lives here.
 */
#ifndef SRC_DTYPE_H
#define SRC_DTYPE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* X(ENUM, name, bytes) */
#define DTYPES(X)      \
    X(FP32, "fp32", 4) \
    X(BF16, "bf16", 2) \
    X(FP16, "fp16", 2) \
    X(U8, "u8", 1) /* bytes of several types */

enum dtype {
#define X(id, name, bytes) DTYPE_##id,
    DTYPES(X)
#undef X
        DTYPE_N
};

static inline uint64_t dtype_bytes(enum dtype dtype)
{
    static const uint8_t sizes[] = {
#define X(id, name, bytes) bytes,
        DTYPES(X)
#undef X
    };
    assert(dtype < DTYPE_N);
    return sizes[dtype];
}

const char *dtype_name(enum dtype dtype);

#endif
