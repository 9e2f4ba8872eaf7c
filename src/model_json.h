/*
 * unshard's own description of a model: family and sizes, from which the model is made again, and
 * its tensors, which are held against what is made. What `model show --json` prints is read back.
 */
#ifndef SRC_MODEL_JSON_H
#define SRC_MODEL_JSON_H

#include "src/model_tensors.h"

#define MODEL_JSON_SCHEMA "unshard.model/1"

/* Whether a document says that it is one of unshard's. */
bool model_json_is(const struct json_at *root);

/*
 * Name, family, sizes and tensors of a document; *parameters is 0 where it does not say. A file may
 * leave the tensors out, if it names a family of which they can be made.
 */
enum status model_json_read(const struct json_at *root, struct arena *arena, struct model *out,
                            struct tensor_list *tensors, uint64_t *parameters, struct err *err);

/* Name, family, parameter count and sizes, below a schema of the caller's; then the tensors. */
void model_json_add(const struct model *model, struct cJSON *root);
void model_json_add_tensors(const struct model *model, struct cJSON *root);

#endif
