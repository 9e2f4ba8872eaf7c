/*
 * Programs for tests; see make.h.
 */
#include "tests/make.h"

#include <string.h>

#include "src/arch/arch.h"
#include "src/lora.h"
#include "src/schedule/system.h"
#include "tests/tap.h"

static void must(enum status status, const struct err *err)
{
    if (status != STATUS_OK)
        tap_bail(err->text);
}

void make_finish(struct made *made, const struct plan_options *options)
{
    struct err err = {0};

    must(plan_resolve(&made->model, options, &made->arena, &made->plan, &err), &err);
    must(layout_build(&made->plan, &made->arena, &made->layout, &err), &err);
    const struct body_options body_options = plan_body_options(&made->plan);
    must(body_table_build(&made->model, made->plan.policy, &body_options, &made->arena,
                          &made->bodies, &err),
         &err);
    schedule_program(&made->plan, &made->layout, &made->bodies, &made->arena, &made->program);
}

void make_init(struct made *made, const char *model, uint64_t layers,
               const struct plan_options *options)
{
    struct err err = {0};

    *made = (struct made){0};
    arena_init(&made->arena);
    must(model_open(model, layers, &made->arena, &made->model, &err), &err);
    make_finish(made, options);
}

void make_init_lora(struct made *made, const char *model, uint64_t layers, const char *lora,
                    const struct plan_options *options)
{
    struct err err = {0};

    *made = (struct made){0};
    arena_init(&made->arena);
    must(model_open(model, layers, &made->arena, &made->model, &err), &err);
    must(lora_add(&made->model, lora, &made->arena, &err), &err);
    make_finish(made, options);
}

void make_init_family(struct made *made, const char *family, const struct dims *dims,
                      const struct plan_options *options)
{
    const struct arch *arch = arch_by_name(family);
    struct err err = {0};

    *made = (struct made){0};
    arena_init(&made->arena);
    must(arch->build(dims, &made->arena, &made->model, &err), &err);
    made->model.name = "random";
    made->model.arch = arch;
    made->model.dims = *dims;
    make_finish(made, options);
}

void make_init_dims(struct made *made, const struct dims *dims, const struct plan_options *options)
{
    make_init_family(made, "llama", dims, options);
}

void make_release(struct made *made)
{
    arena_release(&made->arena);
}

struct dims make_random_dims(uint64_t *state)
{
    const uint64_t kv_heads = 1 + tap_below(state, 3);
    const uint64_t heads = kv_heads * (1 + tap_below(state, 3));
    const uint64_t head_dim = 8 * (1 + tap_below(state, 4));
    return (struct dims){
        .layers = 1 + tap_below(state, 6),
        .hidden = heads * head_dim,
        .intermediate = 1 + tap_below(state, 300),
        .heads = heads,
        .kv_heads = kv_heads,
        .head_dim = head_dim,
        .vocab = 1 + tap_below(state, 700),
        .default_seq = 64,
    };
}

static enum microbatches random_microbatches(uint64_t *state)
{
    return (enum microbatches)tap_below(state, MICROBATCHES_N);
}

/* Replicas, and groups of an integer reshard, divide the ranks that there are. */
static void make_random_ranks(uint64_t *state, struct plan_options *options)
{
    options->replicas = options->gpus % 2 == 0 && tap_below(state, 3) == 0 ? 2 : 1;
    const uint64_t shard_ranks = options->gpus / options->replicas;
    const uint64_t divisor = 2 + tap_below(state, 3);

    options->reshard = (enum reshard)tap_below(state, RESHARD_RANKS);
    if (shard_ranks % divisor != 0 || shard_ranks == divisor || tap_below(state, 2))
        return;
    options->reshard = RESHARD_RANKS;
    options->reshard_ranks = divisor;
}

static void make_random_reduction(uint64_t *state, struct plan_options *options)
{
    static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16};

    options->policy.behavior = (enum behavior)tap_below(state, BEHAVIOR_N);
    options->policy.reduce = dtypes[tap_below(state, 3)];
    options->policy.storage = dtypes[tap_below(state, 2)];
    options->sync = random_microbatches(state);
    options->all_reduce = random_microbatches(state);
    options->finish = random_microbatches(state);
    options->reshard_backward = random_microbatches(state);
    options->reduce_inputs = 1 + tap_below(state, 3);
    options->separate_reduce_comm = tap_below(state, 2);
    options->pack_on_reduce = tap_below(state, 4) == 0;
    options->force_sum = tap_below(state, 4) == 0;
    options->divide_factor = (double)tap_below(state, 4);
}

static void make_random_rest(uint64_t *state, struct plan_options *options)
{
    options->scaler = tap_below(state, 4) == 0;
    options->clip = tap_below(state, 2);
    options->log_loss = tap_below(state, 4) == 0;
    /* native has two optimizers, the first ones, and one loss */
    options->optimizer =
        (enum optimizer)tap_below(state, options->ops == OPS_NATIVE ? 2 : OPTIMIZER_N);
    options->loss = (enum loss_kind)tap_below(state, options->ops == OPS_NATIVE ? 1 : LOSS_N);
    if (options->ops != OPS_NATIVE && options->loss != LOSS_EAGER_MODEL && tap_below(state, 4) == 0)
        options->train_metrics = 1 + tap_below(state, 16);
    options->ac_layers = tap_below(state, 3);
    options->full_recompute = tap_below(state, 4) == 0;
    if (!strcmp(options->units, "torchtitan") && tap_below(state, 3) == 0)
        options->output_dtype = DTYPE_FP32;
    if (tap_below(state, 4) == 0 && strcmp(options->units, "whole") != 0)
        options->host_sync = "*.0*";
}

struct plan_options make_random_options(uint64_t *state, const struct dims *dims)
{
    static const char *const schemes[] = {"block",    "block*2",    "block*3",
                                          "attn+mlp", "torchtitan", "whole"};
    struct plan_options options = plan_options_default();

    (void)dims;
    options.gpus = 1 + tap_below(state, 12);
    options.nodes = 1;
    options.seq = 1 + tap_below(state, 90);
    options.batch = 1 + tap_below(state, 3);
    options.accum = 1 + tap_below(state, 3);
    options.units = schemes[tap_below(state, sizeof schemes / sizeof *schemes)];
    make_random_ranks(state, &options);
    make_random_reduction(state, &options);
    options.prefetch = tap_below(state, 4);
    options.prefetch_backward = tap_below(state, 4);
    options.ac = options.units == schemes[3] ? AC_NONE : (enum checkpointing)tap_below(state, AC_N);
    options.ac_every = tap_below(state, 4);
    options.ops = (enum ops_profile)tap_below(state, OPS_PROFILE_N);
    options.norm =
        options.ops == OPS_TORCH_EAGER ? (enum norm_kind)tap_below(state, NORM_KIND_N) : NORM_FUSED;
    make_random_rest(state, &options);
    options.workspace_bytes = 1 << 20;
    return options;
}

/* Nodes that the ranks fill evenly, and parameters that no unit has: with the embedding backward ends
   early. */
static void make_random_surroundings(uint64_t *state, struct plan_options *options)
{
    static const char *const ignored[] = {NULL,     NULL,        "*embed*",
                                          "*norm*", "*lm_head*", "*mlp*,*embed*,*layers.0.self*"};
    const uint64_t nodes = UINT64_C(1) << tap_below(state, 3);

    options->nodes = options->gpus % nodes == 0 ? nodes : 1;
    options->policy.ignore = ignored[tap_below(state, sizeof ignored / sizeof *ignored)];
}

struct plan_options make_random_fsdp1(uint64_t *state)
{
    static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16};
    struct plan_options options = plan_options_default();

    options.system = SYSTEM_FSDP1;
    options.gpus = 1 + tap_below(state, 12);
    make_random_surroundings(state, &options);
    options.seq = 1 + tap_below(state, 90);
    options.batch = 1 + tap_below(state, 3);
    options.units = tap_below(state, 4) ? "block" : "whole";
    options.ac = (enum checkpointing)tap_below(state, AC_N);
    options.policy.reduce = dtypes[tap_below(state, 2)];
    options.policy.storage = dtypes[tap_below(state, 2)];
    options.workspace_bytes = 1 << 20;
    options.fsdp1 = (struct fsdp1_options){
        .strategy = (enum fsdp1_strategy)tap_below(state, FSDP1_HYBRID_SHARD),
        .backward_prefetch = (enum fsdp1_prefetch)tap_below(state, 3),
        .forward_prefetch = tap_below(state, 2),
        .limit_all_gathers = tap_below(state, 4) > 0,
        .record_stream = tap_below(state, 4) > 0,
        .pad_grads = tap_below(state, 4) == 0,
        .use_orig_params = tap_below(state, 2),
    };
    options.full_recompute = tap_below(state, 4) == 0;
    options.train_metrics = tap_below(state, 4) == 0 ? 1 + tap_below(state, 16) : 0;
    if (options.gpus % 2 == 0 && tap_below(state, 3) == 0) {
        options.fsdp1.strategy = FSDP1_HYBRID_SHARD;
        options.replicas = 2;
    }
    if (options.fsdp1.strategy != FSDP1_NO_SHARD && options.gpus > options.replicas)
        options.accum = 1 + tap_below(state, 3);
    return options;
}

/* Of gpt2 with what that has always, or of kda, whose head is its own. */
static const char *make_random_native(uint64_t *state, struct dims *dims,
                                      struct plan_options *options)
{
    dims->kv_heads = dims->heads;
    dims->hidden = dims->heads * dims->head_dim;
    dims->bias = tap_below(state, 2);
    dims->positions = dims->bias ? options->seq + tap_below(state, 50) : 0;
    if (dims->bias)
        return "gpt2";
    dims->tied = false;
    options->policy.behavior = BEHAVIOR_UNSHARD; /* its units have two dtypes */
    return "kda";
}

const char *make_random_tied(uint64_t *state, struct dims *dims, struct plan_options *options)
{
    *dims = make_random_dims(state);
    *options = make_random_options(state, dims);
    dims->tied = true;
    options->output_dtype = DTYPE_N; /* the last block's output goes into the embedding's unit */
    if (tap_below(state, 3) == 0)
        return "llama";
    dims->bias = tap_below(state, 2);
    dims->tied = tap_below(state, 4) > 0;
    dims->positions = tap_below(state, 2) * (options->seq + tap_below(state, 50));
    options->norm = NORM_FUSED;
    if (options->ops == OPS_NATIVE)
        return make_random_native(state, dims, options);
    return "mpt";
}
