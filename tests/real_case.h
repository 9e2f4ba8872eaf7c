#ifndef TESTS_REAL_CASE_H
#define TESTS_REAL_CASE_H
/*
 * Small models under options as one types them, and two steps of each really run. What they should
 * compute says tests/real_judge.h.
 *
 * The sizes are awkward on purpose: nothing divides by 4, so that ranks have short shards, and of
 * what has fewest rows some have none. Everything starts as the recorded cases do. SGD has lr 1/64,
 * AdamW an eps of 1e-3, with which it forgives what is near nothing.
 */
#include "tests/make.h"
#include "tests/real_rig.h"

/* X(ENUM, name) */
#define SMALLS(X)                                            \
    X(LLAMA, "llama")                                        \
    X(TIED, "llama, tied")                                   \
    X(GPT2, "gpt2") /* tied, with biases */                  \
    X(KDA, "kda")                                            \
    X(FLAT, "kda, flat")      /* A_log beside projections */ \
    X(BLOCKS, "kda's blocks") /* no vocabulary */            \
    X(TINY, "kda-tiny")       /* the built-in one */

enum small {
#define X(id, name) SMALL_##id,
    SMALLS(X)
#undef X
        SMALL_N
};
const char *small_name(enum small small);

enum { CASE_STEPS = 2 };
#define CASE_SGD_LR (1.0 / 64)

struct real_case {
    enum small small;
    const char *words;  /* 4 ranks, batch 1, FP32 and SGD unless they say otherwise */
    const char *unused; /* a pattern of parameters that do not reach the loss, or NULL */
    float max_norm;     /* where the words clip */
    bool averages;      /* gradients are those of the mean over microbatches, not of their sum */
    float loss_scale;   /* where the words have a scaler */
    const struct device_ops *device; /* as in real_rig.h */
};

/* By the words' optimizer. */
struct optimizer_options real_case_optimizer(const struct made *made);

/* Ends the test where the words make no program. */
void real_case_make(const struct real_case *of, struct made *out);
/* Runs it; false, with a failed check, where it ends otherwise than well. Released on every path. */
bool real_case_run(const struct real_case *of, const struct made *made, struct real_numbers *out);
/* The same with somebody who looks at each work (real_rig.h). */
bool real_case_run_watched(const struct real_case *of, const struct made *made,
                           device_observer *observe, void *context, struct real_numbers *out);

#endif
