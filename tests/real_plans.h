#ifndef TESTS_REAL_PLANS_H
#define TESTS_REAL_PLANS_H
/*
 * Small native programs that are quick to run for real: a model of three layers under options as one
 * types them.
 */
#include "tests/make.h"

/* A plan to run: family (llama, gpt2 or kda), "--gpus 4 --replicas 2", and what it is called. */
struct real_plan {
    const char *name, *family, *words;
};

/* Ends the test where anything is refused. */
void real_plan_init(struct made *made, const struct real_plan *plan);

#endif
