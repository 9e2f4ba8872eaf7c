/*
 * Reading headers; see safetensors.h. Sizes are checked before anything is allocated for them, and
 * every byte of the data has to belong to exactly one tensor.
 */
#include "src/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/json.h"

#define MAX_OFFSET ((UINT64_C(1) << 53) - 1)

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    {"F32", 32},        {"BF16", 16},       {"F16", 16},    {"F64", 64},    {"I64", 64},
    {"I32", 32},        {"I16", 16},        {"I8", 8},      {"U64", 64},    {"U32", 32},
    {"U16", 16},        {"U8", 8},          {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8},     {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"F4", 4},      {"C64", 64},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
};
enum { DTYPE_COUNT = sizeof(dtypes) / sizeof(*dtypes) };

bool safetensors_is_file(const char *path)
{
    static const char end[] = ".safetensors";
    size_t length = strlen(path);
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

/* ---- one header --------------------------------------------------------------------------- */

struct header {
    char *text; /* terminated; malloc */
    uint64_t data_at_bytes, data_bytes;
    bool alone; /* the file ends with it */
};

static enum status check_length(const char *path, uint64_t length, uint64_t file_bytes,
                                struct err *err)
{
    uint64_t rest = file_bytes - SAFETENSORS_LENGTH_BYTES;
    if (length > rest)
        return err_set(err, STATUS_INPUT,
                       "%s: a header of %" PRIu64 " bytes is announced, the file has only %" PRIu64
                       " more; it is cut short or not safetensors",
                       path, length, rest);
    if (length > SAFETENSORS_MAX_HEADER)
        return err_set(err, STATUS_INPUT, "%s: a header of %" PRIu64 " bytes, at most %d are read",
                       path, length, SAFETENSORS_MAX_HEADER);
    if (length < 2)
        return err_set(err, STATUS_INPUT, "%s: a header of %" PRIu64 " bytes holds no JSON object",
                       path, length);
    return STATUS_OK;
}

static enum status fail_read(const char *path, struct err *err)
{
    return err_set(err, STATUS_INPUT, "cannot read '%s': %s", path,
                   errno ? strerror(errno) : "it ends too early");
}

static enum status read_text(FILE *file, const char *path, uint64_t length, char **out,
                             struct err *err)
{
    char *text = malloc(length + 1);
    if (!text)
        err_out_of_memory(length + 1);
    text[length] = '\0';
    errno = 0;
    enum status status = STATUS_OK;
    if (fread(text, 1, length, file) != length)
        status = fail_read(path, err);
    else if (*text != '{')
        status = err_set(err, STATUS_INPUT, "%s: the header does not begin with '{'", path);
    else if (strlen(text) != length)
        status =
            err_set(err, STATUS_INPUT, "%s: the header has a zero byte at %zu", path, strlen(text));
    if (status)
        free(text);
    else
        *out = text;
    return status;
}

/* The file's size, before it is opened: opening a pipe would wait for a writer. */
static enum status check_file(const char *path, uint64_t *bytes, struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return fail_read(path, err);
    if (!S_ISREG(st.st_mode))
        return err_set(err, STATUS_INPUT, "%s: not a regular file", path);
    *bytes = (uint64_t)st.st_size;
    if (*bytes >= SAFETENSORS_LENGTH_BYTES)
        return STATUS_OK;
    return err_set(err, STATUS_INPUT,
                   "%s: a file of %" PRIu64 " bytes, safetensors begin with %d of length", path,
                   *bytes, SAFETENSORS_LENGTH_BYTES);
}

static enum status read_header(const char *path, struct header *out, struct err *err)
{
    unsigned char bytes[SAFETENSORS_LENGTH_BYTES];
    uint64_t file_bytes = 0, length = 0;
    struct header header = {0};
    enum status status = check_file(path, &file_bytes, err);
    if (status)
        return status;
    errno = 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return fail_read(path, err);
    if (fread(bytes, 1, sizeof(bytes), file) != sizeof(bytes)) {
        status = fail_read(path, err);
        goto out;
    }
    for (int i = SAFETENSORS_LENGTH_BYTES; i-- > 0;)
        length = length << 8 | bytes[i];
    status = check_length(path, length, file_bytes, err);
    if (!status)
        status = read_text(file, path, length, &header.text, err);
    if (status)
        goto out;
    header.data_at_bytes = SAFETENSORS_LENGTH_BYTES + length;
    header.data_bytes = file_bytes - header.data_at_bytes;
    header.alone = header.data_bytes == 0;
    *out = header;
out:
    fclose(file);
    return status;
}

/* ---- one tensor --------------------------------------------------------------------------- */

struct extent_of {
    uint64_t begin, end;
    const char *name;
};

static enum status read_dtype(const struct json_at *at, unsigned *bits, const char **name,
                              struct err *err)
{
    const char *text;
    struct json_at value;
    enum status status = json_get_string(at, "dtype", &text, err);
    if (!status)
        status = json_get(at, "dtype", &value, err);
    if (status)
        return status;
    for (unsigned i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, text) == 0) {
            *bits = dtypes[i].bits;
            *name = dtypes[i].name;
            return STATUS_OK;
        }
    const char *names[DTYPE_COUNT];
    for (unsigned i = 0; i < DTYPE_COUNT; i++)
        names[i] = dtypes[i].name;
    int near = text_nearest(text, names, DTYPE_COUNT);
    if (near >= 0)
        return json_fail(&value, err, "unknown dtype '%s'; did you mean '%s'?", text, names[near]);
    return json_fail(&value, err, "unknown dtype '%s'", text);
}

static enum status read_numbers(const struct json_at *at, const char *key, uint64_t max,
                                unsigned most, uint64_t *out, unsigned *n, struct err *err)
{
    struct json_at list;
    enum status status = json_get(at, key, &list, err);
    if (status)
        return status;
    if (!json_is_array(&list))
        return json_fail(&list, err, "must be a list of whole numbers");
    *n = 0;
    for (struct json_at it = json_first(&list); it.node && !status; it = json_next(&it)) {
        if (*n == most)
            return json_fail(&list, err, "more than %u numbers", most);
        status = json_u64(&it, max, &out[(*n)++], err);
    }
    return status;
}

static enum status count_bits(const struct json_at *at, const struct tensor *tensor, unsigned bits,
                              uint64_t *out, struct err *err)
{
    uint64_t sum = bits;
    for (unsigned i = 0; i < tensor->n_dim; i++)
        if (__builtin_mul_overflow(sum, tensor->shape[i], &sum) || sum > 8 * MAX_OFFSET)
            return json_fail(at, err, "the shape has more elements than a file can hold");
    *out = sum;
    return STATUS_OK;
}

static enum status check_offsets(const struct json_at *at, const struct tensor *tensor,
                                 unsigned bits, const struct extent_of *extent, struct err *err)
{
    uint64_t total = 0;
    if (extent->begin > extent->end)
        return json_fail(at, err, "data_offsets are reversed: %" PRIu64 " to %" PRIu64,
                         extent->begin, extent->end);
    enum status status = count_bits(at, tensor, bits, &total, err);
    if (status)
        return status;
    if (total % 8 != 0 || total / 8 != extent->end - extent->begin)
        return json_fail(at, err,
                         "shape and dtype need %" PRIu64 " bytes, data_offsets give %" PRIu64,
                         total / 8 + (total % 8 != 0), extent->end - extent->begin);
    return STATUS_OK;
}

static enum status read_tensor(const struct json_at *at, const char *path, struct arena *arena,
                               struct tensor *out, struct extent_of *extent, struct err *err)
{
    struct tensor tensor = {.file = path};
    uint64_t offsets[2];
    unsigned n = 0, bits = 0;
    const char *name = json_key(at);
    if (!tensor_name_is_good(name)) {
        struct json_at root = json_root(at->doc); /* a place would show the name */
        return json_fail(&root, err,
                         "entry %u is not a tensor's name: parts of printable ASCII between dots "
                         "are, up to %d characters",
                         at->index + 1, TENSOR_NAME_MAX);
    }
    if (!json_is_object(at))
        return json_fail(at, err, "must be an object with dtype, shape and data_offsets");
    enum status status = read_dtype(at, &bits, &tensor.stored, err);
    if (!status)
        status = read_numbers(at, "shape", MAX_OFFSET, PARAM_MAX_DIMS, tensor.shape, &n, err);
    tensor.n_dim = (uint8_t)n;
    if (!status)
        status = read_numbers(at, "data_offsets", MAX_OFFSET, 2, offsets, &n, err);
    if (!status && n != 2)
        status = json_fail(at, err, "data_offsets must be two numbers");
    if (status)
        return status;
    tensor.name = arena_strdup(arena, name);
    *extent = (struct extent_of){offsets[0], offsets[1], tensor.name};
    status = check_offsets(at, &tensor, bits, extent, err);
    if (!status)
        *out = tensor;
    return status;
}

/* ---- one file ----------------------------------------------------------------------------- */

static int compare_extents(const void *a, const void *b)
{
    const struct extent_of *p = a, *q = b;
    if (p->begin != q->begin)
        return p->begin < q->begin ? -1 : 1;
    return (p->end > q->end) - (p->end < q->end);
}

/* One after another from the first byte of the data to the last. */
static enum status check_extents(const char *path, struct extent_of *extents, uint32_t n,
                                 const struct header *header, struct err *err)
{
    uint64_t end = 0;
    if (n > 1)
        qsort(extents, n, sizeof(*extents), compare_extents);
    for (uint32_t i = 0; i < n; i++) {
        if (extents[i].begin < end)
            return err_set(err, STATUS_INPUT, "%s: tensors '%s' and '%s' overlap", path,
                           extents[i - 1].name, extents[i].name);
        if (extents[i].begin > end)
            return err_set(err, STATUS_INPUT,
                           "%s: bytes %" PRIu64 " to %" PRIu64 ", before '%s', belong to no tensor",
                           path, end, extents[i].begin, extents[i].name);
        end = extents[i].end;
    }
    if (!header->alone && end > header->data_bytes)
        return err_set(err, STATUS_INPUT,
                       "%s: tensor '%s' ends at byte %" PRIu64
                       " of the data, the file has %" PRIu64,
                       path, extents[n - 1].name, end, header->data_bytes);
    if (end < header->data_bytes)
        return err_set(err, STATUS_INPUT, "%s: the last %" PRIu64 " bytes belong to no tensor",
                       path, header->data_bytes - end);
    return STATUS_OK;
}

static enum status check_metadata(const struct json_at *at, struct err *err)
{
    const char *text;
    enum status status = STATUS_OK;
    if (!json_is_object(at))
        return json_fail(at, err, "must be an object of strings");
    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it))
        status = json_string(&it, &text, err);
    return status;
}

static enum status read_tensors(const struct json_doc *doc, const char *path,
                                const struct header *header, struct arena *arena,
                                struct tensor_list *list, struct err *err)
{
    struct json_at root = json_root(doc);
    struct extent_of *extents = NULL;
    uint32_t n = 0, cap = 0;
    for (struct json_at it = json_first(&root); it.node; it = json_next(&it)) {
        enum status status;
        if (strcmp(json_key(&it), "__metadata__") == 0) {
            status = check_metadata(&it, err);
            if (status)
                return status;
            continue;
        }
        list->at = arena_grow(arena, list->at, &list->cap, list->n + 1, sizeof(*list->at));
        extents = arena_grow(arena, extents, &cap, n + 1, sizeof(*extents));
        status = read_tensor(&it, path, arena, &list->at[list->n], &extents[n], err);
        if (status)
            return status;
        list->at[list->n++].at_bytes = header->data_at_bytes + extents[n++].begin;
    }
    if (n == 0)
        return err_set(err, STATUS_INPUT, "%s: the header names no tensor", path);
    return check_extents(path, extents, n, header, err);
}

enum status safetensors_read_file(const char *path, struct arena *arena, struct tensor_list *list,
                                  struct err *err)
{
    struct header header = {0};
    struct json_doc doc;
    enum status status = read_header(path, &header, err);
    if (status)
        return status;
    status = json_parse(header.text, path, &doc, err);
    if (!status) {
        status = read_tensors(&doc, arena_strdup(arena, path), &header, arena, list, err);
        json_release(&doc);
    }
    free(header.text);
    return status;
}
