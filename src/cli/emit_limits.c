/*
 * What no call of PyTorch says, or none of the version that the plan is for; see emit_torch.h.
 *
 * A rule a switch. Words name what the reader has to see to.
 */
#include "src/cli/emit_torch_inner.h"
#include "src/cli/term.h"

struct limit {
    bool holds;
    const char *words;
};

static bool asks(const struct emit *emit, enum option_id id)
{
    return option_text(emit->options, id) && option_number(emit->options, id) > 0;
}

static const char *option_words(const struct emit *emit, enum option_id id, const char *words)
{
    const char *text = option_text(emit->options, id);
    return arena_printf(emit->arena, "--%s %s: %s", option_table[id].name, text ? text : "", words);
}

static void add(const struct emit *emit, const struct limit *limits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct term_margins margins = {
            .columns = TERM_PAGE_COLUMNS, .at = 4, .hanging = 4, .lead = "#"};
        if (!limits[i].holds)
            continue;
        text_add(emit->warnings, "%s\n", limits[i].words);
        text_add(emit->out, "# - ");
        term_wrap(limits[i].words, margins, emit->out);
    }
}

static void add_version(const struct emit *emit)
{
    const enum behavior behavior = emit->plan->options.policy.behavior;
    const struct limit limits[] = {
        {behavior == BEHAVIOR_UNSHARD, "behavior unshard packs and casts with kernels of its own, "
                                       "which no PyTorch has: the units "
                                       "are these, their copies are not"},
        {behavior == BEHAVIOR_TORCH_PR196626, "behavior torch-pr196626 was never released: it "
                                              "takes a PyTorch that was built from that pull "
                                              "request"},
        {behavior == BEHAVIOR_TORCH_2_15,
         "behavior torch-2.15 is main of October 2026: the release 2.15.0 takes the same calls and "
         "leaves gradients in the compute dtype"},
        {behavior == BEHAVIOR_TORCH_2_11 && emit_has(emit, EMIT_KEPT),
         "behavior torch-2.11 has no function that gives single parameters another dtype: units "
         "that "
         "compute in FP32 are units of their own, with a policy of their own"},
    };
    add(emit, limits, sizeof limits / sizeof *limits);
}

/* Methods that came late. */
static void add_methods(const struct emit *emit)
{
    const struct plan_options *o = &emit->plan->options;
    const bool old = o->policy.behavior == BEHAVIOR_TORCH_2_11;
    const struct limit limits[] = {
        {old && o->reduce_inputs != 1,
         "set_reduce_scatter_max_input_buffers is in the release 2.15.0, older ones may lack it"},
        {old && o->separate_reduce_comm,
         "set_separate_reduce_scatter_group is in the release 2.15.0, older ones may lack it"},
        {old && o->zero_unused,
         "set_reduce_scatter_unused_params is in the release 2.15.0, older ones may lack it"},
    };
    add(emit, limits, sizeof limits / sizeof *limits);
}

static void add_schedule(const struct emit *emit)
{
    const struct plan_options *o = &emit->plan->options;
    const struct limit limits[] = {
        {o->arrange == ARRANGE_PRECAST,
         "--arrange precast: no call casts gradients before they are packed"},
        {o->pack_on_reduce,
         "--pack-stream rs: gradients are packed on the compute stream since June 2024"},
        {o->full_recompute && emit_checkpoints(emit),
         "--early-stop no: run forward under "
         "torch.utils.checkpoint.set_checkpoint_early_stop(False)"},
        {o->host_sync, option_words(emit, OPTION_HOST_SYNC,
                                    "the host waits where the model's own code makes it wait")},
        {o->scaler, "--scaler yes: unscale and look for infinities in the training loop"},
        {o->clip, option_words(emit, OPTION_CLIP, "clip_grad_norm_ goes before optimizer.step()")},
        {o->log_loss, "--log-loss yes: the training loop reads the mean loss of all ranks"},
        {o->optimizer == OPTIMIZER_ADAMW_COMPOSER,
         "--optimizer adamw-composer: composer's DecoupledAdamW is not part of PyTorch"},
    };
    add(emit, limits, sizeof limits / sizeof *limits);
}

static void add_model(const struct emit *emit)
{
    const struct plan_options *o = &emit->plan->options;
    const struct limit limits[] = {
        {o->ops == OPS_NATIVE,
         "--ops native: operators are the model's own, not those of this plan"},
        {o->ops == OPS_TORCH_COMPILE,
         "--ops torch-compile: each block has to be compiled by itself"},
        {o->norm == NORM_COMPOSITE,
         "--norm composite: the model's RMSNorm is made of single operators"},
        {o->loss != LOSS_EAGER,
         option_words(emit, OPTION_LOSS, "the loss is that of the training loop")},
        {o->train_metrics > 0,
         option_words(emit, OPTION_TRAIN_METRICS, "metrics are those of the training loop")},
        {o->attention != ATTENTION_SDPA,
         option_words(emit, OPTION_ATTENTION, "attention is what the model calls")},
        {o->linear_fp8, "--linear-dtype fp8: linear layers have to be converted before apply()"},
        {emit->plan->model->lora != NULL,
         option_words(emit, OPTION_LORA,
                      "adapters have to be in the model, named as in "
                      "'unshard model show'")},
        {emit_has(emit, EMIT_IGNORED),
         option_words(emit, OPTION_IGNORE,
                      "no unit reduces their gradients, and the plan has none")},
        {asks(emit, OPTION_ALLOCATOR),
         "--allocator expandable: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    };
    add(emit, limits, sizeof limits / sizeof *limits);
}

void emit_limits(const struct emit *emit)
{
    const size_t start = emit->out->length;

    text_add(emit->out, "#\n# What this code cannot say:\n");
    const size_t none = emit->out->length;
    add_version(emit);
    add_methods(emit);
    add_schedule(emit);
    add_model(emit);
    if (emit->out->length == none)
        emit->out->length = start;
}
