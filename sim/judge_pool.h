/*
 * Judges side by side: a batch of points on several threads.
 *
 * Threads share the space, the cluster and the bodies, which nobody changes, and each has a judge of
 * its own. What comes out does not depend on how many there are.
 */
#ifndef SIM_JUDGE_POOL_H
#define SIM_JUDGE_POOL_H

#include "sim/judge.h"
#include "sim/space.h"

struct judge_pool;

enum { JUDGE_POOL_MAX = 256 };

/* jobs: 1 to JUDGE_POOL_MAX; 1 needs no thread. */
struct judge_pool *judge_pool_new(const struct space *space, const struct cluster *cluster,
                                  const struct body_table *bodies, uint32_t jobs);
void judge_pool_free(struct judge_pool *pool);

/* A plan that rules forbid, or that cannot be priced. */
#define JUDGED_REFUSED ((struct judged){INT64_MAX, UINT64_MAX})

/* X(ENUM, name): what plans are judged by; sim/judge.h and sim/milp_judge.h */
#define OBJECTIVES(X)   \
    X(EVENTS, "events") \
    X(MILP, "milp-like")

enum objective {
#define X(id, name) OBJECTIVE_##id,
    OBJECTIVES(X)
#undef X
        OBJECTIVE_N
};

const char *objective_name(enum objective objective);

void judge_pool_run(struct judge_pool *pool, enum objective objective, const uint8_t *const *points,
                    uint32_t n, struct judged *out);

/* What the allocator reserves for each; UINT64_MAX where a plan is refused. */
void judge_pool_place(struct judge_pool *pool, const uint8_t *const *points, uint32_t n,
                      const struct alloc_config *config, struct placed *out);

#endif
