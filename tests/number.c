/*
 * A format is a number of bits of fraction and a number of bits of exponent; the rest follows.
 *
 * Numbers of normal size are (1 + fraction / 2^f) 2^(exponent - bias), subnormal ones
 * fraction 2^(1 - bias - f); bias = 2^(e-1) - 1. Everything is exact in double.
 */
#include "tests/number.h"

#include <math.h>

struct format {
    int fraction, exponent;
};

static struct format format_of(enum dtype dtype)
{
    if (dtype == DTYPE_FP32)
        return (struct format){23, 8};
    return dtype == DTYPE_BF16 ? (struct format){7, 8} : (struct format){10, 5};
}

static int bias_of(struct format format)
{
    return (1 << (format.exponent - 1)) - 1;
}

double number_of_bits(enum dtype dtype, uint32_t bits)
{
    const struct format format = format_of(dtype);
    const double fraction = ldexp(bits & ((1u << format.fraction) - 1), -format.fraction);
    const int exponent = (int)(bits >> format.fraction & ((1u << format.exponent) - 1));
    const double sign = bits >> (format.fraction + format.exponent) & 1 ? -1 : 1;
    if (exponent == (1 << format.exponent) - 1)
        return fraction > 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias_of(format));
    return sign * ldexp(1 + fraction, exponent - bias_of(format));
}

double number_nearest(enum dtype dtype, double x)
{
    const struct format format = format_of(dtype);
    const int least = 1 - bias_of(format);
    int exponent;
    if (isinf(x) || x == 0)
        return x;
    frexp(x, &exponent); /* |x| is in [1/2, 1) 2^exponent */
    const int unit = (exponent - 1 < least ? least : exponent - 1) - format.fraction;
    const double near = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(near) < ldexp(1, bias_of(format) + 1) ? near : copysign(INFINITY, x);
}

uint32_t number_bits(enum dtype dtype, double x)
{
    const struct format format = format_of(dtype);
    const int least = 1 - bias_of(format);
    const uint32_t sign = signbit(x) ? 1u << (format.fraction + format.exponent) : 0;
    int exponent;
    frexp(x, &exponent);
    if (x == 0 || exponent - 1 < least)
        return sign | (uint32_t)ldexp(fabs(x), format.fraction - least);
    const uint32_t fraction = (uint32_t)ldexp(ldexp(fabs(x), 1 - exponent) - 1, format.fraction);
    return sign | (uint32_t)(exponent - 1 + bias_of(format)) << format.fraction | fraction;
}

double number_unit(enum dtype dtype)
{
    return ldexp(1, -1 - format_of(dtype).fraction);
}

double number_get(enum dtype dtype, const void *array, uint64_t i)
{
    if (dtype == DTYPE_FP32)
        return (double)((const float *)array)[i];
    return number_of_bits(dtype, ((const uint16_t *)array)[i]);
}

void number_set(enum dtype dtype, void *array, uint64_t i, double x)
{
    if (dtype == DTYPE_FP32)
        ((float *)array)[i] = (float)x;
    else
        ((uint16_t *)array)[i] = (uint16_t)number_bits(dtype, number_nearest(dtype, x));
}
