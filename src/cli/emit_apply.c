/*
 * apply(): what is looked up by name, the calls of fully_shard, and what is set of the units then.
 */
#include <inttypes.h>

#include "src/cli/emit_torch_inner.h"

/* What reshard_after_forward is of a unit. */
static const char *reshard_of(const struct emit *emit, uint32_t unit)
{
    const struct plan_options *o = &emit->plan->options;

    if (!emit->plan->units[unit].reshard_after_forward)
        return "False";
    return o->reshard == RESHARD_RANKS ? arena_printf(emit->arena, "%" PRIu64, o->reshard_ranks)
                                       : "True";
}

static void add_checks(const struct emit *emit)
{
    const uint64_t n = emit->plan->model->n_element;

    text_add(emit->out,
             "    parameters = dict(model.named_parameters())\n"
             "    n = sum(parameter.numel() for parameter in parameters.values())\n"
             "    if n != %" PRIu64 ":\n"
             "        raise ValueError(f\"the plan is for %" PRIu64
             " parameters, this model has {n}\")\n"
             "    for parameter in parameters.values():\n"
             "        parameter.data = parameter.data.to(%s)  # as the plan stores them\n",
             n, n, emit_dtype(emit->plan->options.policy.storage));
    if (emit_has(emit, EMIT_FROZEN))
        text_add(emit->out, "    for name in frozen():\n"
                            "        parameters[name].requires_grad_(False)\n");
}

static void add_override(const struct emit *emit)
{
    const bool is_pr = emit->plan->options.policy.behavior == BEHAVIOR_TORCH_PR196626;

    if (!emit_overrides(emit))
        return;
    text_add(emit->out,
             "    fp32 = {parameters[name] for name in kept_fp32()}\n"
             "    policy = replace(\n"
             "        POLICY,\n"
             "        %s=lambda parameter: torch.float32 if parameter in fp32 else None,\n"
             "    )\n",
             is_pr ? "param_dtype_fn" : "param_dtype_override_fn");
}

static void add_placement(const struct emit *emit)
{
    const bool second_mesh = emit->plan->options.policy.second_mesh != NULL;

    if (!emit_has(emit, EMIT_SHARD_ON))
        return;
    if (second_mesh)
        text_add(emit->out,
                 "    second = DeviceMesh.from_group(dist.new_group(), mesh.device_type)\n"
                 "    meshes = [FSDPMeshInfo(m, shard_mesh_dim=0) for m in (mesh, second)]\n"
                 "    placements = {\n"
                 "        parameters[name]: ShardPlacementResult(Shard(dim), meshes[on_second])\n"
                 "        for name, dim, on_second in placed()\n    }\n"
                 "    usual = ShardPlacementResult(Shard(0), meshes[0])\n");
    else
        text_add(emit->out,
                 "    placements = {parameters[name]: Shard(dim) for name, dim, _ in placed()}\n");
}

static void add_shared(const struct emit *emit)
{
    text_add(emit->out, "    shared = dict(mesh=mesh");
    if (emit_has(emit, EMIT_IGNORED))
        text_add(emit->out, ", ignored_params={parameters[name] for name in ignored()}");
    if (emit_has(emit, EMIT_SHARD_ON))
        text_add(emit->out, ", shard_placement_fn=lambda parameter: placements.get(parameter%s)",
                 emit->plan->options.policy.second_mesh ? ", usual" : "");
    text_add(emit->out, ")\n");
}

static void add_checkpointing(const struct emit *emit)
{
    if (emit_checkpoints(emit))
        text_add(emit->out,
                 "    for path in checkpointed():\n"
                 "        block = model.get_submodule(path)\n"
                 "        model.set_submodule(path, checkpoint_wrapper(block%s))\n",
                 emit->plan->options.ac == AC_OP ? ", context_fn=kept_ops" : "");
}

/* Whether something is done with the units once all calls were made. */
static bool needs_order(const struct emit *emit)
{
    const struct plan_options *o = &emit->plan->options;
    return o->prefetch > 0 || o->prefetch_backward > 0 || o->force_sum || o->divide_factor > 0;
}

static void add_unit_calls(const struct emit *emit, const char *policy)
{
    if (emit->n_call == 0)
        return;
    text_add(emit->out,
             "    for u in reversed(list(units())):  # inner ones before outer ones\n"
             "        modules = [model.get_submodule(path) for path in u.modules]\n"
             "        fully_shard(\n"
             "            modules if len(modules) > 1 else modules[0],\n"
             "            reshard_after_forward=u.reshard,\n"
             "            mp_policy=%s,\n"
             "            **shared,\n"
             "        )\n",
             emit_any_fp32(emit) ? "u.policy" : policy);
    if (emit->plan->options.no_unshard_backward)
        text_add(emit->out, "        modules[0].set_unshard_in_backward(u.unshard_in_backward)\n");
    if (needs_order(emit))
        text_add(emit->out, "        first.insert(0, modules[0])\n");
}

static void add_calls(const struct emit *emit)
{
    const struct plan *plan = emit->plan;
    const char *policy = emit_overrides(emit) ? "policy" : "POLICY";

    if (needs_order(emit))
        text_add(emit->out, "    first = []  # of each unit's modules, in the order of forward\n");
    add_unit_calls(emit, policy);
    text_add(emit->out,
             "    fully_shard(model, reshard_after_forward=%s, mp_policy=%s, **shared)%s\n",
             plan->has_root ? reshard_of(emit, 0) : "False",
             plan->has_root && emit_is_fp32(emit, 0) ? "FP32" : policy,
             plan->has_root ? "" : "  # owns no parameter");
    if (plan->has_root && !plan->units[0].unshard_in_backward)
        text_add(emit->out, "    model.set_unshard_in_backward(False)\n");
}

/* The lists of src/schedule/fsdp2.c: the root is never in one; one that would be empty is not set. */
static void add_prefetch(const struct emit *emit)
{
    const struct plan *plan = emit->plan;
    const uint64_t ahead = plan->options.prefetch, behind = plan->options.prefetch_backward;

    if ((ahead == 0 && behind == 0) || emit->n_call == 0)
        return;
    text_add(emit->out, "    order = %s\n    for at, module in enumerate(order):\n",
             plan->has_root ? "[model, *first]" : "first");
    if (ahead > 0)
        text_add(emit->out,
                 "        ahead = order[at + 1 : at + 1 + %" PRIu64 "]\n"
                 "        if ahead:\n"
                 "            module.set_modules_to_forward_prefetch(ahead)\n",
                 ahead);
    if (behind > 0)
        text_add(emit->out,
                 "        behind = %s[-%" PRIu64 ":]\n"
                 "        if behind:\n"
                 "            module.set_modules_to_backward_prefetch(behind[::-1])\n",
                 plan->has_root ? "(order[1:at] if module is not model else first)" : "order[:at]",
                 behind);
}

/* Switches of whole plans: calls that set all units, or loops over them. */
static void add_switches(const struct emit *emit)
{
    const struct plan_options *o = &emit->plan->options;

    if (o->reduce_inputs != 1)
        text_add(emit->out, "    model.set_reduce_scatter_max_input_buffers(%" PRIu64 ")\n",
                 o->reduce_inputs);
    if (o->separate_reduce_comm)
        text_add(emit->out, "    model.set_separate_reduce_scatter_group()\n");
    if (o->zero_unused)
        text_add(emit->out, "    model.set_reduce_scatter_unused_params(True)\n");
    if (!o->force_sum && !(o->divide_factor > 0))
        return;
    text_add(emit->out, "    for module in [model, *first]:\n");
    if (o->force_sum)
        text_add(emit->out, "        module.set_force_sum_reduction_for_comms(True)\n");
    if (o->divide_factor > 0)
        text_add(emit->out, "        module.set_gradient_divide_factor(%.17g)\n", o->divide_factor);
}

void emit_apply(const struct emit *emit)
{
    text_add(emit->out,
             "\n\ndef apply(model, mesh):\n"
             "    \"\"\"To be called before the optimizer is made; returns the model.\"\"\"\n");
    add_checks(emit);
    add_override(emit);
    add_placement(emit);
    add_shared(emit);
    add_checkpointing(emit);
    add_calls(emit);
    add_prefetch(emit);
    add_switches(emit);
    text_add(emit->out, "    return model\n");
}
