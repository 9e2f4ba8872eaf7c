/*
 * gpt2: sizes from a config.json, and modules, parameters and pieces under the names that Hugging
 * Face gives them. Its linear layers are Conv1D, whose weight is [in, out]: dim 0, which is cut, is
 * the input. Bodies are in gpt_bodies.c. Source: spec INPUTS section 2.
 *
 * Dropout is taken to be off, whatever the config says, and gelu_new is run as one operator.
 */
#include <inttypes.h>
#include <stddef.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* What GPT2Config takes where nothing is written down. */
enum { DEFAULT_POSITIONS = 1024, WIDENING = 4 };

static enum status read_config(const struct json_at *config, struct dims *out, struct err *err)
{
    static const struct config_size sizes[] = {
        CONFIG_SIZE("n_embd", hidden, CONFIG_MAX_INT),
        CONFIG_SIZE("n_layer", layers, MODEL_MAX_LAYERS),
        CONFIG_SIZE("n_head", heads, CONFIG_MAX_INT),
        CONFIG_SIZE("vocab_size", vocab, CONFIG_MAX_INT),
    };
    static const char *const activations[] = {"gelu_new", "gelu", "gelu_pytorch_tanh", NULL};
    static const char *const off[] = {"add_cross_attention", NULL};
    struct dims dims = {.bias = true};
    enum status status = config_read_sizes(config, sizes, LENGTH(sizes), &dims, err);
    if (!status)
        status = config_divide_heads(config, "n_head", "n_embd", &dims, err);
    if (!status)
        status = config_read_or(config, "n_inner", WIDENING * dims.hidden, &dims.intermediate, err);
    const char *key = json_has(config, "n_positions") ? "n_positions" : "n_ctx";
    if (!status)
        status = config_read_or(config, key, DEFAULT_POSITIONS, &dims.positions, err);
    if (!status)
        status = config_bool_or(config, "tie_word_embeddings", true, &dims.tied, err);
    if (!status)
        status = config_need_word(config, "activation_function", activations, err);
    if (!status)
        status = config_need_off(config, off, "gpt2", err);
    if (!status)
        status = config_need_class(config, "GPT2LMHeadModel", err);
    if (status)
        return status;
    dims.kv_heads = dims.heads;
    dims.default_seq = dims.positions < CONFIG_MAX_SEQ ? dims.positions : CONFIG_MAX_SEQ;
    *out = dims;
    return STATUS_OK;
}

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->vocab == 0 || dims->positions == 0)
        return dims_fail(err, dims->vocab ? "positions" : "vocab", "at least 1 is needed");
    if (dims->kv_heads != dims->heads)
        return dims_fail(err, "kv_heads", "gpt2 has as many as heads, which is %" PRIu64,
                         dims->heads);
    if (dims->heads * dims->head_dim != dims->hidden)
        return dims_fail(err, "head_dim", "times heads it is not hidden, which is %" PRIu64,
                         dims->hidden);
    if (!dims->bias || dims->flat)
        return dims_fail(err, dims->flat ? "flat" : "bias", "%s is not supported for gpt2",
                         dims->flat ? "true" : "false");
    return STATUS_OK;
}

static const struct block_param block[] = {
    {"ln_1", "weight", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"ln_1", "bias", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"attn.c_attn", "weight", {W_HIDDEN, W_QKV}, BODY_ATTENTION, 0},
    {"attn.c_attn", "bias", {W_QKV}, BODY_ATTENTION, 0},
    {"attn.c_proj", "weight", {W_QUERY, W_HIDDEN}, BODY_ATTENTION, 0},
    {"attn.c_proj", "bias", {W_HIDDEN}, BODY_ATTENTION, 0},
    {"ln_2", "weight", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
    {"ln_2", "bias", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
    {"mlp.c_fc", "weight", {W_HIDDEN, W_INTERMEDIATE}, BODY_MLP, 0},
    {"mlp.c_fc", "bias", {W_INTERMEDIATE}, BODY_MLP, 0},
    {"mlp.c_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"mlp.c_proj", "bias", {W_HIDDEN}, BODY_MLP, 0},
};
static const struct block_param embedding[] = {
    {"wte", "weight", {W_VOCAB, W_HIDDEN}, BODY_EMBEDDING, 0},
    {"wpe", "weight", {W_POSITIONS, W_HIDDEN}, BODY_EMBEDDING, 0},
};
static const struct block_param norm[] = {
    {"ln_f", "weight", {W_HIDDEN}, BODY_NORM, BLOCK_NORM},
    {"ln_f", "bias", {W_HIDDEN}, BODY_NORM, BLOCK_NORM},
};

static const struct decoder decoder = {
    .module = "transformer",
    .blocks = "h",
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

static const char *const model_types[] = {"gpt2", NULL};
/* Causal masks that old files hold. */
static const char *const extra[] = {"*.attn.bias", "*.attn.masked_bias", NULL};

const struct arch arch_gpt2 = {
    .name = "gpt2",
    .model_types = model_types,
    .read_config = read_config,
    .check = check,
    .build = build,
    .bodies = gpt_bodies,
    .native_bodies = gpt2_native_bodies,
    .norm_is_fused = true,
    .blocks_compile = true,
    .prefix = "transformer.",
    .weights_in_first = true,
    .lora_targets = "c_attn",
    .extra = extra,
};
