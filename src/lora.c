/*
 * Adding adapters: the model is built once more, module by module; see lora.h.
 *
 * Invariant: parameters of a module come before those of its children, here as in torch, so that
 * the new model is in registration order as the old one was.
 */
#include "src/lora.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/model_builder.h"
#include "src/text.h"

#define NO_PARAM UINT32_MAX

struct lora {
    uint64_t rank;
    const char *targets; /* separated by colons */
};

struct adapting {
    const struct model *base;
    struct model_builder builder;
    struct lora lora;
    struct arena *arena;
    bool *in_block;       /* by parameter of the base: whether attention or an MLP has it */
    uint32_t *new_params; /* by parameter of the base */
    uint32_t *a_of;       /* by module of the base: the A of its adapter, B is the next; or none */
};

/* ---- the text ----------------------------------------------------------------------------- */

static enum status read_pair(const char *key, const char *value, struct lora *lora, struct err *err)
{
    char *end;
    if (strcmp(key, "r") == 0)
        return text_to_u64(value, &lora->rank) && lora->rank > 0
                   ? STATUS_OK
                   : err_set(err, STATUS_USAGE,
                             "lora: r is '%s', a whole number from 1 on is needed", value);
    if (strcmp(key, "alpha") == 0)
        return strtod(value, &end) > 0 && !*end
                   ? STATUS_OK
                   : err_set(err, STATUS_USAGE, "lora: alpha is '%s', a number above 0 is needed",
                             value);
    if (strcmp(key, "targets") != 0)
        return err_set(err, STATUS_USAGE, "lora: '%s' is none of r, alpha and targets", key);
    lora->targets = value;
    return STATUS_OK;
}

static enum status read_text(struct adapting *adapting, const char *text, struct err *err)
{
    char *rest = arena_strdup(adapting->arena, text);
    enum status status = STATUS_OK;
    for (char *key; !status && (key = strsep(&rest, ","));) {
        char *value = strchr(key, '=');
        if (!value)
            return err_set(err, STATUS_USAGE,
                           "lora: '%s' is no KEY=VALUE; write it like r=16,targets=q_proj:v_proj",
                           key);
        *value++ = '\0';
        status = read_pair(key, value, &adapting->lora, err);
    }
    if (!status && adapting->lora.rank == 0)
        return err_set(err, STATUS_USAGE, "lora: r, the rank of the adapters, is missing");
    return status;
}

/* ---- targets ------------------------------------------------------------------------------ */

static void find_in_block(struct adapting *adapting)
{
    const struct model *base = adapting->base;
    adapting->in_block = arena_array(adapting->arena, bool, base->n_param);
    for (uint32_t p = 0; p < base->n_piece; p++) {
        const struct piece *piece = &base->pieces[p];
        for (uint32_t i = 0; i < piece->n_param; i++)
            adapting->in_block[base->piece_params[piece->param + i]] =
                piece->kind == BODY_ATTENTION || piece->kind == BODY_MLP;
    }
}

/* Its first parameter is a matrix, which of all that a block has only linear layers own. */
static bool is_linear(const struct adapting *adapting, uint32_t module)
{
    const struct model *base = adapting->base;
    const uint32_t first = base->modules[module].first_param;
    return first < base->n_param && base->params[first].module == module &&
           adapting->in_block[first] && base->params[first].n_dim == 2;
}

/* "self_attn.q_proj" of "model.layers.0.self_attn.q_proj": a block is named by its number. */
static const char *path_in_block(const char *path)
{
    for (const char *at = path; (at = strchr(at, '.')); at++) {
        const size_t digits = strspn(at + 1, "0123456789");
        if (digits > 0 && at[1 + digits] == '.')
            return at + digits + 2;
    }
    return path;
}

static bool matches(const char *target, const char *path)
{
    for (const char *at = path_in_block(path); at; at = strchr(at, '.'), at = at ? at + 1 : NULL)
        if (text_matches(target, at))
            return true;
    return false;
}

static enum status fail_target(const struct adapting *adapting, const char *target, struct err *err)
{
    const char *names = "";
    for (uint32_t m = 0; m < adapting->base->n_module; m++) {
        const char *path = adapting->base->modules[m].path;
        if (is_linear(adapting, m) && !strstr(names, path_in_block(path)))
            names = arena_printf(adapting->arena, "%s%s%s", names, *names ? ", " : "",
                                 path_in_block(path));
    }
    return err_set(err, STATUS_USAGE, "lora: no linear layer of a block is '%s'; there are %s",
                   target, names);
}

/* Each target has to name something: it would be a typing error that changes an answer. */
static enum status find_targets(struct adapting *adapting, struct err *err)
{
    const uint32_t n_module = adapting->base->n_module;
    char *rest = arena_strdup(adapting->arena, adapting->lora.targets);
    find_in_block(adapting);
    adapting->a_of = arena_array(adapting->arena, uint32_t, n_module);
    for (uint32_t m = 0; m < n_module; m++)
        adapting->a_of[m] = NO_PARAM;
    for (char *target; (target = strsep(&rest, ":"));) {
        bool any = false;
        for (uint32_t m = 0; m < n_module; m++) {
            if (!is_linear(adapting, m) || !matches(target, adapting->base->modules[m].path))
                continue;
            adapting->a_of[m] = 0; /* until there is one */
            any = true;
        }
        if (!any)
            return fail_target(adapting, target, err);
    }
    return STATUS_OK;
}

/* ---- the model ---------------------------------------------------------------------------- */

static struct param *made_param(struct adapting *adapting, uint32_t id)
{
    return &adapting->builder.model->params[id];
}

static enum status copy_own_params(struct adapting *adapting, uint32_t module, struct err *err)
{
    const struct model *base = adapting->base;
    enum status status = STATUS_OK;
    for (uint32_t i = base->modules[module].first_param;
         !status && i < base->n_param && base->params[i].module == module; i++) {
        const struct param *from = &base->params[i];
        const char *name = strrchr(from->name, '.');
        uint32_t *id = &adapting->new_params[i];
        status = model_builder_tensor(&adapting->builder, name ? name + 1 : from->name, from->n_dim,
                                      from->shape, id, err);
        if (status)
            break;
        struct param *to = made_param(adapting, *id);
        to->storage = from->storage;
        to->keep_fp32 = from->keep_fp32;
        to->unused = from->unused;
        to->stored = from->stored;
        to->trainable = false;
    }
    return status;
}

static enum status add_matrix(struct adapting *adapting, enum adapter adapter, uint64_t rows,
                              uint64_t columns, uint32_t *id, struct err *err)
{
    struct model_builder *builder = &adapting->builder;
    model_builder_enter(builder, adapter == ADAPTER_A ? "lora_A" : "lora_B");
    model_builder_enter(builder, "default");
    enum status status =
        model_builder_tensor(builder, "weight", 2, (const uint64_t[]){rows, columns}, id, err);
    if (status)
        return status;
    made_param(adapting, *id)->adapter = (uint8_t)adapter;
    model_builder_leave(builder);
    model_builder_leave(builder);
    return STATUS_OK;
}

/* Inside of the layer's module. */
static enum status adapt_layer(struct adapting *adapting, uint32_t module, struct err *err)
{
    const struct model *base = adapting->base;
    const struct param *weight = &base->params[base->modules[module].first_param];
    const bool in_first = base->arch->weights_in_first;
    const uint64_t rank = adapting->lora.rank, in = weight->shape[in_first ? 0 : 1];
    const uint64_t out = weight->shape[in_first ? 1 : 0];
    uint32_t b;
    model_builder_enter(&adapting->builder, "base_layer");
    enum status status = copy_own_params(adapting, module, err);
    if (status)
        return status;
    model_builder_leave(&adapting->builder);
    status = add_matrix(adapting, ADAPTER_A, rank, in, &adapting->a_of[module], err);
    return status ? status : add_matrix(adapting, ADAPTER_B, out, rank, &b, err);
}

/* Below the open module, which stands for this one. */
static enum status copy_module(struct adapting *adapting, uint32_t module, struct err *err)
{
    const struct model *base = adapting->base;
    if (adapting->a_of[module] != NO_PARAM)
        return adapt_layer(adapting, module, err);
    enum status status = copy_own_params(adapting, module, err);
    for (uint32_t child = module + 1; !status && child < base->modules[module].end;
         child = base->modules[child].end) {
        const char *dot = strrchr(base->modules[child].path, '.');
        const uint32_t made =
            model_builder_enter(&adapting->builder, dot ? dot + 1 : base->modules[child].path);
        if (child == base->tied_head)
            adapting->builder.model->tied_head = made;
        status = copy_module(adapting, child, err);
        if (!status)
            model_builder_leave(&adapting->builder);
    }
    return status;
}

/* An adapter's two come behind all that the layer has in the piece. */
static void copy_piece(struct adapting *adapting, const struct piece *piece)
{
    const struct model *base = adapting->base;
    model_builder_piece(&adapting->builder, (enum body_kind)piece->kind, piece->layer);
    for (uint32_t i = 0; i < piece->n_param; i++) {
        const uint32_t param = base->piece_params[piece->param + i];
        const uint32_t module = base->params[param].module, a = adapting->a_of[module];
        const bool is_last = param + 1 == base->n_param || base->params[param + 1].module != module;
        model_builder_piece_param(&adapting->builder, adapting->new_params[param]);
        if (a == NO_PARAM || !is_last)
            continue;
        model_builder_piece_param(&adapting->builder, a);
        model_builder_piece_param(&adapting->builder, a + 1);
    }
}

static enum status build(struct adapting *adapting, struct model *out, struct err *err)
{
    const struct model *base = adapting->base;
    adapting->new_params = arena_array(adapting->arena, uint32_t, base->n_param);
    model_builder_init(&adapting->builder, adapting->arena, out);
    enum status status = copy_module(adapting, 0, err);
    if (status)
        return status;
    for (uint32_t p = 0; p < base->n_piece; p++)
        copy_piece(adapting, &base->pieces[p]);
    model_builder_finish(&adapting->builder);
    return STATUS_OK;
}

enum status lora_add(struct model *model, const char *text, struct arena *arena, struct err *err)
{
    const struct model base = *model;
    struct model made = base;
    struct adapting adapting = {
        .base = &base, .lora = {.targets = base.arch->lora_targets}, .arena = arena};
    if (!base.arch->lora_targets)
        return err_set(err, STATUS_USAGE, "lora: adapters of family %s are not modelled",
                       base.arch->name);
    if (base.lora)
        return err_set(err, STATUS_USAGE, "lora: '%s' has adapters already", base.name);
    enum status status = read_text(&adapting, text, err);
    if (!status)
        status = find_targets(&adapting, err);
    if (!status)
        status = build(&adapting, &made, err);
    if (status)
        return status;
    made.lora = text;
    made.lora_rank = adapting.lora.rank;
    *model = made;
    return STATUS_OK;
}
