/*
 * llama: sizes from a config.json, and the modules, parameters and pieces made from them, under the
 * names that Hugging Face gives them. Bodies are in llama_bodies.c. Source: spec INPUTS section 2.
 *
 * A key that would change shapes or operators and is not modelled is refused by name.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/arch/arch.h"
#include "src/model_builder.h"

#define JSON_MAX_INT (UINT64_C(1) << 53)
/* What LlamaConfig takes where max_position_embeddings is not written down. */
#define DEFAULT_POSITIONS 2048
/* Configs allow up to millions of positions, more than anybody means to train on unasked. */
#define MAX_DEFAULT_SEQ 8192

/* Complains about the value of a key that exists. */
static enum status fail_at(const struct json_at *config, const char *key, struct err *err,
                           const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static enum status fail_at(const struct json_at *config, const char *key, struct err *err,
                           const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    struct json_at value;
    enum status status = json_get(config, key, &value, err);
    return status ? status : json_fail(&value, err, "%s", text);
}

static enum status read_size_or(const struct json_at *config, const char *key, uint64_t missing,
                                uint64_t *out, struct err *err)
{
    if (json_has(config, key))
        return json_get_count(config, key, JSON_MAX_INT, out, err);
    *out = missing;
    return STATUS_OK;
}

static enum status read_heads(const struct json_at *config, struct dims *dims, struct err *err)
{
    enum status status =
        read_size_or(config, "num_key_value_heads", dims->heads, &dims->kv_heads, err);
    if (status)
        return status;
    if (dims->heads % dims->kv_heads != 0)
        return fail_at(config, "num_key_value_heads", err,
                       "%" PRIu64 " does not divide num_attention_heads, which is %" PRIu64,
                       dims->kv_heads, dims->heads);

    if (!json_has(config, "head_dim") && dims->hidden % dims->heads != 0)
        return fail_at(config, "num_attention_heads", err,
                       "%" PRIu64 " does not divide hidden_size, which is %" PRIu64
                       ", and there is no head_dim",
                       dims->heads, dims->hidden);
    status = read_size_or(config, "head_dim", dims->hidden / dims->heads, &dims->head_dim, err);
    if (status)
        return status;
    if (dims->head_dim % 2 != 0)
        return fail_at(config, json_has(config, "head_dim") ? "head_dim" : "num_attention_heads",
                       err, "a head of odd size %" PRIu64 " cannot be rotated in halves",
                       dims->head_dim);
    uint64_t width;
    if (__builtin_mul_overflow(dims->heads, dims->head_dim, &width))
        return fail_at(config, "head_dim", err, "times num_attention_heads it passes 64 bits");
    return STATUS_OK;
}

static enum status refuse_flags(const struct json_at *config, struct err *err)
{
    static const char *const keys[] = {"tie_word_embeddings", "attention_bias", "mlp_bias"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        bool set = false;
        enum status status =
            json_has(config, keys[i]) ? json_get_bool(config, keys[i], &set, err) : STATUS_OK;
        if (status)
            return status;
        if (set)
            return fail_at(config, keys[i], err, "true is not supported yet for llama");
    }
    return STATUS_OK;
}

/* Other heads and activations than those of a causal language model have other parameters. */
static enum status refuse_variants(const struct json_at *config, struct err *err)
{
    if (json_has(config, "quantization_config"))
        return fail_at(config, "quantization_config", err,
                       "quantized parameters are not supported, use the original model's config");

    const char *activation = "silu";
    enum status status = STATUS_OK;
    if (json_has(config, "hidden_act"))
        status = json_get_string(config, "hidden_act", &activation, err);
    if (status)
        return status;
    if (strcmp(activation, "silu") != 0)
        return fail_at(config, "hidden_act", err, "'%s' is not supported for llama, only 'silu' is",
                       activation);

    struct json_at list;
    if (!json_has(config, "architectures"))
        return STATUS_OK;
    status = json_get(config, "architectures", &list, err);
    if (status)
        return status;
    struct json_at first = json_first(&list);
    const char *class_name;
    if (!json_is_array(&list) || !first.node)
        return json_fail(&list, err, "must be a list with the model's class");
    status = json_string(&first, &class_name, err);
    if (status)
        return status;
    /* early files write LLaMAForCausalLM */
    if (strcasecmp(class_name, "LlamaForCausalLM") != 0)
        return json_fail(&first, err, "'%s' is not supported, only 'LlamaForCausalLM' is",
                         class_name);
    return STATUS_OK;
}

static enum status read_config(const struct json_at *config, struct dims *out, struct err *err)
{
    static const struct {
        const char *key;
        size_t at;
        uint64_t max;
    } sizes[] = {
        {"hidden_size", offsetof(struct dims, hidden), JSON_MAX_INT},
        {"intermediate_size", offsetof(struct dims, intermediate), JSON_MAX_INT},
        {"num_hidden_layers", offsetof(struct dims, layers), MODEL_MAX_LAYERS},
        {"num_attention_heads", offsetof(struct dims, heads), JSON_MAX_INT},
        {"vocab_size", offsetof(struct dims, vocab), JSON_MAX_INT},
    };
    struct dims dims = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && !status; i++)
        status = json_get_count(config, sizes[i].key, sizes[i].max,
                                (uint64_t *)((char *)&dims + sizes[i].at), err);
    if (!status)
        status = read_heads(config, &dims, err);
    if (!status)
        status = refuse_flags(config, err);
    if (!status)
        status = refuse_variants(config, err);
    if (!status)
        status = read_size_or(config, "max_position_embeddings", DEFAULT_POSITIONS,
                              &dims.default_seq, err);
    if (status)
        return status;
    if (dims.default_seq > MAX_DEFAULT_SEQ)
        dims.default_seq = MAX_DEFAULT_SEQ;
    *out = dims;
    return STATUS_OK;
}

/* What a parameter's rows and columns are, in names; widths[] gives the numbers. */
enum width { NOTHING, HIDDEN, INTERMEDIATE, QUERY, KEY_VALUE, VOCAB, WIDTH_N };

struct part {
    const char *name;
    uint8_t depth;         /* below the module that holds the parts */
    uint8_t rows, columns; /* enum width of its parameter "weight"; NOTHING: it has none */
    uint8_t piece;         /* enum body_kind */
};

/* One decoder layer in registration order; a linear layer's weight is [out, in]. */
static const struct part block_parts[] = {
    {"self_attn", 0, NOTHING, NOTHING, 0},
    {"q_proj", 1, QUERY, HIDDEN, BODY_ATTENTION},
    {"k_proj", 1, KEY_VALUE, HIDDEN, BODY_ATTENTION},
    {"v_proj", 1, KEY_VALUE, HIDDEN, BODY_ATTENTION},
    {"o_proj", 1, HIDDEN, QUERY, BODY_ATTENTION},
    {"mlp", 0, NOTHING, NOTHING, 0},
    {"gate_proj", 1, INTERMEDIATE, HIDDEN, BODY_MLP},
    {"up_proj", 1, INTERMEDIATE, HIDDEN, BODY_MLP},
    {"down_proj", 1, HIDDEN, INTERMEDIATE, BODY_MLP},
    {"input_layernorm", 0, HIDDEN, NOTHING, BODY_ATTENTION},
    {"post_attention_layernorm", 0, HIDDEN, NOTHING, BODY_MLP},
};
enum { BLOCK_PARTS = sizeof(block_parts) / sizeof(*block_parts) };

struct llama_builder {
    struct model_builder model;
    uint64_t width[WIDTH_N];
};

static enum status build_weight(struct llama_builder *b, enum width rows, enum width columns,
                                uint32_t *id, struct err *err)
{
    return model_builder_param(&b->model, "weight", b->width[rows], b->width[columns], id, err);
}

static enum status build_block(struct llama_builder *b, uint32_t layer, struct err *err)
{
    uint32_t ids[BLOCK_PARTS];
    char name[16];
    snprintf(name, sizeof(name), "%" PRIu32, layer);
    model_builder_enter(&b->model, name);
    unsigned depth = 0;
    for (size_t i = 0; i < BLOCK_PARTS; i++) {
        const struct part *part = &block_parts[i];
        for (; depth > part->depth; depth--)
            model_builder_leave(&b->model);
        model_builder_enter(&b->model, part->name);
        depth++;
        if (part->rows == NOTHING)
            continue;
        enum status status = build_weight(b, part->rows, part->columns, &ids[i], err);
        if (status)
            return status;
    }
    for (; depth > 0; depth--)
        model_builder_leave(&b->model);
    model_builder_leave(&b->model);

    static const enum body_kind pieces[] = {BODY_ATTENTION, BODY_MLP};
    for (size_t p = 0; p < sizeof(pieces) / sizeof(*pieces); p++) {
        model_builder_piece(&b->model, pieces[p], layer);
        for (size_t i = 0; i < BLOCK_PARTS; i++)
            if (block_parts[i].rows != NOTHING && block_parts[i].piece == pieces[p])
                model_builder_piece_param(&b->model, ids[i]);
    }
    return STATUS_OK;
}

/* A module with one weight that is a piece of its own. */
static enum status build_leaf(struct llama_builder *b, const char *name, enum body_kind piece,
                              enum width rows, enum width columns, struct err *err)
{
    uint32_t id;
    model_builder_enter(&b->model, name);
    enum status status = build_weight(b, rows, columns, &id, err);
    if (status)
        return status;
    model_builder_leave(&b->model);
    model_builder_piece(&b->model, piece, 0);
    model_builder_piece_param(&b->model, id);
    return STATUS_OK;
}

static enum status build(const struct dims *dims, struct arena *arena, struct model *out,
                         struct err *err)
{
    struct llama_builder b = {.width = {[HIDDEN] = dims->hidden,
                                        [INTERMEDIATE] = dims->intermediate,
                                        [QUERY] = dims->heads * dims->head_dim,
                                        [KEY_VALUE] = dims->kv_heads * dims->head_dim,
                                        [VOCAB] = dims->vocab}};
    model_builder_init(&b.model, arena, out);
    model_builder_enter(&b.model, "model");
    enum status status = build_leaf(&b, "embed_tokens", BODY_EMBEDDING, VOCAB, HIDDEN, err);
    model_builder_enter(&b.model, "layers");
    for (uint32_t layer = 0; layer < dims->layers && !status; layer++)
        status = build_block(&b, layer, err);
    if (status)
        return status;
    model_builder_leave(&b.model);
    status = build_leaf(&b, "norm", BODY_NORM, HIDDEN, NOTHING, err);
    if (status)
        return status;
    model_builder_leave(&b.model);
    status = build_leaf(&b, "lm_head", BODY_HEAD, VOCAB, HIDDEN, err);
    if (status)
        return status;
    model_builder_finish(&b.model);
    return STATUS_OK;
}

static const char *const model_types[] = {"llama", NULL};

const struct arch arch_llama = {
    .name = "llama",
    .model_types = model_types,
    .read_config = read_config,
    .build = build,
    .bodies = llama_bodies,
};
