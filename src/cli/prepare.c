/*
 * Options to a verified program; see prepare.h. Every default is the option table's or the plan's,
 * but for the units of FSDP1.
 */
#include "src/cli/prepare.h"

#include <string.h>

#include "src/cli/run_debug.h"
#include "src/cli/term.h"
#include "src/lora.h"
#include "src/schedule/system.h"
#include "src/verify.h"

static struct policy_options policy_options_from(const struct options *options)
{
    return (struct policy_options){
        .behavior = (enum behavior)option_number(options, OPTION_BEHAVIOR),
        .storage = (enum dtype)option_number(options, OPTION_STORAGE_DTYPE),
        .param = (enum dtype)option_number(options, OPTION_PARAM_DTYPE),
        .reduce = (enum dtype)option_number(options, OPTION_REDUCE_DTYPE),
        .keep_fp32 = option_text(options, OPTION_KEEP_FP32),
        .freeze = option_text(options, OPTION_FREEZE),
        .ignore = option_text(options, OPTION_IGNORE),
        .second_mesh = option_text(options, OPTION_SECOND_MESH),
        .shard_dim = option_text(options, OPTION_SHARD_DIM),
    };
}

/* When and how gradients are reduced. Where nothing is given the words' first ones hold. */
static void set_reduction(const struct options *options, struct plan_options *out)
{
    out->sync = (enum microbatches)option_number(options, OPTION_SYNC);
    out->all_reduce = (enum microbatches)option_number(options, OPTION_ALL_REDUCE);
    out->finish = (enum microbatches)option_number(options, OPTION_LAST_BACKWARD);
    if (option_given(options, OPTION_REDUCE_INPUTS))
        out->reduce_inputs = option_number(options, OPTION_REDUCE_INPUTS);
    out->pack_on_reduce = option_number(options, OPTION_PACK_STREAM);
    out->separate_reduce_comm = option_number(options, OPTION_SEPARATE_REDUCE_COMM);
    out->zero_unused = option_number(options, OPTION_UNUSED);
    out->force_sum = option_number(options, OPTION_FORCE_SUM);
    out->divide_factor = options->values[OPTION_DIVIDE_FACTOR].real;
}

/* A switch that is on where nothing is given. */
static bool is_on(const struct options *options, enum option_id id)
{
    return !option_given(options, id) || option_number(options, id) > 0;
}

static enum dtype dtype_or_none(const struct options *options, enum option_id id)
{
    return option_given(options, id) ? (enum dtype)option_number(options, id) : DTYPE_N;
}

/* What is compiled needs it. */
static bool keeps_orig_params(const struct options *options)
{
    if (option_given(options, OPTION_USE_ORIG_PARAMS))
        return option_number(options, OPTION_USE_ORIG_PARAMS) > 0;
    return option_number(options, OPTION_SYSTEM) == SYSTEM_FSDP1 &&
           option_number(options, OPTION_OPS) == OPS_TORCH_COMPILE;
}

static struct fsdp1_options fsdp1_options_from(const struct options *options)
{
    return (struct fsdp1_options){
        .strategy = (enum fsdp1_strategy)option_number(options, OPTION_FSDP1_STRATEGY),
        .backward_prefetch =
            (enum fsdp1_prefetch)option_number(options, OPTION_FSDP1_BACKWARD_PREFETCH),
        .forward_prefetch = option_number(options, OPTION_FORWARD_PREFETCH),
        .limit_all_gathers = is_on(options, OPTION_LIMIT_ALL_GATHERS),
        .record_stream = is_on(options, OPTION_RECORD_STREAM),
        .pad_grads = option_number(options, OPTION_PAD_GRADS),
        .use_orig_params = keeps_orig_params(options),
        .buffer_dtype = dtype_or_none(options, OPTION_BUFFER_DTYPE),
    };
}

/* A number is that of every so-many-th block, and these are checkpointed fully. */
static void set_checkpointing(const struct options *options, struct plan_options *out)
{
    const struct option_value *ac = &options->values[OPTION_AC];
    out->ac = ac->count > 0 ? AC_FULL : (enum checkpointing)ac->number;
    out->ac_every = ac->count;
    out->ac_layers = option_number(options, OPTION_AC_LAYERS);
    out->full_recompute = !is_on(options, OPTION_EARLY_STOP);
}

struct plan_options prepare_plan_options(const struct options *options,
                                         const struct cluster *cluster)
{
    struct plan_options out = plan_options_default();
    out.system = (enum system)option_number(options, OPTION_SYSTEM);
    out.fsdp1 = fsdp1_options_from(options);
    out.gpus = option_number(options, OPTION_GPUS);
    out.nodes = option_number(options, OPTION_NODES);
    out.seq = option_number(options, OPTION_SEQ);
    out.batch = option_number(options, OPTION_BATCH);
    out.accum = option_number(options, OPTION_ACCUM);
    out.units = option_text(options, OPTION_UNITS);
    if (option_given(options, OPTION_REPLICAS))
        out.replicas = option_number(options, OPTION_REPLICAS);
    out.arrange = (enum arrange)option_number(options, OPTION_ARRANGE);
    out.policy = policy_options_from(options);
    set_reduction(options, &out);
    out.reshard = (enum reshard)option_number(options, OPTION_RESHARD);
    out.reshard_ranks = options->values[OPTION_RESHARD].count;
    out.reshard_backward = (enum microbatches)option_number(options, OPTION_RESHARD_BACKWARD);
    out.no_reshard = option_text(options, OPTION_NO_RESHARD);
    out.no_unshard_backward = option_text(options, OPTION_NO_UNSHARD_BACKWARD);
    out.cast_inputs = option_number(options, OPTION_CAST_INPUTS) == 0;
    out.output_dtype = dtype_or_none(options, OPTION_OUTPUT_DTYPE);
    out.host_sync = option_text(options, OPTION_HOST_SYNC);
    out.scaler = option_number(options, OPTION_SCALER);
    out.clip = option_given(options, OPTION_CLIP);
    out.optimizer = (enum optimizer)option_number(options, OPTION_OPTIMIZER);
    out.log_loss = option_number(options, OPTION_LOG_LOSS);
    out.prefetch = option_number(options, OPTION_PREFETCH);
    out.prefetch_backward = option_number(options, OPTION_PREFETCH_BACKWARD);
    set_checkpointing(options, &out);
    out.ops = (enum ops_profile)option_number(options, OPTION_OPS);
    out.norm = (enum norm_kind)option_number(options, OPTION_NORM);
    out.loss = (enum loss_kind)option_number(options, OPTION_LOSS);
    out.train_metrics = option_number(options, OPTION_TRAIN_METRICS);
    out.attention = (enum attention)option_number(options, OPTION_ATTENTION);
    out.tf32 = option_number(options, OPTION_FP32_PRODUCTS);
    out.linear_fp8 = option_number(options, OPTION_LINEAR_DTYPE);
    out.workspace_bytes = cluster->workspace_bytes;
    return out;
}

static void complete_option(struct options *options, enum option_id id, uint64_t number,
                            struct arena *arena)
{
    const char *const *words = option_table[id].words;

    if (!option_text(options, id))
        options_set(options, id, number,
                    words ? words[number]
                          : arena_printf(arena, "%llu", (unsigned long long)number));
}

static bool is_builtin(const char *name)
{
    for (uint32_t i = 0; i < n_builtin_models; i++) {
        if (!strcmp(builtin_models[i].name, name))
            return true;
    }
    return false;
}

enum status prepared_too_large(const struct options *options, const struct plan *plan,
                               const char *what, struct err *err)
{
    char name[TERM_NAME_BYTES];
    return err_set(err, is_builtin(options->operands[0]) ? STATUS_USAGE : STATUS_INPUT,
                   "%s is too large with --seq %llu --batch %llu: %s",
                   term_name(options->operands[0], name), (unsigned long long)plan->options.seq,
                   (unsigned long long)plan->options.batch, what);
}

/* Unless `run --debug no-verify` wants to see what happens. */
static enum status prove(const struct options *options, struct prepared *out, struct err *err)
{
    struct run_debug debug;
    struct fault fault;
    const enum status status = run_debug_parse(option_text(options, OPTION_DEBUG), &debug, err);

    if (status != STATUS_OK || !debug.verify)
        return status;
    return verify_program(&out->program, &out->arena, &fault, err);
}

static enum status build(const struct options *options, struct prepared *out, struct err *err)
{
    struct plan_options plan_options = prepare_plan_options(options, &out->cluster);
    enum status status = plan_resolve(&out->model, &plan_options, &out->arena, &out->plan, err);
    if (status != STATUS_OK)
        return status;
    char name[TERM_NAME_BYTES];
    if (layout_build(&out->plan, &out->arena, &out->layout, err) != STATUS_OK)
        return err_prefix(err, "%s", term_name(options->operands[0], name));
    struct body_options body_options = plan_body_options(&out->plan);
    if (body_table_build(&out->model, out->plan.policy, &body_options, &out->arena, &out->bodies,
                         err) != STATUS_OK)
        return prepared_too_large(options, &out->plan,
                                  "a part of the step passes 2^62 bytes or operations", err);
    schedule_program(&out->plan, &out->layout, &out->bodies, &out->arena, &out->program);

    return prove(options, out, err);
}

/* What is not a number of positions is the length of a sequence, where nothing is said the model's. */
static enum status set_positions(const struct options *options, struct prepared *out,
                                 struct err *err)
{
    uint64_t positions = options->values[OPTION_POSITIONS].count;

    if (positions == 0)
        positions = option_given(options, OPTION_SEQ) ? option_number(options, OPTION_SEQ)
                                                      : out->model.dims.default_seq;
    return model_set_positions(&out->model, positions, &out->opened, err);
}

static enum status leave_out(uint64_t terms, struct cluster *cluster, struct err *err)
{
    if (cluster->has_prices)
        return err_set(err, STATUS_USAGE,
                       "cluster '%s' has prices and no terms to leave out, leave --without out",
                       cluster->name);
    cluster->without = terms;
    return STATUS_OK;
}

/* A run that is held to a host's pace is predicted with that host. */
static enum status set_pace(const char *profile, struct cluster *cluster, struct err *err)
{
    if (!strcmp(profile, "cluster") || cluster_set_host(cluster, profile, err) == STATUS_OK)
        return STATUS_OK;
    return err_prefix(err, "--host-pace");
}

/* A plan is of one model, cut to as many blocks. */
static enum status check_plan_model(const struct options *options, const struct model *model,
                                    struct err *err)
{
    char name[TERM_NAME_BYTES], other[TERM_NAME_BYTES], n[32], n_other[32];

    if (!options->plan_model ||
        (!strcmp(options->plan_model, model->name) && options->plan_parameters == model->n_element))
        return STATUS_OK;
    return err_set(err, STATUS_INPUT,
                   "'%s' is a plan for '%s' of %s parameters, not for '%s' of %s",
                   option_text(options, OPTION_PLAN), term_name(options->plan_model, other),
                   text_count(options->plan_parameters, n_other), term_name(model->name, name),
                   text_count(model->n_element, n));
}

static enum status open_model(const struct options *options, const char *model_json,
                              struct prepared *out, struct err *err)
{
    const uint64_t layers = option_number(options, OPTION_LAYERS);
    const char *what = options->operands[0];

    if (model_json)
        return model_open_json(model_json, what, layers, &out->opened, &out->model, err);
    enum status status = model_open(what, layers, &out->opened, &out->model, err);
    if (status == STATUS_OK && option_given(options, OPTION_POSITIONS))
        status = set_positions(options, out, err);
    if (status == STATUS_OK && option_given(options, OPTION_LORA))
        status = lora_add(&out->model, option_text(options, OPTION_LORA), &out->opened, err);
    return status;
}

enum status prepare_open(const struct options *options, const char *model_json,
                         struct prepared *out, struct err *err)
{
    *out = (struct prepared){0};
    arena_init(&out->opened);
    arena_init(&out->arena);
    enum status status =
        cluster_open(option_text(options, OPTION_CLUSTER), &out->opened, &out->cluster, err);
    if (status == STATUS_OK && option_given(options, OPTION_NIC))
        status =
            cluster_set_nic(&out->cluster, options->values[OPTION_NIC].real, &out->opened, err);
    if (status == STATUS_OK && option_given(options, OPTION_HOST))
        status = cluster_set_host(&out->cluster, option_text(options, OPTION_HOST), err);
    if (status == STATUS_OK && option_given(options, OPTION_HOST_PACE))
        status = set_pace(option_text(options, OPTION_HOST_PACE), &out->cluster, err);
    if (status == STATUS_OK && option_given(options, OPTION_WITHOUT))
        status = leave_out(option_number(options, OPTION_WITHOUT), &out->cluster, err);
    if (status == STATUS_OK)
        status = open_model(options, model_json, out, err);
    return status == STATUS_OK ? check_plan_model(options, &out->model, err) : status;
}

void prepare_units(struct options *options)
{
    const char *systems = option_text(options, OPTION_SYSTEM);
    const char *fsdp1 = option_table[OPTION_SYSTEM].words[SYSTEM_FSDP1];

    if (systems && strstr(systems, fsdp1) && !option_given(options, OPTION_UNITS) &&
        !option_given(options, OPTION_PLAN))
        options_set(options, OPTION_UNITS, 1, "block");
}

enum status prepare_plan(struct options *options, struct prepared *prepared, struct err *err)
{
    arena_reset(&prepared->arena);
    prepare_units(options);
    enum status status = build(options, prepared, err);
    if (status != STATUS_OK)
        return status;
    complete_option(options, OPTION_NODES, prepared->plan.options.nodes, &prepared->opened);
    complete_option(options, OPTION_SEQ, prepared->plan.options.seq, &prepared->opened);
    if (prepared->plan.options.fsdp1.use_orig_params)
        complete_option(options, OPTION_USE_ORIG_PARAMS, true, &prepared->opened);
    return STATUS_OK;
}

enum status prepare(struct options *options, struct prepared *out, struct err *err)
{
    enum status status = prepare_open(options, NULL, out, err);
    return status == STATUS_OK ? prepare_plan(options, out, err) : status;
}

void prepared_release(struct prepared *prepared)
{
    arena_release(&prepared->arena);
    arena_release(&prepared->opened);
}

static bool is_in_force(const struct options *options, unsigned id)
{
    return option_table[id].in_force && option_text(options, id);
}

void prepared_options_text(const struct options *options, struct text *out)
{
    for (unsigned id = 0; id < OPTION_N; id++) {
        if (is_in_force(options, id))
            text_add(out, " --%s" TERM_GLUE "%s", option_table[id].name, option_text(options, id));
    }
}

/* JSON keys have no dashes. */
static const char *option_key(const char *name, char key[32])
{
    size_t i = 0;
    for (; i < 31 && name[i]; i++)
        key[i] = name[i] == '-' ? '_' : name[i];
    key[i] = '\0';
    return key;
}

struct cJSON *prepared_options_json(const struct options *options, struct cJSON *parent)
{
    struct cJSON *object = json_add_object(parent, "options");
    char key[32];
    for (unsigned id = 0; id < OPTION_N; id++) {
        if (!is_in_force(options, id))
            continue;
        option_key(option_table[id].name, key);
        if (option_table[id].kind == OPTION_COUNT || option_table[id].kind == OPTION_BYTES)
            json_add_u64(object, key, option_number(options, (enum option_id)id));
        else
            json_add_string(object, key, option_text(options, (enum option_id)id));
    }
    return object;
}

bool prepared_option_stands(const struct json_at *asked, enum option_id id)
{
    char key[32];
    return option_table[id].in_force && json_has(asked, option_key(option_table[id].name, key));
}

/* A number of counts and sizes, else a word. */
enum status prepared_option_read(const struct json_at *asked, enum option_id id,
                                 struct arena *arena, const char **out, struct err *err)
{
    const bool is_number =
        option_table[id].kind == OPTION_COUNT || option_table[id].kind == OPTION_BYTES;
    const char *text = NULL;
    char key[32];
    uint64_t number = 0;

    option_key(option_table[id].name, key);
    enum status status = is_number ? json_get_u64(asked, key, UINT64_MAX, &number, err)
                                   : json_get_string(asked, key, &text, err);
    if (status == STATUS_OK)
        *out = is_number ? arena_printf(arena, "%llu", (unsigned long long)number)
                         : arena_strdup(arena, text);
    return status;
}

enum status prepared_asked_read(const char *json, struct arena *arena, struct options *options,
                                struct err *err)
{
    struct json_doc doc;
    enum status status = json_parse(json, "options of the run", &doc, err);
    if (status != STATUS_OK)
        return status;
    const struct json_at asked = json_root(&doc);
    for (unsigned id = 0; id < OPTION_N && status == STATUS_OK; id++) {
        const char *text;
        if (option_given(options, id) || !prepared_option_stands(&asked, (enum option_id)id))
            continue;
        status = prepared_option_read(&asked, (enum option_id)id, arena, &text, err);
        if (status == STATUS_OK)
            status = options_take(options, (enum option_id)id, text, err);
    }
    json_release(&doc);
    return status;
}
