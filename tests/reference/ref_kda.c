/*
 * kda: llama's decoder with Kimi delta attention in its blocks.
 */
#include "tests/reference/ref_model.h"

enum { TAPS = 4 };

static const char *fp32_module(const struct reference *reference)
{
    return reference->sizes.flat ? "self_attn." : "self_attn.fp32.";
}

static void add_decay(struct reference *reference, const char *prefix)
{
    const struct ref_sizes *sizes = &reference->sizes;
    const uint64_t widths[] = {sizes->heads, sizes->heads * sizes->head_dim};
    static const char *const names[] = {"A_log", "dt_bias"};

    for (int i = 0; i < 2; i++) {
        const struct ref_prefix path = ref_join(prefix, fp32_module(reference));
        ref_param_add(reference, path.text, names[i], 1, widths[i]);
        struct ref_param *added = &reference->params[reference->n_param - 1];
        if (added->compute != REF_EXACT)
            added->compute = REF_FP32;
    }
}

static void add_projections(struct reference *reference, const char *prefix)
{
    const uint64_t hidden = reference->sizes.hidden, heads = reference->sizes.heads;
    const uint64_t d = reference->sizes.head_dim, width = heads * d;

    ref_param_add(reference, prefix, "self_attn.q_proj.weight", width, hidden);
    ref_param_add(reference, prefix, "self_attn.k_proj.weight", width, hidden);
    ref_param_add(reference, prefix, "self_attn.v_proj.weight", width, hidden);
    ref_param_add(reference, prefix, "self_attn.q_conv1d.weight", width, TAPS);
    ref_param_add(reference, prefix, "self_attn.k_conv1d.weight", width, TAPS);
    ref_param_add(reference, prefix, "self_attn.v_conv1d.weight", width, TAPS);
    ref_param_add(reference, prefix, "self_attn.f_a_proj.weight", d, hidden);
    ref_param_add(reference, prefix, "self_attn.f_b_proj.weight", width, d);
    ref_param_add(reference, prefix, "self_attn.b_proj.weight", heads, hidden);
    ref_param_add(reference, prefix, "self_attn.g_a_proj.weight", d, hidden);
    ref_param_add(reference, prefix, "self_attn.g_b_proj.weight", width, d);
    ref_param_add(reference, prefix, "self_attn.o_norm.weight", 1, d);
    ref_param_add(reference, prefix, "self_attn.o_proj.weight", hidden, width);
}

static void add_block(struct reference *reference, const char *prefix)
{
    const uint64_t hidden = reference->sizes.hidden;

    ref_param_add(reference, prefix, "input_layernorm.weight", 1, hidden);
    if (reference->sizes.flat)
        add_decay(reference, prefix);
    add_projections(reference, prefix);
    if (!reference->sizes.flat)
        add_decay(reference, prefix);
    ref_param_add(reference, prefix, "post_attention_layernorm.weight", 1, hidden);
    ref_mlp_params(reference, prefix);
}

void ref_kda_params(struct reference *reference)
{
    ref_decoder_params(reference, add_block);
}

static struct ref_value *convolve(struct ref_run *run, struct ref_value *x, const char *prefix,
                                  const char *projection, const char *filter)
{
    return ref_short_conv(&run->tape, ref_project(run, x, prefix, projection),
                          ref_param(run, prefix, filter), &run->shape);
}

/* Two thin matrices. */
static struct ref_value *narrow(struct ref_run *run, struct ref_value *x, const char *prefix,
                                const char *first, const char *second)
{
    return ref_project(run, ref_project(run, x, prefix, first), prefix, second);
}

static struct ref_value *log_decay(struct ref_run *run, struct ref_value *f, const char *prefix)
{
    const struct ref_prefix path = ref_join(prefix, fp32_module(run->reference));

    return ref_decay(&run->tape, f, ref_param(run, path.text, "A_log"),
                     ref_param(run, path.text, "dt_bias"), &run->shape);
}

/* In the order of the recorded module: sums of gradients go by it. */
static struct ref_value *attend(struct ref_run *run, struct ref_value *x, const char *prefix)
{
    struct ref_tape *tape = &run->tape;
    const struct ref_shape *shape = &run->shape;
    struct ref_value *q = convolve(run, x, prefix, "self_attn.q_proj", "self_attn.q_conv1d.weight");
    struct ref_value *k = convolve(run, x, prefix, "self_attn.k_proj", "self_attn.k_conv1d.weight");
    struct ref_value *v = convolve(run, x, prefix, "self_attn.v_proj", "self_attn.v_conv1d.weight");
    struct ref_value *f = narrow(run, x, prefix, "self_attn.f_a_proj", "self_attn.f_b_proj");
    struct ref_value *g = log_decay(run, f, prefix);
    struct ref_value *beta = ref_sigmoid(tape, ref_project(run, x, prefix, "self_attn.b_proj"));
    struct ref_value *gate = narrow(run, x, prefix, "self_attn.g_a_proj", "self_attn.g_b_proj");
    struct ref_value *const in[] = {ref_l2_norm(tape, q, shape), ref_l2_norm(tape, k, shape), v, g,
                                    beta};
    struct ref_value *o = ref_delta_rule(tape, in, shape);

    o = ref_gated_rms(tape, o, ref_param(run, prefix, "self_attn.o_norm.weight"), gate, shape);
    return ref_project(run, o, prefix, "self_attn.o_proj");
}

struct ref_value *ref_kda_forward(struct ref_run *run)
{
    return ref_decoder_forward(run, attend);
}
