/*
 * gpu/convert.h against what CUDA's own headers compute on a host: NVIDIA's word on rounding and NaN.
 *
 * Compiled as C++ by tests/cuda_casts.sh. The instructions of a device are not judged here. The
 * argument is a stride over the patterns of FP32: odd, so that each bit takes both values; 1: all.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdlib.h>

#include "gpu/convert.h"
extern "C" {
#include "tests/tap.h"
}

static uint16_t bits_of_bf16(float value)
{
    const __nv_bfloat16 half = __float2bfloat16_rn(value);
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static uint16_t bits_of_fp16(float value)
{
    const __half half = __float2half_rn(value);
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static void test_narrowing(uint64_t stride)
{
    uint64_t bf16 = 0, fp16 = 0;
    for (uint64_t i = 0; i <= UINT32_MAX; i += stride) {
        const float value = f32_from_bits((uint32_t)i);
        bf16 += f32_to_bf16(value) != bits_of_bf16(value);
        fp16 += f32_to_fp16(value) != bits_of_fp16(value);
    }
    is_int(bf16, 0, "fp32 to bf16 is CUDA's, each %lluth pattern", (unsigned long long)stride);
    is_int(fp16, 0, "fp32 to fp16 is CUDA's, each %lluth pattern", (unsigned long long)stride);
}

/* Of a NaN only that it stays one is promised. */
static bool same(float a, float b)
{
    return a != a ? b != b : f32_bits(a) == f32_bits(b);
}

static void test_widening(void)
{
    uint64_t bf16 = 0, fp16 = 0;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t bits = (uint16_t)i;
        __nv_bfloat16 b;
        __half h;
        memcpy((void *)&b, &bits, sizeof bits);
        memcpy((void *)&h, &bits, sizeof bits);
        bf16 += !same(bf16_to_f32(bits), __bfloat162float(b));
        fp16 += !same(fp16_to_f32(bits), __half2float(h));
    }
    is_int(bf16, 0, "bf16 to fp32 is CUDA's, every code");
    is_int(fp16, 0, "fp16 to fp32 is CUDA's, every code");
}

int main(int argc, char **argv)
{
    test_narrowing(argc > 1 ? strtoull(argv[1], NULL, 10) : 4097);
    test_widening();
    return tap_done();
}
