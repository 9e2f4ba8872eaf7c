/*
 * gpt2: learned positions, LayerNorm, biases, weights that are [in, out], a head that may be the
 * embedding's.
 */
#include "tests/reference/ref_model.h"

static void add_norm(struct reference *reference, const char *prefix, const char *weight,
                     const char *bias)
{
    ref_param_add(reference, prefix, weight, 1, reference->sizes.hidden);
    ref_param_add(reference, prefix, bias, 1, reference->sizes.hidden);
}

static void add_block(struct reference *reference, const char *prefix)
{
    const uint64_t hidden = reference->sizes.hidden, inner = reference->sizes.intermediate;

    add_norm(reference, prefix, "ln_1.weight", "ln_1.bias");
    ref_param_add(reference, prefix, "attn.c_attn.weight", hidden, 3 * hidden);
    ref_param_add(reference, prefix, "attn.c_attn.bias", 1, 3 * hidden);
    ref_param_add(reference, prefix, "attn.c_proj.weight", hidden, hidden);
    ref_param_add(reference, prefix, "attn.c_proj.bias", 1, hidden);
    add_norm(reference, prefix, "ln_2.weight", "ln_2.bias");
    ref_param_add(reference, prefix, "mlp.c_fc.weight", hidden, inner);
    ref_param_add(reference, prefix, "mlp.c_fc.bias", 1, inner);
    ref_param_add(reference, prefix, "mlp.c_proj.weight", inner, hidden);
    ref_param_add(reference, prefix, "mlp.c_proj.bias", 1, hidden);
}

void ref_gpt2_params(struct reference *reference)
{
    const struct ref_sizes *sizes = &reference->sizes;

    ref_param_add(reference, "transformer.", "wte.weight", sizes->vocab, sizes->hidden);
    ref_param_add(reference, "transformer.", "wpe.weight", sizes->positions, sizes->hidden);
    for (uint64_t layer = 0; layer < sizes->layers; layer++)
        add_block(reference, ref_prefix_of_layer("transformer.h", layer).text);
    add_norm(reference, "transformer.", "ln_f.weight", "ln_f.bias");
    if (!sizes->tied)
        ref_param_add(reference, "", "lm_head.weight", sizes->vocab, sizes->hidden);
}

static struct ref_value *norm(struct ref_run *run, struct ref_value *x, const char *prefix,
                              const char *weight, const char *bias)
{
    return ref_layer_norm(&run->tape, x, ref_param(run, prefix, weight),
                          ref_param(run, prefix, bias));
}

static struct ref_value *attend(struct ref_run *run, struct ref_value *x, const char *prefix)
{
    const uint64_t hidden = run->reference->sizes.hidden;
    struct ref_value *qkv = ref_project(run, x, prefix, "attn.c_attn");
    struct ref_value *q = ref_columns(&run->tape, qkv, 0, hidden);
    struct ref_value *k = ref_columns(&run->tape, qkv, hidden, hidden);
    struct ref_value *v = ref_columns(&run->tape, qkv, 2 * hidden, hidden);

    return ref_project(run, ref_attention(&run->tape, q, k, v, &run->shape, false), prefix,
                       "attn.c_proj");
}

static struct ref_value *mlp(struct ref_run *run, struct ref_value *x, const char *prefix)
{
    struct ref_value *inner = ref_project(run, x, prefix, "mlp.c_fc");

    return ref_project(run, ref_gelu(&run->tape, inner), prefix, "mlp.c_proj");
}

/* Rows of the table of positions, one for each place of a sequence. */
static struct ref_value *positions(struct ref_run *run)
{
    int64_t *ids = ref_ids(&run->tape, run->shape.seq);

    for (uint64_t t = 0; t < run->shape.seq; t++)
        ids[t] = (int64_t)t;
    return ref_embedding(&run->tape, ref_param(run, "transformer.", "wpe.weight"), ids,
                         run->shape.seq);
}

static struct ref_value *embed(struct ref_run *run)
{
    struct ref_value *words =
        ref_embedding(&run->tape, ref_param(run, "transformer.", "wte.weight"), run->batch->tokens,
                      run->shape.batch * run->shape.seq);

    return ref_add(&run->tape, words, positions(run));
}

struct ref_value *ref_gpt2_forward(struct ref_run *run)
{
    const struct ref_sizes *sizes = &run->reference->sizes;
    struct ref_tape *tape = &run->tape;
    struct ref_value *x = run->input = embed(run);

    for (uint64_t layer = 0; layer < sizes->layers; layer++) {
        const struct ref_prefix prefix = ref_prefix_of_layer("transformer.h", layer);
        struct ref_value *normed = norm(run, x, prefix.text, "ln_1.weight", "ln_1.bias");
        x = ref_add(tape, x, attend(run, normed, prefix.text));
        normed = norm(run, x, prefix.text, "ln_2.weight", "ln_2.bias");
        x = ref_add(tape, x, mlp(run, normed, prefix.text));
    }
    x = norm(run, x, "transformer.", "ln_f.weight", "ln_f.bias");
    return ref_head(run, x, sizes->tied ? "transformer.wte.weight" : "lm_head.weight");
}
