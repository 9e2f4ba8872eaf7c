/*
 * llama: sizes from a config.json, and the modules, parameters and pieces made from them, under the
 * names that Hugging Face gives them. Bodies are in llama_bodies.c. Source: spec INPUTS section 2.
 *
 * A key that would change shapes or operators and is not modelled is refused by name.
 */
#include <inttypes.h>
#include <stddef.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* What LlamaConfig takes where max_position_embeddings is not written down. */
#define DEFAULT_POSITIONS 2048

static enum status read_heads(const struct json_at *config, struct dims *dims, struct err *err)
{
    enum status status =
        config_read_or(config, "num_key_value_heads", dims->heads, &dims->kv_heads, err);
    if (status)
        return status;
    if (dims->heads % dims->kv_heads != 0)
        return config_fail(config, "num_key_value_heads", err,
                           "%" PRIu64 " does not divide num_attention_heads, which is %" PRIu64,
                           dims->kv_heads, dims->heads);

    if (!json_has(config, "head_dim") && dims->hidden % dims->heads != 0)
        return config_fail(config, "num_attention_heads", err,
                           "%" PRIu64 " does not divide hidden_size, which is %" PRIu64
                           ", and there is no head_dim",
                           dims->heads, dims->hidden);
    status = config_read_or(config, "head_dim", dims->hidden / dims->heads, &dims->head_dim, err);
    if (status)
        return status;
    if (dims->head_dim % 2 != 0)
        return config_fail(
            config, json_has(config, "head_dim") ? "head_dim" : "num_attention_heads", err,
            "a head of odd size %" PRIu64 " cannot be rotated in halves", dims->head_dim);
    uint64_t width;
    if (__builtin_mul_overflow(dims->heads, dims->head_dim, &width))
        return config_fail(config, "head_dim", err, "times num_attention_heads it passes 64 bits");
    return STATUS_OK;
}

static enum status read_config(const struct json_at *config, struct dims *out, struct err *err)
{
    static const struct config_size sizes[] = {
        CONFIG_SIZE("hidden_size", hidden, CONFIG_MAX_INT),
        CONFIG_SIZE("intermediate_size", intermediate, CONFIG_MAX_INT),
        CONFIG_SIZE("num_hidden_layers", layers, MODEL_MAX_LAYERS),
        CONFIG_SIZE("num_attention_heads", heads, CONFIG_MAX_INT),
        CONFIG_SIZE("vocab_size", vocab, CONFIG_MAX_INT),
    };
    static const char *const biases[] = {"attention_bias", "mlp_bias", NULL};
    static const char *const activations[] = {"silu", NULL};
    struct dims dims = {0};
    enum status status = config_read_sizes(config, sizes, LENGTH(sizes), &dims, err);
    if (!status)
        status = read_heads(config, &dims, err);
    if (!status)
        status = config_need_off(config, biases, "llama", err);
    if (!status)
        status = config_bool_or(config, "tie_word_embeddings", false, &dims.tied, err);
    if (!status)
        status = config_need_word(config, "hidden_act", activations, err);
    if (!status)
        status = config_need_class(config, "LlamaForCausalLM", err);
    if (!status)
        status = config_read_or(config, "max_position_embeddings", DEFAULT_POSITIONS,
                                &dims.default_seq, err);
    if (status)
        return status;
    if (dims.default_seq > CONFIG_MAX_SEQ)
        dims.default_seq = CONFIG_MAX_SEQ;
    *out = dims;
    return STATUS_OK;
}

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->vocab == 0)
        return dims_fail(err, "vocab", "at least 1 is needed");
    if (dims->positions > 0)
        return dims_fail(err, "positions", "llama learns none, 0 is the only value");
    if (dims->bias || dims->flat)
        return dims_fail(err, dims->bias ? "bias" : "flat", "true is not supported yet for llama");
    if (dims->head_dim % 2 != 0)
        return dims_fail(err, "head_dim",
                         "a head of odd size %" PRIu64 " cannot be rotated in halves",
                         dims->head_dim);
    return STATUS_OK;
}

/* One decoder layer; a linear layer's weight is [out, in]. */
static const struct block_param block[] = {
    {"self_attn.q_proj", "weight", {W_QUERY, W_HIDDEN}, BODY_ATTENTION, 0},
    {"self_attn.k_proj", "weight", {W_KEY_VALUE, W_HIDDEN}, BODY_ATTENTION, 0},
    {"self_attn.v_proj", "weight", {W_KEY_VALUE, W_HIDDEN}, BODY_ATTENTION, 0},
    {"self_attn.o_proj", "weight", {W_HIDDEN, W_QUERY}, BODY_ATTENTION, 0},
    {"mlp.gate_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"mlp.up_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"mlp.down_proj", "weight", {W_HIDDEN, W_INTERMEDIATE}, BODY_MLP, 0},
    {"input_layernorm", "weight", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"post_attention_layernorm", "weight", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
};
static const struct block_param embedding[] = {
    {"embed_tokens", "weight", {W_VOCAB, W_HIDDEN}, BODY_EMBEDDING, 0},
};
static const struct block_param norm[] = {
    {"norm", "weight", {W_HIDDEN}, BODY_NORM, BLOCK_NORM},
};

static const struct decoder decoder = {
    .module = "model",
    .blocks = "layers",
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

static const char *const model_types[] = {"llama", NULL};
static const char *const extra[] = {"*.rotary_emb.inv_freq", NULL};

const struct arch arch_llama = {
    .name = "llama",
    .model_types = model_types,
    .read_config = read_config,
    .check = check,
    .build = build,
    .bodies = llama_bodies,
    .native_bodies = llama_native_bodies,
    .blocks_compile = true,
    .prefix = "model.",
    .lora_targets = "q_proj:v_proj",
    .extra = extra,
};
