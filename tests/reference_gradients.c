/*
 * The reference's gradients are the slopes of its losses: each element of each parameter, and of the
 * input where that is given, is moved a little to both sides. Tiny models that reach every operator.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/compare_numbers.h"
#include "tests/reference/reference.h"
#include "tests/tap.h"

enum { MAX_TOKENS = 80, MAX_HIDDEN = 8 };

static const struct model {
    const char *name;
    struct ref_sizes sizes;
    uint64_t batch, seq;
} models[] = {
    {"llama, two query heads for a key", {REF_LLAMA, 2, 6, 5, 4, 2, 2, 7, 0, false, false}, 2, 5},
    {"llama, tied", {REF_LLAMA, 1, 8, 5, 3, 3, 4, 5, 0, true, false}, 1, 6},
    {"gpt2, tied", {REF_GPT2, 2, 6, 7, 3, 3, 2, 7, 6, true, false}, 2, 4},
    {"gpt2", {REF_GPT2, 1, 6, 7, 2, 2, 3, 5, 9, false, false}, 3, 3},
    {"kda", {REF_KDA, 2, 6, 5, 2, 2, 3, 7, 0, false, false}, 2, 6},
    {"kda, flat", {REF_KDA, 1, 5, 4, 2, 2, 2, 5, 0, false, true}, 2, 5},
    {"kda, blocks alone, many tokens", {REF_KDA, 1, 4, 3, 1, 1, 2, 0, 0, false, false}, 1, 70},
    {"llama, one token", {REF_LLAMA, 1, 6, 5, 2, 1, 2, 7, 0, false, false}, 2, 1},
    {"gpt2, one token", {REF_GPT2, 1, 4, 6, 2, 2, 2, 5, 2, true, false}, 2, 1},
    {"kda, one token", {REF_KDA, 1, 4, 6, 2, 2, 2, 5, 0, false, false}, 2, 1},
};

/* Far less than 1e-3, the length at which a head of kda stops being made a unit one: a short q or k
   turns fast there. Far more than the noise of a loss, some 1e-16, over a gradient. */
#define DISTANCE 4e-6
static const struct number_bound bounds[] = {{"*", 1e-6}};

struct scene {
    struct reference reference;
    struct ref_step step;
    int64_t tokens[MAX_TOKENS], labels[MAX_TOKENS];
    double input[MAX_TOKENS * MAX_HIDDEN], d_input[MAX_TOKENS * MAX_HIDDEN];
    double *grads;
};

static double uniform(uint64_t *state)
{
    return (double)(tap_random(state) >> 11) / 0x1p53 - 0.5;
}

/* Norms lie around 1, as trained ones do. */
static void scene_init(struct scene *scene, const struct model *model, uint64_t *state)
{
    struct reference *reference = &scene->reference;

    *scene = (struct scene){.step = {.batch = model->batch, .seq = model->seq, .loss_factor = 1}};
    reference_init(reference, &model->sizes, (struct ref_policy){REF_EXACT, REF_EXACT, REF_EXACT});
    scene->grads = calloc(reference->n, sizeof *scene->grads);
    for (uint32_t i = 0; i < reference->n_param; i++)
        for (uint64_t k = 0; k < reference->params[i].n; k++)
            reference->params[i].at[k] =
                uniform(state) + (strstr(reference->params[i].name, "norm") ? 1 : 0);
    for (int i = 0; i < MAX_TOKENS && model->sizes.vocab > 0; i++) {
        scene->tokens[i] = (int64_t)tap_below(state, model->sizes.vocab);
        scene->labels[i] = (int64_t)tap_below(state, model->sizes.vocab);
    }
    for (int i = 0; i < MAX_TOKENS * MAX_HIDDEN; i++)
        scene->input[i] = uniform(state);
}

static void scene_release(struct scene *scene)
{
    reference_release(&scene->reference);
    free(scene->grads);
}

static double loss_of(struct scene *scene, double *grads)
{
    const struct ref_batch batch = {scene->tokens, scene->labels, scene->input};
    struct ref_result result = {.d_input = scene->d_input};

    reference_microbatch(&scene->reference, &scene->step, &batch, grads, &result);
    return result.loss;
}

static double slope(struct scene *scene, double *at)
{
    const double here = *at;
    double loss[4];

    for (int i = 0; i < 4; i++) {
        *at = here + (i < 2 ? i - 2 : i - 1) * DISTANCE;
        loss[i] = loss_of(scene, NULL);
    }
    *at = here;
    return (loss[0] - 8 * loss[1] + 8 * loss[2] - loss[3]) / (12 * DISTANCE);
}

static void add_slopes(struct scene *scene, struct comparison *comparison, const char *name,
                       double *at, const double *grad, uint64_t n)
{
    double *slopes = calloc(n, sizeof *slopes);

    for (uint64_t k = 0; k < n; k++)
        slopes[k] = slope(scene, &at[k]);
    comparison_add(comparison, name, numbers_doubles(grad, n), numbers_doubles(slopes, n));
    free(slopes);
}

static void check_slopes(struct scene *scene, const char *name)
{
    struct comparison comparison = comparison_of(bounds);
    const struct ref_sizes *sizes = &scene->reference.sizes;

    for (uint32_t i = 0; i < scene->reference.n_param; i++) {
        struct ref_param *param = &scene->reference.params[i];
        if (reference_zero_grads(&scene->reference, param, scene->step.seq, NULL) < param->n)
            add_slopes(scene, &comparison, param->name, param->at, scene->grads + param->first,
                       param->n);
    }
    if (sizes->vocab == 0)
        add_slopes(scene, &comparison, "input", scene->input, scene->d_input,
                   scene->step.batch * scene->step.seq * sizes->hidden);
    comparison_end(&comparison, "%s: slopes are gradients", name);
}

/* The embedding's output is its rows, so that their gradients are sums of its. */
static void check_input(struct scene *scene, const char *name)
{
    const struct ref_sizes *sizes = &scene->reference.sizes;
    const struct ref_param *table = &scene->reference.params[sizes->family == REF_GPT2 ? 1 : 0];
    double *sums = calloc(table->n, sizeof *sums);
    struct comparison comparison = comparison_of(bounds);

    for (uint64_t t = 0; t < scene->step.batch * scene->step.seq; t++) {
        const uint64_t row =
            sizes->family == REF_GPT2 ? t % scene->step.seq : (uint64_t)scene->tokens[t];
        for (uint64_t i = 0; i < sizes->hidden; i++)
            sums[row * sizes->hidden + i] += scene->d_input[t * sizes->hidden + i];
    }
    comparison_add(&comparison, table->name, numbers_doubles(sums, table->n),
                   numbers_doubles(scene->grads + table->first, table->n));
    comparison_end(&comparison, "%s: the input's gradient is its rows'", name);
    free(sums);
}

/* Noise is some 1e-16; no gradient of these models is that small. */
static void check_zeros(const struct scene *scene, const char *name)
{
    uint32_t n_wrong = 0;

    for (uint32_t i = 0; i < scene->reference.n_param; i++) {
        const struct ref_param *param = &scene->reference.params[i];
        const double *grad = scene->grads + param->first;
        bool *mask = calloc(param->n, sizeof *mask);
        double inside = 0, outside = 0;
        const uint64_t n = reference_zero_grads(&scene->reference, param, scene->step.seq, mask);
        for (uint64_t k = 0; k < param->n; k++)
            *(mask[k] ? &inside : &outside) += grad[k] * grad[k];
        const bool right = inside < 1e-28 && (n == param->n || outside > 1e-12);
        if (!right)
            tap_note("%s: %.1e within, %.1e without", param->name, inside, outside);
        n_wrong += !right;
        free(mask);
    }
    is_int(n_wrong, 0, "%s: gradients are zero where they are said to be, and there alone", name);
}

int main(void)
{
    uint64_t state = tap_seed(1);
    struct scene scene;

    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        scene_init(&scene, &models[i], &state);
        loss_of(&scene, scene.grads);
        check_zeros(&scene, models[i].name);
        if (models[i].sizes.vocab > 0 && !models[i].sizes.tied)
            check_input(&scene, models[i].name);
        check_slopes(&scene, models[i].name);
        scene_release(&scene);
    }
    return tap_done();
}
