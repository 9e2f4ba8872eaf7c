/*
 * From options to one entry a parameter; see policy.h.
 *
 * Patterns are compared with whole parameter names, as those of units are with module paths. A
 * pattern that matches nothing is refused: it would be a typing error that changes an answer.
 */
#include "src/policy.h"

#include <string.h>

#include "src/text.h"

const char *behavior_name(enum behavior behavior)
{
    static const char *const names[] = {
#define X(id, name) name,
        BEHAVIORS(X)
#undef X
    };
    return names[behavior];
}

struct policy_options policy_options_default(void)
{
    return (struct policy_options){.behavior = BEHAVIOR_TORCH_2_11,
                                   .storage = DTYPE_FP32,
                                   .param = DTYPE_BF16,
                                   .reduce = DTYPE_FP32};
}

/* What the patterns of one option say of the parameters that they match. */
enum list { LIST_KEEP_FP32, LIST_FREEZE, LIST_IGNORE, LIST_SHARD_DIM, LIST_SECOND_MESH };
static const char *const list_names[] = {"keep-fp32", "freeze", "ignore", "shard-dim",
                                         "second-mesh"};

struct policy_draft {
    const struct model *model;
    struct arena *arena;
    struct param_policy *params;
};

static void set(struct param_policy *param, enum list list, uint8_t dim)
{
    switch (list) {
    case LIST_KEEP_FP32:
        param->compute = DTYPE_FP32;
        break;
    case LIST_FREEZE:
        param->trainable = false;
        break;
    case LIST_IGNORE:
        param->managed = false;
        break;
    case LIST_SHARD_DIM:
        param->shard_dim = dim;
        break;
    case LIST_SECOND_MESH:
        param->second_mesh = true;
        break;
    }
}

static enum status set_matching(struct policy_draft *draft, enum list list, const char *pattern,
                                uint8_t dim, struct err *err)
{
    const struct model *model = draft->model;
    bool any = false;

    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        if (!text_matches(pattern, param->name))
            continue;
        if (dim >= param->n_dim)
            return err_set(err, STATUS_USAGE, "%s: '%s' has no dimension %u, it has %u",
                           list_names[list], param->name, dim, param->n_dim);
        set(&draft->params[i], list, dim);
        any = true;
    }
    if (any)
        return STATUS_OK;
    return err_set(err, STATUS_USAGE,
                   "%s: no parameter matches '%s'; '%s' is one of them, '*' stands for any letters",
                   list_names[list], pattern, model->params[0].name);
}

/* "PATTERN=1": the dimension goes off the pattern. */
static enum status take_dim(char *pattern, uint8_t *dim, struct err *err)
{
    char *equals = strrchr(pattern, '=');
    uint64_t number;
    if (!equals || !text_to_u64(equals + 1, &number) || number >= PARAM_MAX_DIMS)
        return err_set(err, STATUS_USAGE,
                       "shard-dim: '%s' is not PATTERN=DIMENSION with a dimension below %d",
                       pattern, PARAM_MAX_DIMS);
    *equals = '\0';
    *dim = (uint8_t)number;
    return STATUS_OK;
}

/* Comma-separated patterns; later ones override earlier ones. */
static enum status read_list(struct policy_draft *draft, enum list list, const char *text,
                             struct err *err)
{
    enum status status = STATUS_OK;
    char *rest = arena_strdup(draft->arena, text ? text : "");

    for (char *pattern; !status && (pattern = strsep(&rest, ","));) {
        uint8_t dim = 0;
        if (!*pattern)
            continue;
        if (list == LIST_SHARD_DIM)
            status = take_dim(pattern, &dim, err);
        if (!status)
            status = set_matching(draft, list, pattern, dim, err);
    }
    return status;
}

/* torch-2.15 has autograd accumulate in the reduce dtype (spec FSDP2 0.1). */
static void finish(struct param_policy *param, const struct policy_options *options,
                   bool reaches_loss)
{
    param->has_grad = param->managed && param->trainable && reaches_loss;
    param->grad = options->behavior == BEHAVIOR_TORCH_2_15 ? param->reduce : param->compute;
}

enum status policy_resolve(const struct model *model, const struct policy_options *options,
                           struct arena *arena, struct param_policy **out, struct err *err)
{
    struct policy_draft draft = {
        .model = model,
        .arena = arena,
        .params = arena_array(arena, struct param_policy, model->n_param),
    };
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        const bool keeps = !options->keep_fp32 && param->keep_fp32;
        draft.params[i] = (struct param_policy){
            .storage = (uint8_t)options->storage,
            .compute = (uint8_t)(keeps ? DTYPE_FP32 : options->param),
            .reduce = (uint8_t)options->reduce,
            .managed = true,
            .trainable = param->trainable,
        };
    }
    enum status status = read_list(&draft, LIST_KEEP_FP32, options->keep_fp32, err);
    if (!status)
        status = read_list(&draft, LIST_FREEZE, options->freeze, err);
    if (!status)
        status = read_list(&draft, LIST_IGNORE, options->ignore, err);
    if (!status)
        status = read_list(&draft, LIST_SHARD_DIM, options->shard_dim, err);
    if (!status)
        status = read_list(&draft, LIST_SECOND_MESH, options->second_mesh, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < model->n_param; i++)
        finish(&draft.params[i], options, !model->params[i].unused);
    *out = draft.params;
    return STATUS_OK;
}
