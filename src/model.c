/*
 * Opening a model: which family and which sizes, from a built-in name or a file. What the family
 * makes of the sizes is in src/arch/, what tensors say of them in model_tensors.c. Invariant: *out
 * is written only when it is complete.
 */
#include "src/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/arch/arch.h"
#include "src/lora.h"
#include "src/model_json.h"
#include "src/safetensors.h"

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

static uint32_t own_params(const struct model *model, uint32_t module, uint32_t *order, uint32_t n)
{
    const struct module *at = &model->modules[module];

    for (uint32_t param = at->first_param; param < at->end_param; param++)
        if (model->params[param].module == module)
            order[n++] = param;
    return n;
}

static uint32_t visit_params(const struct model *model, uint32_t module, uint32_t *order,
                             uint32_t n)
{
    const struct module *at = &model->modules[module];

    for (uint32_t child = module + 1; child < at->end; child = model->modules[child].end)
        n = visit_params(model, child, order, n);
    return own_params(model, module, order, n);
}

void model_param_order(const struct model *model, uint32_t *out)
{
    visit_params(model, 0, out, 0);
}

void model_flat_order(const struct model *model, uint32_t *out)
{
    uint32_t n = 0;

    for (uint32_t module = 0; module < model->n_module; module++)
        n = own_params(model, module, out, n);
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
    double frozen = 0;
    for (uint32_t i = 0; i < model->n_param; i++)
        frozen += model->params[i].trainable ? 0 : (double)model->params[i].numel;
    /* a full attention would have 12; the causal half of it is computed */
    return 6 * (double)model->n_element - 2 * frozen + 6 * attention * (double)seq;
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

/* What a file says of a model, before it is made. */
struct source {
    struct model model;         /* name, family and sizes */
    struct tensor_list tensors; /* may be empty */
    uint64_t parameters;        /* how many there have to be, or 0 */
    const char *file;           /* for messages */
};

static enum status read_hugging_face(const struct json_at *root, struct arena *arena,
                                     struct model *model, struct err *err)
{
    struct json_at config;
    enum status status = find_text_config(root, &config, err);
    if (!status)
        status = check_dtype(&config, err);
    if (!status)
        status = find_family(&config, arena, &model->arch, err);
    if (!status)
        status = model->arch->read_config(&config, &model->dims, err);
    return status;
}

/* A config.json, or unshard's own format, which brings a name of its own. Releases doc. */
static enum status read_document(struct json_doc *doc, const char *file, struct arena *arena,
                                 struct source *source, struct err *err)
{
    struct json_at root = json_root(doc);
    enum status status;
    source->file = file;
    if (!json_is_object(&root))
        status = json_fail(&root, err, "must be an object with a model's configuration");
    else if (model_json_is(&root))
        status = model_json_read(&root, arena, &source->model, &source->tensors,
                                 &source->parameters, err);
    else
        status = read_hugging_face(&root, arena, &source->model, err);
    json_release(doc);
    return status;
}

static enum status read_json(const char *file, struct arena *arena, struct source *source,
                             struct err *err)
{
    struct json_doc doc;
    enum status status = json_read_file(file, &doc, err);
    return status ? status : read_document(&doc, file, arena, source, err);
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* The config.json beside the headers gives the structure, where there is one. */
static enum status read_weights(const char *file, struct arena *arena, struct source *source,
                                struct err *err)
{
    const char *slash = strrchr(file, '/');
    const char *config =
        arena_printf(arena, "%.*sconfig.json", slash ? (int)(slash - file) + 1 : 0, file);
    enum status status = STATUS_OK;
    source->model.arch = &arch_tensors;
    if (is_there(config))
        status = read_json(config, arena, source, err);
    if (!status && source->tensors.n > 0)
        status = err_set(err, STATUS_INPUT, "%s: a list of tensors beside '%s', use one of them",
                         config, file);
    if (!status)
        status = safetensors_read(file, arena, &source->tensors, err);
    if (source->model.arch == &arch_tensors)
        source->file = file;
    return status;
}

/*
 * The file that what names, or NULL where it names none. A folder stands for the weights in it, with
 * which a config.json beside them is read, or else for its config.json.
 */
static const char *model_file(const char *what, struct arena *arena)
{
    static const char *const in_folder[] = {"model.safetensors.index.json", "model.safetensors",
                                            "config.json"};
    enum { CONFIG = sizeof(in_folder) / sizeof(*in_folder) - 1 };
    struct stat st;
    if (stat(what, &st) == 0 && !S_ISDIR(st.st_mode))
        return what;
    if (is_there(what)) {
        for (size_t i = 0; i < CONFIG; i++) {
            const char *file = arena_printf(arena, "%s/%s", what, in_folder[i]);
            if (is_there(file))
                return file;
        }
        return arena_printf(arena, "%s/%s", what, in_folder[CONFIG]);
    }
    size_t length = strlen(what);
    bool like_file = length > 5 && strcmp(what + length - 5, ".json") == 0;
    return like_file || safetensors_is_file(what) || strchr(what, '/') ? what : NULL;
}

static enum status read_source(const char *what, struct arena *arena, struct source *out,
                               struct err *err)
{
    struct source source = {0};
    const struct builtin_model *builtin = find_builtin(what);
    enum status status = STATUS_OK;
    source.model.name = arena_strdup(arena, what);
    if (builtin) {
        source.model.name = builtin->name;
        source.model.arch = arch_by_name(builtin->arch);
        assert(source.model.arch);
        source.model.dims = builtin->dims;
    } else {
        const char *file = model_file(what, arena);
        if (!file)
            return fail_unknown(what, arena, err);
        bool weights = safetensors_is_file(file) || safetensors_is_index(file);
        status = weights ? read_weights(file, arena, &source, err)
                         : read_json(file, arena, &source, err);
    }
    if (!status)
        *out = source;
    return status;
}

static enum status make(struct source *source, struct arena *arena, struct err *err)
{
    struct model *model = &source->model;
    if (model->arch == &arch_tensors)
        return model_from_tensors(&source->tensors, arena, model, err);
    const char *lora = model->lora; /* a document's, until here only asked for */
    enum status status = model->arch->build(&model->dims, arena, model, err);
    if (!status && lora && lora_add(model, lora, arena, err)) /* the file's fault */
        status = err_set(err, STATUS_INPUT, "%s", err ? err->text : "");
    return status && source->file ? err_prefix(err, "%s", source->file) : status;
}

/* The whole model has what the file counts and lists. */
static enum status check(const struct source *source, struct arena *arena, struct err *err)
{
    const struct model *model = &source->model;
    if (source->parameters > 0 && source->parameters != model->n_element)
        return err_set(err, STATUS_INPUT,
                       "%s: parameters: %" PRIu64 " is said, the sizes give %" PRIu64, source->file,
                       source->parameters, model->n_element);
    if (source->tensors.n == 0 || model->arch == &arch_tensors)
        return STATUS_OK;
    return model_check_tensors(model, &source->tensors, source->file, arena, err);
}

static enum status cut_layers(struct model *model, uint64_t layers, struct err *err)
{
    if (model->arch == &arch_tensors)
        return err_set(err, STATUS_USAGE,
                       "cannot cut '%s' to %" PRIu64 " layers, nothing says which tensors are one",
                       model->name, layers);
    if (layers > model->dims.layers)
        return err_set(err, STATUS_USAGE,
                       "cannot cut '%s' to %" PRIu64 " layers, it has only %" PRIu64, model->name,
                       layers, model->dims.layers);
    model->dims.layers = layers;
    return STATUS_OK;
}

/* Make what was read, hold it against what the source counts and lists, then cut it. */
static enum status make_and_check(struct source *source, uint64_t layers, struct arena *arena,
                                  struct model *out, struct err *err)
{
    bool whole = layers == 0 || source->parameters > 0 || source->tensors.n > 0;
    enum status status = STATUS_OK;
    if (whole)
        status = make(source, arena, err);
    if (!status && whole)
        status = check(source, arena, err);
    if (!status && layers > 0) {
        status = cut_layers(&source->model, layers, err);
        if (!status)
            status = make(source, arena, err);
    }
    if (status)
        return status;
    model_note_stored(&source->model, &source->tensors, arena);
    *out = source->model;
    return STATUS_OK;
}

enum status model_open(const char *what, uint64_t layers, struct arena *arena, struct model *out,
                       struct err *err)
{
    struct source source;
    enum status status = read_source(what, arena, &source, err);
    return status ? status : make_and_check(&source, layers, arena, out, err);
}

enum status model_open_json(const char *json, const char *name, uint64_t layers,
                            struct arena *arena, struct model *out, struct err *err)
{
    struct source source = {.model = {.name = name}};
    struct json_doc doc;
    enum status status = json_parse(json, name, &doc, err);
    if (!status)
        status = read_document(&doc, name, arena, &source, err);
    return status ? status : make_and_check(&source, layers, arena, out, err);
}

enum status model_set_positions(struct model *model, uint64_t positions, struct arena *arena,
                                struct err *err)
{
    if (model->dims.positions == 0)
        return err_set(err, STATUS_USAGE, "'%s' learns no positions, leave them out", model->name);
    struct model again = {.name = model->name, .arch = model->arch, .dims = model->dims};
    again.dims.positions = positions;
    const enum status status = again.arch->build(&again.dims, arena, &again, err);
    if (!status)
        *model = again;
    return status;
}
