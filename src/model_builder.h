/*
 * Appending to a model: what the families in src/arch/ share.
 *
 * Modules are entered and left like brackets, so that preorder, subtree ranges and dotted paths
 * come out by construction. The builder knows no family: which modules there are is the caller's.
 */
#ifndef SRC_MODEL_BUILDER_H
#define SRC_MODEL_BUILDER_H

#include "src/model.h"

struct model_builder {
    struct model *model;
    struct arena *arena;
    uint32_t open; /* the innermost module that was entered and not left */
    uint32_t cap_module, cap_param, cap_piece, cap_piece_param;
};

/* Starts an empty model whose module 0 is open; name, arch and dims of *model are left alone. */
void model_builder_init(struct model_builder *builder, struct arena *arena, struct model *model);

/* A child of the open module, which is then open itself; returns its index. */
uint32_t model_builder_enter(struct model_builder *builder, const char *name);
void model_builder_leave(struct model_builder *builder);

/*
 * A trainable FP32 parameter of the open module; n_dim is at most PARAM_MAX_DIMS, 0 for a single
 * element. STATUS_INPUT where it or the model so far passes 2^62 elements. id may be NULL.
 */
enum status model_builder_tensor(struct model_builder *builder, const char *name, uint8_t n_dim,
                                 const uint64_t *shape, uint32_t *id, struct err *err);

/* The next piece of the forward pass; its parameters follow in the order of its grad slots. */
void model_builder_piece(struct model_builder *builder, enum body_kind kind, uint32_t layer);
void model_builder_piece_param(struct model_builder *builder, uint32_t param);

/* Closes module 0; every module that was entered must have been left. */
void model_builder_finish(struct model_builder *builder);

#endif
