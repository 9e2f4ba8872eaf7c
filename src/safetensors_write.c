/*
 * The beginning of a safetensors file that is still to be filled; see safetensors.h.
 */
#include "src/safetensors.h"

#include <assert.h>
#include <string.h>

#include "src/json.h"

enum { DATA_ALIGNMENT = 8 };

static const char *const dtype_names[DTYPE_N] = {
    [DTYPE_FP32] = "F32", [DTYPE_BF16] = "BF16", [DTYPE_FP16] = "F16"};

const char *safetensors_dtype(enum dtype dtype)
{
    return dtype_names[dtype];
}

bool safetensors_dtype_of(const char *stored, enum dtype *out)
{
    for (int i = 0; i < DTYPE_N; i++)
        if (dtype_names[i] && strcmp(dtype_names[i], stored) == 0) {
            *out = (enum dtype)i;
            return true;
        }
    return false;
}

static uint64_t element_bytes(const struct tensor *tensor)
{
    enum dtype dtype = DTYPE_N;
    const bool known = safetensors_dtype_of(tensor->stored, &dtype);
    assert(known);
    (void)known;
    return dtype_bytes(dtype);
}

static uint64_t tensor_bytes(const struct tensor *tensor)
{
    uint64_t bytes = element_bytes(tensor);
    for (unsigned i = 0; i < tensor->n_dim; i++)
        bytes *= tensor->shape[i];
    return bytes;
}

/* Counted from the first byte of the data; returns how many there are. */
static uint64_t place_data(struct tensor_list *list)
{
    uint64_t end = 0;
    for (uint64_t width = dtype_bytes(DTYPE_FP32); width >= dtype_bytes(DTYPE_BF16); width /= 2)
        for (uint32_t i = 0; i < list->n; i++)
            if (element_bytes(&list->at[i]) == width) {
                list->at[i].at_bytes = end;
                end += tensor_bytes(&list->at[i]);
            }
    return end;
}

static void add_tensor(struct cJSON *root, const struct tensor *tensor)
{
    struct cJSON *entry = json_add_object(root, tensor->name);
    json_add_string(entry, "dtype", tensor->stored);
    struct cJSON *shape = json_add_array(entry, "shape");
    for (unsigned i = 0; i < tensor->n_dim; i++)
        json_add_u64(shape, NULL, tensor->shape[i]);
    struct cJSON *offsets = json_add_array(entry, "data_offsets");
    json_add_u64(offsets, NULL, tensor->at_bytes);
    json_add_u64(offsets, NULL, tensor->at_bytes + tensor_bytes(tensor));
}

/* Blanks behind it are allowed, and bring the data to a good address. */
static void print_header(const struct tensor_list *list, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(json_add_object(root, "__metadata__"), "format", "pt");
    for (uint32_t i = 0; i < list->n; i++)
        add_tensor(root, &list->at[i]);
    json_print_line(root, out);
    json_free(root);
    while (out->length % DATA_ALIGNMENT != 0)
        text_add(out, " ");
}

struct safetensors_head safetensors_lay_out(struct tensor_list *list, struct arena *arena)
{
    const uint64_t data_bytes = place_data(list);
    struct text header;
    text_init(&header);
    print_header(list, &header);
    const uint64_t bytes = SAFETENSORS_LENGTH_BYTES + header.length;
    unsigned char *at = arena_alloc(arena, bytes);
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++)
        at[i] = (unsigned char)(header.length >> 8 * i);
    memcpy(at + SAFETENSORS_LENGTH_BYTES, header.at, header.length);
    text_release(&header);
    for (uint32_t i = 0; i < list->n; i++)
        list->at[i].at_bytes += bytes;
    return (struct safetensors_head){
        .at = (const char *)at, .bytes = bytes, .file_bytes = bytes + data_bytes};
}
