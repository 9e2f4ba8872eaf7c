/*
 * Conversions by search in a list of all positive numbers of a format.
 *
 * The lists are made at first use. FP32 alone is the compiler's own.
 */
#include "tests/slow_cast.h"

#include <math.h>
#include <string.h>

enum { POSITIVE_CODES = 0x8000, NAN_CODE = 0x7fff, SIGN = 0x8000 };

struct format {
    int exponent_bits;
    int fraction_bits;
    double list[POSITIVE_CODES]; /* by code, up to infinity; list[1] is 0 before it is made */
};
static struct format bf16 = {.exponent_bits = 8, .fraction_bits = 7};
static struct format fp16 = {.exponent_bits = 5, .fraction_bits = 10};

static struct format *format_of(enum dtype dtype)
{
    struct format *format = dtype == DTYPE_BF16 ? &bf16 : &fp16;
    if (format->list[1] != 0)
        return format;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    for (int code = 0; code < POSITIVE_CODES; code++) {
        int exponent = code >> format->fraction_bits;
        double fraction = ldexp(code & ((1 << format->fraction_bits) - 1), -format->fraction_bits);
        format->list[code] =
            exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
    }
    return format;
}

static int infinity_of(const struct format *format)
{
    return ((1 << format->exponent_bits) - 1) << format->fraction_bits;
}

double slow_read(enum dtype dtype, const void *at)
{
    if (dtype == DTYPE_FP32) {
        float value;
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    uint16_t code;
    memcpy(&code, at, sizeof code);
    const struct format *format = format_of(dtype);
    int size = code & ~SIGN;
    double value = size > infinity_of(format)    ? (double)NAN
                   : size == infinity_of(format) ? (double)INFINITY
                                                 : format->list[size];
    return code & SIGN ? -value : value;
}

/* The code of the number nearest to a size. */
static int nearest(const struct format *format, double size)
{
    int low = 0, high = infinity_of(format); /* list[low] <= size, or all is below it */
    if (size >= format->list[high])
        return high;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (format->list[middle] <= size)
            low = middle;
        else
            high = middle;
    }
    double below = size - format->list[low], above = format->list[high] - size;
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

void slow_write(enum dtype dtype, double value, void *at)
{
    if (dtype == DTYPE_FP32) {
        float number = (float)value;
        memcpy(at, &number, sizeof number);
        return;
    }
    int code = NAN_CODE;
    if (!isnan(value))
        code = nearest(format_of(dtype), fabs(value)) | (signbit(value) ? SIGN : 0);
    memcpy(at, &(uint16_t){(uint16_t)code}, sizeof(uint16_t));
}

void slow_cast(enum dtype from_dtype, const void *from, enum dtype to_dtype, void *to)
{
    if (from_dtype == to_dtype)
        memcpy(to, from, dtype_bytes(to_dtype));
    else
        slow_write(to_dtype, slow_read(from_dtype, from), to);
}

bool slow_same(enum dtype dtype, const void *a, const void *b)
{
    if (memcmp(a, b, dtype_bytes(dtype)) == 0)
        return true;
    return dtype == DTYPE_FP32 && isnan(slow_read(dtype, a)) && isnan(slow_read(dtype, b));
}

double slow_fp32(double value)
{
    return (double)(float)value;
}
