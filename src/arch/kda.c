/*
 * kda: blocks of Kimi delta attention and a gated MLP, without embedding and head. A stress case
 * for layouts: two dtypes of compute, tiny vectors, a first dimension of 1. Source: INPUTS 2.2.
 *
 * Parameters only: the operators of the delta rule are not described, so that no step is built.
 */
#include <inttypes.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->vocab > 0 || dims->positions > 0)
        return dims_fail(err, dims->vocab ? "vocab" : "positions",
                         "kda has no embedding, 0 is the only value");
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

static enum status build(const struct dims *dims, struct arena *arena, struct model *out,
                         struct err *err)
{
    struct block_builder b;
    block_builder_init(&b, dims, arena, out);
    model_builder_enter(&b.model, "layers");
    enum status status = block_build_all(&b, block, LENGTH(block), err);
    if (status)
        return status;
    model_builder_leave(&b.model);
    model_builder_finish(&b.model);
    return STATUS_OK;
}

static const char *const model_types[] = {NULL};
static const char *const extra[] = {NULL};

const struct arch arch_kda = {
    .name = "kda",
    .model_types = model_types,
    .check = check,
    .build = build,
    .no_step = "the operators of Kimi delta attention are not described yet, only parameters are "
               "known",
    .no_step_status = STATUS_NO,
    .prefix = "",
    .extra = extra,
};
