/*
 * Resolving a plan: counts and defaults here, names in plan_units.c, ownership in plan_cut.c.
 *
 * Invariant: what a resolved plan holds can be laid out, scheduled and run on its model; anything
 * else was refused with the option to change.
 */
#include "src/plan.h"

#include <assert.h>
#include <inttypes.h>

#include "src/arch/arch.h"
#include "src/plan_by_dtype.h"
#include "src/plan_check.h"
#include "src/plan_cut.h"
#include "src/plan_ranks.h"
#include "src/plan_system.h"
#include "src/plan_units.h"

struct plan_options plan_options_default(void)
{
    return (struct plan_options){
        .gpus = 8,
        .batch = 1,
        .accum = 1,
        .units = "torchtitan",
        .policy = policy_options_default(),
        .fsdp1 = {.limit_all_gathers = true, .record_stream = true, .buffer_dtype = DTYPE_N},
        .replicas = 1,
        .reduce_inputs = 1,
        .cast_inputs = true,
        .output_dtype = DTYPE_N,
        /* 32 MiB is what sm_90 gets (spec MEMORY section 4) */
        .workspace_bytes = UINT64_C(32) << 20};
}

static enum status check_counts(const struct plan_options *o, struct err *err)
{
    const struct {
        const char *name;
        uint64_t count, max;
    } counts[] = {
        {"gpus", o->gpus, PLAN_MAX_RANKS},         {"batch", o->batch, UINT64_MAX},
        {"accum", o->accum, PLAN_MAX_ACCUM},       {"seq", o->seq, UINT64_MAX},
        {"replicas", o->replicas, PLAN_MAX_RANKS}, {"reduce-inputs", o->reduce_inputs, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        if (counts[i].count == 0)
            return err_set(err, STATUS_USAGE, "%s is 0, at least 1 is needed", counts[i].name);
        if (counts[i].count > counts[i].max)
            return err_set(err, STATUS_USAGE, "%s is %" PRIu64 ", at most %" PRIu64 " are possible",
                           counts[i].name, counts[i].count, counts[i].max);
    }
    uint64_t tokens;
    if (__builtin_mul_overflow(o->batch, o->seq, &tokens))
        return err_set(err, STATUS_USAGE, "batch %" PRIu64 " times seq %" PRIu64 " passes 64 bits",
                       o->batch, o->seq);
    return STATUS_OK;
}

static void fill_defaults(struct plan_options *o, const struct model *model, struct arena *arena)
{
    if (o->seq == 0)
        o->seq = model->dims.default_seq;
    o->units = arena_strdup(arena, o->units);
}

/* What a behavior or a policy makes impossible whatever the units are. */
static enum status check_arrange(const struct plan_options *o, struct err *err)
{
    const char *why = eligible_arrange(o->policy.behavior, o->arrange);
    if (!why)
        return STATUS_OK;
    return err_set(err, STATUS_NO, "arrangement %s does not exist: %s", arrange_name(o->arrange),
                   why);
}

static enum status check_length(const struct plan *plan, struct err *err)
{
    if (plan->options.accum * plan->n_segment <= PLAN_MAX_UNROLLED)
        return STATUS_OK;
    return err_set(err, STATUS_USAGE,
                   "accum %" PRIu64 " times %" PRIu32 " segments is more than %d, which is the "
                   "longest step that is built; lower accum",
                   plan->options.accum, plan->n_segment, PLAN_MAX_UNROLLED);
}

/* Whether a layout is the same with either parameter. */
static bool are_alike(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct param *p = &plan->model->params[a], *q = &plan->model->params[b];
    const struct param_policy *x = &plan->policy[a], *y = &plan->policy[b];
    return p->numel == q->numel && x->shard_dim == y->shard_dim &&
           p->shape[x->shard_dim] == q->shape[y->shard_dim] && x->storage == y->storage &&
           x->compute == y->compute && x->grad == y->grad && x->reduce == y->reduce &&
           x->has_grad == y->has_grad && x->trainable == y->trainable;
}

/* Once for all layouts. A deep model has few kinds of parameters. */
static const uint32_t *find_alike(const struct plan *plan, struct arena *arena)
{
    const uint32_t n = plan->model->n_param;
    uint32_t *like = arena_take(arena, n * sizeof *like);
    uint32_t *first = arena_take(arena, n * sizeof *first), n_first = 0; /* of each kind */

    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n_first && !are_alike(plan, first[k], i))
            k++;
        if (k == n_first)
            first[n_first++] = i;
        like[i] = first[k];
    }
    return like;
}

static uint64_t ignored_bytes(const struct plan *plan)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < plan->model->n_param; i++)
        if (!plan->policy[i].managed)
            bytes += plan->model->params[i].numel * dtype_bytes(plan->policy[i].storage);
    return bytes;
}

/* Units, once the plan has everything else. */
static enum status resolve_units(struct plan *plan, struct arena *arena, struct err *err)
{
    struct unit_drafts drafts;
    enum status status = plan_units_draft(plan->model, plan->options.units, arena, &drafts, err);

    if (!status && plan->options.arrange == ARRANGE_BY_DTYPE)
        status = plan_by_dtype(plan, arena, &drafts, err);
    if (!status)
        status = plan_cut(plan, &drafts, arena, err);
    return status ? status : plan_check(plan, arena, err);
}

enum status plan_resolve(const struct model *model, const struct plan_options *options,
                         struct arena *arena, struct plan *out, struct err *err)
{
    struct plan plan = {
        .model = model,
        .options = *options,
        .param_dtype = options->policy.param,
        .reduce_dtype = options->policy.reduce,
    };
    struct param_policy *policy = NULL;
    enum status status = STATUS_OK;

    assert(options->reshard < RESHARD_N && options->ac < AC_N);
    if (model->n_piece == 0)
        return arch_fail_step(model, err);
    fill_defaults(&plan.options, model, arena);
    if (!status)
        status = check_counts(&plan.options, err);
    if (!status)
        status = plan_system(&plan.options, err);
    if (!status)
        status = plan_ranks(&plan, err);
    if (!status)
        status = check_arrange(&plan.options, err);
    if (!status)
        status = policy_resolve(model, &plan.options.policy, arena, &policy, err);
    plan.policy = policy;
    if (!status) {
        plan.like = find_alike(&plan, arena);
        plan.ignored_bytes = ignored_bytes(&plan);
    }
    if (!status)
        status = resolve_units(&plan, arena, err);
    if (!status)
        status = check_length(&plan, err);
    if (!status)
        *out = plan;
    return status;
}

struct body_options plan_body_options(const struct plan *plan)
{
    const struct plan_options *o = &plan->options;
    return (struct body_options){.batch = o->batch,
                                 .seq = o->seq,
                                 .compute = plan->param_dtype,
                                 .ops = o->ops,
                                 .norm = o->norm,
                                 .loss = o->loss,
                                 .ac = o->ac,
                                 .ac_every = o->ac_every,
                                 .ac_layers = o->ac_layers,
                                 .full_recompute = o->full_recompute,
                                 .train_metrics = o->train_metrics};
}
