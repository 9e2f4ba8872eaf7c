/*
 * What cannot be run as units, and what to do about it; see plan_cut_inner.h. Nothing is changed
 * here: all of it reads what the cut has found so far.
 */
#include <inttypes.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/plan_cut_inner.h"

static enum status refuse_empty(const struct cut *cut, struct err *err)
{
    uint32_t draft = 0;
    while (draft < cut_root(cut) && cut->units[draft].n_param > 0)
        draft++;
    if (draft == cut_root(cut))
        return STATUS_OK;

    const struct unit_draft *source = &cut->drafts->drafts[draft];
    uint32_t first = cut->units[draft].shown[0], inner = first;
    while (inner < cut->model->modules[first].end && cut->module_owner[inner] == draft)
        inner++;
    if (inner == cut->model->modules[first].end)
        return unit_draft_fail(source, err, "unit '%s' has no parameters",
                               cut_unit_name(cut, draft));
    return unit_draft_fail(source, err,
                           "unit '%s' has no parameters: inner units such as '%s' own all of them; "
                           "drop or narrow '%s', which names it",
                           cut_unit_name(cut, draft), cut->model->modules[inner].path,
                           source->origin);
}

/* Only where all that the root computes with is ignored: it would gather and reduce nothing. */
static enum status refuse_empty_root(const struct cut *cut, struct err *err)
{
    const uint32_t root = cut_root(cut);
    uint32_t i = 0;

    while (i < cut->model->n_param && cut_owner(cut, i) != root)
        i++;
    if (i == cut->model->n_param || cut->units[root].n_param > 0)
        return STATUS_OK;
    return err_set(err, STATUS_USAGE,
                   "unit '%s' has no parameters: '%s' and whatever else is in no other unit are "
                   "ignored; narrow ignore",
                   cut_unit_name(cut, root), cut->model->params[i].name);
}

/* Hooks have to nest: a unit that ends outside of one in which it began would reshard too early. */
static enum status refuse_straddling(const struct cut *cut, struct err *err)
{
    for (uint32_t i = 0; i < cut_root(cut); i++) {
        const struct cut_unit *unit = &cut->units[i];
        if (unit->outer != unit->other_outer)
            return unit_draft_fail(&cut->drafts->drafts[i], err,
                                   "unit '%s' lies partly in unit '%s' and partly in '%s', it has "
                                   "to be inside of one; split it or drop the outer unit",
                                   cut_unit_name(cut, i), cut_unit_name(cut, unit->outer),
                                   cut_unit_name(cut, unit->other_outer));
    }
    return STATUS_OK;
}

/* A tied weight has to be in the unit of the head too: no unit may read what another one owns. */
static enum status refuse_split_tie(const struct cut *cut, struct err *err)
{
    const struct model *model = cut->model;
    if (model->tied_head == 0)
        return STATUS_OK;
    uint32_t weight = model->piece_params[model->pieces[model->n_piece - 1].param];
    uint32_t owner = cut_owner(cut, weight), head = cut->module_owner[model->tied_head];
    if (owner == head)
        return STATUS_OK;
    uint32_t draft = owner == cut_root(cut) ? head : owner;
    return unit_draft_fail(
        &cut->drafts->drafts[draft], err,
        "'%s' is the weight of '%s' as well, and FSDP2 refuses a parameter of two "
        "units; a list in a file makes both one unit, as 'torchtitan' does, and "
        "'block' leaves both to the root",
        model->params[weight].name, model->modules[model->tied_head].path);
}

/* FullyShardedDataParallel wraps a module, and fully_shard lists of them too. */
static enum status refuse_lists(const struct cut *cut, struct err *err)
{
    if (cut->plan->options.system != SYSTEM_FSDP1)
        return STATUS_OK;
    for (uint32_t i = 0; i < cut_root(cut); i++)
        if (cut->units[i].n_module > 1)
            return unit_draft_fail(&cut->drafts->drafts[i], err,
                                   "unit '%s' is a list of %u modules, and FSDP1 wraps one; units "
                                   "'block' leave the others to the root",
                                   cut_unit_name(cut, i), cut->units[i].n_module);
    return STATUS_OK;
}

static enum status refuse_group(const struct cut *cut, uint32_t draft, uint8_t mesh,
                                uint32_t *params, struct err *err)
{
    const struct plan_options *options = &cut->plan->options;
    struct eligible_unit unit = {.name = cut_unit_name(cut, draft),
                                 .model = cut->model,
                                 .policy = cut->plan->policy,
                                 .params = params};
    enum status status = STATUS_OK;
    struct text broken;

    text_init(&broken);
    for (uint32_t i = 0; i < cut->model->n_param; i++)
        if (cut_owner(cut, i) == draft && cut->mesh[i] == mesh && cut_is_managed(cut, i))
            params[unit.n_param++] = i;
    if (eligible_unit(&unit, options->policy.behavior, options->arrange, &broken))
        status = err_set(err, STATUS_NO, "%.*s", (int)strcspn(broken.at, "\n"), broken.at);
    text_release(&broken);
    return status;
}

/* Each group of each unit by itself, under the rules of the behavior. */
static enum status refuse_dtypes(const struct cut *cut, struct err *err)
{
    uint32_t *params = arena_array(cut->arena, uint32_t, cut->model->n_param);
    enum status status = STATUS_OK;

    for (uint32_t draft = 0; draft <= cut_root(cut) && !status; draft++)
        for (uint8_t mesh = 0; mesh < MESH_N && !status; mesh++)
            if (cut->units[draft].on_mesh[mesh] > 0)
                status = refuse_group(cut, draft, mesh, params, err);
    return status;
}

/* Metrics are cross entropies as PyTorch's operators, of what the model gave its caller. */
static enum status refuse_metrics(const struct model *model, const struct plan_options *options,
                                  struct err *err)
{
    if (options->train_metrics == 0)
        return STATUS_OK;
    if (model->dims.vocab == 0)
        return err_set(err, STATUS_USAGE, "train-metrics are of logits, and '%s' has none",
                       model->name);
    if (options->ops == OPS_NATIVE)
        return err_set(err, STATUS_USAGE,
                       "ops native has no operators for train-metrics; use ops torch-eager");
    if (options->loss == LOSS_EAGER_MODEL)
        return err_set(err, STATUS_USAGE,
                       "train-metrics of logits that the model has cast are not modelled; use loss "
                       "eager");
    return STATUS_OK;
}

/* Our own operators: of some families, and of what each of them has one way to compute. */
static enum status refuse_native(const struct model *model, const struct plan_options *options,
                                 struct err *err)
{
    if (options->ops != OPS_NATIVE)
        return STATUS_OK;
    if (!model->arch->native_bodies)
        return err_set(err, STATUS_USAGE, "ops native has no operators for %s; use ops torch-eager",
                       model->arch->name);
    if (model->lora)
        return err_set(err, STATUS_USAGE,
                       "ops native has no operators for adapters; use ops torch-eager, or no lora");
    if (options->norm == NORM_COMPOSITE)
        return err_set(err, STATUS_USAGE,
                       "norm composite is a way to run RMSNorm in PyTorch; ops native has one "
                       "operator, use norm fused");
    if (options->loss != LOSS_EAGER)
        return err_set(err, STATUS_USAGE,
                       "the loss of ops native is one operator of its own; leave the option out");
    if (options->optimizer != OPTIMIZER_ADAMW && options->optimizer != OPTIMIZER_SGD)
        return err_set(err, STATUS_USAGE,
                       "ops native has one AdamW; use optimizer adamw-fused, or sgd");
    return STATUS_OK;
}

/* What the model itself, or what it has learned, does not allow. */
static enum status refuse_model(const struct cut *cut, struct err *err)
{
    const struct model *model = cut->model;
    const struct plan_options *options = &cut->plan->options;
    if (model->arch->no_step)
        return arch_fail_step(model, err);
    if (model->arch->norm_is_fused && options->norm == NORM_COMPOSITE)
        return err_set(
            err, STATUS_USAGE,
            "norm composite is a way to run RMSNorm; the LayerNorm of %s is one operator "
            "in PyTorch too, use norm fused",
            model->arch->name);
    if (model->lora && options->ops == OPS_TORCH_COMPILE)
        return err_set(
            err, STATUS_USAGE,
            "what a compiler makes of adapters is not modelled; use ops torch-eager, or no "
            "lora");
    if (model->lora && options->system == SYSTEM_FSDP1)
        return err_set(
            err, STATUS_USAGE,
            "adapters freeze parts of a flat parameter, which is not modelled; use system "
            "fsdp2, or no lora");
    if (model->dims.positions > 0 && options->seq > model->dims.positions)
        return err_set(err, STATUS_USAGE,
                       "seq %" PRIu64 " is longer than the %" PRIu64 " positions that '%s' has "
                       "learned; give a shorter one, or a model with more positions",
                       options->seq, model->dims.positions, model->name);
    const enum status status = refuse_metrics(model, options, err);
    return status ? status : refuse_native(model, options, err);
}

/* The draft to blame: the one that is not the root, the later one if both are not. */
static const struct unit_draft *source_of(const struct cut *cut, uint32_t a, uint32_t b)
{
    uint32_t draft = a == cut_root(cut) || (b != cut_root(cut) && b > a) ? b : a;
    return &cut->drafts->drafts[draft];
}

/* "self_attn" of "model.layers.0.self_attn": the name of the module that has the parameter. */
static const char *leaf_name(const struct model *model, uint32_t param)
{
    const char *path = model->modules[model->params[param].module].path;
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* A piece's norm comes last in the order of grad slots. */
static const char *norm_name(const struct model *model, uint32_t piece)
{
    const struct piece *p = &model->pieces[piece];
    return leaf_name(model, model->piece_params[p->param + p->n_param - 1]);
}

static bool is_block_half(const struct piece *piece)
{
    return piece->kind == BODY_ATTENTION || piece->kind == BODY_MLP;
}

enum status cut_fail_piece(const struct cut *cut, uint32_t piece, uint32_t param, struct err *err)
{
    const struct model *model = cut->model;
    const struct piece *p = &model->pieces[piece];
    uint32_t first = model->piece_params[p->param];
    uint32_t a = cut_owner(cut, first), b = cut_owner(cut, param);
    const struct unit_draft *source = source_of(cut, a, b);
    const char *kind = body_kind_name(p->kind);
    if (!is_block_half(p))
        return unit_draft_fail(source, err,
                               "a unit border cuts through the %s: '%s' is in unit "
                               "'%s', '%s' in '%s'",
                               kind, model->params[first].name, cut_unit_name(cut, a),
                               model->params[param].name, cut_unit_name(cut, b));
    uint32_t attention = p->kind == BODY_ATTENTION ? piece : piece - 1;
    return unit_draft_fail(source, err,
                           "a unit border cuts through the %s of layer %u: '%s' is in unit '%s', "
                           "'%s' in '%s'; inside a block a border can only run between attention "
                           "with %s and mlp with %s, as in the scheme 'attn+mlp'",
                           kind, p->layer, model->params[first].name, cut_unit_name(cut, a),
                           model->params[param].name, cut_unit_name(cut, b),
                           norm_name(model, attention), norm_name(model, attention + 1));
}

/* Checkpointing recomputes a block as one region, so that its halves need one unit. */
enum status cut_refuse_regions(const struct cut *cut, struct err *err)
{
    const struct body_options options = plan_body_options(cut->plan);
    for (uint32_t i = 0; i < cut->model->n_piece; i++) {
        uint32_t a = cut->piece_owner[i];
        if (!body_piece_starts_block(cut->model, i) || cut->piece_owner[i + 1] == a ||
            body_options_ac(&options, cut->model->pieces[i].layer) == AC_NONE)
            continue;
        uint32_t b = cut->piece_owner[i + 1];
        return unit_draft_fail(source_of(cut, a, b), err,
                               "units '%s' and '%s' cut layer %u, which checkpointing recomputes "
                               "as a whole; use whole blocks or no checkpointing",
                               cut_unit_name(cut, a), cut_unit_name(cut, b),
                               cut->model->pieces[i].layer);
    }
    return STATUS_OK;
}

enum status cut_refuse_units(const struct cut *cut, struct err *err)
{
    enum status status = refuse_empty(cut, err);
    if (!status)
        status = refuse_empty_root(cut, err);
    if (!status)
        status = refuse_straddling(cut, err);
    if (!status)
        status = refuse_lists(cut, err);
    if (!status)
        status = refuse_split_tie(cut, err);
    if (!status)
        status = refuse_dtypes(cut, err);
    return status ? status : refuse_model(cut, err);
}
