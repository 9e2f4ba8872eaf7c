/*
 * Low-rank adapters (LoRA): a model whose weights are frozen, with two small trained matrices
 * beside some of the linear layers of its blocks.
 *
 * Names and order are those of Hugging Face PEFT's inject_adapter_in_model: the layer's own
 * parameters move to its child base_layer, and lora_A.default.weight [r, in] and
 * lora_B.default.weight [out, r] follow. The "base_model.model." that get_peft_model puts before
 * all of them is left out.
 */
#ifndef SRC_LORA_H
#define SRC_LORA_H

#include "src/model.h"

/*
 * text: "r=16,alpha=32,targets=q_proj:v_proj". Without targets they are the family's. A target is
 * compared with a layer's path inside its block and with the ends of that, '*' and '?' as in
 * text_matches(), so that all blocks are alike. alpha over r scales what an adapter adds, at the
 * same cost whatever it is. STATUS_USAGE where the text, or the family, does not allow it; the text
 * has to live as the model.
 */
enum status lora_add(struct model *model, const char *text, struct arena *arena, struct err *err);

#endif
