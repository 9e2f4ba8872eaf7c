/*
 * What one system does in another way than the other; see plan_system.h.
 */
#include "src/plan_system.h"

#include <inttypes.h>

struct rule {
    bool broken;
    const char *option, *why;
};

static enum status refuse_first(const struct rule *rules, size_t n, const char *system,
                                struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (rules[i].broken)
            return err_set(err, STATUS_USAGE, "%s is nothing that %s has: %s", rules[i].option,
                           system, rules[i].why);
    return STATUS_OK;
}

static enum status check_fsdp2(const struct plan_options *o, struct err *err)
{
    const struct rule rules[] = {
        {o->fsdp1.strategy != FSDP1_FULL_SHARD, "fsdp1-strategy",
         "reshard and replicas say the same"},
        {o->fsdp1.backward_prefetch != FSDP1_BACKWARD_PRE, "fsdp1-backward-prefetch",
         "it always prefetches before; prefetch-backward is how far"},
        {o->fsdp1.forward_prefetch, "forward-prefetch", "prefetch is how far ahead it gathers"},
        {!o->fsdp1.limit_all_gathers, "limit-all-gathers", "no host wait limits it"},
        {!o->fsdp1.record_stream, "record-stream", "events alone say when memory is free"},
        {o->fsdp1.pad_grads, "pad-grads", "its packing pads what it has to copy anyhow"},
        {o->fsdp1.use_orig_params, "use-orig-params",
         "its parameters always are the original ones"},
        {o->fsdp1.buffer_dtype != DTYPE_N, "buffer-dtype",
         "its MixedPrecisionPolicy leaves buffers as they are"},
    };
    return refuse_first(rules, sizeof rules / sizeof *rules, "fsdp2", err);
}

static enum status check_schedule(const struct plan_options *o, struct err *err)
{
    const struct rule rules[] = {
        {o->reshard != RESHARD_AUTO, "reshard", "fsdp1-strategy says what is freed after forward"},
        {o->no_reshard, "no-reshard", "fsdp1-strategy says what is freed after forward"},
        {o->reshard_backward != MICROBATCH_EVERY, "reshard-backward",
         "it frees after every backward that reduces"},
        {o->no_unshard_backward, "no-unshard-backward", "backward gathers every unit"},
        {o->prefetch > 0, "prefetch", "forward-prefetch is one unit ahead or none"},
        {o->prefetch_backward > 0, "prefetch-backward", "fsdp1-backward-prefetch says when"},
        {o->policy.behavior != BEHAVIOR_TORCH_2_11, "behavior",
         "those are of FSDP2; it is modelled as in torch-2.11"},
        {o->policy.shard_dim, "shard-dim", "a flat parameter has one dimension"},
        {o->output_dtype != DTYPE_N, "output-dtype", "its MixedPrecision has none"},
        {o->policy.second_mesh, "second-mesh", "a flat parameter is on one mesh"},
        {o->policy.freeze, "freeze", "frozen parts of a flat parameter are not modelled"},
    };
    return refuse_first(rules, sizeof rules / sizeof *rules, "fsdp1", err);
}

static enum status check_reduction(const struct plan_options *o, struct err *err)
{
    const struct rule rules[] = {
        {o->sync != MICROBATCH_EVERY, "sync", "gradients of no_sync() are not modelled"},
        {o->all_reduce != MICROBATCH_EVERY, "all-reduce", "replicas are reduced every time"},
        {o->finish != MICROBATCH_EVERY, "last-backward", "every backward ends with a wait"},
        {o->reduce_inputs != 1, "reduce-inputs", "record-stream says how long gradients live"},
        {o->pack_on_reduce, "pack-stream", "it puts gradients in a row on C and reduces those"},
        {o->separate_reduce_comm, "separate-reduce-comm", "it has one communicator"},
        {o->zero_unused, "unused", "a flat gradient is always whole"},
        {o->force_sum, "force-sum", "it always sums, and divides before and after"},
        {o->divide_factor > 0, "divide-factor", "it divides by the number of ranks"},
    };
    return refuse_first(rules, sizeof rules / sizeof *rules, "fsdp1", err);
}

static enum status check_compiled(const struct plan_options *o, struct err *err)
{
    if (o->ops == OPS_TORCH_COMPILE && !o->fsdp1.use_orig_params)
        return err_set(
            err, STATUS_USAGE,
            "ops torch-compile takes fsdp1 with use-orig-params yes alone, as Dynamo does");
    return STATUS_OK;
}

/* HYBRID is for replicas, and replicas are for HYBRID alone. */
static enum status check_strategy(const struct plan_options *o, struct err *err)
{
    const bool hybrid = o->fsdp1.strategy == FSDP1_HYBRID_SHARD;

    if (hybrid && o->replicas == 1)
        return err_set(err, STATUS_USAGE,
                       "fsdp1-strategy hybrid shards within replicas; give replicas");
    if (!hybrid && o->replicas > 1 && o->replicas < o->gpus)
        return err_set(err, STATUS_USAGE,
                       "replicas %" PRIu64 " of shards are fsdp1-strategy hybrid", o->replicas);
    if (o->fsdp1.strategy == FSDP1_NO_SHARD && o->accum > 1)
        return err_set(err, STATUS_USAGE,
                       "accum %" PRIu64 " with fsdp1-strategy no-shard is not modelled, nor with "
                       "another where one GPU has all shards; use accum 1 or shard over more",
                       o->accum);
    return STATUS_OK;
}

enum status plan_system(struct plan_options *options, struct err *err)
{
    if (options->system == SYSTEM_FSDP2)
        return check_fsdp2(options, err);
    if (options->gpus == options->replicas)
        options->fsdp1.strategy = FSDP1_NO_SHARD;
    enum status status = check_schedule(options, err);
    if (!status)
        status = check_reduction(options, err);
    if (!status)
        status = check_strategy(options, err);
    if (!status)
        status = check_compiled(options, err);
    if (!status && options->fsdp1.strategy == FSDP1_NO_SHARD)
        options->replicas = options->gpus;
    return status;
}

void plan_system_order(enum system system, const struct model *model, uint32_t *out)
{
    if (system == SYSTEM_FSDP1)
        model_flat_order(model, out);
    else
        model_param_order(model, out);
}
