/*
 * Building from tables; see block.h. Invariant: a path's modules are entered once, since a table
 * keeps the parameters of one module together.
 */
#include "src/arch/block.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/model_builder.h"

struct block_builder {
    struct model_builder model;
    const struct dims *dims;
    uint64_t width[WIDTH_N];
};

static void block_builder_init(struct block_builder *b, const struct dims *dims,
                               struct arena *arena, struct model *out)
{
    const uint64_t query = dims->heads * dims->head_dim;
    const uint64_t key_value = dims->kv_heads * dims->head_dim;
    *b = (struct block_builder){.dims = dims,
                                .width = {[W_ONE] = 1,
                                          [W_HIDDEN] = dims->hidden,
                                          [W_INTERMEDIATE] = dims->intermediate,
                                          [W_TWO_INTERMEDIATE] = 2 * dims->intermediate,
                                          [W_QUERY] = query,
                                          [W_KEY_VALUE] = key_value,
                                          [W_QKV] = query + 2 * key_value,
                                          [W_HEADS] = dims->heads,
                                          [W_HEAD_DIM] = dims->head_dim,
                                          [W_SHORT_CONV] = SHORT_CONV_TAPS,
                                          [W_VOCAB] = dims->vocab,
                                          [W_POSITIONS] = dims->positions}};
    model_builder_init(&b->model, arena, out);
}

static bool exists(const struct block_builder *b, const struct block_param *param)
{
    return !((param->flags & BLOCK_BIAS) && !b->dims->bias) &&
           !((param->flags & BLOCK_IF_POSITIONS) && b->dims->positions == 0) &&
           !((param->flags & BLOCK_IF_FLAT) && !b->dims->flat) &&
           !((param->flags & BLOCK_UNLESS_FLAT) && b->dims->flat);
}

/* How many of the first modules of two paths are the same, and how many characters they take. */
static unsigned common_depth(const char *a, const char *b, size_t *length)
{
    unsigned depth = 0;
    *length = 0;
    for (size_t i = 0;; i++) {
        bool a_ends = a[i] == '\0' || a[i] == '.', b_ends = b[i] == '\0' || b[i] == '.';
        if (a_ends && b_ends && i > 0) {
            depth++;
            *length = i;
        }
        if (a[i] != b[i] || a[i] == '\0')
            return depth;
    }
}

static unsigned depth_of(const char *path)
{
    unsigned depth = *path != '\0';
    for (; *path; path++)
        depth += *path == '.';
    return depth;
}

static void move_to(struct block_builder *b, const char *from, const char *to)
{
    size_t shared;
    unsigned common = common_depth(from, to, &shared);
    for (unsigned depth = depth_of(from); depth > common; depth--)
        model_builder_leave(&b->model);
    for (to += shared; *to;) {
        char name[32];
        to += *to == '.';
        size_t length = strcspn(to, ".");
        assert(length < sizeof(name));
        memcpy(name, to, length);
        name[length] = '\0';
        model_builder_enter(&b->model, name);
        to += length;
    }
}

static enum status build_param(struct block_builder *b, const struct block_param *param,
                               uint32_t *id, struct err *err)
{
    uint64_t shape[BLOCK_MAX_SHAPE];
    uint8_t n_dim = 0;
    for (; n_dim < BLOCK_MAX_SHAPE && param->shape[n_dim] != W_END; n_dim++)
        shape[n_dim] = b->width[param->shape[n_dim]];
    enum status status = model_builder_tensor(&b->model, param->name, n_dim, shape, id, err);
    if (status)
        return status;
    b->model.model->params[*id].keep_fp32 = (param->flags & BLOCK_FP32) != 0;
    b->model.model->params[*id].unused = (param->flags & BLOCK_UNUSED) != 0;
    return STATUS_OK;
}

static enum status build_params(struct block_builder *b, const struct block_param *params, size_t n,
                                uint32_t *ids, struct err *err)
{
    const char *open = "";
    assert(n <= BLOCK_MAX_PARAMS);
    for (size_t i = 0; i < n; i++) {
        if (!exists(b, &params[i]))
            continue;
        move_to(b, open, params[i].module);
        open = params[i].module;
        enum status status = build_param(b, &params[i], &ids[i], err);
        if (status)
            return status;
    }
    move_to(b, open, "");
    return STATUS_OK;
}

static void add_piece_params(struct block_builder *b, enum body_kind kind,
                             const struct block_param *params, size_t n, const uint32_t *ids)
{
    for (int norm = 0; norm < 2; norm++)
        for (size_t i = 0; i < n; i++)
            if (params[i].piece == kind && exists(b, &params[i]) &&
                (params[i].flags & BLOCK_NORM) == (norm ? BLOCK_NORM : 0))
                model_builder_piece_param(&b->model, ids[i]);
}

static bool has_piece(enum body_kind kind, const struct block_param *params, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (params[i].piece == kind)
            return true;
    return false;
}

static enum status build_block(struct block_builder *b, uint32_t layer,
                               const struct block_param *params, size_t n, struct err *err)
{
    static const enum body_kind kinds[] = {BODY_ATTENTION, BODY_MLP, BODY_PARAMETERS};
    uint32_t ids[BLOCK_MAX_PARAMS];
    char name[16];
    snprintf(name, sizeof(name), "%" PRIu32, layer);
    model_builder_enter(&b->model, name);
    enum status status = build_params(b, params, n, ids, err);
    if (status)
        return status;
    model_builder_leave(&b->model);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!has_piece(kinds[i], params, n))
            continue;
        model_builder_piece(&b->model, kinds[i], layer);
        add_piece_params(b, kinds[i], params, n, ids);
    }
    return STATUS_OK;
}

/* A piece outside the blocks: parameters in modules below the open one. */
static enum status build_piece(struct block_builder *b, enum body_kind kind,
                               const struct block_params *params, struct err *err)
{
    uint32_t ids[BLOCK_MAX_PARAMS];
    enum status status = build_params(b, params->at, params->n, ids, err);
    if (status)
        return status;
    model_builder_piece(&b->model, kind, 0);
    add_piece_params(b, kind, params->at, params->n, ids);
    return STATUS_OK;
}

/*
 * The head below the open module: a matrix of its own, or a module without parameters that reads
 * the embedding's weight, which is the model's first parameter.
 */
static enum status build_head(struct block_builder *b, const char *name, struct err *err)
{
    const struct block_param own[] = {{name, "weight", {W_VOCAB, W_HIDDEN}, BODY_HEAD, 0}};
    const struct block_params head = BLOCK_PARAMS(own);
    if (!b->dims->tied)
        return build_piece(b, BODY_HEAD, &head, err);
    b->model.model->tied_head = model_builder_enter(&b->model, name);
    model_builder_leave(&b->model);
    model_builder_piece(&b->model, BODY_HEAD, 0);
    model_builder_piece_param(&b->model, 0);
    return STATUS_OK;
}

/* The blocks "0", "1", … in a module of their own, each of one piece or two. */
static enum status build_blocks(struct block_builder *b, const struct decoder *decoder,
                                struct err *err)
{
    model_builder_enter(&b->model, decoder->blocks);
    for (uint32_t layer = 0; layer < b->dims->layers; layer++) {
        enum status status = build_block(b, layer, decoder->block.at, decoder->block.n, err);
        if (status)
            return status;
    }
    model_builder_leave(&b->model);
    return STATUS_OK;
}

static enum status build_around_blocks(struct block_builder *b, const struct decoder *decoder,
                                       struct err *err)
{
    enum status status;

    if (decoder->module)
        model_builder_enter(&b->model, decoder->module);
    if ((status = build_piece(b, BODY_EMBEDDING, &decoder->embedding, err)))
        return status;
    if ((status = build_blocks(b, decoder, err)))
        return status;
    if ((status = build_piece(b, BODY_NORM, &decoder->norm, err)))
        return status;
    if (decoder->module)
        model_builder_leave(&b->model);
    return build_head(b, decoder->head, err);
}

enum status decoder_build(const struct decoder *decoder, const struct dims *dims,
                          struct arena *arena, struct model *out, struct err *err)
{
    struct block_builder b;

    block_builder_init(&b, dims, arena, out);
    enum status status =
        dims->vocab > 0 ? build_around_blocks(&b, decoder, err) : build_blocks(&b, decoder, err);
    if (!status)
        model_builder_finish(&b.model);
    return status;
}
