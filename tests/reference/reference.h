/*
 * The reference: llama, gpt2 and kda as straight single-process C in double, forward and backward,
 * with the averages of ranks and microbatches and the optimizers.
 *
 * It judges whoever runs a step for real, and shares no code with the product: no units, no packing,
 * no buffers that are used twice. What it computes is tests/oracle/README.md, "What the modules
 * compute", "Backward" and "Optimizers". With the policy REF_EXACT nothing is rounded; with others
 * values are rounded where that text rounds them, and are double between.
 *
 * A matrix is rows x width, row-major; a vector has one row. A tied weight is one parameter.
 */
#ifndef TESTS_REFERENCE_REFERENCE_H
#define TESTS_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

enum ref_family { REF_LLAMA, REF_GPT2, REF_KDA };

/* gpt2 has biases, the others have none. */
struct ref_sizes {
    enum ref_family family;
    uint64_t layers, hidden, intermediate, heads, kv_heads, head_dim;
    uint64_t vocab;     /* 0: kda blocks alone, whose input is given and whose loss is the mean */
    uint64_t positions; /* of gpt2 */
    bool tied;
    bool flat; /* kda: A_log and dt_bias are in self_attn, and first */
};

enum ref_format { REF_EXACT, REF_FP32, REF_BF16, REF_FP16 };
/* To nearest, ties to even; to BF16 and FP16 by way of FP32, which is what is stored there. */
double ref_round(enum ref_format format, double value);

enum { REF_MAX_NAME = 64 };

struct ref_param {
    char name[REF_MAX_NAME]; /* as the product's model has it */
    uint64_t rows, width, n;
    uint64_t first;                           /* of its elements among those of all parameters */
    double *at, *grad, *moment, *variance;    /* grad: as the optimizer reads it */
    enum ref_format compute, reduce, storage; /* A_log and dt_bias compute in FP32 */
    bool frozen;                              /* has no gradient and is not updated */
    bool unused;                              /* its gradient is zero, and it is updated */
};

/* Formats of all parameters; a test may then change those of single ones. */
struct ref_policy {
    enum ref_format compute, reduce, storage;
};

/* In registration order. */
struct reference {
    struct ref_sizes sizes;
    struct ref_policy policy;
    struct ref_param *params;
    uint32_t n_param, cap_param;
    uint64_t n;     /* elements of all parameters */
    double *values; /* of all parameters, their gradients and moments */
};

/* Values, gradients and moments are 0 at first. To be released. */
void reference_init(struct reference *reference, const struct ref_sizes *sizes,
                    struct ref_policy policy);
void reference_release(struct reference *reference);
struct ref_param *reference_find(const struct reference *reference, const char *name); /* or NULL */

/* What a rank computes with in one microbatch: batch * seq tokens and labels, or, of blocks alone,
   batch * seq rows of hidden numbers. */
struct ref_batch {
    const int64_t *tokens, *labels;
    const double *input;
};

/* logits, d_input: NULL, or where [T, vocab] and [T, hidden] are to be written. */
struct ref_result {
    double loss;     /* the mean over all places */
    double *logits;  /* of a model with a vocabulary */
    double *d_input; /* of the embedding's output, of gpt2 with the positions in it, or the input */
};

struct ref_step {
    uint64_t batch, seq;
    double loss_factor; /* 1 / microbatches makes gradients those of the mean loss */
    uint32_t ranks, microbatches;
    double divisor;       /* of the sum over ranks; 0: how many there are */
    uint32_t replicas;    /* HSDP: rank = replica * shards + shard; 1: none */
    bool sync_last;       /* gradients add up on each rank and are reduced after the last one */
    bool all_reduce_last; /* with replicas: the same of the all-reduce alone */
};

/* One rank, one microbatch. grads: reference->n elements that are written, in the format of
   compute; NULL: forward alone. */
void reference_microbatch(const struct reference *reference, const struct ref_step *step,
                          const struct ref_batch *batch, double *grads, struct ref_result *result);

/*
 * All ranks and microbatches from the same parameters. batches and results are
 * [microbatch][rank]; fills each parameter's grad: the mean over ranks, or their sum by the divisor,
 * summed over microbatches.
 * Returns the norm of all gradients.
 */
double reference_step(struct reference *reference, const struct ref_step *step,
                      const struct ref_batch *batches, struct ref_result *results);

/* Gradients times min(1, max_norm / (norm + 1e-6)), as clip_grad_norm_ does. */
void reference_clip(struct reference *reference, double norm, double max_norm);

struct ref_adamw {
    double lr, beta1, beta2, eps, weight_decay;
};
void reference_sgd(struct reference *reference, double lr);
/* count: which update it is, from 1 */
void reference_adamw(struct reference *reference, const struct ref_adamw *options, uint32_t count);

/*
 * Elements whose exact gradient is 0 although a computed one is rounding noise, which AdamW blows
 * up: softmax does not see what all keys have in common, and a sequence of one token has no other
 * to weigh or to forget. Not those that nothing flows to, such as rows of tokens that do not occur,
 * which are 0 however they are computed. Returns how many; mask: NULL, or n flags.
 */
uint64_t reference_zero_grads(const struct reference *reference, const struct ref_param *param,
                              uint64_t seq, bool *mask);

#endif
