/*
 * Activation checkpointing: which blocks are wrapped, and what selective checkpointing keeps, after
 * what torchtitan does (spec MEMORY, op-SAC). Of one plan all blocks are wrapped in the same way.
 */
#include "src/cli/emit_torch_inner.h"
#include "src/plan_schemes.h"

static bool is_wrapped(const struct plan *plan, uint32_t layer)
{
    const struct body_options options = plan_body_options(plan);
    return body_options_ac(&options, (uint16_t)layer) != AC_NONE;
}

bool emit_checkpoints(const struct emit *emit)
{
    for (uint32_t layer = 0; layer < emit->plan->model->dims.layers; layer++)
        if (is_wrapped(emit->plan, layer))
            return true;
    return false;
}

static void add_blocks(const struct emit *emit)
{
    const struct model *model = emit->plan->model;
    struct emit_item *items = arena_array(emit->arena, struct emit_item, model->dims.layers);
    uint32_t n = 0;

    for (uint32_t layer = 0; layer < model->dims.layers; layer++)
        if (is_wrapped(emit->plan, layer))
            items[n++] = (struct emit_item){
                .words = &model->modules[plan_block_module(model, layer)].path, .n = 1, .tail = ""};
    text_add(emit->out, "\n\ndef checkpointed():\n"
                        "    \"\"\"Blocks that are computed again in backward.\"\"\"\n");
    emit_items(items, n, "yield ", "", emit->arena, emit->out);
}

static void add_kept_ops(const struct emit *emit)
{
    text_add(emit->out,
             "\n\ndef kept_ops():\n"
             "    \"\"\"Attention and every other matrix product are kept, all else is computed "
             "again.\"\"\"\n"
             "    aten = torch.ops.aten\n"
             "    attention = {\n"
             "        aten._scaled_dot_product_flash_attention.default,\n"
             "        aten._scaled_dot_product_efficient_attention.default,\n"
             "        aten._scaled_dot_product_cudnn_attention.default,\n"
             "    }\n"
             "    products = {aten.mm.default, aten.addmm.default}\n"
             "    seen = {False: 0, True: 0}  # by whether it is the second time\n"
             "\n"
             "    def policy(context, op, *args, **kwargs):\n"
             "        seen[context.is_recompute] += op in products\n"
             "        odd = op in products and seen[context.is_recompute] %% 2 == 1\n"
             "        keep = odd or op in attention\n"
             "        return CheckpointPolicy.MUST_SAVE if keep else "
             "CheckpointPolicy.PREFER_RECOMPUTE\n"
             "\n"
             "    return create_selective_checkpoint_contexts(policy)\n");
}

void emit_blocks(const struct emit *emit)
{
    if (!emit_checkpoints(emit))
        return;
    add_blocks(emit);
    if (emit->plan->options.ac == AC_OP)
        add_kept_ops(emit);
}
