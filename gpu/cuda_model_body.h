/*
 * Bodies of the CUDA operators over whole rows: embeddings, norms, losses, linear layers without a
 * library, and what takes each element by itself. Items of gpu/cuda_item.h; formulas: gpu/ops.h and
 * the host's files of the same operators.
 */
#ifndef GPU_CUDA_MODEL_BODY_H
#define GPU_CUDA_MODEL_BODY_H

#include "gpu/cuda_item.h"
#include "gpu/product.h"

/* ---- embeddings ---------------------------------------------------------------------------- */

HOST_DEVICE const int64_t *ids_of(const struct cuda_op *op, int operand)
{
    return (const int64_t *)op->call.tensors[operand].at;
}

HOST_DEVICE void embedding_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t width = t[2].n / op_tokens(op), row = (uint64_t)ids_of(op, 0)[i / width];
    store(&t[2], i, load(&t[1], row * width + i % width));
}

/* In scratch, of each row of the table the first token that has it, and behind a token the next. */
enum { NO_TOKEN = 0xffffffff };

HOST_DEVICE uint32_t *first_tokens(const struct cuda_op *op)
{
    return (uint32_t *)op->scratch;
}

HOST_DEVICE uint64_t embedding_rows(const struct cuda_op *op)
{
    return op->call.tensors[2].n / (op->call.tensors[1].n / op_tokens(op));
}

HOST_DEVICE void embedding_clear_item(const struct cuda_op *op, uint64_t row)
{
    first_tokens(op)[row] = NO_TOKEN;
}

/* One item: from the last token to the first, so that lists rise. */
HOST_DEVICE void embedding_link_item(const struct cuda_op *op, uint64_t item)
{
    uint32_t *first = first_tokens(op), *next = first + embedding_rows(op);
    (void)item;
    for (uint64_t t = op_tokens(op); t-- > 0;) {
        next[t] = first[ids_of(op, 0)[t]];
        first[ids_of(op, 0)[t]] = (uint32_t)t;
    }
}

HOST_DEVICE void embedding_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *d_out = &op->call.tensors[1], *d_table = &op->call.tensors[2];
    const uint64_t width = d_out->n / op_tokens(op);
    const uint32_t *first = first_tokens(op), *next = first + embedding_rows(op);
    const uint32_t begin = first[i / width];
    float sum = 0;
    for (uint32_t t = begin; t != NO_TOKEN; t = next[t])
        sum += load(d_out, t * width + i % width);
    if (begin != NO_TOKEN || d_table->mode == OP_WRITE)
        store(d_table, i, sum);
}

HOST_DEVICE void positions_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t width = t[1].n / op_tokens(op);
    store(&t[1], i, load(&t[0], i / width % op->shape.seq * width + i % width));
}

HOST_DEVICE void positions_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t width = t[0].n / op_tokens(op), seq = op->shape.seq;
    float sum = 0;
    for (uint64_t at = i / width; i / width < seq && at < op_tokens(op); at += seq)
        sum += load(&t[0], at * width + i % width);
    store(&t[1], i, sum);
}

/* ---- linear layers ------------------------------------------------------------------------- */

/* For operands that the library does not take. Sums in pieces of k, as the host's blocks are. */
HOST_DEVICE void product_item(const struct cuda_op *op, uint64_t i)
{
    enum { DEPTH = 256 };
    const struct op_product of = product_of(&op->call);
    const uint64_t row = i / of.n, column = i % of.n;
    float total = 0;
    for (uint64_t at = 0; at < of.k; at += DEPTH) {
        float sum = 0;
        for (uint64_t k = at; k < op_min(at + DEPTH, of.k); k++)
            sum += load(of.a.tensor, row * of.a.row + k * of.a.column) *
                   load(of.b.tensor, k * of.b.row + column * of.b.column);
        total += sum;
    }
    if (of.bias && of.bias->at)
        total += load(of.bias, column);
    store(of.c, i, total);
}

HOST_DEVICE void bias_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *d_y = &op->call.tensors[0], *d_bias = &op->call.tensors[1];
    float sum = 0;
    for (uint64_t at = i; at < d_y->n; at += d_bias->n)
        sum += load(d_y, at);
    store(d_bias, i, sum);
}

/* ---- norms --------------------------------------------------------------------------------- */

/* Operands; NULL where the norm has none. A row is a token's. */
struct op_norm {
    const struct op_tensor *x, *w, *bias, *mean, *rstd, *y, *d_y, *d_x, *d_w, *d_bias;
    uint64_t width;
};

HOST_DEVICE struct op_norm norm_of(const struct cuda_op *op)
{
    const struct op_tensor *t = op->call.tensors;
    const bool has_mean = op->call.kind == OP_LAYER_NORM;
    const int m = has_mean ? 1 : 0; /* operands behind the mean lie so much further */
    struct op_norm norm = {};
    norm.x = &t[0];
    norm.width = t[0].n / op_tokens(op);
    if (op->call.pass == PASS_DGRAD) {
        norm.w = &t[1];
        norm.mean = has_mean ? &t[2] : NULL;
        norm.rstd = &t[2 + m];
        norm.d_y = &t[3 + m];
        norm.d_x = &t[4 + m];
    } else if (op->call.pass == PASS_WGRAD) {
        norm.mean = has_mean ? &t[1] : NULL;
        norm.rstd = &t[1 + m];
        norm.d_y = &t[2 + m];
        norm.d_w = &t[3 + m];
        norm.d_bias = has_mean ? &t[5] : NULL;
    } else {
        norm.w = &t[1];
        norm.bias = has_mean ? &t[2] : NULL;
        norm.y = &t[2 + m];
        norm.mean = has_mean ? &t[4] : NULL;
        norm.rstd = &t[has_mean ? 5 : 3];
    }
    return norm;
}

HOST_DEVICE void norm_item(const struct cuda_op *op, uint64_t token)
{
    const struct op_norm norm = norm_of(op);
    const uint64_t n = norm.width, at = token * n;
    const bool has_bias = norm.bias && norm.bias->at;
    float mean = 0;
    if (norm.mean) {
        mean = lanes_over(n, [=](uint64_t i) { return load(norm.x, at + i); }) / (float)n;
        store(norm.mean, token, mean);
    }
    const float squares = lanes_over(n, [=](uint64_t i) {
        const float x = load(norm.x, at + i) - mean;
        return x * x;
    });
    const float rstd = 1 / sqrtf(squares / (float)n + 1e-5f);
    store(norm.rstd, token, rstd);
    for (uint64_t i = 0; i < n; i++) {
        const float y = (load(norm.x, at + i) - mean) * rstd * load(norm.w, i);
        store(norm.y, at + i, has_bias ? y + load(norm.bias, i) : y);
    }
}

/* An element as forward normed it. */
HOST_DEVICE float normed(const struct op_norm *norm, uint64_t token, uint64_t i)
{
    const float mean = norm->mean ? load(norm->mean, token) : 0;
    return (load(norm->x, token * norm->width + i) - mean) * load(norm->rstd, token);
}

HOST_DEVICE void norm_dgrad_item(const struct cuda_op *op, uint64_t token)
{
    const struct op_norm norm = norm_of(op);
    const uint64_t n = norm.width, at = token * n;
    const auto g = [=](uint64_t i) { return load(norm.d_y, at + i) * load(norm.w, i); };
    const float along =
        lanes_over(n, [=](uint64_t i) { return g(i) * normed(&norm, token, i); }) / (float)n;
    const float mean = norm.mean ? lanes_over(n, g) / (float)n : 0;
    for (uint64_t i = 0; i < n; i++)
        store(norm.d_x, at + i,
              ((g(i) - mean) + -along * normed(&norm, token, i)) * load(norm.rstd, token));
}

HOST_DEVICE void norm_wgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_norm norm = norm_of(op);
    float d_w = 0, d_bias = 0;
    for (uint64_t t = 0; t < op_tokens(op); t++) {
        const float d_y = load(norm.d_y, t * norm.width + i);
        d_w += d_y * normed(&norm, t, i);
        d_bias += d_y;
    }
    store(norm.d_w, i, d_w);
    if (norm.d_bias)
        store(norm.d_bias, i, d_bias);
}

/* ---- each element by itself ---------------------------------------------------------------- */

HOST_DEVICE void swiglu_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const float gate = load(&t[0], i);
    store(&t[2], i, gate * sigmoid_of(gate) * load(&t[1], i));
}

HOST_DEVICE void swiglu_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const float gate = load(&t[0], i), up = load(&t[1], i), d_y = load(&t[2], i);
    store(&t[3], i, d_y * up * silu_slope(gate));
    store(&t[4], i, d_y * gate * sigmoid_of(gate));
}

/* x / 2 (1 + tanh(root (x + cube x^3))), root = sqrt(2 / pi) */
#define GELU_ROOT 0.79788456080286536f
#define GELU_CUBE 0.044715f

HOST_DEVICE void gelu_item(const struct cuda_op *op, uint64_t i)
{
    const float x = load(&op->call.tensors[0], i);
    store(&op->call.tensors[1], i, 0.5f * x * (1 + tanhf(GELU_ROOT * (x + GELU_CUBE * x * x * x))));
}

HOST_DEVICE void gelu_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const float x = load(&t[0], i), d_y = load(&t[1], i);
    const float h = tanhf(GELU_ROOT * (x + GELU_CUBE * x * x * x));
    const float slope = GELU_ROOT * (1 + 3 * GELU_CUBE * x * x) * (1 - h * h);
    store(&t[2], i, d_y * 0.5f * (1 + h + x * slope));
}

HOST_DEVICE void sigmoid_item(const struct cuda_op *op, uint64_t i)
{
    store(&op->call.tensors[1], i, sigmoid_of(load(&op->call.tensors[0], i)));
}

HOST_DEVICE void sigmoid_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const float y = load(&t[0], i);
    store(&t[2], i, load(&t[1], i) * y * (1 - y));
}

HOST_DEVICE void add_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    store(&t[2], i, load(&t[0], i) + load(&t[1], i));
}

HOST_DEVICE void cast_item(const struct cuda_op *op, uint64_t i)
{
    store(&op->call.tensors[1], i, load(&op->call.tensors[0], i));
}

/* ---- losses -------------------------------------------------------------------------------- */

/* Of a microbatch, to the tensor and to the step's mean. */
HOST_DEVICE void note_loss(const struct cuda_op *op, const struct op_tensor *to, float loss)
{
    store(to, 0, loss);
    op->call.state->loss += (double)loss / op->call.state->microbatches;
}

/* A token's loss to scratch: (maximum - l[label]) + log(sum), exact where lse is large. */
HOST_DEVICE void cross_entropy_item(const struct cuda_op *op, uint64_t token)
{
    const struct op_tensor *logits = &op->call.tensors[0];
    const uint64_t vocab = logits->n / op_tokens(op), at = token * vocab;
    float max = -INFINITY;
    for (uint64_t i = 0; i < vocab; i++) {
        const float logit = load(logits, at + i);
        max = logit > max ? logit : max;
    }
    const float log_sum =
        logf(lines_over(vocab, [=](uint64_t i) { return expf(load(logits, at + i) - max); }));
    op->scratch[token] = max - load(logits, at + (uint64_t)ids_of(op, 1)[token]) + log_sum;
    store(&op->call.tensors[2], token, max + log_sum);
}

/* One item: the mean of all tokens. */
HOST_DEVICE void cross_entropy_mean_item(const struct cuda_op *op, uint64_t item)
{
    const uint64_t tokens = op_tokens(op);
    (void)item;
    const float sum = lanes_over(tokens, [=](uint64_t i) { return op->scratch[i]; });
    note_loss(op, &op->call.tensors[3], sum / (float)tokens);
}

/* (softmax - one-hot) grad_scale / tokens */
HOST_DEVICE void cross_entropy_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *t = op->call.tensors;
    const uint64_t tokens = op_tokens(op), vocab = t[0].n / tokens, token = i / vocab;
    const float factor = op->call.state->grad_scale / (float)tokens;
    const float hot = i % vocab == (uint64_t)ids_of(op, 1)[token] ? 1 : 0;
    store(&t[3], i, (expf(load(&t[0], i) - load(&t[2], token)) - hot) * factor);
}

/* A line's sum to scratch. */
HOST_DEVICE void mean_line_item(const struct cuda_op *op, uint64_t line)
{
    const struct op_tensor *x = &op->call.tensors[0];
    const uint64_t at = line * OP_LINE, n = op_min(OP_LINE, x->n - at);
    op->scratch[line] = lanes_over(n, [=](uint64_t i) { return load(x, at + i); });
}

HOST_DEVICE void mean_item(const struct cuda_op *op, uint64_t item)
{
    const struct op_tensor *x = &op->call.tensors[0];
    float sum = 0;
    (void)item;
    for (uint64_t line = 0; line * OP_LINE < x->n; line++)
        sum += op->scratch[line];
    note_loss(op, &op->call.tensors[1], sum / (float)x->n);
}

HOST_DEVICE void mean_dgrad_item(const struct cuda_op *op, uint64_t i)
{
    const struct op_tensor *d_x = &op->call.tensors[0];
    store(d_x, i, op->call.state->grad_scale / (float)d_x->n);
}

#endif
