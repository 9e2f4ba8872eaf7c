/*
 * The cases of division; see divide.h.
 */
#include "src/schedule/divide.h"

#include <math.h>

struct divide divide_around_sums(double factor)
{
    double pre = 1;
    while (fmod(factor, pre) == 0 && factor / pre > pre)
        pre *= 2;
    return (struct divide){pre, factor / pre, REDUCE_SUM, REDUCE_SUM};
}

struct divide divide_of(enum dtype dtype, double factor, uint64_t shard_ranks, uint64_t replicas,
                        bool force_sum)
{
    const double ranks = (double)(shard_ranks * replicas);
    const double divisor = factor > 0 ? factor : ranks;

    if (dtype != DTYPE_FP32 && dtype != DTYPE_BF16)
        return divide_around_sums(divisor);
    if (force_sum)
        return (struct divide){1, divisor, REDUCE_SUM, REDUCE_SUM};
    if (factor == 0 && ranks == 1)
        return (struct divide){1, 1, REDUCE_SUM, REDUCE_SUM};
    if (factor == 0)
        return (struct divide){1, 1, REDUCE_AVG, REDUCE_AVG};
    if (factor == (double)shard_ranks)
        return (struct divide){1, 1, REDUCE_AVG, REDUCE_SUM};
    return (struct divide){1, 1, REDUCE_PREMUL, REDUCE_SUM};
}
