/*
 * The headers of safetensors files: names, shapes and dtypes of tensors and where their data lie,
 * read and written without any of the data.
 *
 * A file is 8 bytes of length, that many bytes of JSON, then data; a file that ends with its header
 * is taken for a copy of the header. An index names the files of a checkpoint in several parts, all
 * of which are beside it. Nothing that is not exactly so is read: spec INPUTS section 3.
 */
#ifndef SRC_SAFETENSORS_H
#define SRC_SAFETENSORS_H

#include "src/model_tensors.h"

enum { SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000, SAFETENSORS_LENGTH_BYTES = 8 };

/* Whether a file's name is that of a safetensors file, or of an index of some. */
bool safetensors_is_file(const char *path);
bool safetensors_is_index(const char *path);

/* Appends the tensors of one file, in the order of its header. */
enum status safetensors_read_file(const char *path, struct arena *arena, struct tensor_list *list,
                                  struct err *err);

/* Either of the two. The list comes sorted, and lives in the arena. */
enum status safetensors_read(const char *path, struct arena *arena, struct tensor_list *out,
                             struct err *err);

/* What the format calls FP32, BF16 and FP16, and back; false for what has no dtype here. */
const char *safetensors_dtype(enum dtype dtype);
bool safetensors_dtype_of(const char *stored, enum dtype *out);

/* The beginning of a file: the length and the header. */
struct safetensors_head {
    const char *at; /* in the arena */
    uint64_t bytes;
    uint64_t file_bytes; /* with all data */
};

/*
 * A file of the list's tensors, whose dtypes are FP32, BF16 or FP16: sets where the data of each
 * begin. Wider elements come first, so that each tensor lies on a multiple of its element's size.
 */
struct safetensors_head safetensors_lay_out(struct tensor_list *list, struct arena *arena);

#endif
