/*
 * Sums and updates of rows of FP32 numbers in eight lanes, for the host's operators.
 *
 * Lane i takes the numbers i, i + 8, ...; what is over goes to the first lanes; then lanes are added
 * in halves. The order depends on n alone, so that results are the same in every run and build, and
 * a sum of n numbers is as good as one of n / 8.
 */
#ifndef GPU_LANES_H
#define GPU_LANES_H

#include <stdint.h>

enum { LANES = 8 };

static inline float lanes_total(const float *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static inline float lanes_sum(const float *x, uint64_t n)
{
    float lane[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += x[i];
    return lanes_total(lane);
}

static inline float lanes_dot(const float *restrict x, const float *restrict y, uint64_t n)
{
    float lane[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l] * y[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += x[i] * y[i];
    return lanes_total(lane);
}

static inline void lanes_scale(float *x, float factor, uint64_t n)
{
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            x[i + l] *= factor;
    for (; i < n; i++)
        x[i] *= factor;
}

/* to += factor x */
static inline void lanes_add(float *restrict to, float factor, const float *restrict x, uint64_t n)
{
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            to[i + l] += factor * x[i + l];
    for (; i < n; i++)
        to[i] += factor * x[i];
}

#endif
