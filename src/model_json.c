/*
 * The own format, both ways; see model_json.h. Invariant: what is written is read back to a model
 * that is written the same.
 */
#include "src/model_json.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/arch/arch_config.h"

#define MAX_COUNT ((UINT64_C(1) << 53) - 1)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *key;
    size_t at;
} counts[] = {
#define X(field, name) {name, offsetof(struct dims, field)},
    DIMS_COUNTS(X)
#undef X
};

static const struct {
    const char *key;
    size_t at;
} switches[] = {
#define X(field, name) {name, offsetof(struct dims, field)},
    DIMS_SWITCHES(X)
#undef X
};

bool model_json_is(const struct json_at *root)
{
    return json_has(root, "schema");
}

/* ---- writing ------------------------------------------------------------------------------ */

void model_json_add(const struct model *model, struct cJSON *root)
{
    json_add_string(root, "model", model->name);
    json_add_string(root, "family", model->arch->name);
    json_add_u64(root, "parameters", model->n_element);
    if (model->lora)
        json_add_string(root, "lora", model->lora);
    if (model->n_piece == 0)
        return; /* it has tensors, and no sizes that they were made from */
    for (size_t i = 0; i < LENGTH(counts); i++)
        json_add_u64(root, counts[i].key,
                     *(const uint64_t *)((const char *)&model->dims + counts[i].at));
    for (size_t i = 0; i < LENGTH(switches); i++)
        json_add_bool(root, switches[i].key,
                      *(const bool *)((const char *)&model->dims + switches[i].at));
}

void model_json_add_tensors(const struct model *model, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "tensors");
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "name", param->name);
        struct cJSON *shape = json_add_array(object, "shape");
        for (unsigned d = 0; d < param->n_dim; d++)
            json_add_u64(shape, NULL, param->shape[d]);
        json_add_string(object, "dtype", dtype_name((enum dtype)param->storage));
        json_add_u64(object, "elements", param->numel);
        if (param->keep_fp32)
            json_add_string(object, "compute", dtype_name(DTYPE_FP32));
        if (param->stored)
            json_add_string(object, "stored", param->stored);
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Every key is one that is written. */
static enum status check_keys(const struct json_at *object, const char *const *known, size_t n,
                              struct err *err)
{
    for (struct json_at it = json_first(object); it.node; it = json_next(&it)) {
        size_t i = 0;
        while (i < n && strcmp(known[i], json_key(&it)) != 0)
            i++;
        if (i < n)
            continue;
        int near = text_nearest(json_key(&it), known, n);
        if (near >= 0)
            return json_fail(object, err, "unknown key '%s'; did you mean '%s'?", json_key(&it),
                             known[near]);
        return json_fail(object, err, "unknown key '%s'", json_key(&it));
    }
    return STATUS_OK;
}

static enum status check_root_keys(const struct json_at *root, struct err *err)
{
    static const char *const others[] = {"schema", "model",  "family", "parameters",
                                         "lora",   "states", "shards", "tensors"};
    const char *known[LENGTH(others) + LENGTH(counts) + LENGTH(switches)];
    size_t n = 0;
    for (size_t i = 0; i < LENGTH(others); i++)
        known[n++] = others[i];
    for (size_t i = 0; i < LENGTH(counts); i++)
        known[n++] = counts[i].key;
    for (size_t i = 0; i < LENGTH(switches); i++)
        known[n++] = switches[i].key;
    return check_keys(root, known, n, err);
}

static enum status check_schema(const struct json_at *root, struct err *err)
{
    const char *schema;
    struct json_at at;
    enum status status = json_get_string(root, "schema", &schema, err);
    if (!status)
        status = json_get(root, "schema", &at, err);
    if (status || strcmp(schema, MODEL_JSON_SCHEMA) == 0)
        return status;
    return json_fail(&at, err, "'%s' is not a model; '%s' is, as 'model show --json' prints it",
                     schema, MODEL_JSON_SCHEMA);
}

static enum status read_family(const struct json_at *root, const struct arch **out, struct err *err)
{
    const char *family;
    struct json_at at;
    enum status status = json_get_string(root, "family", &family, err);
    if (!status)
        status = json_get(root, "family", &at, err);
    if (status)
        return status;
    *out = strcmp(family, arch_tensors.name) == 0 ? &arch_tensors : arch_by_name(family);
    if (*out)
        return STATUS_OK;
    enum { MOST = 16 };
    const char *names[MOST];
    size_t n = 0;
    for (const struct arch *const *known = arch_families; *known && n < MOST; known++)
        names[n++] = (*known)->name;
    int near = text_nearest(family, names, n);
    if (near >= 0)
        return json_fail(&at, err, "unknown family '%s'; did you mean '%s'?", family, names[near]);
    return json_fail(&at, err, "unknown family '%s'", family);
}

/* Sizes of which a family may have none are 0 where they are missing. */
static bool may_be_none(const char *key)
{
    return strcmp(key, "vocab") == 0 || strcmp(key, "positions") == 0;
}

static enum status read_dims(const struct json_at *root, const struct arch *arch, struct dims *out,
                             struct err *err)
{
    struct dims dims = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < LENGTH(counts) && !status; i++)
        if (json_has(root, counts[i].key) || !may_be_none(counts[i].key))
            status = json_get_u64(root, counts[i].key, MAX_COUNT,
                                  (uint64_t *)((char *)&dims + counts[i].at), err);
    for (size_t i = 0; i < LENGTH(switches) && !status; i++)
        if (json_has(root, switches[i].key))
            status =
                json_get_bool(root, switches[i].key, (bool *)((char *)&dims + switches[i].at), err);
    if (status)
        return status;
    struct err why = {0};
    if (dims_check(&dims, &why) || arch->check(&dims, &why))
        return json_fail(root, err, "%s", why.text);
    *out = dims;
    return STATUS_OK;
}

static enum status read_shape(const struct json_at *at, struct tensor *tensor, struct err *err)
{
    struct json_at list;
    enum status status = json_get(at, "shape", &list, err);
    if (status)
        return status;
    if (!json_is_array(&list))
        return json_fail(&list, err, "must be a list of whole numbers");
    for (struct json_at it = json_first(&list); it.node && !status; it = json_next(&it)) {
        if (tensor->n_dim == PARAM_MAX_DIMS)
            return json_fail(&list, err, "more than %d dimensions", PARAM_MAX_DIMS);
        status = json_u64(&it, MAX_COUNT, &tensor->shape[tensor->n_dim++], err);
    }
    return status;
}

/* Elements and dtype of compute follow from name and shape, and are there for other readers. */
static enum status read_tensor(const struct json_at *at, struct arena *arena, struct tensor *out,
                               struct err *err)
{
    static const char *const keys[] = {"name", "shape", "dtype", "elements", "compute", "stored"};
    struct tensor tensor = {.file = arena_strdup(arena, at->doc->name)};
    const char *name, *dtype, *stored = NULL;
    if (!json_is_object(at))
        return json_fail(at, err, "must be an object with name, shape and dtype");
    enum status status = check_keys(at, keys, LENGTH(keys), err);
    if (!status)
        status = json_get_string(at, "name", &name, err);
    if (!status && !tensor_name_is_good(name))
        status = json_fail(at, err, "name: not the name of a tensor");
    if (!status)
        status = read_shape(at, &tensor, err);
    if (!status)
        status = json_get_string(at, "dtype", &dtype, err);
    if (!status && strcmp(dtype, dtype_name(DTYPE_FP32)) != 0)
        status = json_fail(at, err, "dtype: '%s' is not supported, training stores '%s'", dtype,
                           dtype_name(DTYPE_FP32));
    if (!status && json_has(at, "stored"))
        status = json_get_string(at, "stored", &stored, err);
    if (!status && stored && !tensor_name_is_good(stored))
        status = json_fail(at, err, "stored: not the name of a dtype");
    if (status)
        return status;
    tensor.name = arena_strdup(arena, name);
    tensor.stored = stored ? arena_strdup(arena, stored) : NULL;
    *out = tensor;
    return STATUS_OK;
}

static enum status read_tensors(const struct json_at *root, struct arena *arena,
                                struct tensor_list *out, struct err *err)
{
    struct json_at array;
    enum status status = json_get(root, "tensors", &array, err);
    if (status)
        return status;
    if (!json_is_array(&array))
        return json_fail(&array, err, "must be a list of tensors");
    for (struct json_at it = json_first(&array); it.node && !status; it = json_next(&it)) {
        out->at = arena_grow(arena, out->at, &out->cap, out->n + 1, sizeof(*out->at));
        status = read_tensor(&it, arena, &out->at[out->n++], err);
    }
    if (!status && out->n == 0)
        status = json_fail(&array, err, "names no tensor");
    return status ? status : tensor_list_sort(out, err);
}

enum status model_json_read(const struct json_at *root, struct arena *arena, struct model *out,
                            struct tensor_list *tensors, uint64_t *parameters, struct err *err)
{
    struct model model = {0};
    struct tensor_list list = {0};
    uint64_t count = 0;
    const char *name, *lora = NULL;
    enum status status = check_schema(root, err);
    if (!status)
        status = check_root_keys(root, err);
    if (!status)
        status = json_get_string(root, "model", &name, err);
    if (!status)
        status = read_family(root, &model.arch, err);
    if (!status && model.arch != &arch_tensors)
        status = read_dims(root, model.arch, &model.dims, err);
    if (!status && json_has(root, "parameters"))
        status = json_get_u64(root, "parameters", MAX_COUNT, &count, err);
    if (!status && json_has(root, "lora"))
        status = json_get_string(root, "lora", &lora, err);
    if (!status && (json_has(root, "tensors") || model.arch == &arch_tensors))
        status = read_tensors(root, arena, &list, err);
    if (status)
        return status;
    model.name = arena_strdup(arena, name);
    model.lora = lora ? arena_strdup(arena, lora) : NULL;
    *out = model;
    *tensors = list;
    *parameters = count;
    return STATUS_OK;
}
