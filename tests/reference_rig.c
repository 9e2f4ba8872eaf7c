/*
 * A plan in the reference's words; see reference_rig.h.
 */
#include "tests/reference_rig.h"

#include <stdlib.h>
#include <string.h>

#include "src/arch/arch.h"
#include "tests/oracle_numbers.h"
#include "tests/tap.h"

static enum ref_family family_of(const struct model *model)
{
    if (model->arch == &arch_llama)
        return REF_LLAMA;
    if (model->arch == &arch_gpt2)
        return REF_GPT2;
    if (model->arch != &arch_kda)
        tap_bail("the reference does not know the family");
    return REF_KDA;
}

static struct ref_sizes sizes_of(const struct model *model)
{
    const struct dims *dims = &model->dims;
    return (struct ref_sizes){.family = family_of(model),
                              .layers = dims->layers,
                              .hidden = dims->hidden,
                              .intermediate = dims->intermediate,
                              .heads = dims->heads,
                              .kv_heads = dims->kv_heads,
                              .head_dim = dims->head_dim,
                              .vocab = dims->vocab,
                              .positions = dims->positions,
                              .tied = dims->tied,
                              .flat = dims->flat};
}

static enum ref_format format_of(uint8_t dtype)
{
    return dtype == DTYPE_BF16 ? REF_BF16 : dtype == DTYPE_FP16 ? REF_FP16 : REF_FP32;
}

static void take_policy(struct reference_rig *rig, bool exact)
{
    const struct plan *plan = rig->plan;

    for (uint32_t i = 0; i < plan->model->n_param; i++) {
        const struct param_policy *policy = &plan->policy[i];
        struct ref_param *param = &rig->reference.params[i];
        if (strcmp(param->name, plan->model->params[i].name) != 0 ||
            param->n != plan->model->params[i].numel)
            tap_bail("the product's parameters are not the reference's");
        param->unused = plan_fills_zeros(plan, policy);
        param->frozen = !policy->has_grad && !param->unused;
        if (exact)
            continue;
        param->compute = format_of(policy->managed ? policy->compute : policy->storage);
        param->reduce = format_of(policy->reduce);
        param->storage = format_of(policy->storage);
    }
}

void reference_rig_init(struct reference_rig *rig, const struct plan *plan, bool exact)
{
    const struct plan_options *options = &plan->options;
    const struct ref_sizes sizes = sizes_of(plan->model);

    *rig = (struct reference_rig){.plan = plan};
    arena_init(&rig->arena);
    reference_init(&rig->reference, &sizes, (struct ref_policy){REF_EXACT, REF_EXACT, REF_EXACT});
    if (rig->reference.n_param != plan->model->n_param)
        tap_bail("the product has not as many parameters as the reference");
    take_policy(rig, exact);
    rig->step = (struct ref_step){.batch = options->batch,
                                  .seq = options->seq,
                                  .loss_factor = 1,
                                  .ranks = (uint32_t)plan->world,
                                  .microbatches = (uint32_t)options->accum,
                                  .divisor = options->divide_factor,
                                  .replicas = (uint32_t)options->replicas,
                                  .sync_last = options->sync == MICROBATCH_LAST,
                                  .all_reduce_last = options->all_reduce == MICROBATCH_LAST};
    const uint64_t n = options->accum * plan->world;
    rig->batches = arena_array(&rig->arena, struct ref_batch, n);
    rig->results = arena_array(&rig->arena, struct ref_result, n);
    reference_rig_restart(rig);
}

void reference_rig_release(struct reference_rig *rig)
{
    reference_release(&rig->reference);
    arena_release(&rig->arena);
}

void reference_rig_restart(struct reference_rig *rig)
{
    float *start = malloc(rig->reference.n * sizeof *start);

    if (!start)
        tap_bail("no memory");
    for (uint32_t i = 0; i < rig->reference.n_param; i++) {
        struct ref_param *param = &rig->reference.params[i];
        oracle_start(rig->plan->model, i, start);
        for (uint64_t k = 0; k < param->n; k++) {
            param->at[k] = ref_round(param->storage, (double)start[k]);
            param->moment[k] = param->variance[k] = 0;
        }
    }
    free(start);
}

static const int64_t *draw(struct reference_rig *rig, enum oracle_seed seed,
                           struct oracle_place place)
{
    const uint64_t n = rig->step.batch * rig->step.seq;
    int64_t *ids = arena_array(&rig->arena, int64_t, n);

    for (place.position = 0; place.position < n; place.position++)
        ids[place.position] = (int64_t)oracle_token(rig->plan, seed, place);
    return ids;
}

double reference_rig_run(struct reference_rig *rig, uint64_t step)
{
    const uint32_t n = rig->step.microbatches * rig->step.ranks;

    for (uint32_t i = 0; i < n && rig->plan->model->dims.vocab > 0; i++) {
        const struct oracle_place place = {
            .step = step, .microbatch = i / rig->step.ranks, .rank = i % rig->step.ranks};
        rig->batches[i].tokens = draw(rig, ORACLE_SEED_TOKENS, place);
        rig->batches[i].labels = draw(rig, ORACLE_SEED_LABELS, place);
    }
    return reference_step(&rig->reference, &rig->step, rig->batches, rig->results);
}
