/*
 * A small model run for some steps on forked ranks, and what that came to: losses, and the bits of all
 * shards after the last step. To hold one way to run a program against another.
 *
 * A case may not move. Runs that fail are a failed check of the test, with why.
 */
#ifndef TESTS_OUTCOME_RIG_H
#define TESTS_OUTCOME_RIG_H

#include "gpu/ranks.h"
#include "tests/real_case.h"

enum { OUTCOME_MAX_RANKS = 4, OUTCOME_MAX_STEPS = 8 };

struct outcome {
    uint64_t shards[OUTCOME_MAX_RANKS]; /* a hash of their bits */
    double losses[OUTCOME_MAX_RANKS][OUTCOME_MAX_STEPS];
};

struct outcome_case {
    struct made made;
    struct placement placement;
    struct seeded_values seeded;
    struct outcome *outcome; /* of the run; in memory that its ranks share */
};

/* words: options as one types them (tests/real_case.h). */
void outcome_case_init(struct outcome_case *of, enum small small, const char *words);
void outcome_case_release(struct outcome_case *of);

/* Three steps of it; to be changed at will, but for its context and callbacks. */
struct run_job outcome_job(struct outcome_case *of, const struct device_ops *device);
/* Forks the ranks and fills in out, as far as they come. */
bool outcome_run(struct outcome_case *of, const struct run_job *job, struct outcome *out);

#endif
