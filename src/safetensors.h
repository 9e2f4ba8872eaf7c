/*
 * The headers of safetensors files: names, shapes and dtypes of tensors, without any of their data.
 *
 * A file is 8 bytes of length, that many bytes of JSON, then data; a file that ends with its header
 * is taken for a copy of the header. An index names the files of a checkpoint in several parts, all
 * of which are beside it. Nothing that is not exactly so is read: spec INPUTS section 3.
 */
#ifndef SRC_SAFETENSORS_H
#define SRC_SAFETENSORS_H

#include "src/model_tensors.h"

enum { SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000 };

/* Whether a file's name is that of a safetensors file, or of an index of some. */
bool safetensors_is_file(const char *path);
bool safetensors_is_index(const char *path);

/* Appends the tensors of one file, in the order of its header. */
enum status safetensors_read_file(const char *path, struct arena *arena, struct tensor_list *list,
                                  struct err *err);

/* Either of the two. The list comes sorted, and lives in the arena. */
enum status safetensors_read(const char *path, struct arena *arena, struct tensor_list *out,
                             struct err *err);

#endif
