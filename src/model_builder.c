/*
 * Appending modules, parameters and pieces to a model. Invariant: the ranges of every module that
 * was left are final; those of open ones are closed by model_builder_leave() and _finish().
 */
#include "src/model_builder.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS (UINT64_C(1) << 62)

static uint32_t add_module(struct model_builder *b, const char *path)
{
    struct model *model = b->model;
    uint32_t id = model->n_module++;
    model->modules = arena_grow(b->arena, model->modules, &b->cap_module, model->n_module,
                                sizeof(*model->modules));
    model->modules[id] =
        (struct module){.path = path, .parent = b->open, .first_param = model->n_param};
    b->open = id;
    return id;
}

static void close_module(struct model_builder *b)
{
    struct module *module = &b->model->modules[b->open];
    module->end = b->model->n_module;
    module->end_param = b->model->n_param;
}

void model_builder_init(struct model_builder *b, struct arena *arena, struct model *model)
{
    *b = (struct model_builder){.model = model, .arena = arena};
    model->modules = NULL;
    model->params = NULL;
    model->pieces = NULL;
    model->piece_params = NULL;
    model->n_module = model->n_param = model->n_piece = model->n_piece_param = 0;
    model->tied_head = 0;
    model->n_element = 0;
    model->lora = NULL;
    model->lora_rank = 0;
    add_module(b, "");
}

uint32_t model_builder_enter(struct model_builder *b, const char *name)
{
    const char *parent = b->model->modules[b->open].path;
    return add_module(b, arena_printf(b->arena, "%s%s%s", parent, *parent ? "." : "", name));
}

void model_builder_leave(struct model_builder *b)
{
    assert(b->open != 0);
    close_module(b);
    b->open = b->model->modules[b->open].parent;
}

static int compare_modules(const void *a, const void *b)
{
    return strcmp((*(const struct module *const *)a)->path,
                  (*(const struct module *const *)b)->path);
}

void model_builder_finish(struct model_builder *b)
{
    assert(b->open == 0);
    close_module(b);
    struct model *model = b->model;
    model->by_path = arena_array(b->arena, const struct module *, model->n_module);
    for (uint32_t i = 0; i < model->n_module; i++)
        model->by_path[i] = &model->modules[i];
    qsort(model->by_path, model->n_module, sizeof(*model->by_path), compare_modules);
}

static enum status fail_size(const struct param *param, struct err *err)
{
    char shape[24 * PARAM_MAX_DIMS] = "";
    size_t length = 0;
    for (unsigned i = 0; i < param->n_dim; i++)
        length += (size_t)snprintf(shape + length, sizeof(shape) - length, "%s%" PRIu64,
                                   i ? " x " : "", param->shape[i]);
    return err_set(err, STATUS_INPUT, "'%s' of %s has more than 2^62 elements", param->name, shape);
}

enum status model_builder_tensor(struct model_builder *b, const char *name, uint8_t n_dim,
                                 const uint64_t *shape, uint32_t *id, struct err *err)
{
    struct model *model = b->model;
    struct param param = {
        .module = b->open, .n_dim = n_dim, .storage = DTYPE_FP32, .trainable = true, .numel = 1};
    const char *path = model->modules[b->open].path;
    param.name = arena_printf(b->arena, "%s%s%s", path, *path ? "." : "", name);
    assert(n_dim <= PARAM_MAX_DIMS);
    if (n_dim > 0)
        memcpy(param.shape, shape, n_dim * sizeof(*shape));
    for (unsigned i = 0; i < n_dim; i++)
        if (__builtin_mul_overflow(param.numel, shape[i], &param.numel) ||
            param.numel > MAX_ELEMENTS)
            return fail_size(&param, err);
    if (param.numel > MAX_ELEMENTS - model->n_element)
        return err_set(err, STATUS_INPUT, "the model passes 2^62 elements at '%s'", param.name);
    if (id)
        *id = model->n_param;
    model->n_element += param.numel;
    model->params = arena_grow(b->arena, model->params, &b->cap_param, model->n_param + 1,
                               sizeof(*model->params));
    model->params[model->n_param++] = param;
    return STATUS_OK;
}

void model_builder_piece(struct model_builder *b, enum body_kind kind, uint32_t layer)
{
    struct model *model = b->model;
    assert(kind != BODY_BLOCK && kind != BODY_LOSS && kind != BODY_METRIC && layer <= UINT16_MAX);
    model->pieces = arena_grow(b->arena, model->pieces, &b->cap_piece, model->n_piece + 1,
                               sizeof(*model->pieces));
    model->pieces[model->n_piece++] = (struct piece){
        .kind = (uint8_t)kind, .layer = (uint16_t)layer, .param = model->n_piece_param};
}

void model_builder_piece_param(struct model_builder *b, uint32_t param)
{
    struct model *model = b->model;
    assert(model->n_piece > 0 && param < model->n_param);
    model->piece_params = arena_grow(b->arena, model->piece_params, &b->cap_piece_param,
                                     model->n_piece_param + 1, sizeof(*model->piece_params));
    model->piece_params[model->n_piece_param++] = param;
    model->pieces[model->n_piece - 1].n_param++;
}
