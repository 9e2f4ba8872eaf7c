/*
 * mpt: sizes from a config.json of llm-foundry's, and modules, parameters and pieces under its
 * names. Linear layers are [out, in]; all biases come and go together. Bodies are in gpt_bodies.c.
 * Source: spec INPUTS section 2.
 *
 * Attention is taken to be a flash kernel, with or without alibi, whatever attn_impl says; dropout
 * is taken to be off. A key that would change shapes or operators otherwise is refused by name.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum { DEFAULT_WIDENING = 4 };

static enum status read_attention(const struct json_at *config, struct dims *dims, struct err *err)
{
    static const char *const off[] = {"qk_ln", "qk_gn", "rope", NULL};
    struct json_at attention;
    dims->kv_heads = dims->heads;
    if (!json_has(config, "attn_config"))
        return STATUS_OK;
    enum status status = json_get(config, "attn_config", &attention, err);
    if (status)
        return status;
    if (!json_is_object(&attention))
        return json_fail(&attention, err, "must be an object");
    const char *type = "multihead_attention";
    if (json_has(&attention, "attn_type"))
        status = json_get_string(&attention, "attn_type", &type, err);
    bool one = strcmp(type, "multiquery_attention") == 0;
    if (!status)
        status =
            config_read_or(&attention, "kv_n_heads", one ? 1 : dims->heads, &dims->kv_heads, err);
    bool alibi = false;
    if (!status)
        status = config_bool_or(&attention, "alibi", false, &alibi, err);
    if (alibi)
        dims->positions = 0; /* whatever learned_pos_emb says, as published files show */
    if (!status)
        status = config_need_off(&attention, off, "mpt", err);
    if (!status && json_has(&attention, "clip_qkv"))
        status = config_fail(&attention, "clip_qkv", err, "is not supported yet, only null is");
    if (!status && dims->heads % dims->kv_heads != 0)
        status = config_fail(&attention, "kv_n_heads", err,
                             "%" PRIu64 " does not divide n_heads, which is %" PRIu64,
                             dims->kv_heads, dims->heads);
    return status;
}

static enum status read_ffn(const struct json_at *config, struct dims *dims, struct err *err)
{
    static const char *const types[] = {"mptmlp", NULL};
    struct json_at ffn;
    uint64_t widening;
    enum status status =
        config_read_or(config, "expansion_ratio", DEFAULT_WIDENING, &widening, err);
    if (status)
        return status;
    if (__builtin_mul_overflow(widening, dims->hidden, &dims->intermediate) ||
        dims->intermediate > CONFIG_MAX_INT)
        return config_fail(config, "expansion_ratio", err, "times d_model it passes 2^53");
    if (!json_has(config, "ffn_config"))
        return STATUS_OK;
    status = json_get(config, "ffn_config", &ffn, err);
    if (!status)
        status = config_need_word(&ffn, "ffn_type", types, err);
    if (!status && json_has(&ffn, "ffn_hidden_size"))
        status = json_get_count(&ffn, "ffn_hidden_size", CONFIG_MAX_INT, &dims->intermediate, err);
    return status;
}

static enum status read_switches(const struct json_at *config, struct dims *dims, struct err *err)
{
    bool without, learned;
    enum status status = config_bool_or(config, "no_bias", false, &without, err);
    if (!status)
        status = config_bool_or(config, "learned_pos_emb", true, &learned, err);
    if (!status)
        status = config_bool_or(config, "tie_word_embeddings", true, &dims->tied, err);
    if (status)
        return status;
    dims->bias = !without;
    if (!learned)
        dims->positions = 0;
    return STATUS_OK;
}

static enum status read_config(const struct json_at *config, struct dims *out, struct err *err)
{
    static const struct config_size sizes[] = {
        CONFIG_SIZE("d_model", hidden, CONFIG_MAX_INT),
        CONFIG_SIZE("n_layers", layers, MODEL_MAX_LAYERS),
        CONFIG_SIZE("n_heads", heads, CONFIG_MAX_INT),
        CONFIG_SIZE("vocab_size", vocab, CONFIG_MAX_INT),
        CONFIG_SIZE("max_seq_len", positions, CONFIG_MAX_INT),
    };
    static const char *const norms[] = {"low_precision_layernorm", "layernorm", NULL};
    struct dims dims = {0};
    enum status status = config_read_sizes(config, sizes, LENGTH(sizes), &dims, err);
    if (!status)
        status = config_divide_heads(config, "n_heads", "d_model", &dims, err);
    if (status)
        return status;
    dims.default_seq = dims.positions < CONFIG_MAX_SEQ ? dims.positions : CONFIG_MAX_SEQ;
    status = read_attention(config, &dims, err);
    if (!status)
        status = read_ffn(config, &dims, err);
    if (!status)
        status = read_switches(config, &dims, err);
    if (!status)
        status = config_need_word(config, "norm_type", norms, err);
    if (!status)
        status = config_need_class(config, "MPTForCausalLM", err);
    if (!status)
        *out = dims;
    return status;
}

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->vocab == 0)
        return dims_fail(err, "vocab", "at least 1 is needed");
    if (dims->heads * dims->head_dim != dims->hidden)
        return dims_fail(err, "head_dim", "times heads it is not hidden, which is %" PRIu64,
                         dims->hidden);
    if (dims->flat)
        return dims_fail(err, "flat", "true is not supported for mpt");
    return STATUS_OK;
}

static const struct block_param block[] = {
    {"norm_1", "weight", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"norm_1", "bias", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM | BLOCK_BIAS},
    {"attn.Wqkv", "weight", {W_QKV, W_HIDDEN}, BODY_ATTENTION, 0},
    {"attn.Wqkv", "bias", {W_QKV}, BODY_ATTENTION, BLOCK_BIAS},
    {"attn.out_proj", "weight", {W_HIDDEN, W_QUERY}, BODY_ATTENTION, 0},
    {"attn.out_proj", "bias", {W_HIDDEN}, BODY_ATTENTION, BLOCK_BIAS},
    {"norm_2", "weight", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
    {"norm_2", "bias", {W_HIDDEN}, BODY_MLP, BLOCK_NORM | BLOCK_BIAS},
    {"ffn.up_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"ffn.up_proj", "bias", {W_INTERMEDIATE}, BODY_MLP, BLOCK_BIAS},
    {"ffn.down_proj", "weight", {W_HIDDEN, W_INTERMEDIATE}, BODY_MLP, 0},
    {"ffn.down_proj", "bias", {W_HIDDEN}, BODY_MLP, BLOCK_BIAS},
};
static const struct block_param embedding[] = {
    {"wte", "weight", {W_VOCAB, W_HIDDEN}, BODY_EMBEDDING, 0},
    {"wpe", "weight", {W_POSITIONS, W_HIDDEN}, BODY_EMBEDDING, BLOCK_IF_POSITIONS},
};
static const struct block_param norm[] = {
    {"norm_f", "weight", {W_HIDDEN}, BODY_NORM, BLOCK_NORM},
    {"norm_f", "bias", {W_HIDDEN}, BODY_NORM, BLOCK_NORM | BLOCK_BIAS},
};

static const struct decoder decoder = {
    .module = "transformer",
    .blocks = "blocks",
    .head = "lm_head",
    .embedding = BLOCK_PARAMS(embedding),
    .block = BLOCK_PARAMS(block),
    .norm = BLOCK_PARAMS(norm),
};

static enum status build(const struct dims *dims, struct arena *arena, struct model *out,
                         struct err *err)
{
    return decoder_build(&decoder, dims, arena, out, err);
}

static const char *const model_types[] = {"mpt", NULL};
static const char *const extra[] = {NULL};

const struct arch arch_mpt = {
    .name = "mpt",
    .model_types = model_types,
    .read_config = read_config,
    .check = check,
    .build = build,
    .bodies = gpt_bodies,
    .norm_is_fused = true,
    .blocks_compile = true,
    .prefix = "transformer.",
    .lora_targets = "Wqkv",
    .extra = extra,
};
