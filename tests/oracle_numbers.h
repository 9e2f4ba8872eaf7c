/*
 * Recorded losses, gradients and parameters of a case as floats, and the rule of its start values.
 *
 * For whoever runs a step with real numbers; no model is computed here. The rule is that of
 * tests/oracle/README.md: everything follows from one generator and three seeds. Everything read is
 * in the arena.
 */
#ifndef TESTS_ORACLE_NUMBERS_H
#define TESTS_ORACLE_NUMBERS_H

#include "tests/oracle_read.h"

enum { ORACLE_STEPS = 2 };
enum oracle_seed { ORACLE_SEED_PARAMS = 1, ORACLE_SEED_TOKENS, ORACLE_SEED_LABELS };

struct oracle_tensor {
    const char *name;
    float *values; /* row-major */
    uint64_t n;
};

struct oracle_tensors {
    struct oracle_tensor *at;
    uint32_t n;
};

/* Two steps of one optimizer. What SGD has no use for is 0. */
struct oracle_run {
    double lr, beta1, beta2, eps, weight_decay;
    struct oracle_tensor loss[ORACLE_STEPS]; /* [microbatch][rank] */
    float norm[ORACLE_STEPS];                /* of all gradients of the step */
    struct oracle_tensors params;            /* after both */
};

struct oracle_numbers {
    struct oracle_tensors gradients; /* of the first step, as the optimizer reads them */
    struct oracle_run sgd, adamw;    /* from the same start */
};

/* Of a case that has them. */
enum status oracle_numbers_read(const struct oracle_case *of, struct arena *arena,
                                struct oracle_numbers *out, struct err *err);
const struct oracle_tensor *oracle_tensor_find(const struct oracle_tensors *tensors,
                                               const char *name); /* or NULL */

/* Number i of the generator with this seed. */
uint64_t oracle_draw(enum oracle_seed seed, uint64_t i);
/* All elements of a parameter of the model at the start, in FP32. */
void oracle_start(const struct model *model, uint32_t param, float *out);

/* Where in a run a token stands: rank of the whole world, place in the microbatch, counts from 0. */
struct oracle_place {
    uint64_t step, microbatch, rank, position;
};
/* Its number among all tokens; from ORACLE_SEED_TOKENS or ORACLE_SEED_LABELS comes what it is. */
uint64_t oracle_token(const struct plan *plan, enum oracle_seed seed, struct oracle_place place);

#endif
