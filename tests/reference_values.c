/*
 * The reference's numbers that no recorded case shows: formats at their edges, means of ranks and
 * microbatches however they are reduced, optimizers by hand, clipping. And the errors that judge all
 * of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/compare_numbers.h"
#include "tests/reference/reference.h"
#include "tests/tap.h"

static void check_formats(void)
{
    static const struct {
        enum ref_format format;
        double value, want;
    } cases[] = {
        {REF_EXACT, 1 + 0x1p-50, 1 + 0x1p-50},
        {REF_FP32, 1 + 0x1p-24, 1},             /* a tie, to even */
        {REF_FP32, 1 + 0x1.8p-23, 1 + 0x1p-22}, /* a tie, up to even */
        {REF_FP32, 0x1p-150, 0},                /* half of the least */
        {REF_FP32, -0x1.8p-149, -0x1p-148},     /* among the least */
        {REF_FP32, 0x1.ffffffp127, INFINITY},   /* nearer to what comes after the most */
        {REF_BF16, 1 + 0x1p-8, 1},              /* ties */
        {REF_BF16, -(1 + 0x1.8p-7), -(1 + 0x1p-6)},
        {REF_BF16, 1 + 0x1p-8 + 0x1p-40, 1}, /* past a tie by less than FP32 can hold */
        {REF_BF16, 1 + 0x1p-8 + 0x1p-20, 1 + 0x1p-7},
        {REF_BF16, 0x1.ffp127, INFINITY},
        {REF_FP16, 1 + 0x1p-11, 1},
        {REF_FP16, 0x1.8p-24, 0x1p-23},
        {REF_FP16, 65519, 65504},
        {REF_FP16, -65520, -INFINITY},
        {REF_BF16, INFINITY, INFINITY},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(ref_round(cases[i].format, cases[i].value) == cases[i].want, "%a in format %d is %a",
           cases[i].value, cases[i].format, cases[i].want);
    ok(isnan(ref_round(REF_BF16, NAN)), "a NaN stays one");
}

static void check_errors(void)
{
    static const float floats[] = {3, 4};
    static const double same[] = {3, 4}, far[] = {3, 4.5}, zeros[] = {0, 0}, nan[] = {NAN, 0};
    const struct numbers want = numbers_floats(floats, 2);

    ok(numbers_error(numbers_doubles(same, 2), want) == 0, "equal numbers have no error");
    is_near(numbers_error(numbers_doubles(far, 2), want), 0.1, 1e-12, "an error is a norm's part");
    ok(numbers_error(numbers_doubles(zeros, 2), numbers_doubles(zeros, 2)) == 0,
       "nothing against nothing has no error");
    ok(isinf(numbers_error(want, numbers_doubles(zeros, 2))), "something against nothing has");
    ok(isinf(numbers_error(numbers_doubles(nan, 2), want)), "a NaN is an infinite error");
    ok(isinf(numbers_error(numbers_doubles(same, 1), want)), "other lengths are an infinite error");
}

/* ---- a small model ------------------------------------------------------------------------ */

enum { RANKS = 4, MICROBATCHES = 2, RUNS = RANKS * MICROBATCHES, TOKENS = 6 };

static const struct ref_sizes sizes = {
    REF_KDA, 1, 6, 5, 2, 2, 3, 7, 0, false, false,
};

struct scene {
    struct reference reference;
    int64_t tokens[RUNS][TOKENS], labels[RUNS][TOKENS];
    struct ref_batch batches[RUNS];
    struct ref_result results[RUNS];
};

static void scene_init(struct scene *scene, uint64_t *state, struct ref_policy policy)
{
    *scene = (struct scene){0};
    reference_init(&scene->reference, &sizes, policy);
    for (uint64_t i = 0; i < scene->reference.n; i++)
        scene->reference.values[i] = (double)tap_below(state, 1024) / 1024 - 0.5;
    for (int run = 0; run < RUNS; run++) {
        for (int t = 0; t < TOKENS; t++) {
            scene->tokens[run][t] = (int64_t)tap_below(state, sizes.vocab);
            scene->labels[run][t] = (int64_t)tap_below(state, sizes.vocab);
        }
        scene->batches[run] = (struct ref_batch){scene->tokens[run], scene->labels[run], NULL};
    }
}

static struct ref_step step_of(void)
{
    return (struct ref_step){.batch = 2,
                             .seq = TOKENS / 2,
                             .loss_factor = 1.0 / MICROBATCHES,
                             .ranks = RANKS,
                             .microbatches = MICROBATCHES,
                             .replicas = 1};
}

static const struct ref_policy exact = {REF_EXACT, REF_EXACT, REF_EXACT};
static const struct number_bound tight[] = {{"*", 1e-13}};

static void compare_grads(const struct scene *scene, const double *want, const char *what)
{
    struct comparison comparison = comparison_of(tight);

    for (uint32_t i = 0; i < scene->reference.n_param; i++) {
        const struct ref_param *param = &scene->reference.params[i];
        comparison_add(&comparison, param->name, numbers_doubles(param->grad, param->n),
                       numbers_doubles(want + param->first, param->n));
    }
    comparison_end(&comparison, "%s", what);
}

/* The mean of what each rank and microbatch has by itself. */
static void check_means(uint64_t *state)
{
    static const struct {
        uint32_t replicas;
        bool sync_last, all_reduce_last;
        double divisor;
        const char *what;
    } ways[] = {{1, false, false, 0, "gradients are the mean over ranks and microbatches"},
                {1, true, false, 0, "so they are reduced after the last microbatch"},
                {2, false, false, 0, "so they are with replicas"},
                {2, false, true, 0, "so they are where replicas meet after the last one"},
                {4, true, true, 0, "so they are with a replica on each rank"},
                {1, false, false, 4, "a divisor of as many as there are ranks is the mean"},
                {1, false, true, 3, "another one divides the sum"},
                {2, true, false, 7, "and so it does with replicas"}};
    struct ref_step step = step_of();
    struct scene scene;

    scene_init(&scene, state, exact);
    double *want = calloc(scene.reference.n, sizeof *want);
    double *mean = calloc(scene.reference.n, sizeof *mean);
    double *one = calloc(scene.reference.n, sizeof *one);
    for (int run = 0; run < RUNS; run++) {
        reference_microbatch(&scene.reference, &step, &scene.batches[run], one,
                             &scene.results[run]);
        for (uint64_t i = 0; i < scene.reference.n; i++)
            mean[i] += one[i] / RANKS;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        step.replicas = ways[i].replicas;
        step.sync_last = ways[i].sync_last;
        step.all_reduce_last = ways[i].all_reduce_last;
        step.divisor = ways[i].divisor;
        reference_step(&scene.reference, &step, scene.batches, scene.results);
        for (uint64_t k = 0; k < scene.reference.n; k++)
            want[k] = mean[k] * (step.divisor > 0 ? RANKS / step.divisor : 1);
        compare_grads(&scene, want, ways[i].what);
    }
    free(want);
    free(mean);
    free(one);
    reference_release(&scene.reference);
}

static void check_frozen(uint64_t *state)
{
    const struct ref_step step = step_of();
    struct scene scene;

    scene_init(&scene, state, exact);
    struct ref_param *frozen = reference_find(&scene.reference, "lm_head.weight");
    const double norm = reference_step(&scene.reference, &step, scene.batches, scene.results);
    const double before = *frozen->at, grad = *frozen->grad;
    frozen->frozen = true;
    const double rest = reference_step(&scene.reference, &step, scene.batches, scene.results);
    reference_sgd(&scene.reference, 0.5);
    reference_adamw(&scene.reference, &(struct ref_adamw){.lr = 0.5, .eps = 1}, 1);
    ok(grad != 0 && *frozen->grad == 0 && rest < norm, "what is frozen has no gradient");
    ok(*frozen->at == before, "what is frozen is not updated");
    frozen->frozen = false;
    frozen->unused = true;
    reference_step(&scene.reference, &step, scene.batches, scene.results);
    reference_adamw(&scene.reference, &(struct ref_adamw){.lr = 0.5, .eps = 1, .weight_decay = 1},
                    1);
    ok(*frozen->grad == 0 && *frozen->at == before / 2, "what is unused decays");
    reference_release(&scene.reference);
}

/* Every gradient that is reduced in BF16 is one of its numbers; of the means in FP32 some are not. */
static void check_reduce_format(uint64_t *state)
{
    const struct ref_step step = step_of();

    for (int narrow = 0; narrow < 2; narrow++) {
        uint64_t n_other = 0, same = *state;
        struct scene scene;
        scene_init(&scene, &same,
                   (struct ref_policy){REF_BF16, narrow ? REF_BF16 : REF_FP32, REF_FP32});
        struct ref_step one = step;
        one.microbatches = 1;
        reference_step(&scene.reference, &one, scene.batches, scene.results);
        const struct ref_param *head = reference_find(&scene.reference, "lm_head.weight");
        for (uint64_t k = 0; k < head->n; k++)
            n_other += head->grad[k] != ref_round(REF_BF16, head->grad[k]);
        ok(narrow ? n_other == 0 : n_other > 0, "a mean has the format it is reduced in");
        reference_release(&scene.reference);
    }
}

/* What is added before replicas meet is rounded before they do. */
static void check_meeting(uint64_t *state)
{
    static const struct number_bound near[] = {{"lm_head.weight", 0.02}, {"*", INFINITY}};
    struct ref_step step = step_of();
    struct scene scene;

    scene_init(&scene, state, (struct ref_policy){REF_BF16, REF_BF16, REF_FP32});
    const struct ref_param *head = reference_find(&scene.reference, "lm_head.weight");
    double *each = calloc(head->n, sizeof *each);
    step.replicas = 2;
    reference_step(&scene.reference, &step, scene.batches, scene.results);
    for (uint64_t k = 0; k < head->n; k++)
        each[k] = head->grad[k];
    step.all_reduce_last = true;
    reference_step(&scene.reference, &step, scene.batches, scene.results);
    struct comparison comparison = comparison_of(near);
    comparison_add(&comparison, head->name, numbers_doubles(head->grad, head->n),
                   numbers_doubles(each, head->n));
    comparison_end(&comparison, "replicas may meet in each microbatch or in the last");
    ok(comparison.worst_error > 0, "in BF16 it is not the same");
    free(each);
    reference_release(&scene.reference);
}

static void check_kept(void)
{
    struct reference reference;
    uint32_t n_wrong = 0;

    reference_init(&reference, &sizes, (struct ref_policy){REF_BF16, REF_FP32, REF_FP32});
    for (uint32_t i = 0; i < reference.n_param; i++) {
        const struct ref_param *param = &reference.params[i];
        const bool kept = strstr(param->name, "A_log") || strstr(param->name, "dt_bias");
        if (param->compute != (kept ? REF_FP32 : REF_BF16))
            tap_note("%s has format %d", param->name, param->compute);
        n_wrong += param->compute != (kept ? REF_FP32 : REF_BF16);
    }
    is_int(n_wrong, 0, "A_log and dt_bias compute in FP32, all else in BF16");
    reference_release(&reference);
}

/* ---- grouped heads ------------------------------------------------------------------------ */

/* Two query heads read a key head: as if each had one of its own with the same rows. */
static void repeat_heads(const struct reference *from, struct reference *to, const char *name)
{
    const struct ref_param *few = reference_find(from, name), *all = reference_find(to, name);
    const uint64_t head = from->sizes.head_dim * few->width;

    for (uint64_t k = 0; k < all->n; k++)
        all->at[k] = few->at[k / (2 * head) * head + k % head];
}

static void check_groups(uint64_t *state)
{
    static const struct ref_sizes grouped = {REF_LLAMA, 1, 6, 5, 4, 2, 2, 7, 0, false, false};
    struct ref_sizes single = grouped;
    struct reference few, all;
    const int64_t ids[TOKENS] = {1, 5, 0, 3, 6, 2};
    const struct ref_batch batch = {ids, ids, NULL};
    const struct ref_step step = step_of();
    struct ref_result of_few = {0}, of_all = {0};

    single.kv_heads = grouped.heads;
    reference_init(&few, &grouped, exact);
    reference_init(&all, &single, exact);
    for (uint32_t i = 0; i < few.n_param; i++)
        for (uint64_t k = 0; k < few.params[i].n; k++) {
            few.params[i].at[k] = (double)tap_below(state, 1024) / 1024 - 0.5;
            if (few.params[i].n == all.params[i].n)
                all.params[i].at[k] = few.params[i].at[k];
        }
    repeat_heads(&few, &all, "model.layers.0.self_attn.k_proj.weight");
    repeat_heads(&few, &all, "model.layers.0.self_attn.v_proj.weight");
    reference_microbatch(&few, &step, &batch, NULL, &of_few);
    reference_microbatch(&all, &step, &batch, NULL, &of_all);
    is_near(of_few.loss, of_all.loss, 1e-14, "neighbouring query heads read one key head");
    reference_release(&few);
    reference_release(&all);
}

/* ---- optimizers --------------------------------------------------------------------------- */

/* Two steps of one element, in the textbook's words: bias-corrected moments. */
static double adamw_by_hand(double p, double g1, double g2, const struct ref_adamw *options)
{
    const double b1 = options->beta1, b2 = options->beta2;
    const double m1 = (1 - b1) * g1, v1 = (1 - b2) * g1 * g1;
    const double m2 = b1 * m1 + (1 - b1) * g2, v2 = b2 * v1 + (1 - b2) * g2 * g2;

    p -= options->lr * options->weight_decay * p;
    p -= options->lr * (m1 / (1 - b1)) / (sqrt(v1 / (1 - b2)) + options->eps);
    p -= options->lr * options->weight_decay * p;
    return p - options->lr * (m2 / (1 - b1 * b1)) / (sqrt(v2 / (1 - b2 * b2)) + options->eps);
}

static void check_optimizers(void)
{
    const struct ref_adamw options = {0.01, 0.9, 0.95, 1e-3, 0.1};
    struct reference reference;

    reference_init(&reference, &sizes, exact);
    struct ref_param *param = &reference.params[0];
    param->at[0] = 2;
    param->grad[0] = 0.25;
    reference_sgd(&reference, 0.5);
    is_near(param->at[0], 1.875, 1e-15, "SGD goes down the gradient");
    param->at[0] = 2;
    reference_adamw(&reference, &options, 1);
    param->grad[0] = -0.75;
    reference_adamw(&reference, &options, 2);
    is_near(param->at[0], adamw_by_hand(2, 0.25, -0.75, &options), 1e-14, "AdamW, two steps");

    param->grad[0] = 3;
    param->grad[1] = 4;
    reference_clip(&reference, 5, 10);
    is_near(param->grad[1], 4, 0, "gradients within the norm are not clipped");
    reference_clip(&reference, 5, 1);
    is_near(param->grad[1], 4 / (5 + 1e-6), 1e-14, "gradients past the norm are");
    reference_release(&reference);
}

int main(void)
{
    uint64_t state = tap_seed(1);

    check_formats();
    check_errors();
    check_means(&state);
    check_frozen(&state);
    check_reduce_format(&state);
    check_meeting(&state);
    check_kept();
    check_groups(&state);
    check_optimizers();
    return tap_done();
}
