/*
 * The reference's two steps, and comparison with a run's; see real_judge.h.
 */
#include "tests/real_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

/* ---- the reference's two steps -------------------------------------------------------------- */

/* What the product is given without a vocabulary: as it seeds it, with seed 0. */
static void draw_input(struct judge *judge, uint32_t step)
{
    struct reference_rig *rig = &judge->rig;
    const struct plan *plan = rig->plan;
    const uint64_t n = plan->model->dims.hidden * rig->step.batch * rig->step.seq;
    float *values = arena_array(&rig->arena, float, n);

    for (uint32_t i = 0; i < rig->step.microbatches * rig->step.ranks; i++) {
        struct seeded_values seeded = {.plan = plan, .rank = i % rig->step.ranks};
        double *input = arena_array(&rig->arena, double, n);
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

/* Forward, backward and what is done to gradients before the optimizer reads them. */
static void compute_step(struct judge *judge, const struct real_case *of, uint32_t step)
{
    struct reference *reference = &judge->rig.reference;

    if (judge->made->model.dims.vocab == 0)
        draw_input(judge, step);
    reference_rig_run(&judge->rig, step);
    unscale(reference, of->loss_scale > 0 ? (double)of->loss_scale : 1);
    if (judge->made->plan.options.clip)
        reference_clip(reference, norm_of(reference), (double)of->max_norm);
}

static void update(struct judge *judge, uint32_t step)
{
    const struct optimizer_options of = real_case_optimizer(judge->made);
    const struct ref_adamw adamw = {of.lr, of.beta1, of.beta2, of.eps, of.weight_decay};

    if (of.adamw)
        reference_adamw(&judge->rig.reference, &adamw, step + 1);
    else
        reference_sgd(&judge->rig.reference, of.lr);
}

/* ---- what is judged --------------------------------------------------------------------------- */

static struct judged *add(struct judge *judge, enum judged_kind kind, uint64_t n, const char *name)
{
    struct judged *judged = &judge->list[judge->n++];

    *judged = (struct judged){
        .kind = kind, .name = name, .at = arena_array(&judge->rig.arena, double, n + 1), .n = n};
    return judged;
}

static uint32_t calls_of(const struct judge *judge)
{
    return judge->rig.step.microbatches * judge->rig.step.ranks;
}

static void note_step(struct judge *judge, uint32_t step)
{
    struct arena *arena = &judge->rig.arena;
    struct judged *losses =
        add(judge, JUDGED_LOSSES, calls_of(judge), arena_printf(arena, "losses %u", step));
    struct judged *norm = add(judge, JUDGED_NORM, 1, arena_printf(arena, "norm %u", step));

    losses->step = norm->step = step;
    for (uint32_t i = 0; i < calls_of(judge); i++)
        losses->at[i] = judge->rig.results[i].loss;
    *norm->at = norm_of(&judge->rig.reference);
}

/* AdamW blows up what is nothing but rounding; of a tensor that is no more than that there is nothing
   to be near to. */
static const bool *zeros_of(struct judge *judge, const struct ref_param *param, bool of_gradient)
{
    bool *zero = arena_array(&judge->rig.arena, bool, param->n);
    const uint64_t n =
        reference_zero_grads(&judge->rig.reference, param, judge->rig.step.seq, zero);

    if (n == 0 || (of_gradient ? n < param->n : !real_case_optimizer(judge->made).adamw))
        return NULL;
    tap_note("left out of %s%s: %u of %u elements, whose exact gradient is 0",
             of_gradient ? "the gradient of " : "", param->name, (unsigned)n, (unsigned)param->n);
    return zero;
}

static void note_grads(struct judge *judge, uint32_t step)
{
    for (uint32_t p = 0; p < judge->rig.reference.n_param; p++) {
        const struct ref_param *param = &judge->rig.reference.params[p];
        struct judged *judged =
            add(judge, JUDGED_GRAD, param->n,
                arena_printf(&judge->rig.arena, "grad %u of %s", step, param->name));
        judged->step = step;
        judged->param = p;
        judged->zero = zeros_of(judge, param, true);
        memcpy(judged->at, param->grad, param->n * sizeof *judged->at);
    }
}

static void note_params(struct judge *judge)
{
    for (uint32_t p = 0; p < judge->rig.reference.n_param; p++) {
        const struct ref_param *param = &judge->rig.reference.params[p];
        struct judged *judged = add(judge, JUDGED_PARAM, param->n, param->name);
        judged->param = p;
        judged->zero = zeros_of(judge, param, false);
        memcpy(judged->at, param->at, param->n * sizeof *judged->at);
    }
}

/* Each step writes them anew. A model without a vocabulary has none; without a gradient of the first
   parameter nothing computes that of the input. */
static void note_outputs(struct judge *judge)
{
    const struct model *model = &judge->made->model;
    const uint64_t tokens = judge->rig.step.batch * judge->rig.step.seq;
    const uint64_t n_logits = model->dims.vocab * tokens, n_d_input = model->dims.hidden * tokens;

    if (model->dims.vocab == 0)
        return;
    struct judged *logits = add(judge, JUDGED_LOGITS, n_logits * calls_of(judge), "logits");
    for (uint64_t i = 0; i < calls_of(judge); i++)
        judge->rig.results[i].logits = logits->at + i * n_logits;
    if (!judge->made->plan.policy[0].has_grad)
        return;
    struct judged *d_input = add(judge, JUDGED_D_INPUT, n_d_input * calls_of(judge), "d_input");
    for (uint64_t i = 0; i < calls_of(judge); i++)
        judge->rig.results[i].d_input = d_input->at + i * n_d_input;
}

void judge_init(struct judge *judge, const struct real_case *of, const struct made *made,
                bool exact)
{
    enum { OTHERS = 2 * CASE_STEPS + 2, OF_PARAM = CASE_STEPS + 1 };

    *judge = (struct judge){.made = made};
    reference_rig_init(&judge->rig, &made->plan, exact);
    judge->rig.step.loss_factor = of->averages ? 1 / (double)made->plan.options.accum : 1;
    judge->rig.step.loss_factor *= of->loss_scale > 0 ? (double)of->loss_scale : 1;
    judge->list = arena_array(&judge->rig.arena, struct judged,
                              OTHERS + (size_t)OF_PARAM * judge->rig.reference.n_param);
    note_outputs(judge);
    for (uint32_t step = 0; step < CASE_STEPS; step++) {
        compute_step(judge, of, step);
        note_step(judge, step);
        note_grads(judge, step);
        update(judge, step);
    }
    note_params(judge);
}

void judge_release(struct judge *judge)
{
    reference_rig_release(&judge->rig);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static struct numbers got_of(const struct real_numbers *got, const struct judged *judged)
{
    switch (judged->kind) {
    case JUDGED_LOSSES:
        return numbers_floats(got->losses + judged->step * judged->n, judged->n);
    case JUDGED_NORM:
        return numbers_doubles(&got->norms[judged->step], 1);
    case JUDGED_GRAD:
        return numbers_floats(got->grads[judged->step][judged->param], judged->n);
    case JUDGED_LOGITS:
        return numbers_floats(got->logits, judged->n);
    case JUDGED_D_INPUT:
        return numbers_floats(got->d_input, judged->n);
    default:
        return numbers_floats(got->params[judged->param], judged->n);
    }
}

/* Without the elements that are left out. */
static struct numbers kept_of(struct numbers of, const bool *zero, struct arena *arena)
{
    if (!zero)
        return of;
    double *kept = arena_array(arena, double, of.n + 1);
    uint64_t n = 0;
    for (uint64_t i = 0; i < of.n; i++)
        if (!zero[i])
            kept[n++] = of.floats ? (double)of.floats[i] : of.doubles[i];
    return numbers_doubles(kept, n);
}

static struct numbers want_of(const struct judged *judged, struct arena *arena)
{
    return kept_of(numbers_doubles(judged->at, judged->n), judged->zero, arena);
}

bool judge_compare(const struct judge *judge, const struct real_numbers *got,
                   const struct number_bound *bounds, const char *name)
{
    struct comparison comparison = comparison_of(bounds);
    struct arena arena;

    arena_init(&arena);
    for (uint32_t i = 0; i < judge->n; i++) {
        const struct judged *judged = &judge->list[i];
        comparison_add(&comparison, judged->name,
                       kept_of(got_of(got, judged), judged->zero, &arena), want_of(judged, &arena));
    }
    arena_release(&arena);
    return comparison_end(&comparison, "%s", name);
}

/* What the order of FP32 sums does where nothing is rounded further. */
static const double FP32_BOUND = 1e-5;

/* Of all gradients of a step together. */
static double grads_apart(const struct judge *a, const struct judge *b, uint32_t step)
{
    double apart = 0, size = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        const struct judged *from = &a->list[i], *to = &b->list[i];
        for (uint64_t k = 0; from->kind == JUDGED_GRAD && from->step == step && k < from->n; k++) {
            apart += (from->at[k] - to->at[k]) * (from->at[k] - to->at[k]);
            size += to->at[k] * to->at[k];
        }
    }
    return sqrt(apart / size);
}

/* Few numbers may be near one another by chance: in the second step those of all gradients count. */
static double allowed(const struct judge *rounded, const struct judge *exact, uint32_t i,
                      double share, struct arena *arena)
{
    const struct judged *judged = &rounded->list[i];
    const bool is_few = judged->kind == JUDGED_LOSSES || judged->kind == JUDGED_NORM;
    const bool is_first = (is_few || judged->kind == JUDGED_GRAD) && judged->step == 0;

    if (is_few && !is_first)
        return FP32_BOUND + 2 * grads_apart(rounded, exact, judged->step);
    return FP32_BOUND + (is_first ? share : 2) *
                            numbers_error(want_of(judged, arena), want_of(&exact->list[i], arena));
}

bool judge_compare_rounded(const struct judge *rounded, const struct judge *exact,
                           const struct real_numbers *got, double share, const char *name)
{
    struct comparison comparison = comparison_of(NULL);
    struct arena arena;

    arena_init(&arena);
    for (uint32_t i = 0; i < rounded->n; i++) {
        const struct judged *judged = &rounded->list[i];
        comparison_add_bound(&comparison, judged->name,
                             kept_of(got_of(got, judged), judged->zero, &arena),
                             want_of(judged, &arena), allowed(rounded, exact, i, share, &arena));
    }
    arena_release(&arena);
    return comparison_end(&comparison, "%s", name);
}

static const char *name_of(const struct real_case *of)
{
    static char name[256];
    snprintf(name, sizeof name, "%s %s", small_name(of->small), of->words);
    return name;
}

void real_case_check(const struct real_case *of, const struct number_bound *bounds)
{
    struct real_numbers got;
    struct judge judge;
    struct made made;

    real_case_make(of, &made);
    judge_init(&judge, of, &made, true);
    if (real_case_run(of, &made, &got))
        judge_compare(&judge, &got, bounds, name_of(of));
    real_release(&got);
    judge_release(&judge);
    make_release(&made);
}

void real_case_check_rounded(const struct real_case *of, double share)
{
    struct judge rounded, exact;
    struct real_numbers got;
    struct made made;

    real_case_make(of, &made);
    judge_init(&rounded, of, &made, false);
    judge_init(&exact, of, &made, true);
    if (real_case_run(of, &made, &got))
        judge_compare_rounded(&rounded, &exact, &got, share, name_of(of));
    real_release(&got);
    judge_release(&exact);
    judge_release(&rounded);
    make_release(&made);
}
