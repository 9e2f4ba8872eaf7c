/*
 * Opening a model: which family and which sizes, from a built-in name or a config.json. What the
 * family makes of the sizes is in src/arch/. Invariant: *out is written only when it is complete.
 */
#include "src/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/arch/arch.h"

const char *body_kind_name(enum body_kind kind)
{
    static const char *const names[] = {
#define X(id, name) name,
        BODY_KINDS(X)
#undef X
    };
    assert(kind < BODY_KIND_N);
    return names[kind];
}

static int compare_path(const void *path, const void *module)
{
    return strcmp(path, (*(const struct module *const *)module)->path);
}

int model_module(const struct model *model, const char *path)
{
    const struct module **found =
        bsearch(path, model->by_path, model->n_module, sizeof(*model->by_path), compare_path);
    return found ? (int)(*found - model->modules) : -1;
}

double model_flops_per_token(const struct model *model, uint64_t seq)
{
    const struct dims *dims = &model->dims;
    double attention = (double)dims->layers * (double)dims->heads * (double)dims->head_dim;
    /* a full attention would have 12; the causal half of it is computed */
    return 6 * (double)model->n_element + 6 * attention * (double)seq;
}

static const struct builtin_model *find_builtin(const char *name)
{
    for (uint32_t i = 0; i < n_builtin_models; i++)
        if (strcmp(builtin_models[i].name, name) == 0)
            return &builtin_models[i];
    return NULL;
}

static enum status fail_unknown(const char *what, struct arena *arena, struct err *err)
{
    const char **names = arena_array(arena, const char *, n_builtin_models);
    for (uint32_t i = 0; i < n_builtin_models; i++)
        names[i] = builtin_models[i].name;
    int near = text_nearest(what, names, n_builtin_models);
    if (near >= 0)
        return err_set(err, STATUS_USAGE,
                       "unknown model '%s', neither built in nor a file; did you mean '%s'?", what,
                       names[near]);
    return err_set(err, STATUS_USAGE,
                   "unknown model '%s', neither built in nor a file; 'model list' shows the former",
                   what);
}

static const char *list_model_types(struct arena *arena)
{
    const char *list = "";
    for (const struct arch *const *family = arch_families; *family; family++)
        for (const char *const *type = (*family)->model_types; *type; type++)
            list = arena_printf(arena, "%s%s'%s'", list, *list ? ", " : "", *type);
    return list;
}

/*
 * Files from two generations of the library name the element type differently. Storage is FP32 by
 * the plan whatever they say, but a file that says two things is not one to build on.
 */
static enum status check_dtype(const struct json_at *config, struct err *err)
{
    if (!json_has(config, "dtype") || !json_has(config, "torch_dtype"))
        return STATUS_OK;
    const char *now, *before;
    struct json_at at;
    enum status status = json_get_string(config, "dtype", &now, err);
    if (!status)
        status = json_get_string(config, "torch_dtype", &before, err);
    if (!status)
        status = json_get(config, "torch_dtype", &at, err);
    if (status || strcmp(now, before) == 0)
        return status;
    return json_fail(&at, err, "'%s' contradicts dtype, which is '%s'", before, now);
}

/* A multimodal wrapper keeps the language model's keys under text_config. */
static enum status find_text_config(const struct json_at *root, struct json_at *out,
                                    struct err *err)
{
    *out = *root;
    if (!json_has(root, "text_config"))
        return STATUS_OK;
    enum status status = json_get(root, "text_config", out, err);
    if (status)
        return status;
    if (!json_is_object(out))
        return json_fail(out, err, "must be an object");
    bool tied = false;
    if (json_has(root, "tie_word_embeddings") && !json_has(out, "tie_word_embeddings"))
        status = json_get_bool(root, "tie_word_embeddings", &tied, err);
    if (status || !tied)
        return status;
    return json_fail(root, err,
                     "tie_word_embeddings is true outside text_config, which is not "
                     "supported");
}

static enum status find_family(const struct json_at *config, struct arena *arena,
                               const struct arch **out, struct err *err)
{
    if (!json_has(config, "model_type"))
        return json_fail(config, err, "no model_type; known ones are %s", list_model_types(arena));
    const char *model_type;
    struct json_at at;
    enum status status = json_get_string(config, "model_type", &model_type, err);
    if (!status)
        status = json_get(config, "model_type", &at, err);
    if (status)
        return status;
    *out = arch_find(model_type);
    if (!*out)
        return json_fail(&at, err, "unknown model type '%s'; known ones are %s", model_type,
                         list_model_types(arena));
    return STATUS_OK;
}

static enum status read_config(const char *file, struct arena *arena, struct model *model,
                               struct err *err)
{
    struct json_doc doc;
    enum status status = json_read_file(file, &doc, err);
    if (status)
        return status;
    struct json_at root = json_root(&doc), config;
    if (!json_is_object(&root)) {
        status = json_fail(&root, err, "must be an object with a model's configuration");
        goto out;
    }
    status = find_text_config(&root, &config, err);
    if (!status)
        status = check_dtype(&config, err);
    if (!status)
        status = find_family(&config, arena, &model->arch, err);
    if (!status)
        status = model->arch->read_config(&config, &model->dims, err);
out:
    json_release(&doc);
    return status;
}

/* The file that what names, or NULL where it names none. A folder stands for its config.json. */
static const char *config_file(const char *what, struct arena *arena)
{
    struct stat st;
    if (stat(what, &st) == 0)
        return S_ISDIR(st.st_mode) ? arena_printf(arena, "%s/config.json", what) : what;
    size_t length = strlen(what);
    bool like_file = length > 5 && strcmp(what + length - 5, ".json") == 0;
    return like_file || strchr(what, '/') ? what : NULL;
}

static enum status cut_layers(struct model *model, uint64_t layers, struct err *err)
{
    if (layers > model->dims.layers)
        return err_set(err, STATUS_USAGE,
                       "cannot cut '%s' to %" PRIu64 " layers, it has only %" PRIu64, model->name,
                       layers, model->dims.layers);
    if (layers > 0)
        model->dims.layers = layers;
    return STATUS_OK;
}

enum status model_open(const char *what, uint64_t layers, struct arena *arena, struct model *out,
                       struct err *err)
{
    struct model model = {0};
    const char *file = NULL;
    const struct builtin_model *builtin = find_builtin(what);
    if (builtin) {
        model.name = builtin->name;
        model.arch = arch_by_name(builtin->arch);
        assert(model.arch);
        model.dims = builtin->dims;
    } else {
        file = config_file(what, arena);
        if (!file)
            return fail_unknown(what, arena, err);
        model.name = arena_strdup(arena, what);
        enum status status = read_config(file, arena, &model, err);
        if (status)
            return status;
    }
    enum status status = cut_layers(&model, layers, err);
    if (status)
        return status;
    status = model.arch->build(&model.dims, arena, &model, err);
    if (status)
        return file ? err_prefix(err, "%s", file) : status;
    *out = model;
    return STATUS_OK;
}
