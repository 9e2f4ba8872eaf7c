/*
 * What the bodies of CUDA operators share: the call on the device, and its tensors element by
 * element.
 *
 * An operator is one phase or a few, each a number of items; an item is one thread's job, from an
 * element to a whole head. No shared memory, no barrier: a loop over items computes what a launch
 * does. Arithmetic and its order are those of the host's kernels (gpu/host_*.c), so that results are
 * equal but for the device's own exp, log, tanh and pow.
 *
 * Invariants: each element is written by one item; items of a phase read nothing that another item of
 * it writes. C++, because a sum takes its terms as a function.
 */
#ifndef GPU_CUDA_ITEM_H
#define GPU_CUDA_ITEM_H

#include <math.h>

#include "gpu/convert.h"
#include "gpu/cuda_ops.h"

HOST_DEVICE uint64_t op_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

HOST_DEVICE uint64_t op_tokens(const struct cuda_op *op)
{
    return op->shape.batch * op->shape.seq;
}

HOST_DEVICE float load(const struct op_tensor *from, uint64_t i)
{
    if (from->dtype == DTYPE_FP32)
        return ((const float *)from->at)[i];
    const uint16_t half = ((const uint16_t *)from->at)[i];
    return from->dtype == DTYPE_BF16 ? bf16_to_f32(half) : fp16_to_f32(half);
}

HOST_DEVICE void put(const struct op_tensor *to, uint64_t i, float value)
{
    if (to->dtype == DTYPE_FP32)
        ((float *)to->at)[i] = value;
    else
        ((uint16_t *)to->at)[i] = to->dtype == DTYPE_BF16 ? f32_to_bf16(value) : f32_to_fp16(value);
}

HOST_DEVICE float rounded(uint8_t dtype, float value)
{
    if (dtype == DTYPE_FP32)
        return value;
    return dtype == DTYPE_BF16 ? bf16_to_f32(f32_to_bf16(value)) : fp16_to_f32(f32_to_fp16(value));
}

/* Passes over what nobody wants. Added to: rounded first, and once more as a sum. */
HOST_DEVICE void store(const struct op_tensor *to, uint64_t i, float value)
{
    if (!to->at)
        return;
    put(to, i, to->mode == OP_UPDATE ? load(to, i) + rounded(to->dtype, value) : value);
}

/* The sum of term(0) ... term(n - 1), in the order of gpu/lanes.h. */
template <class Term> HOST_DEVICE float lanes_over(uint64_t n, Term term)
{
    float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            lane[l] += term(i + l);
    for (int l = 0; l < 8; l++)
        if (i + l < n)
            lane[l] += term(i + l);
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* The same a line of so many terms at a time, as the host reads long rows. */
enum { OP_LINE = 1024 };
template <class Term> HOST_DEVICE float lines_over(uint64_t n, Term term)
{
    float sum = 0;
    for (uint64_t at = 0; at < n; at += OP_LINE)
        sum += lanes_over(op_min(OP_LINE, n - at), [=](uint64_t i) { return term(at + i); });
    return sum;
}

/* In a form that no x overflows. */
HOST_DEVICE float sigmoid_of(float x)
{
    const float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* silu' = s (1 + x (1 - s)), s = sigmoid(x) */
HOST_DEVICE float silu_slope(float x)
{
    return sigmoid_of(x) * (1 + x * sigmoid_of(-x));
}

#endif
