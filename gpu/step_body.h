/*
 * The end of a step, for one element or one number: SGD, AdamW, clipping, the loss scaler, the result.
 *
 * Plain C that a CUDA compiler takes too: host and device share it. All FP32 but the scalars of a
 * whole tensor, which are FP64 and rounded where they meet elements, as torch has it. Not here: loops,
 * dtypes, and which gradients there are. Formulas: tests/oracle/README.md, "Optimizers".
 */
#ifndef GPU_STEP_BODY_H
#define GPU_STEP_BODY_H

#include <math.h>

#include "gpu/convert.h"
#include "gpu/work.h"

/* A NaN stays one, as in torch. */
HOST_DEVICE float clip_factor(float squares, float max_norm)
{
    const float factor = max_norm / (sqrtf(squares) + 1e-6f);
    return factor > 1 ? 1 : factor;
}

HOST_DEVICE float sgd_element(const struct optimizer_options *options, float param, float grad)
{
    return param - (float)options->lr * grad;
}

/* One tensor's scalars of one step. */
struct adamw {
    float decay, weight1, beta2, weight2, root2, eps, rate;
};

/* step: counted from 1. */
HOST_DEVICE struct adamw adamw_of(const struct optimizer_options *options, double step)
{
    const struct adamw by = {
        (float)(1 - options->lr * options->weight_decay),
        (float)(1 - options->beta1),
        (float)options->beta2,
        (float)(1 - options->beta2),
        (float)sqrt(1 - pow(options->beta2, step)),
        (float)options->eps,
        (float)(options->lr / (1 - pow(options->beta1, step))),
    };
    return by;
}

HOST_DEVICE void adamw_element(const struct adamw *by, float grad, float *param, float *moment,
                               float *variance)
{
    *param *= by->decay;
    *moment += by->weight1 * (grad - *moment);
    *variance = by->beta2 * *variance + by->weight2 * grad * grad;
    *param -= by->rate * *moment / (sqrtf(*variance) / by->root2 + by->eps);
}

/* GradScaler: half after infinities, twice after so many steps without (torch's defaults). */
HOST_DEVICE void adapt_scale(struct step_state *state)
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

/* Notes what the step came to, and makes the state ready for the next one. */
HOST_DEVICE void step_end(struct step_state *state, struct step_result *result)
{
    result->loss = state->loss;
    result->not_finite = state->not_finite;
    result->skipped = state->inf_found;
    result->ended = true;
    if (state->scales)
        adapt_scale(state);
    state->loss = 0;
    state->not_finite = 0;
    state->inf_found = false;
}

#endif
