/*
 * Where the numbers of a run come from: parameters and optimizer states at its start, and what each
 * microbatch is given. All in FP32 or int64, of whole parameters; who cuts and casts is the binder.
 *
 * Each number depends on the seed and on its own place alone (name and element, or step, microbatch,
 * rank and position), so that every arrangement and world size starts from the same model, and the
 * same global batch is cut in another way only. Callbacks are called from stream threads, one at a
 * time for a rank.
 */
#ifndef GPU_VALUES_H
#define GPU_VALUES_H

#include "src/program.h"

/* Adam's two moments. */
enum { MOMENTS = 2 };

/* What a loss scaler goes on from; loss_scale 0: it begins. */
struct scaler_state {
    float loss_scale;
    uint32_t good_steps; /* since the scale was changed */
};

struct values {
    void *context;
    struct scaler_state scaler;
    /* Elements first … first + n - 1 of the model's parameter, row-major. */
    enum status (*param)(void *context, uint32_t param, uint64_t first, uint64_t n, float *out,
                         struct err *err);
    /* The same of its moment 0 or 1, and how often it was updated; NULL: zeros. */
    enum status (*moment)(void *context, uint32_t param, unsigned which, uint64_t first, uint64_t n,
                          float *out, struct err *err);
    float (*updates)(void *context, uint32_t param);
    /* n tokens of a microbatch of this rank, sequence after sequence. step counts from 0. */
    void (*tokens)(void *context, uint32_t step, uint32_t microbatch, uint64_t n, int64_t *ids,
                   int64_t *labels);
    /* In place of tokens, for a model without embedding. */
    void (*hidden)(void *context, uint32_t step, uint32_t microbatch, uint64_t n, float *out);
};

/*
 * The product's own: weights of products and embeddings normal with deviation 0.02, norms 1, biases
 * 0; A_log log(1 … 16) and dt_bias as softplus^-1 of steps between 0.001 and 0.1, log-uniform. Tokens
 * are a walk that a model can learn: with probability 3/4 the next is a fixed function of the last.
 */
struct seeded_values {
    const struct plan *plan;
    uint64_t seed;
    uint32_t rank;
    uint64_t sequences; /* that were trained with before, on all ranks: of a checkpoint */
};
struct values values_seeded(struct seeded_values *context);

#endif
