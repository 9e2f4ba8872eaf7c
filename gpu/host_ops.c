/*
 * The host's operators by kind and pass, and how their operands are read and written.
 *
 * No operator is here. Every number of every tensor passes host_widen or host_store, so that each
 * dtype and each rounding exists once.
 */
#include "gpu/host_ops.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "gpu/convert.h"
#include "src/err.h"

host_op *host_op_find(enum op_kind kind, enum op_pass pass)
{
    static host_op *const table[OP_KIND_N][PASS_WGRAD + 1] = {
#define X(kind, pass, function) [OP_##kind][PASS_##pass] = function,
        HOST_OPS(X)
#undef X
    };
    return table[kind][pass == PASS_RECOMPUTE ? PASS_FORWARD : pass];
}

static void widen_bf16(const uint16_t *from, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = bf16_to_f32(from[i]);
}

static void widen_fp16(const uint16_t *from, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = fp16_to_f32(from[i]);
}

void host_widen(const struct op_tensor *from, uint64_t first, uint64_t n, float *out)
{
    assert(from->at && first + n <= from->n);
    if (from->dtype == DTYPE_FP32) {
        memcpy(out, (const float *)from->at + first, n * sizeof *out);
    } else if (from->dtype == DTYPE_BF16) {
        widen_bf16((const uint16_t *)from->at + first, n, out);
    } else {
        assert(from->dtype == DTYPE_FP16);
        widen_fp16((const uint16_t *)from->at + first, n, out);
    }
}

static void narrow(const struct op_tensor *to, uint64_t first, uint64_t n, const float *values)
{
    uint16_t *halves = (uint16_t *)to->at + first;
    if (to->dtype == DTYPE_FP32)
        memcpy((float *)to->at + first, values, n * sizeof *values);
    else if (to->dtype == DTYPE_BF16)
        for (uint64_t i = 0; i < n; i++)
            halves[i] = f32_to_bf16(values[i]);
    else
        for (uint64_t i = 0; i < n; i++)
            halves[i] = f32_to_fp16(values[i]);
}

static float rounded(uint8_t dtype, float value)
{
    if (dtype == DTYPE_BF16)
        return bf16_to_f32(f32_to_bf16(value));
    return dtype == DTYPE_FP16 ? fp16_to_f32(f32_to_fp16(value)) : value;
}

void host_store(const struct op_tensor *to, uint64_t first, uint64_t n, const float *values)
{
    if (!to->at)
        return;
    assert(to->mode != OP_READ && first + n <= to->n);
    if (to->mode == OP_WRITE) {
        narrow(to, first, n, values);
        return;
    }
    for (uint64_t at = 0; at < n; at += HOST_LINE) {
        const uint64_t n_now = host_min(HOST_LINE, n - at);
        float sums[HOST_LINE];
        host_widen(to, first + at, n_now, sums);
        for (uint64_t i = 0; i < n_now; i++)
            sums[i] += rounded(to->dtype, values[at + i]);
        narrow(to, first + at, n_now, sums);
    }
}

float *host_floats(uint64_t rows, uint64_t width)
{
    uint64_t n, bytes = SIZE_MAX;
    float *floats = NULL;
    if (!__builtin_mul_overflow(rows, width, &n) &&
        !__builtin_mul_overflow(n, sizeof *floats, &bytes))
        floats = calloc(n ? n : 1, sizeof *floats);
    if (!floats)
        err_out_of_memory(bytes);
    return floats;
}

float host_sigmoid_of(float x)
{
    const float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

float host_silu_slope(float x)
{
    const float s = host_sigmoid_of(x);
    return s * (1 + x * host_sigmoid_of(-x));
}
