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

/* Ends the test where the words make no program. */
void real_case_make(const struct real_case *of, struct made *out);
/* Runs it; false, with a failed check, where it ends otherwise than well. Released on every path. */
bool real_case_run(const struct real_case *of, const struct made *made, struct real_numbers *out);
/* The same with somebody who looks at each work (real_rig.h). */
bool real_case_run_watched(const struct real_case *of, const struct made *made,
                           device_observer *observe, void *context, struct real_numbers *out);

/* One tensor that a run is judged by. */
enum judged_kind {
    JUDGED_LOSSES, /* [microbatch][rank] */
    JUDGED_NORM,
    JUDGED_GRAD,
    JUDGED_LOGITS,  /* of the last step, [microbatch][rank] */
    JUDGED_D_INPUT, /* the same */
    JUDGED_PARAM    /* after the last step */
};
struct judged {
    enum judged_kind kind;
    uint32_t step, param;
    const char *name; /* "losses 1", "norm 1", "grad 1 of NAME", "logits", "d_input", "NAME" */
    double *at;
    uint64_t n;
    const bool *zero; /* elements whose exact gradient is 0, which are left out; NULL: none */
};

/* The reference's numbers of both steps. */
struct judge {
    const struct made *made;
    struct reference_rig rig;
    struct judged *list;
    uint32_t n;
};
void judge_init(struct judge *judge, const struct real_case *of, const struct made *made,
                bool exact);
void judge_release(struct judge *judge);

/* One check over all that is judged; the bounds' patterns are of the names. */
bool judge_compare(const struct judge *judge, const struct real_numbers *got,
                   const struct number_bound *bounds, const char *name);

/*
 * The same for a policy that rounds. D, the distance of the rounding reference from the exact one, is
 * what all roundings together do to a tensor. Who rounds in the same places differs where a value is
 * so near a tie that the order of an FP32 sum decides: then a few of the roundings fall otherwise,
 * by at most share * D in the first step. What an update has moved by that rounds anew, and both
 * are D from the exact numbers: 2 D from one another. Losses and norm of a second step are few numbers,
 * near one another by chance: for them D is that of all gradients.
 */
bool judge_compare_rounded(const struct judge *rounded, const struct judge *exact,
                           const struct real_numbers *got, double share, const char *name);

/* All of the above: against the exact reference, or against both. */
void real_case_check(const struct real_case *of, const struct number_bound *bounds);
void real_case_check_rounded(const struct real_case *of, double share);

#endif
