/*
 * Floating-point formats by definition, in double: what a bit pattern means, what is nearest.
 *
 * The judge of gpu/convert.h and of the operators; slow, and without tricks on bits. dtype: one of
 * FP32, BF16 and FP16.
 */
#ifndef TESTS_NUMBER_H
#define TESTS_NUMBER_H

#include "src/dtype.h"

/* Of the lowest 32 or 16 bits. */
double number_of_bits(enum dtype dtype, uint32_t bits);

/* Nearest number of the format, ties to even; infinite past the largest. x is not a NaN. */
double number_nearest(enum dtype dtype, double x);

/* Bits of a number of the format that is neither infinite nor a NaN. */
uint32_t number_bits(enum dtype dtype, double x);

/* Largest relative error of rounding a normal number: half a unit in the last place. */
double number_unit(enum dtype dtype);

/* Element i of an array in memory. */
double number_get(enum dtype dtype, const void *array, uint64_t i);
void number_set(enum dtype dtype, void *array, uint64_t i, double x); /* rounded */

#endif
