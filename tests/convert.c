/*
 * Conversions against the formats' definitions: every 16-bit pattern, and FP32 patterns in steps.
 *
 * UNSHARD_ALL_FLOATS=1 takes every FP32 pattern (minutes).
 */
#include "gpu/convert.h"

#include <math.h>
#include <stdlib.h>

#include "tests/number.h"
#include "tests/tap.h"

static const enum dtype halves[] = {DTYPE_BF16, DTYPE_FP16};

static float widen(enum dtype dtype, uint16_t bits)
{
    return dtype == DTYPE_BF16 ? bf16_to_f32(bits) : fp16_to_f32(bits);
}

static uint16_t narrow(enum dtype dtype, float value)
{
    return dtype == DTYPE_BF16 ? f32_to_bf16(value) : f32_to_fp16(value);
}

static bool is_quiet(enum dtype dtype, uint32_t bits)
{
    return isnan(number_of_bits(dtype, bits)) && bits >> (dtype == DTYPE_BF16 ? 6 : 9) & 1;
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void check_all_halves(enum dtype dtype)
{
    uint32_t bad_value = 0, bad_round = 0, bad_nan = 0;
    for (uint32_t bits = 0; bits < 1u << 16; bits++) {
        const float wide = widen(dtype, (uint16_t)bits);
        const uint16_t back = narrow(dtype, wide);
        bad_value += !is_same((double)wide, number_of_bits(dtype, bits));
        if (isnan(wide))
            bad_nan += !is_quiet(dtype, back);
        else
            bad_round += back != bits;
    }
    is_int(bad_value, 0, "%s: each pattern widens to what it means", dtype_name(dtype));
    is_int(bad_round, 0, "%s: and narrows back to itself", dtype_name(dtype));
    is_int(bad_nan, 0, "%s: a NaN stays one, and is quiet", dtype_name(dtype));
}

static bool is_nearest(enum dtype dtype, uint32_t bits)
{
    const double value = number_of_bits(DTYPE_FP32, bits);
    const uint16_t got = narrow(dtype, f32_from_bits(bits));
    if (isnan(value))
        return is_quiet(dtype, got);
    return is_same(number_of_bits(dtype, got), number_nearest(dtype, value));
}

static void check_floats(enum dtype dtype, uint32_t step)
{
    uint64_t bad = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += step)
        bad += !is_nearest(dtype, (uint32_t)bits);
    is_int(bad, 0, "%s: FP32 patterns, one in %u, go to the nearest, ties to even",
           dtype_name(dtype), step);
}

/* All borders between neighbours of the format: the tie itself, and one pattern to each side. */
static void check_ties(enum dtype dtype)
{
    uint32_t bad = 0;
    for (uint32_t bits = 0; bits < 1u << 16; bits++) {
        const double low = number_of_bits(dtype, bits), high = number_of_bits(dtype, bits + 1);
        if (!isfinite(low) || !isfinite(high))
            continue;
        const uint32_t tie = f32_bits((float)((low + high) / 2));
        bad += !is_nearest(dtype, tie) + !is_nearest(dtype, tie - 1) + !is_nearest(dtype, tie + 1);
    }
    is_int(bad, 0, "%s: each tie between neighbours, and what lies beside it", dtype_name(dtype));
}

static void check_named(void)
{
    is_int(f32_to_fp16(65519.996f), 0x7bff, "below 65520 is the largest FP16");
    is_int(f32_to_fp16(65520.0f), 0x7c00, "65520 is infinite in FP16");
    is_int(f32_to_fp16(-INFINITY), 0xfc00, "an infinity keeps its sign");
    is_int(f32_to_bf16(3.4028235e38f), 0x7f80, "the largest FP32 is infinite in BF16");
    is_int(f32_to_fp16(0x1p-25f), 0, "half of the smallest FP16 is a tie and goes to zero");
    is_int(f32_to_fp16(0x1.8p-24f), 2, "one and a half of it goes to two");
    is_int(f32_to_bf16(f32_from_bits(0xff800001)), 0x7fff, "a NaN is NVIDIA's 0x7fff in BF16");
    is_int(f32_to_fp16(f32_from_bits(0xff800001)), 0x7fff, "and in FP16");
    is_int(f32_to_bf16(f32_from_bits(0x00018000)), 2, "BF16 keeps subnormal numbers");
}

int main(void)
{
    const char *all = getenv("UNSHARD_ALL_FLOATS");
    for (uint32_t i = 0; i < 2; i++) {
        check_all_halves(halves[i]);
        check_ties(halves[i]);
        check_floats(halves[i], all ? 1 : 4097);
    }
    check_named();
    return tap_done();
}
