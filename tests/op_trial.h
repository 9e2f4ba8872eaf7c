/*
 * One operator tried on random operands: values, gradients, rounding, absence, repetition.
 *
 * A case says in words which operands each pass has; the trial makes them, runs the passes that
 * there are and holds them against the double reference (gradients: against its central differences).
 *
 * Roles, separated by blanks:  In  input n    On  output n    An  output n, which may be added to
 *     D  gradient of the output that counts    Gn  gradient of input n, which may be added to
 *     gn  which is written    L  ids or labels    -  absent
 * Sizes of a tensor, a letter a dimension: T tokens, H hidden, F inner, V vocab, P positions, N heads,
 * D head_dim, Q N * D, K kv_heads * D, W Q + 2 K, B batch, C chunks, 4, 1. In front of them: . of FP32
 * whatever the dtype; - negative, + in (0, 1), ~ times D^-1/2, ^ times 3.
 *
 * Bounds: a norm-wise error of 2e-6 for what FP32 sums and functions do to a few hundred terms
 * (a rounding is 6e-8; the case may ask for more), and half a unit in the last place of what is
 * stored. Where the exact answer is zero the error is taken for itself.
 */
#ifndef TESTS_OP_TRIAL_H
#define TESTS_OP_TRIAL_H

#include "gpu/ops.h"

#include "tests/op_reference.h"

enum { TRIAL_MAX_IN = 5, TRIAL_MAX_OUT = 3 };

struct op_case {
    const char *name;
    op_reference *reference;
    const char *in[TRIAL_MAX_IN], *out[TRIAL_MAX_OUT]; /* sizes; NULL: absent */
    const char *forward, *dgrad, *wgrad;               /* roles; NULL: no such pass */
    const char *bias_wgrad;                            /* OP_SUM's, of a linear layer */
    uint8_t kind;
    uint8_t counts; /* the output whose gradient D is; of one number: the state's grad_scale */
    bool weight_in_first; /* and of OP_MM: */
    double bound;         /* 0: 2e-6 */
};

/* Where operators are found: the host's, unless a program links another device's
   (tests/cuda_trial.c). */
extern host_op *(*op_trial_find)(enum op_kind kind, enum op_pass pass);

/* Values of each output, at most n_sample elements of each gradient, chosen at random, and that
   OP_UPDATE adds what OP_WRITE writes with one rounding, that a result does not depend on whether
   another is wanted, and that a second run gives the same bytes. */
void op_trial(const struct op_case *is, const struct op_sizes *sizes, enum dtype dtype,
              uint32_t n_sample, uint64_t *seed);

/* The same in FP32, BF16 and FP16. */
void op_trial_dtypes(const struct op_case *is, const struct op_sizes *sizes, uint32_t n_sample,
                     uint64_t *seed);

#endif
