/*
 * Cases made, run and judged; see real_case.h.
 */
#include "tests/real_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asked.h"
#include "tests/tap.h"

static const double SGD_LR = 1.0 / 64;
static const struct ref_adamw adamw = {
    .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};

const char *small_name(enum small small)
{
    static const char *const names[] = {
#define X(id, name) name,
        SMALLS(X)
#undef X
    };
    return names[small];
}

static const struct {
    const char *family;
    struct dims dims;
} smalls[] = {
    [SMALL_LLAMA] = {"llama",
                     {.layers = 2,
                      .hidden = 18,
                      .intermediate = 10,
                      .heads = 3,
                      .kv_heads = 1,
                      .head_dim = 6,
                      .vocab = 29,
                      .default_seq = 7}},
    [SMALL_TIED] = {"llama",
                    {.layers = 2,
                     .hidden = 9,
                     .intermediate = 7,
                     .heads = 3,
                     .kv_heads = 3,
                     .head_dim = 2,
                     .vocab = 23,
                     .default_seq = 7,
                     .tied = true}},
    [SMALL_GPT2] = {"gpt2",
                    {.layers = 2,
                     .hidden = 15,
                     .intermediate = 22,
                     .heads = 3,
                     .kv_heads = 3,
                     .head_dim = 5,
                     .vocab = 29,
                     .positions = 11,
                     .default_seq = 7,
                     .tied = true,
                     .bias = true}},
    [SMALL_KDA] = {"kda",
                   {.layers = 2,
                    .hidden = 11,
                    .intermediate = 10,
                    .heads = 3,
                    .kv_heads = 3,
                    .head_dim = 7,
                    .vocab = 29,
                    .default_seq = 7}},
    [SMALL_FLAT] = {"kda",
                    {.layers = 2,
                     .hidden = 13,
                     .intermediate = 10,
                     .heads = 1,
                     .kv_heads = 1,
                     .head_dim = 8,
                     .vocab = 29,
                     .default_seq = 5,
                     .flat = true}},
    [SMALL_BLOCKS] = {"kda",
                      {.layers = 3,
                       .hidden = 11,
                       .intermediate = 10,
                       .heads = 2,
                       .kv_heads = 2,
                       .head_dim = 4,
                       .default_seq = 7}},
    [SMALL_TINY] = {"kda",
                    {.layers = 2,
                     .hidden = 64,
                     .intermediate = 160,
                     .heads = 2,
                     .kv_heads = 2,
                     .head_dim = 32,
                     .vocab = 256,
                     .default_seq = 64}},
};

void real_case_make(const struct real_case *of, struct made *out)
{
    char words[512];

    snprintf(words, sizeof words,
             "--ops native --behavior unshard --param-dtype fp32 --optimizer sgd %s", of->words);
    asked_init_family(out, smalls[of->small].family, &smalls[of->small].dims, words, of->unused);
}

static bool is_adamw(const struct made *made)
{
    return made->plan.options.optimizer == OPTIMIZER_ADAMW;
}

bool real_case_run(const struct real_case *of, const struct made *made, struct real_numbers *out)
{
    const struct real_ask ask = {.program = &made->program,
                                 .steps = CASE_STEPS,
                                 .sums_microbatches = !of->averages,
                                 .max_norm = of->max_norm,
                                 .scaler.loss_scale = of->loss_scale,
                                 .optimizer = {.adamw = is_adamw(made),
                                               .lr = is_adamw(made) ? adamw.lr : SGD_LR,
                                               .beta1 = adamw.beta1,
                                               .beta2 = adamw.beta2,
                                               .eps = adamw.eps,
                                               .weight_decay = adamw.weight_decay}};
    struct err err = {0};

    if (real_run(&ask, out, &err) == STATUS_OK)
        return true;
    return ok(false, "%s %s: runs: %s", small_name(of->small), of->words, err.text);
}

/* ---- the reference's two steps -------------------------------------------------------------- */

static double *doubles(struct judge *judge, uint64_t n)
{
    return arena_array(&judge->rig.arena, double, n);
}

/* What the product is given without a vocabulary: as it seeds it, with seed 0. */
static void draw_input(struct judge *judge, uint32_t step)
{
    struct reference_rig *rig = &judge->rig;
    const struct plan *plan = rig->plan;
    const uint64_t n = plan->model->dims.hidden * rig->step.batch * rig->step.seq;
    float *values = arena_array(&rig->arena, float, n);

    for (uint32_t i = 0; i < rig->step.microbatches * rig->step.ranks; i++) {
        struct seeded_values seeded = {.plan = plan, .rank = i % rig->step.ranks};
        double *input = doubles(judge, n);
        values_seeded(&seeded).hidden(&seeded, step, i / rig->step.ranks, n, values);
        for (uint64_t k = 0; k < n; k++)
            input[k] = (double)values[k];
        rig->batches[i].input = input;
    }
}

/* Where the loss was scaled. */
static void unscale(struct reference *reference, double loss_scale)
{
    for (uint32_t i = 0; i < reference->n_param; i++)
        for (uint64_t k = 0; k < reference->params[i].n; k++)
            reference->params[i].grad[k] /= loss_scale;
}

static double norm_of(const struct reference *reference)
{
    double sum = 0;
    for (uint32_t i = 0; i < reference->n_param; i++)
        for (uint64_t k = 0; k < reference->params[i].n; k++)
            sum += reference->params[i].grad[k] * reference->params[i].grad[k];
    return sqrt(sum);
}

static void judge_step(struct judge *judge, const struct real_case *of, uint32_t step)
{
    struct reference *reference = &judge->rig.reference;
    const uint32_t calls = judge->rig.step.microbatches * judge->rig.step.ranks;

    if (judge->made->model.dims.vocab == 0)
        draw_input(judge, step);
    reference_rig_run(&judge->rig, step);
    unscale(reference, of->loss_scale > 0 ? (double)of->loss_scale : 1);
    if (judge->made->plan.options.clip)
        reference_clip(reference, norm_of(reference), (double)of->max_norm);
    judge->norms[step] = norm_of(reference);
    for (uint32_t i = 0; i < calls; i++)
        judge->losses[step * calls + i] = judge->rig.results[i].loss;
    for (uint32_t i = 0; i < reference->n_param; i++)
        memcpy(judge->grads[step] + reference->params[i].first, reference->params[i].grad,
               reference->params[i].n * sizeof(double));
    if (is_adamw(judge->made))
        reference_adamw(reference, &adamw, step + 1);
    else
        reference_sgd(reference, SGD_LR);
}

void judge_init(struct judge *judge, const struct real_case *of, const struct made *made,
                bool exact)
{
    const struct plan *plan = &made->plan;
    const uint64_t calls = plan->options.accum * plan->world;
    const uint64_t tokens = plan->options.batch * plan->options.seq;
    const uint64_t n_logits = tokens * made->model.dims.vocab;
    const uint64_t n_d_input = tokens * made->model.dims.hidden;

    *judge = (struct judge){.made = made};
    reference_rig_init(&judge->rig, plan, exact);
    judge->rig.step.loss_factor = of->averages ? 1 / (double)plan->options.accum : 1;
    judge->rig.step.loss_factor *= of->loss_scale > 0 ? (double)of->loss_scale : 1;
    judge->losses = doubles(judge, CASE_STEPS * calls);
    judge->logits = doubles(judge, n_logits * calls);
    judge->d_input = doubles(judge, n_d_input * calls);
    for (uint64_t i = 0; i < calls; i++) {
        judge->rig.results[i].logits = judge->logits + i * n_logits;
        judge->rig.results[i].d_input = judge->d_input + i * n_d_input;
    }
    for (uint32_t step = 0; step < CASE_STEPS; step++) {
        judge->grads[step] = doubles(judge, judge->rig.reference.n);
        judge_step(judge, of, step);
    }
}

void judge_release(struct judge *judge)
{
    reference_rig_release(&judge->rig);
}

/* ---- comparison ------------------------------------------------------------------------------ */

struct verdict {
    const struct judge *judge;
    const struct real_numbers *got;
    struct comparison comparison;
    struct arena arena; /* of names and of numbers without what is left out */
};

static void add_step(struct verdict *verdict, uint32_t step)
{
    const struct judge *judge = verdict->judge;
    const uint64_t calls = judge->rig.step.microbatches * judge->rig.step.ranks;
    const float norm = (float)verdict->got->norms[step];
    const char *losses = arena_printf(&verdict->arena, "losses %u", step);

    comparison_add(&verdict->comparison, losses,
                   numbers_floats(verdict->got->losses + step * calls, calls),
                   numbers_doubles(judge->losses + step * calls, calls));
    comparison_add(&verdict->comparison, arena_printf(&verdict->arena, "norm %u", step),
                   numbers_floats(&norm, 1), numbers_doubles(&judge->norms[step], 1));
}

static void add_outputs(struct verdict *verdict)
{
    const struct judge *judge = verdict->judge;
    const uint64_t calls = judge->rig.step.microbatches * judge->rig.step.ranks;
    const struct real_numbers *got = verdict->got;
    const bool embeds = got->n_d_input > 0 && judge->made->plan.policy[0].has_grad;

    comparison_add(&verdict->comparison, "logits",
                   numbers_floats(got->logits, got->n_logits * calls),
                   numbers_doubles(judge->logits, got->n_logits * calls));
    if (embeds)
        comparison_add(&verdict->comparison, "d_input",
                       numbers_floats(got->d_input, got->n_d_input * calls),
                       numbers_doubles(judge->d_input, got->n_d_input * calls));
}

/* Both without the elements of the mask. */
static void add_masked(struct verdict *verdict, const char *name, const float *got,
                       const double *want, const bool *mask, uint64_t n)
{
    float *some = arena_array(&verdict->arena, float, n + 1);
    double *wanted = arena_array(&verdict->arena, double, n + 1);
    uint64_t kept = 0;

    for (uint64_t k = 0; k < n; k++)
        if (!mask[k]) {
            some[kept] = got[k];
            wanted[kept++] = want[k];
        }
    comparison_add(&verdict->comparison, name, numbers_floats(some, kept),
                   numbers_doubles(wanted, kept));
}

static void add_param(struct verdict *verdict, uint32_t p)
{
    const struct judge *judge = verdict->judge;
    const struct ref_param *param = &judge->rig.reference.params[p];
    bool *mask = arena_array(&verdict->arena, bool, param->n);
    const uint64_t n_zero =
        reference_zero_grads(&judge->rig.reference, param, judge->rig.step.seq, mask);

    for (uint32_t step = 0; step < CASE_STEPS; step++)
        add_masked(verdict, arena_printf(&verdict->arena, "grad %u of %s", step, param->name),
                   verdict->got->grads[step][p], judge->grads[step] + param->first, mask, param->n);
    if (n_zero > 0 && is_adamw(judge->made))
        tap_note("%u elements of %s have no gradient and are left out", (unsigned)n_zero,
                 param->name);
    else
        memset(mask, 0, param->n * sizeof *mask);
    add_masked(verdict, param->name, verdict->got->params[p], param->at, mask, param->n);
}

bool judge_compare(const struct judge *judge, const struct real_numbers *got,
                   const struct number_bound *bounds, const char *name)
{
    struct verdict verdict = {.judge = judge, .got = got, .comparison = comparison_of(bounds)};

    arena_init(&verdict.arena);
    for (uint32_t step = 0; step < CASE_STEPS; step++)
        add_step(&verdict, step);
    add_outputs(&verdict);
    for (uint32_t p = 0; p < judge->rig.reference.n_param; p++)
        add_param(&verdict, p);
    const bool good = comparison_end(&verdict.comparison, "%s", name);
    arena_release(&verdict.arena);
    return good;
}

void real_case_check(const struct real_case *of, bool exact, const struct number_bound *bounds)
{
    struct real_numbers got;
    struct judge judge;
    struct made made;
    char name[256];

    real_case_make(of, &made);
    judge_init(&judge, of, &made, exact);
    snprintf(name, sizeof name, "%s %s", small_name(of->small), of->words);
    if (real_case_run(of, &made, &got))
        judge_compare(&judge, &got, bounds, name);
    real_release(&got);
    judge_release(&judge);
    make_release(&made);
}
