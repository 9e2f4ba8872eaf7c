/*
 * What is made of the gradients of ranks and microbatches, and the optimizers.
 *
 * Each sum and each mean is rounded to the dtype that is reduced in: tests/oracle/README.md, "How
 * reductions are made" and the end of "Backward".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

static double *zeros(uint64_t n)
{
    double *at = calloc(n, sizeof *at);
    if (!at)
        abort();
    return at;
}

/* Of count numbers that lie so far apart; added in FP32, whatever is reduced. */
static double mean_of(const double *at, uint64_t apart, uint32_t count, enum ref_format reduce)
{
    const enum ref_format inner = reduce == REF_EXACT ? REF_EXACT : REF_FP32;
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum = ref_round(inner, sum + ref_round(reduce, at[i * apart]));
    return ref_round(reduce, sum / count);
}

/* held: of each rank; waiting: of each replica, what was not yet reduced over all of them. */
struct sums {
    double *held, *waiting;
};

static void reduce_element(const struct reference *reference, const struct ref_step *step,
                           struct ref_param *param, uint64_t k, struct sums sums, bool to_all)
{
    const uint64_t n = reference->n, at = param->first + k;
    const uint32_t shards = step->ranks / step->replicas;

    for (uint32_t replica = 0; replica < step->replicas; replica++) {
        double *sum = &sums.waiting[replica * n + at];
        const double *ranks = &sums.held[replica * shards * n + at];
        *sum = ref_round(param->reduce, *sum + mean_of(ranks, n, shards, param->reduce));
    }
    if (!to_all)
        return;
    const double mean = mean_of(&sums.waiting[at], n, step->replicas, param->reduce);
    const double by = step->divisor > 0 ? step->ranks / step->divisor : 1;
    const double grad = ref_round(param->reduce, mean * by);
    param->grad[k] = ref_round(param->storage, param->grad[k] + ref_round(param->storage, grad));
    for (uint32_t replica = 0; replica < step->replicas; replica++)
        sums.waiting[replica * n + at] = 0;
}

static void reduce(struct reference *reference, const struct ref_step *step, struct sums sums,
                   bool to_all)
{
    for (uint32_t i = 0; i < reference->n_param; i++) {
        struct ref_param *param = &reference->params[i];
        for (uint64_t k = 0; k < param->n && !param->frozen && !param->unused; k++)
            reduce_element(reference, step, param, k, sums, to_all);
    }
}

static void hold(const struct reference *reference, const double *grads, bool adds, double *held)
{
    for (uint32_t i = 0; i < reference->n_param; i++) {
        const struct ref_param *param = &reference->params[i];
        for (uint64_t k = param->first; k < param->first + param->n; k++)
            held[k] =
                ref_round(param->reduce, (adds ? held[k] : 0) + ref_round(param->reduce, grads[k]));
    }
}

static double norm_of(const struct reference *reference)
{
    double sum = 0;

    for (uint32_t i = 0; i < reference->n_param; i++)
        for (uint64_t k = 0; k < reference->params[i].n; k++)
            sum += reference->params[i].grad[k] * reference->params[i].grad[k];
    return sqrt(sum);
}

static void clear_grads(struct reference *reference)
{
    for (uint32_t i = 0; i < reference->n_param; i++)
        memset(reference->params[i].grad, 0, reference->params[i].n * sizeof(double));
}

double reference_step(struct reference *reference, const struct ref_step *step,
                      const struct ref_batch *batches, struct ref_result *results)
{
    const uint64_t n = reference->n;
    double *grads = zeros(n);
    struct sums sums = {zeros(step->ranks * n), zeros(step->replicas * n)};

    clear_grads(reference);
    for (uint32_t microbatch = 0; microbatch < step->microbatches; microbatch++) {
        const bool is_last = microbatch == step->microbatches - 1;
        for (uint32_t rank = 0; rank < step->ranks; rank++) {
            const uint64_t at = (uint64_t)microbatch * step->ranks + rank;
            reference_microbatch(reference, step, &batches[at], grads, &results[at]);
            hold(reference, grads, step->sync_last, sums.held + rank * n);
        }
        if (is_last || !step->sync_last)
            reduce(reference, step, sums, is_last || !step->all_reduce_last);
    }
    free(grads);
    free(sums.held);
    free(sums.waiting);
    return norm_of(reference);
}

/* ---- optimizers --------------------------------------------------------------------------- */

void reference_clip(struct reference *reference, double norm, double max_norm)
{
    const double factor = fmin(1, max_norm / (norm + 1e-6));

    for (uint32_t i = 0; i < reference->n_param; i++) {
        struct ref_param *param = &reference->params[i];
        for (uint64_t k = 0; k < param->n; k++)
            param->grad[k] = ref_round(param->storage, param->grad[k] * factor);
    }
}

void reference_sgd(struct reference *reference, double lr)
{
    for (uint32_t i = 0; i < reference->n_param; i++) {
        struct ref_param *param = &reference->params[i];
        for (uint64_t k = 0; k < param->n && !param->frozen; k++)
            param->at[k] = ref_round(param->storage, param->at[k] - lr * param->grad[k]);
    }
}

static void update(struct ref_param *param, uint64_t k, const struct ref_adamw *options,
                   double first, double second)
{
    const double grad = param->grad[k], kept = 1 - options->lr * options->weight_decay;
    double *m = &param->moment[k], *v = &param->variance[k];

    *m = ref_round(param->storage, *m + (1 - options->beta1) * (grad - *m));
    *v = ref_round(param->storage, options->beta2 * *v + (1 - options->beta2) * grad * grad);
    param->at[k] =
        ref_round(param->storage, param->at[k] * kept - options->lr / first * *m /
                                                            (sqrt(*v / second) + options->eps));
}

void reference_adamw(struct reference *reference, const struct ref_adamw *options, uint32_t count)
{
    const double first = 1 - pow(options->beta1, count), second = 1 - pow(options->beta2, count);

    for (uint32_t i = 0; i < reference->n_param; i++) {
        struct ref_param *param = &reference->params[i];
        for (uint64_t k = 0; k < param->n && !param->frozen; k++)
            update(param, k, options, first, second);
    }
}
