/*
 * `unshard model show --shards N`: how each parameter is cut over N ranks, and what padding costs.
 */
#ifndef SRC_CLI_MODEL_SHARDS_H
#define SRC_CLI_MODEL_SHARDS_H

#include "src/cli/term.h"
#include "src/json.h"
#include "src/model.h"

/* STATUS_INPUT for a parameter that has nothing to cut. */
enum status model_shards_check(const struct model *model, struct err *err);
/* A table of the parameters that are shown, then the sums over all. */
void model_shards_text(const struct model *model, uint64_t ranks, const bool *shown,
                       const struct term *term, struct text *out);
/* An object "shards" with every parameter. */
void model_shards_json(const struct model *model, uint64_t ranks, struct cJSON *parent);

#endif
