/*
 * The Python file; see emit_torch.h. One function for each part of it, in its order.
 *
 * Units are yielded in the order of forward, outer before inner, and are called for in the reverse of
 * it, so that inner ones come first; the same order makes the lists of explicit prefetching.
 */
#include "src/cli/emit_torch.h"

#include <inttypes.h>

#include "src/cli/emit_torch_inner.h"
#include "src/cli/term.h"

const char *emit_dtype(enum dtype dtype)
{
    return dtype == DTYPE_BF16   ? "torch.bfloat16"
           : dtype == DTYPE_FP16 ? "torch.float16"
                                 : "torch.float32";
}

static const char *boolean(bool yes)
{
    return yes ? "True" : "False";
}

/* ---- head ------------------------------------------------------------------------------------ */

static void add_comment(const struct emit *emit, const char *words)
{
    const struct term_margins margins = {
        .columns = TERM_PAGE_COLUMNS, .at = 2, .hanging = 2, .lead = "#"};
    text_add(emit->out, "# ");
    term_wrap(words, margins, emit->out);
}

/* Options in force; lists of modules are the code itself. */
static void add_options(const struct emit *emit, struct text *words)
{
    struct options options = *emit->options;

    if (option_text(&options, OPTION_UNITS)[0] == '[')
        options_set(&options, OPTION_UNITS, 0, NULL);
    text_add(words, "options:");
    prepared_options_text(&options, words);
}

static void add_head(const struct emit *emit)
{
    const struct plan_row *row = emit->row;
    char model[TERM_NAME_BYTES], n[32], ns[32], bytes[32];
    struct text words;

    text_init(&words);
    text_add(&words, "fully_shard for %s, %s parameters. Predicted: %s a step, %s of a GPU.",
             term_name(emit->plan->model->name, model), text_count(emit->plan->model->n_element, n),
             text_ns(row->step_ns[SPREAD_MID], ns), text_bytes(row->total_bytes, bytes));
    add_comment(emit, words.at);
    words.length = 0;
    add_options(emit, &words);
    add_comment(emit, words.at);
    text_add(emit->out, "# program %016" PRIx64 "\n", program_hash(&emit->prepared->program));
    text_release(&words);
}

static void add_imports(const struct emit *emit)
{
    const bool second_mesh = emit->plan->options.policy.second_mesh != NULL;

    text_add(emit->out, "\n%s%simport torch\n",
             emit_overrides(emit) ? "from dataclasses import replace\n" : "",
             emit->n_call > 0       ? "from types import SimpleNamespace\n\n"
             : emit_overrides(emit) ? "\n"
                                    : "");
    if (second_mesh)
        text_add(emit->out, "import torch.distributed as dist\n");
    if (emit_checkpoints(emit))
        text_add(emit->out,
                 "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import "
                 "checkpoint_wrapper\n");
    text_add(emit->out,
             "from torch.distributed.device_mesh import %sinit_device_mesh\n"
             "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n",
             second_mesh ? "DeviceMesh, " : "");
    if (second_mesh)
        text_add(emit->out, "from torch.distributed.fsdp._fully_shard._fsdp_common import (\n"
                            "    FSDPMeshInfo,\n    ShardPlacementResult,\n)\n");
    if (emit_has(emit, EMIT_SHARD_ON))
        text_add(emit->out, "from torch.distributed.tensor import Shard\n");
    if (emit->plan->options.ac == AC_OP && emit_checkpoints(emit))
        text_add(emit->out, "from torch.utils.checkpoint import CheckpointPolicy, "
                            "create_selective_checkpoint_contexts\n");
}

static void add_mesh(const struct emit *emit)
{
    const struct plan *plan = emit->plan;
    const uint64_t replicas = plan->options.replicas;

    text_add(emit->out, "\n\ndef make_mesh(device=\"cuda\"):\n");
    if (replicas > 1)
        text_add(emit->out,
                 "    \"\"\"%" PRIu64 " replicas, the shards of each on %" PRIu64
                 " neighbouring ranks.\"\"\"\n"
                 "    return init_device_mesh(\n"
                 "        device, (%" PRIu64 ", %" PRIu64
                 "), mesh_dim_names=(\"replicate\", \"shard\")\n    )\n",
                 replicas, plan->shard_ranks, replicas, plan->shard_ranks);
    else
        text_add(emit->out,
                 "    return init_device_mesh(device, (%" PRIu64
                 ",), mesh_dim_names=(\"shard\",))\n",
                 plan->shard_ranks);
}

/* ---- units ------------------------------------------------------------------------------------ */

/* What of a unit is not the usual. */
static const char *tail_of(const struct emit *emit, uint32_t unit)
{
    const char *tail = "";

    if (!emit->plan->units[unit].reshard_after_forward)
        tail = arena_printf(emit->arena, "%s, reshard=False", tail);
    if (!emit->plan->units[unit].unshard_in_backward)
        tail = arena_printf(emit->arena, "%s, unshard_in_backward=False", tail);
    if (emit_is_fp32(emit, unit))
        tail = arena_printf(emit->arena, "%s, policy=FP32", tail);
    return tail;
}

static struct emit_item item_of(const struct emit *emit, const struct emit_call *call)
{
    const char **words = arena_array(emit->arena, const char *, call->modules.n + 1);

    for (uint32_t i = 0; i < call->modules.n; i++)
        words[i] = emit->plan->model->modules[call->modules.modules[i]].path;
    return (struct emit_item){
        .words = words, .n = call->modules.n, .tail = tail_of(emit, call->unit)};
}

static void add_units(const struct emit *emit)
{
    struct emit_item *items = arena_array(emit->arena, struct emit_item, emit->n_call + 1);
    const struct plan_options *o = &emit->plan->options;

    if (emit->n_call == 0)
        return;
    for (uint32_t i = 0; i < emit->n_call; i++)
        items[i] = item_of(emit, &emit->calls[i]);
    text_add(emit->out, "\n\ndef unit(*modules, reshard=");
    if (o->reshard == RESHARD_RANKS)
        text_add(emit->out, "%" PRIu64, o->reshard_ranks);
    else
        text_add(emit->out, "True");
    text_add(emit->out,
             "%s%s):\n"
             "    return SimpleNamespace(**locals())\n"
             "\n\ndef units():\n"
             "    \"\"\"All units but the root, in the order in which forward comes to "
             "them.\"\"\"\n",
             o->no_unshard_backward ? ", unshard_in_backward=True" : "",
             emit_any_fp32(emit) ? ", policy=POLICY" : "");
    emit_items(items, emit->n_call, "yield unit(", ")", emit->arena, emit->out);
}

/* ---- policy ----------------------------------------------------------------------------------- */

static void add_policy(const struct emit *emit, const char *name, enum dtype compute, bool casts)
{
    const struct plan *plan = emit->plan;

    text_add(emit->out, "%s = MixedPrecisionPolicy(\n    param_dtype=%s,\n    reduce_dtype=%s,\n",
             name, emit_dtype(compute), emit_dtype(plan->reduce_dtype));
    if (plan->options.output_dtype != DTYPE_N)
        text_add(emit->out, "    output_dtype=%s,\n", emit_dtype(plan->options.output_dtype));
    text_add(emit->out, "    cast_forward_inputs=%s,\n)\n", boolean(casts));
}

/* A unit of FP32 parameters inside of others takes its inputs as they come. */
static void add_policies(const struct emit *emit)
{
    text_add(emit->out, "\n");
    add_policy(emit, "POLICY", emit->plan->param_dtype, emit->plan->options.cast_inputs);
    if (emit_any_fp32(emit))
        add_policy(emit, "FP32", DTYPE_FP32, false);
}

/* ---- what is done at each step ---------------------------------------------------------------- */

static void add_microbatches(const struct emit *emit)
{
    const struct plan_options *o = &emit->plan->options;
    const struct {
        enum microbatches when;
        const char *call;
    } calls[] = {
        {o->sync, "set_requires_gradient_sync"},
        {o->all_reduce, "set_requires_all_reduce"},
        {o->finish, "set_is_last_backward"},
        {o->reshard_backward, "set_reshard_after_backward"},
    };
    bool begun = false;

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].when != MICROBATCH_LAST || o->accum == 1)
            continue;
        if (!begun)
            text_add(emit->out,
                     "\n\ndef before_microbatch(model, index):\n"
                     "    \"\"\"To be called before forward; index: from 0 to %" PRIu64 ".\"\"\"\n",
                     o->accum - 1);
        begun = true;
        text_add(emit->out, "    model.%s(index == %" PRIu64 ")\n", calls[i].call, o->accum - 1);
    }
}

/* Of what is not on one mesh, or on none, a group each: one kernel takes no mixture. */
static void add_optimizer(const struct emit *emit)
{
    static const char *const calls[OPTIMIZER_N] = {
        [OPTIMIZER_ADAMW] = "torch.optim.AdamW(trained, fused=True, **arguments)",
        [OPTIMIZER_SGD] = "torch.optim.SGD(trained, **arguments)",
        [OPTIMIZER_ADAMW_FOREACH] = "torch.optim.AdamW(trained, foreach=True, **arguments)",
    };
    const char *call = calls[emit->plan->options.optimizer];

    if (!call)
        return;
    text_add(emit->out, "\n\ndef make_optimizer(model, **arguments):\n"
                        "    trained = [p for p in model.parameters() if p.requires_grad]\n");
    if (emit_has(emit, EMIT_IGNORED) || emit->plan->options.policy.second_mesh)
        text_add(emit->out,
                 "    meshes = {}\n"
                 "    for p in trained:\n"
                 "        meshes.setdefault(getattr(p, \"device_mesh\", None), []).append(p)\n"
                 "    trained = [{\"params\": group} for group in meshes.values()]\n");
    text_add(emit->out, "    return %s\n", call);
}

/* ---- all -------------------------------------------------------------------------------------- */

static void find_calls(struct emit *emit)
{
    const struct plan *plan = emit->plan;

    emit->calls = arena_array(emit->arena, struct emit_call, plan->n_unit + 1);
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        struct emit_call *call = &emit->calls[emit->n_call];
        if (plan_is_root(plan, u) || plan->units[u].group > 0)
            continue;
        call->unit = u;
        plan_call_modules(plan, u, emit->arena, &call->modules);
        emit->n_call++;
    }
}

enum status emit_torch(const struct prepared *prepared, const struct plan_row *row,
                       struct arena *arena, struct text *out, struct text *warnings,
                       struct err *err)
{
    struct emit emit = {.prepared = prepared,
                        .plan = &prepared->plan,
                        .row = row,
                        .options = &row->options,
                        .arena = arena,
                        .out = out,
                        .warnings = warnings};

    if (prepared->plan.options.system != SYSTEM_FSDP2)
        return err_set(err, STATUS_USAGE,
                       "--emit torch writes calls of fully_shard, and this is a plan of fsdp1");
    find_calls(&emit);
    add_head(&emit);
    emit_limits(&emit);
    add_imports(&emit);
    add_policies(&emit);
    add_mesh(&emit);
    emit_lists(&emit);
    emit_blocks(&emit);
    add_units(&emit);
    emit_apply(&emit);
    add_microbatches(&emit);
    add_optimizer(&emit);
    return STATUS_OK;
}
