/*
 * The host's losses: mean cross entropy over all places, and the plain mean of what has no head.
 *
 * A row of logits is read line by line, twice: for its maximum, and for the sum of exp(l - maximum).
 * The loss of a place is (maximum - l[label]) + log(sum), which stays exact where lse is large.
 * Labels lie in the vocabulary.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"

static float find_max(const struct op_tensor *logits, uint64_t first, uint64_t vocab)
{
    float line[HOST_LINE], max = -INFINITY;
    for (uint64_t at = 0; at < vocab; at += HOST_LINE) {
        const uint64_t n = host_min(HOST_LINE, vocab - at);
        host_widen(logits, first + at, n, line);
        for (uint64_t i = 0; i < n; i++)
            max = line[i] > max ? line[i] : max;
    }
    return max;
}

static float sum_exp(const struct op_tensor *logits, uint64_t first, uint64_t vocab, float max)
{
    float line[HOST_LINE], sum = 0;
    for (uint64_t at = 0; at < vocab; at += HOST_LINE) {
        const uint64_t n = host_min(HOST_LINE, vocab - at);
        host_widen(logits, first + at, n, line);
        for (uint64_t i = 0; i < n; i++)
            line[i] = expf(line[i] - max);
        sum += lanes_sum(line, n);
    }
    return sum;
}

/* Of a microbatch, to the tensor and to the step's mean. */
static void note_loss(const struct op_call *call, const struct op_tensor *to, float loss)
{
    host_store(to, 0, 1, &loss);
    call->state->loss += (double)loss / call->state->microbatches;
}

void host_cross_entropy(const struct op_call *call)
{
    const struct op_tensor *logits = &call->tensors[0];
    const int64_t *labels = call->tensors[1].at;
    const uint64_t tokens = host_tokens(call), vocab = logits->n / tokens;
    float *losses = host_floats(1, tokens);
    for (uint64_t t = 0; t < tokens; t++) {
        assert((uint64_t)labels[t] < vocab);
        const float max = find_max(logits, t * vocab, vocab);
        const float log_sum = logf(sum_exp(logits, t * vocab, vocab, max)), lse = max + log_sum;
        losses[t] = max - host_load(logits, t * vocab + (uint64_t)labels[t]) + log_sum;
        host_store(&call->tensors[2], t, 1, &lse);
    }
    const float loss = lanes_sum(losses, tokens) / (float)tokens;
    note_loss(call, &call->tensors[3], loss);
    free(losses);
}

/* (softmax - one-hot) grad_scale / tokens */
static void cross_entropy_dgrad_row(const struct op_call *call, uint64_t t, float factor)
{
    const struct op_tensor *logits = &call->tensors[0];
    const uint64_t vocab = logits->n / host_tokens(call);
    const uint64_t label = (uint64_t)((const int64_t *)call->tensors[1].at)[t];
    const float lse = host_load(&call->tensors[2], t);
    float line[HOST_LINE];
    for (uint64_t at = 0; at < vocab; at += HOST_LINE) {
        const uint64_t n = host_min(HOST_LINE, vocab - at);
        host_widen(logits, t * vocab + at, n, line);
        for (uint64_t i = 0; i < n; i++)
            line[i] = (expf(line[i] - lse) - (at + i == label ? 1 : 0)) * factor;
        host_store(&call->tensors[3], t * vocab + at, n, line);
    }
}

void host_cross_entropy_dgrad(const struct op_call *call)
{
    const uint64_t tokens = host_tokens(call);
    for (uint64_t t = 0; t < tokens; t++)
        cross_entropy_dgrad_row(call, t, call->state->grad_scale / (float)tokens);
}

void host_mean(const struct op_call *call)
{
    const struct op_tensor *x = &call->tensors[0];
    float line[HOST_LINE], sum = 0;
    for (uint64_t at = 0; at < x->n; at += HOST_LINE) {
        const uint64_t n = host_min(HOST_LINE, x->n - at);
        host_widen(x, at, n, line);
        sum += lanes_sum(line, n);
    }
    note_loss(call, &call->tensors[1], sum / (float)x->n);
}

void host_mean_dgrad(const struct op_call *call)
{
    const struct op_tensor *d_x = &call->tensors[0];
    float line[HOST_LINE];
    for (uint64_t i = 0; i < HOST_LINE; i++)
        line[i] = call->state->grad_scale / (float)d_x->n;
    for (uint64_t at = 0; at < d_x->n; at += HOST_LINE)
        host_store(d_x, at, host_min(HOST_LINE, d_x->n - at), line);
}
