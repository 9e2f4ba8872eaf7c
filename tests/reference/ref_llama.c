/*
 * llama: RMSNorm, grouped attention with rotation, SwiGLU. Blocks of kda are the same but for their
 * attention, and may stand without embedding, norm and head.
 */
#include "tests/reference/ref_model.h"

void ref_mlp_params(struct reference *reference, const char *prefix)
{
    const struct ref_sizes *sizes = &reference->sizes;

    ref_param_add(reference, prefix, "mlp.gate_proj.weight", sizes->intermediate, sizes->hidden);
    ref_param_add(reference, prefix, "mlp.up_proj.weight", sizes->intermediate, sizes->hidden);
    ref_param_add(reference, prefix, "mlp.down_proj.weight", sizes->hidden, sizes->intermediate);
}

static void add_block(struct reference *reference, const char *prefix)
{
    const struct ref_sizes *sizes = &reference->sizes;
    const uint64_t query = sizes->heads * sizes->head_dim, key = sizes->kv_heads * sizes->head_dim;

    ref_param_add(reference, prefix, "self_attn.q_proj.weight", query, sizes->hidden);
    ref_param_add(reference, prefix, "self_attn.k_proj.weight", key, sizes->hidden);
    ref_param_add(reference, prefix, "self_attn.v_proj.weight", key, sizes->hidden);
    ref_param_add(reference, prefix, "self_attn.o_proj.weight", sizes->hidden, query);
    ref_mlp_params(reference, prefix);
    ref_param_add(reference, prefix, "input_layernorm.weight", 1, sizes->hidden);
    ref_param_add(reference, prefix, "post_attention_layernorm.weight", 1, sizes->hidden);
}

static const char *blocks_of(const struct reference *reference)
{
    return reference->sizes.vocab > 0 ? "model.layers" : "layers";
}

void ref_decoder_params(struct reference *reference, ref_add_block *block)
{
    const struct ref_sizes *sizes = &reference->sizes;

    if (sizes->vocab > 0)
        ref_param_add(reference, "model.", "embed_tokens.weight", sizes->vocab, sizes->hidden);
    for (uint64_t layer = 0; layer < sizes->layers; layer++)
        block(reference, ref_prefix_of_layer(blocks_of(reference), layer).text);
    if (sizes->vocab > 0)
        ref_param_add(reference, "model.", "norm.weight", 1, sizes->hidden);
    if (sizes->vocab > 0 && !sizes->tied)
        ref_param_add(reference, "", "lm_head.weight", sizes->vocab, sizes->hidden);
}

void ref_llama_params(struct reference *reference)
{
    ref_decoder_params(reference, add_block);
}

static struct ref_value *attend(struct ref_run *run, struct ref_value *x, const char *prefix)
{
    struct ref_value *q = ref_project(run, x, prefix, "self_attn.q_proj");
    struct ref_value *k = ref_project(run, x, prefix, "self_attn.k_proj");
    struct ref_value *v = ref_project(run, x, prefix, "self_attn.v_proj");

    return ref_project(run, ref_attention(&run->tape, q, k, v, &run->shape, true), prefix,
                       "self_attn.o_proj");
}

static struct ref_value *mlp(struct ref_run *run, struct ref_value *x, const char *prefix)
{
    struct ref_value *gate = ref_project(run, x, prefix, "mlp.gate_proj");
    struct ref_value *up = ref_project(run, x, prefix, "mlp.up_proj");

    return ref_project(run, ref_swiglu(&run->tape, gate, up), prefix, "mlp.down_proj");
}

static struct ref_value *block_forward(struct ref_run *run, struct ref_value *x, const char *prefix,
                                       ref_attend *attention)
{
    struct ref_tape *tape = &run->tape;
    struct ref_value *normed = ref_rms(tape, x, ref_param(run, prefix, "input_layernorm.weight"));

    x = ref_add(tape, x, attention(run, normed, prefix));
    normed = ref_rms(tape, x, ref_param(run, prefix, "post_attention_layernorm.weight"));
    return ref_add(tape, x, mlp(run, normed, prefix));
}

static struct ref_value *given(struct ref_run *run)
{
    const struct reference *reference = run->reference;
    struct ref_value *x = ref_value_new(&run->tape, run->shape.batch * run->shape.seq,
                                        reference->sizes.hidden, reference->params[0].compute);

    for (uint64_t i = 0; i < x->n; i++)
        x->at[i] = ref_round(x->format, run->batch->input[i]);
    return x;
}

struct ref_value *ref_decoder_forward(struct ref_run *run, ref_attend *attention)
{
    const struct ref_sizes *sizes = &run->reference->sizes;
    struct ref_tape *tape = &run->tape;
    struct ref_value *x = run->input =
        sizes->vocab > 0 ? ref_embedding(tape, ref_param(run, "model.", "embed_tokens.weight"),
                                         run->batch->tokens, run->shape.batch * run->shape.seq)
                         : given(run);

    for (uint64_t layer = 0; layer < sizes->layers; layer++)
        x = block_forward(run, x, ref_prefix_of_layer(blocks_of(run->reference), layer).text,
                          attention);
    if (sizes->vocab == 0)
        return ref_mean(tape, x);
    x = ref_rms(tape, x, ref_param(run, "model.", "norm.weight"));
    return ref_head(run, x, sizes->tied ? "model.embed_tokens.weight" : "lm_head.weight");
}

struct ref_value *ref_llama_forward(struct ref_run *run)
{
    return ref_decoder_forward(run, attend);
}
