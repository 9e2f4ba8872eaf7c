/*
 * The bodies outside the blocks, which all families share: embedding, final norm, head and loss.
 *
 * An embedding may have learned positions beside it, and its weight may be the head's as well. A
 * model without vocabulary has none of these: its loss is the mean of the last block's output.
 */
#ifndef SRC_ARCH_OUTER_BODIES_H
#define SRC_ARCH_OUTER_BODIES_H

#include "src/arch/block_parts.h"

/* Appends them; the builder has its tensors already. biased: the final norm has a bias. */
enum status outer_bodies(const struct model *model, const struct body_norm *norm, bool biased,
                         struct body_builder *builder, struct err *err);

#endif
