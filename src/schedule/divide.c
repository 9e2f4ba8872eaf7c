/*
 * The cases of division; see divide.h.
 */
#include "src/schedule/divide.h"

#include <math.h>

static struct divide divide_by(double pre, double post, enum reduction reduce_scatter,
                               enum reduction all_reduce)
{
    return (struct divide){.pre = pre,
                           .scatter = 1,
                           .copy = 1,
                           .post = post,
                           .reduce_scatter = reduce_scatter,
                           .all_reduce = all_reduce};
}

struct divide divide_around_sums(double factor)
{
    double pre = 1;
    while (fmod(factor, pre) == 0 && factor / pre > pre)
        pre *= 2;
    return divide_by(pre, factor / pre, REDUCE_SUM, REDUCE_SUM);
}

static struct divide divide_around(enum dtype dtype, double factor, uint64_t shard_ranks,
                                   uint64_t replicas, bool force_sum)
{
    const double ranks = (double)(shard_ranks * replicas);
    const double divisor = factor > 0 ? factor : ranks;

    if (dtype != DTYPE_FP32 && dtype != DTYPE_BF16)
        return divide_around_sums(divisor);
    if (force_sum)
        return divide_by(1, divisor, REDUCE_SUM, REDUCE_SUM);
    if (factor == 0 && ranks == 1)
        return divide_by(1, 1, REDUCE_SUM, REDUCE_SUM);
    if (factor == 0)
        return divide_by(1, 1, REDUCE_AVG, REDUCE_AVG);
    if (factor == (double)shard_ranks)
        return divide_by(1, 1, REDUCE_AVG, REDUCE_SUM);
    struct divide out = divide_by(1, 1, REDUCE_PREMUL, REDUCE_SUM);
    out.scatter = factor;
    return out;
}

struct divide divide_of(enum dtype dtype, double factor, uint64_t shard_ranks, uint64_t replicas,
                        bool force_sum)
{
    struct divide out = divide_around(dtype, factor, shard_ranks, replicas, force_sum);

    if (shard_ranks == 1 && factor > 0)
        out.copy = factor;
    return out;
}
