#ifndef TESTS_REAL_CASE_H
#define TESTS_REAL_CASE_H
/*
 * Small models under options as one types them: two steps really run, two steps of the reference,
 * and one line of TAP that says how far they are apart.
 *
 * The sizes are awkward on purpose: nothing divides by 4, so that ranks have short shards, and of
 * what has fewest rows some have none. Everything starts as the recorded cases do. SGD has lr 1/64,
 * AdamW an eps of 1e-3, with which it forgives what is near nothing.
 */
#include "tests/compare_numbers.h"
#include "tests/make.h"
#include "tests/real_rig.h"
#include "tests/reference_rig.h"

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

struct real_case {
    enum small small;
    const char *words;  /* 4 ranks, batch 1, FP32 and SGD unless they say otherwise */
    const char *unused; /* a pattern of parameters that do not reach the loss, or NULL */
    float max_norm;     /* where the words clip */
    bool averages;      /* gradients are those of the mean over microbatches, not of their sum */
    float loss_scale;   /* where the words have a scaler */
};

/* Ends the test where the words make no program. */
void real_case_make(const struct real_case *of, struct made *out);
/* Runs it; false, with a failed check, where it ends otherwise than well. Released on every path. */
bool real_case_run(const struct real_case *of, const struct made *made, struct real_numbers *out);

/* The reference's numbers of all steps. */
struct judge {
    const struct made *made;
    struct reference_rig rig;
    double *losses, norms[CASE_STEPS]; /* [step][microbatch][rank] */
    double *grads[CASE_STEPS];         /* of all parameters */
    double *logits, *d_input;          /* of the last step, [microbatch][rank] */
};
void judge_init(struct judge *judge, const struct real_case *of, const struct made *made,
                bool exact);
void judge_release(struct judge *judge);

/*
 * One check: losses, norms and gradients of both steps, logits and gradient of the input of the last
 * one, parameters after it. Tensors are called "losses 1", "norm 1", "logits", "d_input", "grad 1 of
 * NAME" and "NAME". Of AdamW elements whose exact gradient is 0 are left out, with a note.
 */
bool judge_compare(const struct judge *judge, const struct real_numbers *got,
                   const struct number_bound *bounds, const char *name);

/* All of the above. */
void real_case_check(const struct real_case *of, bool exact, const struct number_bound *bounds);

#endif
