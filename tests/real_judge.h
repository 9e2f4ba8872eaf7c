#ifndef TESTS_REAL_JUDGE_H
#define TESTS_REAL_JUDGE_H
/*
 * A small real run against two steps of the reference, and one line of TAP that says how far they are
 * apart: losses, norms and gradients of both steps, logits and the gradient of the input of the last
 * one, parameters after it.
 */
#include "tests/compare_numbers.h"
#include "tests/real_case.h"
#include "tests/reference_rig.h"

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
