/*
 * Numbers of the element types by their definition: slow, in double, sharing no code with gpu/.
 *
 * A format's positive numbers are listed in order; a value becomes the nearest of them, of two
 * equally near ones that with the even code. Infinity stands in the list as the number that would
 * follow the largest. Arithmetic that is rounded to FP32 may be done in double first: of one +, *
 * or / of FP32 numbers the second rounding changes nothing (53 bits are more than 2 * 24 + 1).
 */
#ifndef TESTS_SLOW_CAST_H
#define TESTS_SLOW_CAST_H

#include "src/dtype.h"

double slow_read(enum dtype dtype, const void *at);
/* A NaN becomes 0x7fff in 16 bits, as NVIDIA's conversions have it. */
void slow_write(enum dtype dtype, double value, void *at);
/* From one type to the other: by bytes where they are the same. */
void slow_cast(enum dtype from_dtype, const void *from, enum dtype to_dtype, void *to);

/* Two elements are the same: in every bit, or both a NaN of FP32, whose bits are not promised. */
bool slow_same(enum dtype dtype, const void *a, const void *b);

/* Rounded to FP32. */
double slow_fp32(double value);

#endif
