#ifndef TESTS_REAL_RIG_H
#define TESTS_REAL_RIG_H
/*
 * A program really run in a test, its ranks forked, and every number of it as whole tensors: shards
 * of all ranks put together again.
 *
 * Parameters and tokens start by the rule of the recorded cases (tests/oracle/README.md), or as the
 * product seeds them; the input of a model without a vocabulary is always the product's.
 */
#include "gpu/ranks.h"

enum { REAL_MAX_STEPS = 4 };

struct real_ask {
    const struct program *program;
    const struct placement *placement; /* NULL: placed here, without a limit */
    const struct device_ops *device;   /* whose memory a test can read; NULL: the host */
    uint32_t steps;
    struct optimizer_options optimizer;
    float max_norm;
    bool sums_microbatches, seeded;
    uint64_t seed;
    struct device_debug debug;
    struct scaler_state
        scaler; /* of a plan with one: where it begins; zeros: as the product does */
    /* In the process of a rank, after each work; context as it was before the fork. NULL: nobody. */
    device_observer *observe;
    void *observe_context;
    int64_t timeout_ns;                            /* 0: a minute */
    int64_t die_rank, hang_rank, alloc_bias_bytes; /* ranks: 1 + rank, 0 for none */
};

/* All of it lies in memory that the ranks wrote. */
struct real_numbers {
    uint32_t n_param, n_step, ranks, microbatches;
    float **grads[REAL_MAX_STEPS]; /* [step][param], as the optimizer read them; NULL: none */
    float **params;                /* [param], at the end, frozen and ignored ones too */
    float *losses;                 /* [step][microbatch][rank] */
    double norms[REAL_MAX_STEPS];  /* of all gradients of the step */
    float *logits, *d_input;       /* of the last step, [microbatch][rank] */
    uint64_t n_logits, n_d_input;  /* of one microbatch and rank; 0: there are none */
    float *loss_scales;            /* [rank], after the last step; 0: there is no scaler */
    struct run_log *log;
    void *block;
    size_t block_bytes;
    struct arena arena;
};

/* What the run returned. Released on every path. */
enum status real_run(const struct real_ask *ask, struct real_numbers *out, struct err *err);
void real_release(struct real_numbers *numbers);

/* Whether outputs, losses, gradients and parameters are equal to the last bit. */
bool real_equal(const struct real_numbers *a, const struct real_numbers *b);

#endif
