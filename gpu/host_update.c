/*
 * What the optimizer's phase computes on the host: norms, clipping, scaling, SGD and AdamW.
 *
 * Tensors go through FP32 in blocks and are rounded once, when they are stored; scalars of a whole
 * tensor are FP64 and rounded to FP32 where they meet elements, as torch does. Not here: the dtypes
 * (host_widen, host_store) and which gradients there are. Formulas: tests/oracle/README.md,
 * "Optimizers". Invariant: sums run in the order of the list.
 */
#include <math.h>

#include "gpu/host_inner.h"

enum { BLOCK = 1024 };

/* A part of a tensor that is looked at as FP32. */
struct block {
    uint64_t first, n;
};

static struct block block_at(uint64_t n, uint64_t first)
{
    return (struct block){first, n - first < BLOCK ? n - first : BLOCK};
}

static struct op_tensor operand(const struct device_tensor *tensor)
{
    return (struct op_tensor){tensor->at, tensor->n, tensor->dtype, OP_WRITE};
}

static void load(const struct device_tensor *tensor, struct block block, float *out)
{
    const struct op_tensor from = operand(tensor);
    host_widen(&from, block.first, block.n, out);
}

static void store(const struct device_tensor *tensor, struct block block, const float *values)
{
    const struct op_tensor to = operand(tensor);
    host_store(&to, block.first, block.n, values);
}

static double sum_squares(const struct device_tensor *tensor)
{
    float values[BLOCK];
    double sum = 0;

    for (uint64_t at = 0; at < tensor->n; at += BLOCK) {
        const struct block block = block_at(tensor->n, at);
        load(tensor, block, values);
        for (uint64_t i = 0; i < block.n; i++)
            sum += (double)values[i] * values[i];
    }
    return sum;
}

/* Whether an element was not finite before. */
static bool scale_tensor(const struct device_tensor *tensor, float factor)
{
    float values[BLOCK];
    bool found = false;

    for (uint64_t at = 0; at < tensor->n; at += BLOCK) {
        const struct block block = block_at(tensor->n, at);
        load(tensor, block, values);
        for (uint64_t i = 0; i < block.n; i++) {
            found |= !isfinite(values[i]);
            values[i] *= factor;
        }
        store(tensor, block, values);
    }
    return found;
}

void host_squares(const struct work_squares *squares, const struct step_state *state)
{
    const float factor = squares->finite ? 1 / state->loss_scale : 1;
    double sum = 0;
    bool found = false;

    for (uint32_t i = 0; i < squares->n_list; i++) {
        if (squares->finite)
            found |= scale_tensor(&squares->list[i], factor);
        else
            sum += sum_squares(&squares->list[i]);
    }
    *squares->to = squares->finite ? (float)found : (float)sum;
}

void host_scale(const struct work_scale *scale)
{
    float factor = scale->max_norm / (sqrtf(*scale->squares) + 1e-6f);

    factor = factor > 1 ? 1 : factor; /* a NaN stays one, as in torch */
    for (uint32_t i = 0; i < scale->n_list; i++)
        scale_tensor(&scale->list[i], factor);
}

static void sgd(const struct update *update, const struct optimizer_options *options)
{
    const float lr = (float)options->lr;
    float param[BLOCK], grad[BLOCK];

    for (uint64_t at = 0; at < update->param.n; at += BLOCK) {
        const struct block block = block_at(update->param.n, at);
        load(&update->param, block, param);
        load(&update->grad, block, grad);
        for (uint64_t i = 0; i < block.n; i++)
            param[i] -= lr * grad[i];
        store(&update->param, block, param);
    }
}

/* One tensor's scalars of one step. */
struct adamw {
    float decay, weight1, beta2, weight2, root2, eps, rate;
};

static struct adamw adamw_of(const struct optimizer_options *options, double step)
{
    return (struct adamw){
        .decay = (float)(1 - options->lr * options->weight_decay),
        .weight1 = (float)(1 - options->beta1),
        .beta2 = (float)options->beta2,
        .weight2 = (float)(1 - options->beta2),
        .root2 = (float)sqrt(1 - pow(options->beta2, step)),
        .eps = (float)options->eps,
        .rate = (float)(options->lr / (1 - pow(options->beta1, step))),
    };
}

static void adamw_block(const struct adamw *by, uint64_t n, const float *grad, float *param,
                        float *moment, float *variance)
{
    for (uint64_t i = 0; i < n; i++) {
        param[i] *= by->decay;
        moment[i] += by->weight1 * (grad[i] - moment[i]);
        variance[i] = by->beta2 * variance[i] + by->weight2 * grad[i] * grad[i];
        param[i] -= by->rate * moment[i] / (sqrtf(variance[i]) / by->root2 + by->eps);
    }
}

static void adamw(const struct update *update, const struct optimizer_options *options)
{
    float param[BLOCK], grad[BLOCK], moment[BLOCK], variance[BLOCK];

    *update->step += 1;
    const struct adamw by = adamw_of(options, (double)*update->step);
    for (uint64_t at = 0; at < update->param.n; at += BLOCK) {
        const struct block block = block_at(update->param.n, at);
        load(&update->param, block, param);
        load(&update->grad, block, grad);
        load(&update->moment, block, moment);
        load(&update->variance, block, variance);
        adamw_block(&by, block.n, grad, param, moment, variance);
        store(&update->param, block, param);
        store(&update->moment, block, moment);
        store(&update->variance, block, variance);
    }
}

void host_update(const struct work_update *update)
{
    for (uint32_t i = 0; i < update->n_list; i++) {
        if (update->options->adamw)
            adamw(&update->list[i], update->options);
        else
            sgd(&update->list[i], update->options);
    }
}

uint64_t host_not_finite(const struct work_update *update)
{
    float values[BLOCK];
    uint64_t count = 0;

    for (uint32_t i = 0; i < update->n_list; i++) {
        const struct device_tensor *grad = &update->list[i].grad;
        for (uint64_t at = 0; at < grad->n; at += BLOCK) {
            const struct block block = block_at(grad->n, at);
            load(grad, block, values);
            for (uint64_t j = 0; j < block.n; j++)
                count += !isfinite(values[j]);
        }
    }
    return count;
}

/* GradScaler: half after infinities, twice after so many steps without (torch's defaults). */
static void adapt_scale(struct step_state *state)
{
    enum { GROWTH_STEPS = 2000 };

    state->good_steps = state->inf_found ? 0 : state->good_steps + 1;
    if (state->inf_found)
        state->loss_scale /= 2;
    if (state->good_steps == GROWTH_STEPS) {
        state->loss_scale *= 2;
        state->good_steps = 0;
    }
    state->grad_scale = state->loss_scale * state->loss_factor;
}

void host_step_end(struct step_state *state, struct step_result *result)
{
    *result = (struct step_result){.loss = state->loss,
                                   .not_finite = state->not_finite,
                                   .skipped = state->inf_found,
                                   .ended = true};
    if (state->scales)
        adapt_scale(state);
    state->loss = 0;
    state->not_finite = 0;
    state->inf_found = false;
}
