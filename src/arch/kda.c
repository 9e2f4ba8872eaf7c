/*
 * kda: blocks of Kimi delta attention and a gated MLP. A stress case for layouts: two dtypes of
 * compute, tiny vectors, a first dimension of 1. Source: INPUTS 2.2.
 *
 * Without a vocabulary it is blocks alone, under shorter names. The operators are in kda_bodies.c.
 */
#include <inttypes.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->positions > 0)
        return dims_fail(err, "positions", "kda learns none, 0 is the only value");
    if (dims->kv_heads != dims->heads)
        return dims_fail(err, "kv_heads", "kda has as many as heads, which is %" PRIu64,
                         dims->heads);
    if (dims->tied || dims->bias)
        return dims_fail(err, dims->tied ? "tied" : "bias", "true is not supported for kda");
    return STATUS_OK;
}

#define PROJECTION(name, out, in)                                 \
    {                                                             \
        "self_attn." name, "weight", {out, in}, BODY_ATTENTION, 0 \
    }
#define CONV(name)                                                                     \
    {                                                                                  \
        "self_attn." name, "weight", {W_QUERY, W_ONE, W_SHORT_CONV}, BODY_ATTENTION, 0 \
    }
/* A parameter that a module owns comes before those of the modules in it. */
static const struct block_param block[] = {
    {"input_layernorm", "weight", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"self_attn",
     "A_log",
     {W_ONE, W_ONE, W_HEADS, W_ONE},
     BODY_ATTENTION,
     BLOCK_FP32 | BLOCK_IF_FLAT},
    {"self_attn", "dt_bias", {W_QUERY}, BODY_ATTENTION, BLOCK_FP32 | BLOCK_IF_FLAT},
    PROJECTION("q_proj", W_QUERY, W_HIDDEN),
    PROJECTION("k_proj", W_QUERY, W_HIDDEN),
    PROJECTION("v_proj", W_QUERY, W_HIDDEN),
    CONV("q_conv1d"),
    CONV("k_conv1d"),
    CONV("v_conv1d"),
    PROJECTION("f_a_proj", W_HEAD_DIM, W_HIDDEN),
    PROJECTION("f_b_proj", W_QUERY, W_HEAD_DIM),
    PROJECTION("b_proj", W_HEADS, W_HIDDEN),
    PROJECTION("g_a_proj", W_HEAD_DIM, W_HIDDEN),
    PROJECTION("g_b_proj", W_QUERY, W_HEAD_DIM),
    {"self_attn.o_norm", "weight", {W_HEAD_DIM}, BODY_ATTENTION, 0},
    PROJECTION("o_proj", W_HIDDEN, W_QUERY),
    {"self_attn.fp32",
     "A_log",
     {W_ONE, W_ONE, W_HEADS, W_ONE},
     BODY_ATTENTION,
     BLOCK_FP32 | BLOCK_UNLESS_FLAT},
    {"self_attn.fp32", "dt_bias", {W_QUERY}, BODY_ATTENTION, BLOCK_FP32 | BLOCK_UNLESS_FLAT},
    {"post_attention_layernorm", "weight", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
    {"mlp.gate_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"mlp.up_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"mlp.down_proj", "weight", {W_HIDDEN, W_INTERMEDIATE}, BODY_MLP, 0},
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

static const char *const model_types[] = {NULL};
static const char *const extra[] = {NULL};

const struct arch arch_kda = {
    .name = "kda",
    .model_types = model_types,
    .check = check,
    .build = build,
    .bodies = kda_bodies,
    .native_bodies = kda_native_bodies,
    .prefix = "",
    .extra = extra,
};
