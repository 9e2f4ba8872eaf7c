/*
 * simple-llm: the shape of a common FSDP2 tutorial. Its attention computes qkv_proj and does not
 * use the result, so that one parameter of each block never has a gradient. Source: INPUTS 2.3.
 */
#include <inttypes.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->vocab == 0)
        return dims_fail(err, "vocab", "at least 1 is needed");
    if (dims->positions > 0)
        return dims_fail(err, "positions", "simple-llm learns none, 0 is the only value");
    if (dims->heads * dims->head_dim != dims->hidden)
        return dims_fail(err, "head_dim", "times heads it is not hidden, which is %" PRIu64,
                         dims->hidden);
    if (dims->kv_heads != dims->heads)
        return dims_fail(err, "kv_heads", "simple-llm has as many as heads, which is %" PRIu64,
                         dims->heads);
    if (dims->tied || dims->bias || dims->flat)
        return dims_fail(err,
                         dims->tied   ? "tied"
                         : dims->bias ? "bias"
                                      : "flat",
                         "true is not supported for simple-llm");
    return STATUS_OK;
}

/* Norms have biases, linear layers have none. */
static const struct block_param block[] = {
    {"norm1", "weight", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"norm1", "bias", {W_HIDDEN}, BODY_ATTENTION, BLOCK_NORM},
    {"norm2", "weight", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
    {"norm2", "bias", {W_HIDDEN}, BODY_MLP, BLOCK_NORM},
    {"qkv_proj", "weight", {W_QKV, W_HIDDEN}, BODY_ATTENTION, BLOCK_UNUSED},
    {"out_proj", "weight", {W_HIDDEN, W_QUERY}, BODY_ATTENTION, 0},
    {"mlp_gate_up", "weight", {W_TWO_INTERMEDIATE, W_HIDDEN}, BODY_MLP, 0},
    {"mlp_down", "weight", {W_HIDDEN, W_INTERMEDIATE}, BODY_MLP, 0},
};
static const struct block_param embedding[] = {
    {"tok_embeddings", "weight", {W_VOCAB, W_HIDDEN}, BODY_EMBEDDING, 0},
};
static const struct block_param norm[] = {
    {"norm", "weight", {W_HIDDEN}, BODY_NORM, BLOCK_NORM},
    {"norm", "bias", {W_HIDDEN}, BODY_NORM, BLOCK_NORM},
};

static const struct decoder decoder = {
    .module = NULL,
    .blocks = "layers",
    .head = "output",
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

const struct arch arch_simple_llm = {
    .name = "simple-llm",
    .model_types = model_types,
    .check = check,
    .build = build,
    .bodies = simple_bodies,
    .norm_is_fused = true,
    .prefix = "",
    .extra = extra,
};
