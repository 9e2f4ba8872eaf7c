/*
 * A family of the reference: its parameters, and its forward on a tape.
 */
#ifndef TESTS_REFERENCE_REF_MODEL_H
#define TESTS_REFERENCE_REF_MODEL_H

#include "tests/reference/ref_ops.h"

/* One rank's microbatch. */
struct ref_run {
    const struct reference *reference;
    const struct ref_batch *batch;
    struct ref_shape shape;
    struct ref_tape tape;
    struct ref_value **params; /* by parameter: one value, however often it is used */
    struct ref_value *input;   /* the embedding's output, or what was given */
    struct ref_value *logits;  /* or NULL */
};

/* Where a module's parameters are: "model.layers.0." */
struct ref_prefix {
    char text[REF_MAX_NAME];
};
struct ref_prefix ref_join(const char *prefix, const char *name);
struct ref_prefix ref_prefix_of_layer(const char *blocks, uint64_t layer);

void ref_param_add(struct reference *reference, const char *prefix, const char *name, uint64_t rows,
                   uint64_t width);
struct ref_value *ref_param(struct ref_run *run, const char *prefix, const char *name);

/* x times the weight, and the bias where the family has them. */
struct ref_value *ref_project(struct ref_run *run, struct ref_value *x, const char *prefix,
                              const char *name);

/* Logits by this weight, and the loss. */
struct ref_value *ref_head(struct ref_run *run, struct ref_value *x, const char *weight);

typedef void ref_add_params(struct reference *reference);
typedef struct ref_value *ref_forward(struct ref_run *run); /* yields the loss */

ref_add_params ref_llama_params, ref_gpt2_params, ref_kda_params;
ref_forward ref_llama_forward, ref_gpt2_forward, ref_kda_forward;

/* ref_llama.c, for kda as well: a decoder whose blocks differ in their attention. */
typedef void ref_add_block(struct reference *reference, const char *prefix);
typedef struct ref_value *ref_attend(struct ref_run *run, struct ref_value *x, const char *prefix);
void ref_decoder_params(struct reference *reference, ref_add_block *block);
void ref_mlp_params(struct reference *reference, const char *prefix);
struct ref_value *ref_decoder_forward(struct ref_run *run, ref_attend *attend);

#endif
