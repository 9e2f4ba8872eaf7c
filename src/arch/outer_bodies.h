/*
 * The bodies outside the blocks, which all families share: embedding, head and loss.
 *
 * An embedding may have learned positions beside it, and its weight may be the head's as well.
 */
#ifndef SRC_ARCH_OUTER_BODIES_H
#define SRC_ARCH_OUTER_BODIES_H

#include "src/body_builder.h"

/* Appends these and the family's own final norm; the builder has its tensors already. */
enum status outer_bodies(const struct model *model, const struct body_part *final_norm,
                         struct body_builder *builder, struct err *err);

#endif
