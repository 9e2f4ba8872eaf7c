/*
 * Who divides the sum of gradients by the number of ranks, and when.
 *
 * The reductions themselves where they can; around them where FP16 could overflow or sums are
 * forced. Source: spec FSDP2 3.2. No task and no buffer here.
 */
#ifndef SRC_SCHEDULE_DIVIDE_H
#define SRC_SCHEDULE_DIVIDE_H

#include "src/program.h"

struct divide {
    /* Divisors before the reduce-scatter, in it (PREMUL), in the copy that stands for it over one
       rank, after all; 1: no division. */
    double pre, scatter, copy, post;
    enum reduction reduce_scatter, all_reduce;
};

/*
 * FP16: the sum of many gradients passes 65504, tiny quotients lose bits. So half of the factor, in
 * powers of two, before plain sums and the rest after. FSDP1 does so whatever the dtype.
 */
struct divide divide_around_sums(double factor);

/* factor 0: the number of ranks in all. */
struct divide divide_of(enum dtype dtype, double factor, uint64_t shard_ranks, uint64_t replicas,
                        bool force_sum);

#endif
