/*
 * The optimizer's phase on the host: its loops over tensors; what an element becomes is
 * gpu/step_body.h's.
 *
 * Tensors go through FP32 in blocks and are rounded once, when they are stored. Not here: the dtypes
 * (host_widen, host_store) and which gradients there are. Invariant: sums run in the order of the
 * list.
 */
#include <math.h>

#include "gpu/host_inner.h"
#include "gpu/step_body.h"

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
    const float factor = clip_factor(*scale->squares, scale->max_norm);

    for (uint32_t i = 0; i < scale->n_list; i++)
        scale_tensor(&scale->list[i], factor);
}

static void sgd(const struct update *update, const struct optimizer_options *options)
{
    float param[BLOCK], grad[BLOCK];

    for (uint64_t at = 0; at < update->param.n; at += BLOCK) {
        const struct block block = block_at(update->param.n, at);
        load(&update->param, block, param);
        load(&update->grad, block, grad);
        for (uint64_t i = 0; i < block.n; i++)
            param[i] = sgd_element(options, param[i], grad[i]);
        store(&update->param, block, param);
    }
}

static void adamw_block(const struct adamw *by, uint64_t n, const float *grad, float *param,
                        float *moment, float *variance)
{
    for (uint64_t i = 0; i < n; i++)
        adamw_element(by, grad[i], &param[i], &moment[i], &variance[i]);
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
