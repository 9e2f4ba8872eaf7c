/*
 * Reading JSON through cJSON; the checks that cJSON leaves out are in json_check.c.
 *
 * A place (struct json_at) carries its path along, so that a complaint needs nothing else. Lookup
 * walks cJSON's linked lists: fine for keys, which are few, and never done by index.
 */
#include "src/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/json_check.h"

#define FILE_BYTES_MAX ((size_t)64 << 20)
#define NAME_CHARS_MAX 200 /* of a file, so that the message behind it is never cut */
#define EXACT_END 0x1p53   /* where doubles begin to skip integers */

/* The name for messages: the end of a long path tells more than its start. */
static char *short_name(const char *name)
{
    size_t length = strlen(name);
    bool cut = length > NAME_CHARS_MAX;
    const char *tail = cut ? name + length - NAME_CHARS_MAX : name;
    struct text text;
    text_init(&text);
    text_add(&text, "%s%s", cut ? "..." : "", tail);
    return text.at;
}

static void set_path(struct json_at *at, const char *key)
{
    char *end = at->path + at->parent_length;
    size_t room = sizeof(at->path) - at->parent_length;
    int length = key ? snprintf(end, room, "%s%s", at->parent_length ? "." : "", key)
                     : snprintf(end, room, "[%" PRIu32 "]", at->index);
    if (length >= (int)room)
        memcpy(at->path + sizeof(at->path) - 4, "...", 4);
}

static struct json_at child_of(const struct json_at *parent, const cJSON *node, uint32_t index)
{
    struct json_at child = *parent;
    child.node = node;
    child.index = index;
    child.parent_length = (uint32_t)strlen(parent->path);
    if (node)
        set_path(&child, node->string);
    return child;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status refuse_same_keys(const struct json_at *at, struct err *err)
{
    size_t n = (size_t)cJSON_GetArraySize(at->node), i = 0;
    if (n < 2)
        return STATUS_OK;
    const char **keys = calloc(n, sizeof(*keys));
    if (!keys)
        err_out_of_memory(n * sizeof(*keys));
    for (const cJSON *child = at->node->child; child; child = child->next)
        keys[i++] = child->string;
    qsort(keys, n, sizeof(*keys), compare_keys);

    enum status status = STATUS_OK;
    for (i = 1; i < n && !status; i++) {
        if (!strcmp(keys[i - 1], keys[i]))
            status = json_fail(at, err, "key '%s' is there twice, remove one", keys[i]);
    }
    free(keys);
    return status;
}

/* Recursion is bounded: json_check() has refused what is too deep. */
static enum status check_keys(const struct json_at *at, struct err *err)
{
    enum status status = json_is_object(at) ? refuse_same_keys(at, err) : STATUS_OK;
    uint32_t index = 0;
    for (const cJSON *node = at->node->child; node && !status; node = node->next, index++) {
        if (node->child) {
            struct json_at child = child_of(at, node, index);
            status = check_keys(&child, err);
        }
    }
    return status;
}

static enum status fail_syntax(const struct json_source *source, const char *where, struct err *err)
{
    size_t offset = (size_t)(where - source->text);
    if (offset >= source->length)
        return json_fail_at(source, source->length, err, "text ends before it is complete");
    return json_fail_at(source, offset, err, "'%.*s' does not belong here", json_word_length(where),
                        where);
}

static enum status parse(const struct json_source *source, struct json_doc *out, struct err *err)
{
    enum status status = json_check(source, err);
    if (status)
        return status;

    const char *end = source->text;
    cJSON *root = cJSON_ParseWithLengthOpts(source->text, source->length + 1, &end, 0);
    if (!root)
        return fail_syntax(source, end, err);
    end += strspn(end, " \t\r\n");
    if (*end) {
        cJSON_Delete(root);
        return json_fail_at(source, (size_t)(end - source->text), err,
                            "'%.*s' after the end of the document", json_word_length(end), end);
    }

    struct json_doc doc = {.root = root, .name = short_name(source->name)};
    struct json_at at = json_root(&doc);
    status = check_keys(&at, err);
    if (status)
        json_release(&doc);
    else
        *out = doc;
    return status;
}

enum status json_parse(const char *text, const char *name, struct json_doc *out, struct err *err)
{
    char *shown = short_name(name);
    struct json_source source = {.name = shown, .text = text, .length = strlen(text)};
    enum status status = parse(&source, out, err);
    free(shown);
    return status;
}

/* A whole file and a '\0' behind it; NULL and errno where that fails (EFBIG: over the limit). */
static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    size_t size = 0, cap = (size_t)1 << 16, got;
    int failure = 0;
    do {
        char *larger = realloc(text, cap);
        if (!larger)
            err_out_of_memory(cap);
        text = larger;
        got = fread(text + size, 1, cap - 1 - size, file);
        size += got;
        if (size == cap - 1)
            cap *= 2;
    } while (got > 0 && size <= FILE_BYTES_MAX);
    if (ferror(file))
        failure = errno;
    else if (size > FILE_BYTES_MAX)
        failure = EFBIG;
    fclose(file);
    if (failure) {
        free(text);
        errno = failure;
        return NULL;
    }
    text[size] = '\0';
    *length = size;
    return text;
}

enum status json_read_file(const char *path, struct json_doc *out, struct err *err)
{
    char *shown = short_name(path);
    struct json_source source = {.name = shown};
    char *text = read_file(path, &source.length);
    source.text = text;
    enum status status;
    if (text)
        status = parse(&source, out, err);
    else if (errno == EFBIG)
        status = err_set(err, STATUS_INPUT, "cannot read '%s': more than %zu MiB", shown,
                         FILE_BYTES_MAX >> 20);
    else
        status = err_set(err, STATUS_INPUT, "cannot read '%s': %s", shown, strerror(errno));
    free(text);
    free(shown);
    return status;
}

void json_release(struct json_doc *doc)
{
    cJSON_Delete(doc->root);
    free(doc->name);
    *doc = (struct json_doc){0};
}

struct json_at json_root(const struct json_doc *doc)
{
    return (struct json_at){.doc = doc, .node = doc->root};
}

static const cJSON *find(const struct json_at *at, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(at->node, key);
    return cJSON_IsNull(node) ? NULL : node;
}

bool json_has(const struct json_at *at, const char *key)
{
    return json_is_object(at) && find(at, key);
}

bool json_is_object(const struct json_at *at)
{
    return cJSON_IsObject(at->node);
}

bool json_is_array(const struct json_at *at)
{
    return cJSON_IsArray(at->node);
}

bool json_is_string(const struct json_at *at)
{
    return cJSON_IsString(at->node);
}

bool json_is_number(const struct json_at *at)
{
    return cJSON_IsNumber(at->node);
}

static const char *kind_of(const cJSON *node)
{
    static const struct {
        int type;
        const char *name;
    } kinds[] = {
        {cJSON_False, "a boolean"}, {cJSON_True, "a boolean"}, {cJSON_Number, "a number"},
        {cJSON_String, "a string"}, {cJSON_Array, "an array"}, {cJSON_Object, "an object"},
    };
    for (size_t i = 0; node && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if ((node->type & 0xff) == kinds[i].type)
            return kinds[i].name;
    }
    return "null";
}

static enum status fail_kind(const struct json_at *at, const char *wanted, struct err *err)
{
    return json_fail(at, err, "%s is needed, not %s", wanted, kind_of(at->node));
}

enum status json_get(const struct json_at *at, const char *key, struct json_at *out,
                     struct err *err)
{
    if (!json_is_object(at))
        return fail_kind(at, "an object", err);
    const cJSON *node = find(at, key);
    if (!node)
        return json_fail(at, err, "missing key '%s'", key);
    *out = child_of(at, node, 0);
    return STATUS_OK;
}

static enum status whole(const struct json_at *at, uint64_t min, uint64_t max, uint64_t *out,
                         struct err *err)
{
    if (!json_is_number(at))
        return fail_kind(at, "a whole number", err);
    double value = at->node->valuedouble;
    if (value >= EXACT_END)
        return json_fail(at, err, "%.17g is too large to be read exactly, 2^53 - 1 is the most",
                         value);
    if (value < (double)min || value != floor(value))
        return json_fail(at, err, "a whole number of %" PRIu64 " or more is needed, not %.15g", min,
                         value);
    if ((uint64_t)value > max)
        return json_fail(at, err, "%.0f is too large, %" PRIu64 " is the most", value, max);
    *out = (uint64_t)value;
    return STATUS_OK;
}

static enum status get_whole(const struct json_at *at, const char *key, uint64_t min, uint64_t max,
                             uint64_t *out, struct err *err)
{
    struct json_at child;
    enum status status = json_get(at, key, &child, err);
    return status ? status : whole(&child, min, max, out, err);
}

enum status json_u64(const struct json_at *at, uint64_t max, uint64_t *out, struct err *err)
{
    return whole(at, 0, max, out, err);
}

enum status json_get_u64(const struct json_at *at, const char *key, uint64_t max, uint64_t *out,
                         struct err *err)
{
    return get_whole(at, key, 0, max, out, err);
}

enum status json_get_count(const struct json_at *at, const char *key, uint64_t max, uint64_t *out,
                           struct err *err)
{
    return get_whole(at, key, 1, max, out, err);
}

enum status json_get_double(const struct json_at *at, const char *key, double *out, struct err *err)
{
    struct json_at child;
    enum status status = json_get(at, key, &child, err);
    if (status)
        return status;
    if (!json_is_number(&child))
        return fail_kind(&child, "a number", err);
    *out = child.node->valuedouble;
    return STATUS_OK;
}

enum status json_get_bool(const struct json_at *at, const char *key, bool *out, struct err *err)
{
    struct json_at child;
    enum status status = json_get(at, key, &child, err);
    if (status)
        return status;
    if (!cJSON_IsBool(child.node))
        return fail_kind(&child, "a boolean", err);
    *out = cJSON_IsTrue(child.node);
    return STATUS_OK;
}

enum status json_get_string(const struct json_at *at, const char *key, const char **out,
                            struct err *err)
{
    struct json_at child;
    enum status status = json_get(at, key, &child, err);
    return status ? status : json_string(&child, out, err);
}

enum status json_string(const struct json_at *at, const char **out, struct err *err)
{
    if (!json_is_string(at))
        return fail_kind(at, "a string", err);
    *out = at->node->valuestring;
    return STATUS_OK;
}

struct json_at json_first(const struct json_at *at)
{
    return child_of(at, at->node->child, 0);
}

struct json_at json_next(const struct json_at *element)
{
    struct json_at next = *element;
    next.node = element->node->next;
    next.index++;
    if (next.node)
        set_path(&next, next.node->string);
    return next;
}

const char *json_key(const struct json_at *element)
{
    return element->node->string ? element->node->string : "";
}

enum status json_fail(const struct json_at *at, struct err *err, const char *fmt, ...)
{
    char message[sizeof(((struct err *)0)->text)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return err_set(err, STATUS_INPUT, "%s: %s%s%s", at->doc->name, at->path, *at->path ? ": " : "",
                   message);
}
