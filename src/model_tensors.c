/*
 * Lists of tensors against models; see model_tensors.h. Invariant: in a sorted list the names below
 * one module are neighbours, so that a tree can be built in one pass.
 */
#include "src/model_tensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/model_builder.h"

enum { SHAPE_CHARS = 24 * PARAM_MAX_DIMS };

bool tensor_name_is_good(const char *name)
{
    size_t part = 0, length = 0;
    for (; name[length]; length++) {
        if (name[length] <= ' ' || name[length] > '~' || length >= TENSOR_NAME_MAX)
            return false;
        if (name[length] == '.' && part == 0)
            return false;
        part = name[length] == '.' ? 0 : part + 1;
    }
    return part > 0;
}

/* The parts of two names one after another: numbers by value and before words. */
static int compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        size_t m = strcspn(a, "."), n = strcspn(b, ".");
        bool a_number = strspn(a, "0123456789") == m, b_number = strspn(b, "0123456789") == n;
        if (a_number != b_number)
            return a_number ? -1 : 1;
        if (a_number && m != n)
            return m < n ? -1 : 1;
        int order = strncmp(a, b, m < n ? m : n);
        if (order || m != n)
            return order ? order : m < n ? -1 : 1;
        a += m + (a[m] == '.');
        b += n + (b[n] == '.');
    }
    return (*a != '\0') - (*b != '\0');
}

static int compare_tensors(const void *a, const void *b)
{
    return compare_names(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

enum status tensor_list_sort(struct tensor_list *list, struct err *err)
{
    if (list->n > 1)
        qsort(list->at, list->n, sizeof(*list->at), compare_tensors);
    for (uint32_t i = 1; i < list->n; i++)
        if (strcmp(list->at[i - 1].name, list->at[i].name) == 0)
            return err_set(err, STATUS_INPUT, "%s: tensor '%s' is there twice", list->at[i].file,
                           list->at[i].name);
    return STATUS_OK;
}

/* ---- a model from a list ------------------------------------------------------------------ */

/* Leaves and enters modules until the open one is the tensor's; returns its own last part. */
static const char *open_module(struct model_builder *b, const char *name)
{
    const struct model *model = b->model;
    const char *leaf = strrchr(name, '.');
    size_t length = leaf ? (size_t)(leaf - name) : 0;
    for (;;) {
        const char *path = model->modules[b->open].path;
        size_t at = strlen(path);
        if (at <= length && strncmp(path, name, at) == 0 &&
            (at == 0 || at == length || name[at] == '.')) {
            for (const char *next = name + at; next < name + length;) {
                char part[TENSOR_NAME_MAX + 1];
                next += *next == '.';
                int n = (int)strcspn(next, ".");
                snprintf(part, sizeof(part), "%.*s", n, next);
                model_builder_enter(b, part);
                next += n;
            }
            return leaf ? leaf + 1 : name;
        }
        model_builder_leave(b);
    }
}

enum status model_from_tensors(const struct tensor_list *list, struct arena *arena,
                               struct model *out, struct err *err)
{
    struct model_builder b;
    out->arch = &arch_tensors;
    out->dims = (struct dims){0};
    model_builder_init(&b, arena, out);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct tensor *tensor = &list->at[i];
        uint32_t id;
        const char *leaf = open_module(&b, tensor->name);
        enum status status = model_builder_tensor(&b, leaf, tensor->n_dim, tensor->shape, &id, err);
        if (status)
            return err_prefix(err, "%s", tensor->file);
        out->params[id].stored = tensor->stored;
    }
    while (b.open != 0)
        model_builder_leave(&b);
    model_builder_finish(&b);
    return STATUS_OK;
}

const struct arch arch_tensors = {
    .name = "tensors",
    .no_step = "names and shapes of its tensors are all that is known; what is missing is the "
               "model's config.json beside the file",
    .no_step_status = STATUS_INPUT,
};

/* ---- a model against a list --------------------------------------------------------------- */

const struct tensor *tensor_list_find(const struct tensor_list *list, const char *name)
{
    const struct tensor key = {.name = name};
    if (list->n == 0)
        return NULL;
    return bsearch(&key, list->at, list->n, sizeof(key), compare_tensors);
}

const struct tensor *model_find_tensor(const struct model *model, const struct tensor_list *list,
                                       const struct param *param)
{
    const struct tensor *found = tensor_list_find(list, param->name);
    size_t length = model->arch->prefix ? strlen(model->arch->prefix) : 0;
    if (!found && length > 0 && strncmp(param->name, model->arch->prefix, length) == 0)
        found = tensor_list_find(list, param->name + length);
    return found;
}

static const char *shape_text(unsigned n_dim, const uint64_t *shape, char text[SHAPE_CHARS])
{
    size_t length = (size_t)snprintf(text, SHAPE_CHARS, "[");
    for (unsigned i = 0; i < n_dim; i++)
        length += (size_t)snprintf(text + length, SHAPE_CHARS - length, "%s%" PRIu64, i ? ", " : "",
                                   shape[i]);
    snprintf(text + length, SHAPE_CHARS - length, "]");
    return text;
}

enum status tensor_check_shape(const struct tensor *tensor, unsigned n_dim, const uint64_t *shape,
                               const char *source, struct err *err)
{
    char has[SHAPE_CHARS], gives[SHAPE_CHARS];
    if (n_dim == tensor->n_dim && memcmp(shape, tensor->shape, n_dim * sizeof(*shape)) == 0)
        return STATUS_OK;
    return err_set(err, STATUS_INPUT, "%s: tensor '%s' has shape %s, %s gives it %s", tensor->file,
                   tensor->name, shape_text(tensor->n_dim, tensor->shape, has), source,
                   shape_text(n_dim, shape, gives));
}

static bool is_extra(const struct model *model, const char *name)
{
    const char *const *pattern = model->arch->extra;
    while (pattern && *pattern && !text_matches(*pattern, name))
        pattern++;
    return pattern && *pattern;
}

/* The head's copy of a tied weight, which some files hold. */
static bool is_tied_copy(const struct model *model, const char *name)
{
    if (model->tied_head == 0)
        return false;
    const char *path = model->modules[model->tied_head].path;
    size_t length = strlen(path);
    return strncmp(name, path, length) == 0 && strcmp(name + length, ".weight") == 0;
}

static enum status fail_missing(const struct param *param, const struct tensor_list *list,
                                const char *source, struct err *err)
{
    const char *first = list->at[0].file;
    bool one = first != NULL;
    for (uint32_t i = 0; i < list->n && one; i++)
        one = list->at[i].file && strcmp(list->at[i].file, first) == 0;
    if (one && strcmp(first, source) == 0)
        return err_set(err, STATUS_INPUT, "%s: no tensor '%s', which the sizes ask for", first,
                       param->name);
    if (one)
        return err_set(err, STATUS_INPUT, "%s: no tensor '%s', which %s asks for", first,
                       param->name, source);
    return err_set(err, STATUS_INPUT, "no file has tensor '%s', which %s asks for", param->name,
                   source);
}

enum status model_check_tensors(const struct model *model, const struct tensor_list *list,
                                const char *source, struct arena *arena, struct err *err)
{
    bool *used = arena_array(arena, bool, (size_t)list->n + 1);
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        const struct tensor *tensor = model_find_tensor(model, list, param);
        if (!tensor)
            return fail_missing(param, list, source, err);
        enum status status = tensor_check_shape(tensor, param->n_dim, param->shape, source, err);
        if (status)
            return status;
        used[tensor - list->at] = true;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        const struct tensor *tensor = &list->at[i];
        if (used[i] || is_extra(model, tensor->name))
            continue;
        if (!is_tied_copy(model, tensor->name))
            return err_set(err, STATUS_INPUT,
                           "%s: tensor '%s' is not in the model that %s describes", tensor->file,
                           tensor->name, source);
        const struct piece *head = &model->pieces[model->n_piece - 1];
        const struct param *tied = &model->params[model->piece_params[head->param]];
        enum status status = tensor_check_shape(tensor, tied->n_dim, tied->shape, source, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

void model_note_stored(struct model *model, const struct tensor_list *list, struct arena *arena)
{
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct tensor *tensor = model_find_tensor(model, list, &model->params[i]);
        if (tensor && tensor->stored)
            model->params[i].stored = arena_strdup(arena, tensor->stored);
    }
}
