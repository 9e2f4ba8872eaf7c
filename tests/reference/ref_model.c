/*
 * Parameters by name, and one microbatch of one rank: forward, loss, backward.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/ref_model.h"

static const struct {
    ref_add_params *add_params;
    ref_forward *forward;
} families[] = {
    [REF_LLAMA] = {ref_llama_params, ref_llama_forward},
    [REF_GPT2] = {ref_gpt2_params, ref_gpt2_forward},
    [REF_KDA] = {ref_kda_params, ref_kda_forward},
};

struct ref_prefix ref_join(const char *prefix, const char *name)
{
    struct ref_prefix path;

    if (snprintf(path.text, sizeof path.text, "%s%s", prefix, name) >= REF_MAX_NAME)
        abort();
    return path;
}

struct ref_prefix ref_prefix_of_layer(const char *blocks, uint64_t layer)
{
    char number[32];

    snprintf(number, sizeof number, ".%llu.", (unsigned long long)layer);
    return ref_join(blocks, number);
}

void ref_param_add(struct reference *reference, const char *prefix, const char *name, uint64_t rows,
                   uint64_t width)
{
    if (reference->n_param == reference->cap_param) {
        reference->cap_param = reference->cap_param * 2 + 64;
        reference->params =
            realloc(reference->params, reference->cap_param * sizeof *reference->params);
        if (!reference->params)
            abort();
    }
    struct ref_param *param = &reference->params[reference->n_param++];
    *param = (struct ref_param){.rows = rows,
                                .width = width,
                                .n = rows * width,
                                .first = reference->n,
                                .compute = reference->policy.compute,
                                .reduce = reference->policy.reduce,
                                .storage = reference->policy.storage};
    memcpy(param->name, ref_join(prefix, name).text, REF_MAX_NAME);
    reference->n += param->n;
}

void reference_init(struct reference *reference, const struct ref_sizes *sizes,
                    struct ref_policy policy)
{
    *reference = (struct reference){.sizes = *sizes, .policy = policy};
    families[sizes->family].add_params(reference);
    reference->values = calloc(4 * reference->n, sizeof *reference->values);
    if (!reference->values)
        abort();
    for (uint32_t i = 0; i < reference->n_param; i++) {
        struct ref_param *param = &reference->params[i];
        param->at = reference->values + param->first;
        param->grad = param->at + reference->n;
        param->moment = param->grad + reference->n;
        param->variance = param->moment + reference->n;
    }
}

void reference_release(struct reference *reference)
{
    free(reference->params);
    free(reference->values);
}

struct ref_param *reference_find(const struct reference *reference, const char *name)
{
    for (uint32_t i = 0; i < reference->n_param; i++)
        if (strcmp(reference->params[i].name, name) == 0)
            return &reference->params[i];
    return NULL;
}

static struct ref_value *find(struct ref_run *run, const char *name)
{
    const struct ref_param *param = reference_find(run->reference, name);
    return param ? run->params[param - run->reference->params] : NULL;
}

struct ref_value *ref_param(struct ref_run *run, const char *prefix, const char *name)
{
    struct ref_value *value = find(run, ref_join(prefix, name).text);

    if (!value)
        abort();
    return value;
}

struct ref_value *ref_project(struct ref_run *run, struct ref_value *x, const char *prefix,
                              const char *name)
{
    const struct ref_prefix path = ref_join(prefix, name);

    return ref_linear(&run->tape, x, ref_param(run, path.text, ".weight"),
                      find(run, ref_join(path.text, ".bias").text),
                      run->reference->sizes.family == REF_GPT2);
}

struct ref_value *ref_head(struct ref_run *run, struct ref_value *x, const char *weight)
{
    run->logits = ref_linear(&run->tape, x, ref_param(run, "", weight), NULL, false);
    return ref_cross_entropy(&run->tape, run->logits, run->batch->labels);
}

/* As all-gather has them: rounded to what computes with them. */
static void gather_params(struct ref_run *run)
{
    const struct reference *reference = run->reference;

    run->params = ref_values(&run->tape, reference->n_param);
    for (uint32_t i = 0; i < reference->n_param; i++) {
        const struct ref_param *param = &reference->params[i];
        run->params[i] = ref_value_new(&run->tape, param->rows, param->width, param->compute);
        for (uint64_t k = 0; k < param->n; k++)
            run->params[i]->at[k] = ref_round(param->compute, param->at[k]);
    }
}

static void copy_out(const double *from, uint64_t n, double *to)
{
    if (from && to)
        memcpy(to, from, n * sizeof *to);
}

void reference_microbatch(const struct reference *reference, const struct ref_step *step,
                          const struct ref_batch *batch, double *grads, struct ref_result *result)
{
    const struct ref_sizes *sizes = &reference->sizes;
    struct ref_run run = {
        .reference = reference,
        .batch = batch,
        .shape = {step->batch, step->seq, sizes->heads, sizes->kv_heads, sizes->head_dim}};

    gather_params(&run);
    result->loss = *families[sizes->family].forward(&run)->at;
    if (run.logits)
        copy_out(run.logits->at, run.logits->n, result->logits);
    if (grads) {
        ref_tape_backward(&run.tape, step->loss_factor);
        copy_out(run.input->grad, run.input->n, result->d_input);
        for (uint32_t i = 0; i < reference->n_param; i++)
            copy_out(run.params[i]->grad, run.params[i]->n, grads + reference->params[i].first);
    }
    ref_tape_release(&run.tape);
}

/* Whether the name ends so. */
static bool has_end(const struct ref_param *param, const char *end)
{
    const size_t length = strlen(param->name), of_end = strlen(end);
    return length >= of_end && strcmp(param->name + length - of_end, end) == 0;
}

/* What reaches the loss only through weights of places, or through decay, in a block. */
static bool needs_two_tokens(const struct reference *reference, const struct ref_param *param)
{
    static const char *const llama[] = {"q_proj.weight", "k_proj.weight", NULL};
    static const char *const kda[] = {"f_a_proj.weight", "f_b_proj.weight", "A_log", "dt_bias",
                                      NULL};
    static const char *const gpt2[] = {NULL};
    static const char *const *const names[] = {
        [REF_LLAMA] = llama, [REF_GPT2] = gpt2, [REF_KDA] = kda};

    for (const char *const *name = names[reference->sizes.family]; *name; name++)
        if (has_end(param, *name))
            return true;
    return false;
}

uint64_t reference_zero_grads(const struct reference *reference, const struct ref_param *param,
                              uint64_t seq, bool *mask)
{
    const uint64_t hidden = reference->sizes.hidden;
    const bool of_qkv = reference->sizes.family == REF_GPT2 &&
                        (has_end(param, "c_attn.weight") || has_end(param, "c_attn.bias"));
    const bool all = seq == 1 && needs_two_tokens(reference, param);
    uint64_t n = 0;

    for (uint64_t k = 0; k < param->n; k++) {
        const uint64_t column = k % param->width;
        const bool of_query = of_qkv && column < hidden, of_key = of_qkv && column / hidden == 1;
        const bool zero =
            all || (seq == 1 && (of_query || of_key)) || (of_key && has_end(param, "bias"));
        n += zero;
        if (mask)
            mask[k] = zero;
    }
    return n;
}
