/*
 * Two families that are parameters and nothing else: what a unit gathers and reduces, to be measured
 * without the compute around it. Nothing is launched; all gradients are born when backward reaches
 * them. Shapes: spec GPU 1.2, which has them as ours, after layouts that were not published.
 *
 * pack has the matrices of one transformer block, and norms and vectors that compute in FP32.
 * copy-in has many equal matrices and a few vectors: their number is the point, and fixed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"
#include "src/arch/block.h"
#include "src/arch/body_tensors.h"
#include "src/body_builder.h"
#include "src/model_builder.h"

static enum status check(const struct dims *dims, struct err *err)
{
    if (dims->vocab > 0 || dims->positions > 0)
        return dims_fail(err, dims->vocab ? "vocab" : "positions",
                         "blocks of parameters alone have none, 0 is the only value");
    if (dims->tied || dims->bias || dims->flat)
        return dims_fail(err,
                         dims->tied   ? "tied"
                         : dims->bias ? "bias"
                                      : "flat",
                         "true is not supported for parameters alone");
    return STATUS_OK;
}

/* ---- pack --------------------------------------------------------------------------------- */

static const struct block_param block[] = {
    {"input_layernorm", "weight", {W_HIDDEN}, BODY_PARAMETERS, BLOCK_FP32},
    {"self_attn.q_proj", "weight", {W_QUERY, W_HIDDEN}, BODY_PARAMETERS, 0},
    {"self_attn.k_proj", "weight", {W_KEY_VALUE, W_HIDDEN}, BODY_PARAMETERS, 0},
    {"self_attn.v_proj", "weight", {W_KEY_VALUE, W_HIDDEN}, BODY_PARAMETERS, 0},
    {"self_attn.o_proj", "weight", {W_HIDDEN, W_QUERY}, BODY_PARAMETERS, 0},
    {"self_attn.fp32", "A_log", {W_ONE, W_ONE, W_HEADS, W_ONE}, BODY_PARAMETERS, BLOCK_FP32},
    {"self_attn.fp32", "dt_bias", {W_QUERY}, BODY_PARAMETERS, BLOCK_FP32},
    {"post_attention_layernorm", "weight", {W_HIDDEN}, BODY_PARAMETERS, BLOCK_FP32},
    {"mlp.up_proj", "weight", {W_INTERMEDIATE, W_HIDDEN}, BODY_PARAMETERS, 0},
    {"mlp.down_proj", "weight", {W_HIDDEN, W_INTERMEDIATE}, BODY_PARAMETERS, 0},
};
static const struct decoder decoder = {.blocks = "layers", .block = BLOCK_PARAMS(block)};

static enum status build_pack(const struct dims *dims, struct arena *arena, struct model *out,
                              struct err *err)
{
    return decoder_build(&decoder, dims, arena, out, err);
}

/* ---- copy-in ------------------------------------------------------------------------------ */

/* A list of equal parameters, in a module of its own. */
static enum status build_list(struct model_builder *b, const char *name, uint32_t n, bool fp32,
                              uint8_t n_dim, const uint64_t *shape, struct err *err)
{
    model_builder_enter(b, name);
    for (uint32_t i = 0; i < n; i++) {
        char index[16];
        uint32_t id;
        snprintf(index, sizeof index, "%" PRIu32, i);
        enum status status = model_builder_tensor(b, index, n_dim, shape, &id, err);
        if (status)
            return status;
        b->model->params[id].keep_fp32 = fp32;
        model_builder_piece_param(b, id);
    }
    model_builder_leave(b);
    return STATUS_OK;
}

static enum status build_copy_in_block(struct model_builder *b, const struct dims *dims,
                                       uint32_t layer, struct err *err)
{
    enum { MATRICES = 490, VECTORS = 10 };
    const uint64_t matrix[] = {dims->intermediate, dims->hidden};
    char name[16];
    snprintf(name, sizeof name, "%" PRIu32, layer);
    model_builder_enter(b, name);
    model_builder_piece(b, BODY_PARAMETERS, layer);
    enum status status = build_list(b, "matrices", MATRICES, false, 2, matrix, err);
    if (!status)
        status = build_list(b, "vectors", VECTORS, true, 1, &dims->hidden, err);
    if (!status)
        model_builder_leave(b);
    return status;
}

static enum status build_copy_in(const struct dims *dims, struct arena *arena, struct model *out,
                                 struct err *err)
{
    struct model_builder b;
    model_builder_init(&b, arena, out);
    model_builder_enter(&b, "layers");
    for (uint32_t layer = 0; layer < dims->layers; layer++) {
        enum status status = build_copy_in_block(&b, dims, layer, err);
        if (status)
            return status;
    }
    model_builder_leave(&b);
    model_builder_finish(&b);
    return STATUS_OK;
}

/* ---- bodies ------------------------------------------------------------------------------- */

/* In place of hidden states one number goes from block to block, and is the loss at the end. */
static const struct body_row pass_on[] = {
    {.kind = BODY_NO_OP, BORN(NUMBER_OUT), DIES(NUMBER)},
};
static const struct body_row pass_back[] = {
    {.kind = BODY_NO_OP, BORN(D_NUMBER), DIES(D_NUMBER_OUT)},
};
static const struct body_row end_number[] = {ENDS(NUMBER)};
static const struct body_row start_back[] = {
    {.kind = BODY_NO_OP, BORN(D_NUMBER)},
};

static const struct body_part block_part = {
    .forward = {BODY_ROWS(pass_on)},
    .backward = {BODY_ROWS(pass_back)},
    .boundary = {NUMBER, NUMBER_OUT, D_NUMBER_OUT, D_NUMBER},
    .all_grads = true,
};
static const struct body_part loss_part = {
    .forward = {BODY_ROWS(end_number)},
    .backward = {BODY_ROWS(start_back)},
    .boundary = {NUMBER, NO_TENSOR, NO_TENSOR, D_NUMBER},
};

static enum status bodies(const struct model *model, struct body_builder *builder, struct err *err)
{
    const struct body_recipe recipes[] = {
        {.kind = BODY_PARAMETERS, .parts = {&block_part}, .n_part = 1},
        {.kind = BODY_LOSS, .parts = {&loss_part}, .n_part = 1},
    };
    (void)model;
    builder->tensors = body_tensors;
    enum status status = body_builder_add(builder, &recipes[0], err);
    return status ? status : body_builder_add(builder, &recipes[1], err);
}

static const char *const model_types[] = {NULL};
static const char *const extra[] = {NULL};

const struct arch arch_pack = {
    .name = "pack",
    .model_types = model_types,
    .check = check,
    .build = build_pack,
    .bodies = bodies,
    .prefix = "",
    .extra = extra,
};

const struct arch arch_copy_in = {
    .name = "copy-in",
    .model_types = model_types,
    .check = check,
    .build = build_copy_in,
    .bodies = bodies,
    .prefix = "",
    .extra = extra,
};
