/*
 * Checkpoints in several files: the index, and its files as one list; see safetensors.h. An index
 * has no shapes, so that the header of each file is read; names alone come from it.
 */
#include "src/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "src/json.h"

bool safetensors_is_index(const char *path)
{
    static const char end[] = ".safetensors.index.json";
    size_t length = strlen(path);
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

struct mapped {
    const char *name, *file;
};

static int compare_by_file(const void *a, const void *b)
{
    const struct mapped *p = a, *q = b;
    int order = strcmp(p->file, q->file);
    return order ? order : strcmp(p->name, q->name);
}

static enum status read_map(const struct json_doc *doc, const char *folder, struct arena *arena,
                            struct mapped **out, uint32_t *n, struct err *err)
{
    struct json_at root = json_root(doc), map;
    struct mapped *mapped = NULL;
    uint32_t cap = 0;
    *n = 0;
    if (!json_is_object(&root))
        return json_fail(&root, err, "must be an object with a weight_map");
    enum status status = json_get(&root, "weight_map", &map, err);
    if (status)
        return status;
    if (!json_is_object(&map))
        return json_fail(&map, err, "must be an object of tensors and their files");
    for (struct json_at it = json_first(&map); it.node; it = json_next(&it)) {
        const char *file;
        status = json_string(&it, &file, err);
        if (status)
            return status;
        if (!tensor_name_is_good(json_key(&it)))
            return json_fail(&map, err, "entry %u is not a tensor's name", it.index + 1);
        if (strchr(file, '/') || !safetensors_is_file(file))
            return json_fail(&it, err, "'%s' is not a .safetensors file beside the index", file);
        mapped = arena_grow(arena, mapped, &cap, *n + 1, sizeof(*mapped));
        mapped[(*n)++] = (struct mapped){arena_strdup(arena, json_key(&it)),
                                         arena_printf(arena, "%s%s", folder, file)};
    }
    if (*n == 0)
        return json_fail(&map, err, "names no tensor");
    *out = mapped;
    return STATUS_OK;
}

/* Each tensor of the files is mapped to its file, and none is mapped that is not there. */
static enum status check_map(const char *index, const struct mapped *mapped, uint32_t n,
                             const struct tensor_list *list, struct arena *arena, struct err *err)
{
    bool *found = arena_array(arena, bool, n);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct mapped key = {list->at[i].name, list->at[i].file};
        const struct mapped *at = bsearch(&key, mapped, n, sizeof(key), compare_by_file);
        if (!at)
            return err_set(err, STATUS_INPUT,
                           "%s: tensor '%s' is in '%s', the index does not say so", index, key.name,
                           key.file);
        found[at - mapped] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!found[i])
            return err_set(err, STATUS_INPUT, "%s: tensor '%s' is not in '%s', as the index says",
                           index, mapped[i].name, mapped[i].file);
    return STATUS_OK;
}

static enum status read_index(const char *path, struct arena *arena, struct tensor_list *list,
                              struct err *err)
{
    const char *slash = strrchr(path, '/');
    const char *folder = arena_printf(arena, "%.*s", slash ? (int)(slash - path) + 1 : 0, path);
    struct mapped *mapped;
    struct json_doc doc;
    uint32_t n;
    enum status status = json_read_file(path, &doc, err);
    if (status)
        return status;
    status = read_map(&doc, folder, arena, &mapped, &n, err);
    json_release(&doc);
    if (status)
        return status;
    qsort(mapped, n, sizeof(*mapped), compare_by_file);
    for (uint32_t i = 0; i < n && !status; i++)
        if (i == 0 || strcmp(mapped[i - 1].file, mapped[i].file) != 0)
            status = safetensors_read_file(mapped[i].file, arena, list, err);
    return status ? status : check_map(path, mapped, n, list, arena, err);
}

enum status safetensors_read(const char *path, struct arena *arena, struct tensor_list *out,
                             struct err *err)
{
    struct tensor_list list = {0};
    enum status status = safetensors_is_index(path)
                             ? read_index(path, arena, &list, err)
                             : safetensors_read_file(path, arena, &list, err);
    if (!status)
        status = tensor_list_sort(&list, err);
    if (!status)
        *out = list;
    return status;
}
