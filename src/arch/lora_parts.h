/*
 * Adapters (src/lora.h) in the tables of a block: each adapted linear layer y = W x becomes
 * y = W x + s B (A x), operator by operator as PEFT writes it.
 *
 * This reads a part's rows and makes others from them. It counts on what the tables of eager PyTorch
 * keep to: the products of forward are the linear layers in the order of their weights, and in
 * backward a layer has its two products one after the other, then at most the sum of what reaches
 * its input.
 */
#ifndef SRC_ARCH_LORA_PARTS_H
#define SRC_ARCH_LORA_PARTS_H

#include "src/body_builder.h"

enum { BLOCK_ATTENTION, BLOCK_MLP, BLOCK_PARTS };

/* Changes both, and extends the builder's tensors; of a model that has adapters. */
void lora_adapt(struct body_builder *builder, struct body_part parts[BLOCK_PARTS]);

#endif
