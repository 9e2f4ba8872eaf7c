/*
 * The arithmetic of collectives: what a reduce-scatter or an all-reduce makes of the ranks' numbers.
 *
 * Each element is ((m0 f + m1 f) + m2 f) + ... in FP32 and in the order of the ranks, divided by n
 * for an average, and rounded once to the dtype of the message; f = 1 / divisor, rounded to FP32,
 * for a pre-multiplied sum and 1 otherwise. The same numbers give the same bits however the ranks
 * are cut into messages. Source: tests/oracle/README.md, "How reductions are made".
 *
 * NCCL promises less. Its order of additions depends on the algorithm, it rounds to the dtype at
 * each hop of a ring, and its average multiplies each input by 1/n rounded to the dtype: 1/3 in BF16
 * is 0.333984, by 0.2 % too much for every gradient alike, at worst 0.4 %. Where n is a power of two
 * that factor is exact; in FP32 it is off by less than 2^-24 (spec GPU 1.4). So BF16 averages of n
 * that is no power of two differ from NCCL's here, and are the nearer ones.
 */
#ifndef GPU_REDUCE_RANKS_H
#define GPU_REDUCE_RANKS_H

#include "src/dtype.h"
#include "src/program.h"

/* parts: of each rank so many elements of FP32, BF16 or FP16; n is at least 1. out may be one of the
   parts, and overlaps none of them otherwise. divisor is of REDUCE_PREMUL alone. */
void reduce_ranks(enum dtype dtype, enum reduction reduction, double divisor,
                  const void *const *parts, uint32_t n, uint64_t elements, void *out);

#endif
