/*
 * gpt2, mpt, kda and simple-llm: names and shapes of one block, what a config.json of the first two
 * says, and of which models a step is built, cut into which units.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/arch/arch.h"
#include "src/plan.h"
#include "tests/quoted.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char config_path[] = "family-test-XXXXXX"; /* in the build folder */

static struct model open_or_bail(const char *what, uint64_t layers)
{
    struct model model;
    struct err err = {0};
    if (model_open(what, layers, &arena, &model, &err))
        tap_bail(err.text);
    return model;
}

/* "transformer.wte.weight [50257, 768]\n…" */
static const char *print_params(const struct model *model)
{
    const char *text = "";
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        text = arena_printf(&arena, "%s%s [", text, param->name);
        for (unsigned k = 0; k < param->n_dim; k++)
            text = arena_printf(&arena, "%s%s%llu", text, k ? ", " : "",
                                (unsigned long long)param->shape[k]);
        text = arena_printf(&arena, "%s]%s\n", text, param->keep_fp32 ? " fp32" : "");
    }
    return text;
}

static void test_names_and_shapes(void)
{
    struct model gpt2 = open_or_bail("gpt2", 1), mpt = open_or_bail("mpt-125m", 1);
    is_str(print_params(&gpt2),
           "transformer.wte.weight [50257, 768]\n"
           "transformer.wpe.weight [1024, 768]\n"
           "transformer.h.0.ln_1.weight [768]\n"
           "transformer.h.0.ln_1.bias [768]\n"
           "transformer.h.0.attn.c_attn.weight [768, 2304]\n"
           "transformer.h.0.attn.c_attn.bias [2304]\n"
           "transformer.h.0.attn.c_proj.weight [768, 768]\n"
           "transformer.h.0.attn.c_proj.bias [768]\n"
           "transformer.h.0.ln_2.weight [768]\n"
           "transformer.h.0.ln_2.bias [768]\n"
           "transformer.h.0.mlp.c_fc.weight [768, 3072]\n"
           "transformer.h.0.mlp.c_fc.bias [3072]\n"
           "transformer.h.0.mlp.c_proj.weight [3072, 768]\n"
           "transformer.h.0.mlp.c_proj.bias [768]\n"
           "transformer.ln_f.weight [768]\n"
           "transformer.ln_f.bias [768]\n",
           "gpt2 stores [in, out], and no head");
    is_str(print_params(&mpt),
           "transformer.wte.weight [50368, 768]\n"
           "transformer.wpe.weight [2048, 768]\n"
           "transformer.blocks.0.norm_1.weight [768]\n"
           "transformer.blocks.0.norm_1.bias [768]\n"
           "transformer.blocks.0.attn.Wqkv.weight [2304, 768]\n"
           "transformer.blocks.0.attn.Wqkv.bias [2304]\n"
           "transformer.blocks.0.attn.out_proj.weight [768, 768]\n"
           "transformer.blocks.0.attn.out_proj.bias [768]\n"
           "transformer.blocks.0.norm_2.weight [768]\n"
           "transformer.blocks.0.norm_2.bias [768]\n"
           "transformer.blocks.0.ffn.up_proj.weight [3072, 768]\n"
           "transformer.blocks.0.ffn.up_proj.bias [3072]\n"
           "transformer.blocks.0.ffn.down_proj.weight [768, 3072]\n"
           "transformer.blocks.0.ffn.down_proj.bias [768]\n"
           "transformer.norm_f.weight [768]\n"
           "transformer.norm_f.bias [768]\n",
           "mpt stores [out, in]");
}

#define KDA_FP32(holder)                                      \
    "layers.0.self_attn." holder "A_log [1, 1, 32, 1] fp32\n" \
    "layers.0.self_attn." holder "dt_bias [4096] fp32\n"
#define KDA_BF16                                        \
    "layers.0.self_attn.q_proj.weight [4096, 4096]\n"   \
    "layers.0.self_attn.k_proj.weight [4096, 4096]\n"   \
    "layers.0.self_attn.v_proj.weight [4096, 4096]\n"   \
    "layers.0.self_attn.q_conv1d.weight [4096, 1, 4]\n" \
    "layers.0.self_attn.k_conv1d.weight [4096, 1, 4]\n" \
    "layers.0.self_attn.v_conv1d.weight [4096, 1, 4]\n" \
    "layers.0.self_attn.f_a_proj.weight [128, 4096]\n"  \
    "layers.0.self_attn.f_b_proj.weight [4096, 128]\n"  \
    "layers.0.self_attn.b_proj.weight [32, 4096]\n"     \
    "layers.0.self_attn.g_a_proj.weight [128, 4096]\n"  \
    "layers.0.self_attn.g_b_proj.weight [4096, 128]\n"  \
    "layers.0.self_attn.o_norm.weight [128]\n"          \
    "layers.0.self_attn.o_proj.weight [4096, 4096]\n"
#define KDA_REST                                        \
    "layers.0.post_attention_layernorm.weight [4096]\n" \
    "layers.0.mlp.gate_proj.weight [12160, 4096]\n"     \
    "layers.0.mlp.up_proj.weight [12160, 4096]\n"       \
    "layers.0.mlp.down_proj.weight [4096, 12160]\n"

static void test_shapes_of_cases(void)
{
    struct model kda = open_or_bail("kda-1.75b", 1), tiny = open_or_bail("kda-tiny", 1);
    struct model flat = open_or_bail("kda-flat", 1);
    struct model simple = open_or_bail("simple-llm", 1);
    is_str(print_params(&kda),
           "layers.0.input_layernorm.weight [4096]\n" KDA_BF16 KDA_FP32("fp32.") KDA_REST,
           "kda-1.75b holds what computes in FP32 in a module of its own");
    is_str(print_params(&flat),
           "layers.0.input_layernorm.weight [4096]\n" KDA_FP32("") KDA_BF16 KDA_REST,
           "kda-flat does not");
    is_str(tiny.params[0].name, "model.embed_tokens.weight", "kda-tiny has an embedding");
    is_str(tiny.params[1].name, "model.layers.0.input_layernorm.weight", "and a model around it");
    is_str(tiny.params[tiny.n_param - 1].name, "lm_head.weight", "and a head");
    is_str(print_params(&simple),
           "tok_embeddings.weight [1000, 256]\n"
           "layers.0.norm1.weight [256]\n"
           "layers.0.norm1.bias [256]\n"
           "layers.0.norm2.weight [256]\n"
           "layers.0.norm2.bias [256]\n"
           "layers.0.qkv_proj.weight [768, 256]\n"
           "layers.0.out_proj.weight [256, 256]\n"
           "layers.0.mlp_gate_up.weight [1364, 256]\n"
           "layers.0.mlp_down.weight [256, 682]\n"
           "norm.weight [256]\n"
           "norm.bias [256]\n"
           "output.weight [1000, 256]\n",
           "simple-llm has gate and up in one matrix");
}

#define GPT2 "'model_type': 'gpt2', 'n_embd': 768, 'n_layer': 12, 'n_head': 12, 'vocab_size': 50257"
#define MPT                                                                 \
    "'model_type': 'mpt', 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, " \
    "'max_seq_len': 2048, 'vocab_size': 50432"

static void test_good_configs(void)
{
    static const struct {
        const char *keys;
        uint64_t parameters, seq;
    } cases[] = {
        {GPT2, 124439808, 1024},
        {GPT2 ", 'n_positions': 1024, 'n_ctx': 1024, 'n_inner': null, 'resid_pdrop': 0.1, "
              "'activation_function': 'gelu_new', 'architectures': ['GPT2LMHeadModel']",
         124439808, 1024},
        {GPT2 ", 'n_positions': 2048", 124439808 + 1024 * 768, 2048},
        {GPT2 ", 'tie_word_embeddings': false", 124439808 + 50257 * 768, 1024},
        {GPT2 ", 'n_inner': 1024", 124439808 - 12 * 2048 * (2 * 768 + 1), 1024},
        /* the published checkpoint: alibi in place of positions, no biases */
        {MPT
         ", 'no_bias': true, 'learned_pos_emb': true, 'norm_type': 'low_precision_layernorm', "
         "'attn_config': {'alibi': true, 'attn_impl': 'torch', 'clip_qkv': null, 'qk_ln': false}, "
         "'expansion_ratio': 4, 'architectures': ['MPTForCausalLM']",
         6649286656, 2048},
        {MPT, 6658859008 + 64 * 4096, 2048},
        {MPT ", 'learned_pos_emb': false", 6658859008 + (64 - 2048) * 4096LL, 2048},
        /* 8 key heads: Wqkv has 2 * 24 heads of 128 rows fewer, and their biases */
        {MPT ", 'attn_config': {'kv_n_heads': 8}", 6658859008 + 64 * 4096 - 32 * 6144 * 4097LL,
         2048},
        {MPT ", 'ffn_config': {'ffn_type': 'mptmlp', 'ffn_hidden_size': 8192}",
         6658859008 + 64 * 4096 - 32 * 8192 * (2 * 4096 + 1LL), 2048},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct model model = {0};
        struct err err = {0};
        quoted_write(config_path, arena_printf(&arena, "{%s}", cases[i].keys));
        if (!is_int(model_open(config_path, 0, &arena, &model, &err), STATUS_OK,
                    "config %zu is read", i)) {
            tap_note("%s", err.text);
            continue;
        }
        is_int(model.n_element, cases[i].parameters, "config %zu: parameters", i);
        is_int(model.dims.default_seq, cases[i].seq, "config %zu: sequence", i);
    }
}

static void test_bad_configs(void)
{
    static const struct {
        const char *keys, *says;
    } cases[] = {
        {GPT2 ", 'activation_function': 'relu'", "activation_function: 'relu' is not supported"},
        {GPT2 ", 'add_cross_attention': true", "add_cross_attention: true is not supported yet"},
        {GPT2 ", 'n_positions': 0", "n_positions: a whole number of 1 or more"},
        {"'model_type': 'gpt2', 'n_embd': 10, 'n_layer': 1, 'n_head': 3, 'vocab_size': 9",
         "n_head: 3 does not divide n_embd, which is 10"},
        {"'model_type': 'gpt2', 'n_embd': 10", "missing key 'n_layer'"},
        {MPT ", 'norm_type': 'rmsnorm'", "norm_type: 'rmsnorm' is not supported"},
        {MPT ", 'attn_config': {'rope': true}", "attn_config.rope: true is not supported yet"},
        {MPT ", 'attn_config': {'qk_ln': true}", "attn_config.qk_ln: true is not supported yet"},
        {MPT ", 'attn_config': {'clip_qkv': 6}", "attn_config.clip_qkv: is not supported yet"},
        {MPT ", 'attn_config': {'kv_n_heads': 5}", "attn_config.kv_n_heads: 5 does not divide"},
        {MPT ", 'attn_config': 3", "attn_config: must be an object"},
        {MPT ", 'ffn_config': {'ffn_type': 'mptglu'}", "ffn_config.ffn_type: 'mptglu'"},
        {MPT ", 'expansion_ratio': 4503599627370496", "expansion_ratio: times d_model it passes"},
        {MPT ", 'no_bias': 1", "no_bias: a boolean is needed"},
        {MPT ", 'architectures': ['MPTModel']", "architectures[0]: 'MPTModel' is not supported"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct model model = {.name = "untouched"};
        struct err err = {0};
        quoted_write(config_path, arena_printf(&arena, "{%s}", cases[i].keys));
        is_int(model_open(config_path, 0, &arena, &model, &err), STATUS_INPUT, "bad config %zu", i);
        if (!ok(strstr(err.text, cases[i].says), "is answered with %s", cases[i].says))
            tap_note("%s", err.text);
        is_str(model.name, "untouched", "and gives no model");
    }
}

/* ---- plans -------------------------------------------------------------------------------- */

static enum status resolve(const char *name, const char *units, struct plan *plan, struct err *err)
{
    struct model *model = arena_array(&arena, struct model, 1);
    struct plan_options options = plan_options_default();
    *model = open_or_bail(name, 2);
    options.units = units;
    return plan_resolve(model, &options, &arena, plan, err);
}

static const char *print_plan(const struct plan *plan)
{
    const char *text = "";
    for (uint32_t i = 0; i < plan->n_unit; i++)
        text = arena_printf(&arena, "%s%s [%u-%u]\n", text, plan->units[i].name,
                            plan->units[i].first_segment, plan->units[i].last_segment);
    return text;
}

/* Embedding and head have one weight, and so one unit, be it that of a list or the root. */
static void test_tied_units(void)
{
    struct plan plan;
    struct err err = {0};
    is_int(resolve("gpt2", "torchtitan", &plan, &err), STATUS_OK, "gpt2 is cut as by torchtitan");
    is_str(print_plan(&plan),
           "transformer.wte and 3 more [0-4]\ntransformer.h.0 [1-1]\ntransformer.h.1 [2-2]\n",
           "with one unit of embedding, norm and head around the blocks");
    is_int(plan.segments[4].unit, 0, "whose the head is");
    is_int(resolve("mpt-125m", "block", &plan, &err), STATUS_OK, "mpt is cut into blocks");
    is_str(print_plan(&plan),
           "(root) [0-4]\ntransformer.blocks.0 [1-1]\ntransformer.blocks.1 [2-2]\n",
           "with the rest in the root");
    is_int(resolve("mpt-125m", "*.wte,*.wpe,*.blocks.*", &plan, &err), STATUS_USAGE,
           "a unit of the embedding alone is refused");
    ok(strstr(err.text, "'transformer.wte.weight' is the weight of 'lm_head' as well"),
       "since the head reads it");
    quoted_write(config_path, "[['*.wte', '*.wpe'], '*.blocks.*']");
    const char *file = arena_printf(&arena, "@%s", config_path);
    is_int(resolve("mpt-125m", file, &plan, &err), STATUS_INPUT, "and one with its positions");
    quoted_write(config_path, "[['*.wte', '*.wpe', 'lm_head'], '*.blocks.*']");
    is_int(resolve("mpt-125m", file, &plan, &err), STATUS_OK, "a list of both is a unit");
    is_int(resolve("mpt-125m", "lm_head", &plan, &err), STATUS_USAGE,
           "a unit of the head alone has no parameters");
}

static void test_mixed_dtypes(void)
{
    static const struct {
        const char *model, *units, *says;
    } cases[] = {
        {"kda-1.75b", "torchtitan",
         "unit 'layers.0' mixes compute dtypes: 'layers.0.input_layernorm.weight' is bf16, "
         "'layers.0.self_attn.fp32.A_log' is fp32; torch-2.11 needs one per unit, so cut it"},
        {"kda-flat", "whole",
         "unit '(root)' mixes compute dtypes: 'layers.0.input_layernorm.weight' is bf16, "
         "'layers.0.self_attn.A_log' is fp32"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan plan;
        struct err err = {0};
        is_int(resolve(cases[i].model, cases[i].units, &plan, &err), STATUS_NO,
               "%s in units of '%s' is answered with no", cases[i].model, cases[i].units);
        if (!ok(strstr(err.text, cases[i].says), "because of %s", cases[i].says))
            tap_note("%s", err.text);
    }
}

static void test_options_of_gpt(void)
{
    struct model model = open_or_bail("gpt2", 1);
    struct plan_options options = plan_options_default();
    struct plan plan;
    struct err err = {0};
    options.seq = 1025;
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_USAGE,
           "a sequence past the learned positions is refused");
    ok(strstr(err.text, "seq 1025 is longer than the 1024 positions"), "with both numbers");
    options.seq = 1024;
    options.norm = NORM_COMPOSITE;
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_USAGE,
           "LayerNorm has no composite form");
    ok(strstr(err.text, "use norm fused"), "and the message says what to do");
}

int main(void)
{
    int fd = mkstemp(config_path);
    if (fd < 0)
        tap_bail("cannot make a config file");
    close(fd);
    arena_init(&arena);
    test_names_and_shapes();
    test_shapes_of_cases();
    test_good_configs();
    test_bad_configs();
    test_tied_units();
    test_mixed_dtypes();
    test_options_of_gpt();
    arena_release(&arena);
    unlink(config_path);
    return tap_done();
}
