/*
 * Ranks for tests: forked processes that share memory, and bytes that each can check.
 *
 * A parent that has threads may not use it. What ranks find wrong they print as notes and return.
 */
#ifndef TESTS_RANKS_RIG_H
#define TESTS_RANKS_RIG_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/transport.h"

enum { RIG_MAX_RANKS = 8, RIG_LIMIT_S = 60, RIG_KILLED = 99 };

/* What a rank does; 0: all is well. */
typedef int rank_body(uint32_t rank, void *context);

/*
 * Forks the ranks, waits for all and tells the region of each that ends with something else than 0.
 * statuses (or NULL): what each returned, RIG_KILLED where it had to be. How many were not 0.
 */
uint32_t ranks_run(uint32_t ranks, struct shm_region *region, rank_body *body, void *context,
                   int *statuses);

/* Until so many have been counted in memory that ranks share; for good where they are not, which
   ranks_run() ends. Instead of a time that would be long enough on a quiet machine only. */
void ranks_await(const _Atomic uint32_t *counted, uint32_t n);

/* Zeroed memory that forked ranks share; until the end of the test. */
void *ranks_memory(size_t bytes);

/* A group of the world: count ranks from first on, each stride apart; n 0 where rank is not in it. */
struct comm_group rig_group(uint32_t rank, uint32_t first, uint32_t stride, uint32_t count);

/* All ranks in SHARD and CONTROL; halves of them in REPLICATE; odd and even ones in KEPT. */
void rig_setup(uint32_t rank, uint32_t ranks, int64_t timeout_ns, struct transport_setup *out);

/* Exchanges of random sizes in several groups at a time, each on a thread. Errors found. */
int rig_check_exchanges(const struct transport_ops *ops, void *self,
                        const struct transport_setup *setup, uint64_t seed);

#endif
