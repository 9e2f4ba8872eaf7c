/*
 * When a knob changes the program, and when it must not: each row of table (b) of spec FSDP2 that
 * there is an option for, by the program's hash. What it changes is told by the golden files of
 * tests/knobs.c.
 */
#include <stdio.h>
#include <string.h>

#include "src/cli/command.h"
#include "tests/asked.h"
#include "tests/tap.h"

#define FSDP1 "--units block --system fsdp1"
#define MIXED "--behavior torch-pr196626 --keep-fp32 *norm*"

static const struct change {
    const char *base, *knob;
    bool changes;
    const char *why;
} changes[] = {
    /* behavior, which is part of the hash whatever it changes */
    {"", "--behavior torch-2.15", true, "gradients are FP32"},
    {"", "--behavior torch-2.15.0", true, "it is another PyTorch"},
    {"", "--behavior torch-pr196626", true, "it is another PyTorch"},
    {"", "--behavior unshard", true, "copy-in is one launch"},
    {MIXED, "--behavior torch-2.15.0", true, "packing is a launch for each dtype"},
    /* unit partition, list grouping */
    {"", "--units block", true, "the root owns what is in no block"},
    {"--units block", "--units block*1", false, "the same units"},
    {"--units block", "--units attn+mlp", true, "two units a block"},
    {"--units block", "--units whole", true, "one unit"},
    /* reshard_after_forward */
    {"", "--reshard yes", false, "the root owns nothing: auto reshards all"},
    {"", "--reshard no", true, "backward gathers nothing"},
    {"", "--reshard 4", false, "all ranks are as good as yes"},
    {"--reshard no", "--reshard 1", false, "one rank is as good as no"},
    {"", "--reshard 2", true, "half of each tensor is kept"},
    {"--units block", "--reshard yes", true, "auto keeps a root that owns something"},
    {"", "--reshard all-but-last", true, "the last unit is kept"},
    {"--units whole", "--reshard all-but-last", false, "there is no unit but the root"},
    /* set_reshard_after_backward, set_unshard_in_backward */
    {"", "--reshard-backward last", false, "every microbatch is the last"},
    {"--accum 2", "--reshard-backward last", true, "the first is not"},
    {"", "--no-unshard-backward model.embed_tokens", true, "one all-gather less"},
    {"--reshard no", "--no-unshard-backward *", false, "nothing is gathered in backward anyway"},
    /* prefetch lists */
    {"", "--prefetch 1", true, "the all-gather is issued before the body"},
    {"--units whole", "--prefetch 1", false, "there is no next unit"},
    {"--gpus 1", "--prefetch 1", false, "nothing is gathered"},
    {"--prefetch 2", "--prefetch 9", false, "three units have no more ahead than two"},
    {"", "--prefetch-backward 1", false, "that is the default"},
    {"", "--prefetch-backward 2", true, "one more ahead"},
    {"--reshard no", "--prefetch-backward 2", false, "nothing is gathered in backward"},
    /* set_reduce_scatter_max_input_buffers, set_separate_reduce_scatter_group */
    {"", "--reduce-inputs 2", true, "two inputs are alive"},
    {"--units whole", "--reduce-inputs 2", false, "there is one reduction"},
    {"--reduce-inputs 3", "--reduce-inputs 9", false, "three units have no more than three"},
    {"", "--separate-reduce-comm yes", true, "a queue of their own"},
    {"--gpus 1", "--separate-reduce-comm yes", false, "nothing is reduced over ranks"},
    /* set_requires_gradient_sync, set_requires_all_reduce, set_is_last_backward */
    {"", "--sync last", false, "every microbatch is the last"},
    {"", "--no-reshard model.layers.*", true, "the blocks stay gathered"},
    {"--reshard no", "--no-reshard *", false, "no unit is resharded anyway"},
    {"--accum 2", "--sync last", true, "the first is not reduced"},
    {"--accum 2", "--all-reduce last", false, "there are no replicas"},
    {"--replicas 2", "--all-reduce last", false, "every microbatch is the last"},
    {"--accum 2 --replicas 2", "--all-reduce last", true, "the first stays partial"},
    {"--accum 2 --replicas 2 --sync last", "--all-reduce last", false, "only the last is reduced"},
    {"", "--last-backward last", false, "every microbatch is the last"},
    {"--accum 2", "--last-backward last", true, "the first waits for nothing"},
    /* set_gradient_divide_factor, set_force_sum_reduction_for_comms */
    {"", "--divide-factor 4", false, "the number of ranks"},
    {"", "--divide-factor 3", true, "a factor of NCCL's"},
    {"--divide-factor 3", "--divide-factor 5", true, "another number"},
    {"--replicas 2", "--divide-factor 2", true, "replicas are summed"},
    {"--replicas 2", "--divide-factor 4", true, "not the number of ranks of a shard"},
    {"--gpus 1", "--divide-factor 1", false, "a division that changes nothing"},
    {"--gpus 1", "--divide-factor 3", true, "a kernel divides"},
    {"", "--force-sum yes", true, "a kernel divides"},
    {"--gpus 1", "--force-sum yes", false, "nothing is divided"},
    {"--reduce-dtype fp16", "--force-sum yes", false, "FP16 is summed anyway"},
    /* mp_policy */
    {"", "--param-dtype fp32", true, "no cast, twice the message"},
    {"", "--reduce-dtype bf16", true, "half the message, one more cast"},
    {"", "--storage-dtype bf16", true, "no cast, one more at the end"},
    {"", "--output-dtype bf16", false, "that of compute"},
    {"", "--output-dtype fp32", true, "two casts at each border"},
    {"--units whole", "--output-dtype fp32", false, "the loss casts logits by itself"},
    {"", "--cast-inputs no", false, "what comes in is in the dtype of compute"},
    {"--behavior torch-2.15", "--keep-fp32 *norm*", true, "bytes are gathered"},
    {"--param-dtype fp32", "--keep-fp32 *norm*", false, "all computes in FP32"},
    {"", "--arrange by-dtype", false, "there is one dtype"},
    {MIXED, "--arrange by-dtype", true, "more units"},
    {MIXED, "--arrange precast", true, "full-size casts"},
    {MIXED " --param-dtype fp32", "--arrange precast", false, "nothing is left to cast"},
    /* mesh, shard_placement_fn */
    {"", "--replicas 2", true, "an all-reduce"},
    {"", "--nodes 2", true, "neighbours are fewer"},
    {"", "--shard-dim *.down_proj.weight=1", true, "more copies"},
    {"", "--shard-dim *=0", false, "that is the default"},
    {"--gpus 1", "--shard-dim *.down_proj.weight=1", true, "the layout names the dimension"},
    {"", "--pack-stream rs", true, "packing is RS's"},
    /* FullyShardedDataParallel */
    {"--units block", "--system fsdp1", true, "another system"},
    {FSDP1, "--fsdp1-strategy grad-op", true, "backward gathers nothing"},
    {FSDP1, "--fsdp1-strategy no-shard", true, "nothing is gathered at all"},
    {FSDP1, "--fsdp1-strategy hybrid --replicas 2", true, "an all-reduce"},
    {FSDP1, "--fsdp1-backward-prefetch post", true, "later all-gathers"},
    {FSDP1, "--fsdp1-backward-prefetch none", true, "later ones still"},
    {FSDP1, "--forward-prefetch yes", true, "earlier all-gathers"},
    {FSDP1, "--limit-all-gathers no", true, "no host waits"},
    {FSDP1, "--record-stream no", true, "waits in its place"},
    {FSDP1, "--pad-grads yes", true, "one more copy"},
    {FSDP1, "--pad-grads no", false, "that is the default"},
    {FSDP1, "--use-orig-params yes", true, "moments of pieces"},
    {FSDP1, "--use-orig-params no", false, "that is the default"},
    {FSDP1, "--buffer-dtype bf16", false, "cast before the first step"},
    {"--behavior torch-2.15", "--second-mesh *.mlp.*", true, "a group of its own"},
    {"--behavior torch-2.15", "--second-mesh *", true, "other communicators"},
    /* set_reduce_scatter_unused_params, requires_grad, ignored_params */
    {"", "--unused zero", false, "all parameters have gradients"},
    {"--freeze *norm*", "--unused zero", false, "what is frozen wants none"},
    {"", "--freeze *norm*", true, "less is reduced"},
    {"", "--ignore model.norm.weight", true, "less is gathered"},
    /* activation checkpointing, CPU syncs */
    {"", "--ac full", true, "another body"},
    {"", "--early-stop no", false, "nothing is computed again"},
    {"--ac full", "--early-stop no", true, "blocks are computed again to their end"},
    {"--ac full", "--early-stop yes", false, "that is the default"},
    {"--ac full --ops torch-compile", "--early-stop no", false, "compiled, that end is dead code"},
    /* what follows backward */
    {"", "--train-metrics 1", true, "a cross entropy more"},
    {"--train-metrics 1", "--train-metrics 2", true, "and another"},
    {"", "--train-metrics 0", false, "that is the default"},
    {"", "--ops native", true, "other operators"},
    {"--ops native", "--keep-fp32 model.norm.* --behavior torch-2.15", true,
     "another dtype is read"},
    {"", "--host-sync *", true, "the host waits"},
    {"", "--scaler yes", true, "the host waits"},
    {"", "--log-loss yes", true, "the host waits"},
    {"", "--optimizer sgd", true, "there are no states"},
    {"--freeze *", "--optimizer sgd", false, "nothing is updated"},
    {FSDP1, "--optimizer sgd", true, "the flat parameters have no states"},
    {"", "--clip 1", true, "a norm over all ranks"},
    {"--clip 1", "--clip 2", false, "the same kernels"},
    /* what is of the allocator is not of the program */
    {"", "--allocator expandable", false, "addresses are no part of it"},
    {"", "--memory 1GiB", false, "nor is what there is room for"},
    /* what holds without an option, where its words are no value */
    {"", "--nodes 1", false, "4 GPUs are one node"},
    {"", "--seq 8", false, "the model's own"},
};

static uint64_t hash_of(const char *words)
{
    struct made made;
    asked_init(&made, words, NULL);
    const uint64_t hash = program_hash(&made.program);
    make_release(&made);
    return hash;
}

static void knobs_change_the_hash(void)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct change *c = &changes[i];
        char words[256];
        snprintf(words, sizeof words, "%s %s", c->base, c->knob);
        ok((hash_of(c->base) != hash_of(words)) == c->changes, "%s%s%s changes %s: %s", c->knob,
           *c->base ? " with " : "", c->base, c->changes ? "the program" : "nothing", c->why);
    }
}

/* The default of an option as one would type it, or NULL. */
static const char *default_of(enum option_id id)
{
    const struct option_info *info = &option_table[id];
    const char *initial = option_initial(id, COMMAND_EXPLAIN);

    if (!info->in_force || (info->commands & COMMAND_EXPLAIN) == 0)
        return NULL;
    return initial != NULL || info->kind == OPTION_TEXT ? initial : info->otherwise;
}

/* Where a default is told in words the parser refuses them; those are in the table above. */
static void defaults_are_as_absent(void)
{
    static const char documented[] = "--cluster h100-sxm --gpus 8";
    const uint64_t absent = hash_of(documented);
    struct arena arena;
    unsigned n = 0;

    arena_init(&arena);
    for (unsigned id = 0; id < OPTION_N; id++) {
        struct plan_options options;
        struct err err = {0};
        if (default_of(id) == NULL)
            continue;
        const char *words =
            arena_printf(&arena, "%s --%s %s", documented, option_table[id].name, default_of(id));
        if (asked_options(words, &arena, &options, &err) != STATUS_OK)
            continue;
        ok(hash_of(words) == absent, "--%s %s is as without", option_table[id].name,
           default_of(id));
        n++;
    }
    arena_release(&arena);
    ok(n > 25, "which is what %u options say of themselves", n);
}

int main(void)
{
    knobs_change_the_hash();
    defaults_are_as_absent();
    return tap_done();
}
