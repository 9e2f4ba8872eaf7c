/*
 * The operators' formulas in double, one function each, without blocks and without FP32.
 *
 * Written from tests/oracle/README.md. An s x s matrix or a whole row on the heap is fine here.
 */
#include "tests/op_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t tokens_of(const struct op_sizes *s)
{
    return s->batch * s->seq;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

void reference_embedding(const struct op_sizes *s, const int64_t *labels, double *const *in,
                         double *const *out)
{
    for (uint64_t t = 0; t < tokens_of(s); t++)
        for (uint64_t i = 0; i < s->hidden; i++)
            out[0][t * s->hidden + i] = in[0][(uint64_t)labels[t] * s->hidden + i];
}

void reference_positions(const struct op_sizes *s, const int64_t *labels, double *const *in,
                         double *const *out)
{
    (void)labels;
    for (uint64_t t = 0; t < tokens_of(s); t++)
        for (uint64_t i = 0; i < s->hidden; i++)
            out[0][t * s->hidden + i] = in[0][t % s->seq * s->hidden + i];
}

static void linear(const struct op_sizes *s, double *const *in, double *out, uint64_t of_out,
                   uint64_t of_in)
{
    for (uint64_t t = 0; t < tokens_of(s); t++)
        for (uint64_t j = 0; j < s->inner; j++) {
            double sum = in[2] ? in[2][j] : 0;
            for (uint64_t i = 0; i < s->hidden; i++)
                sum += in[0][t * s->hidden + i] * in[1][j * of_out + i * of_in];
            out[t * s->inner + j] = sum;
        }
}

void reference_linear(const struct op_sizes *s, const int64_t *labels, double *const *in,
                      double *const *out)
{
    (void)labels;
    linear(s, in, out[0], s->hidden, 1);
}

void reference_linear_first(const struct op_sizes *s, const int64_t *labels, double *const *in,
                            double *const *out)
{
    (void)labels;
    linear(s, in, out[0], 1, s->inner);
}

static double mean_of(const double *x, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

static double mean_square(const double *x, double centre, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += (x[i] - centre) * (x[i] - centre);
    return sum / (double)n;
}

void reference_rms(const struct op_sizes *s, const int64_t *labels, double *const *in,
                   double *const *out)
{
    const uint64_t h = s->hidden;
    (void)labels;
    for (uint64_t t = 0; t < tokens_of(s); t++) {
        out[1][t] = 1 / sqrt(mean_square(in[0] + t * h, 0, h) + 1e-5);
        for (uint64_t i = 0; i < h; i++)
            out[0][t * h + i] = in[0][t * h + i] * out[1][t] * in[1][i];
    }
}

void reference_layer_norm(const struct op_sizes *s, const int64_t *labels, double *const *in,
                          double *const *out)
{
    const uint64_t h = s->hidden;
    (void)labels;
    for (uint64_t t = 0; t < tokens_of(s); t++) {
        const double *x = in[0] + t * h;
        out[1][t] = mean_of(x, h);
        out[2][t] = 1 / sqrt(mean_square(x, out[1][t], h) + 1e-5);
        for (uint64_t i = 0; i < h; i++)
            out[0][t * h + i] = (x[i] - out[1][t]) * out[2][t] * in[1][i] + (in[2] ? in[2][i] : 0);
    }
}

/* ---- attention ---------------------------------------------------------------------------- */

/* x[t] of all heads in rows of n_head * D, rotated. */
static double *rotated(const struct op_sizes *s, const double *x, uint64_t n_head)
{
    const uint64_t d = s->head_dim, half = d / 2, n = tokens_of(s) * n_head * d;
    double *out = malloc(n * sizeof *out);
    memcpy(out, x, n * sizeof *out);
    if (s->rope_base == 0)
        return out;
    for (uint64_t r = 0; r < tokens_of(s) * n_head; r++)
        for (uint64_t i = 0; i < half; i++) {
            const double a =
                (double)(r / n_head % s->seq) * pow(s->rope_base, -2.0 * (double)i / (double)d);
            const double u = x[r * d + i], v = x[r * d + i + half];
            out[r * d + i] = u * cos(a) - v * sin(a);
            out[r * d + i + half] = v * cos(a) + u * sin(a);
        }
    return out;
}

/* Query head h at row t, which is place `place` of its sequence. */
static void attend(const struct op_sizes *s, const double *q, const double *k, const double *v,
                   uint64_t t, uint64_t h, double *const *out)
{
    const uint64_t d = s->head_dim, place = t % s->seq, first = t - place;
    const uint64_t kv = h * s->kv_heads / s->heads;
    double *score = malloc((place + 1) * sizeof *score), max = -INFINITY, sum = 0;
    for (uint64_t j = 0; j <= place; j++) {
        score[j] = 0;
        for (uint64_t i = 0; i < d; i++)
            score[j] += q[(t * s->heads + h) * d + i] *
                        k[((first + j) * s->kv_heads + kv) * d + i] / sqrt((double)d);
        max = fmax(max, score[j]);
    }
    for (uint64_t j = 0; j <= place; j++)
        sum += exp(score[j] - max);
    double *to = out[0] + (t * s->heads + h) * d;
    memset(to, 0, d * sizeof *to);
    for (uint64_t j = 0; j <= place; j++)
        for (uint64_t i = 0; i < d; i++)
            to[i] += exp(score[j] - max) / sum * v[((first + j) * s->kv_heads + kv) * d + i];
    out[1][t * s->heads + h] = max + log(sum);
    free(score);
}

void reference_attention(const struct op_sizes *s, const int64_t *labels, double *const *in,
                         double *const *out)
{
    double *q = rotated(s, in[0], s->heads), *k = rotated(s, in[1], s->kv_heads);
    (void)labels;
    for (uint64_t t = 0; t < tokens_of(s); t++)
        for (uint64_t h = 0; h < s->heads; h++)
            attend(s, q, k, in[2], t, h, out);
    free(q);
    free(k);
}

static double *cut(const struct op_sizes *s, const double *x, uint64_t row, uint64_t first,
                   uint64_t n)
{
    double *out = malloc(tokens_of(s) * n * sizeof *out);
    for (uint64_t t = 0; t < tokens_of(s); t++)
        memcpy(out + t * n, x + t * row + first, n * sizeof *out);
    return out;
}

void reference_packed(const struct op_sizes *s, const int64_t *labels, double *const *in,
                      double *const *out)
{
    const uint64_t q = s->heads * s->head_dim, k = s->kv_heads * s->head_dim, row = q + 2 * k;
    double *three[] = {cut(s, in[0], row, 0, q), cut(s, in[0], row, q, k),
                       cut(s, in[0], row, q + k, k)};
    reference_attention(s, labels, three, out);
    for (int i = 0; i < 3; i++)
        free(three[i]);
}

/* ---- element by element ------------------------------------------------------------------- */

void reference_swiglu(const struct op_sizes *s, const int64_t *labels, double *const *in,
                      double *const *out)
{
    (void)labels;
    for (uint64_t i = 0; i < tokens_of(s) * s->inner; i++)
        out[0][i] = in[0][i] * sigmoid(in[0][i]) * in[1][i];
}

void reference_gelu(const struct op_sizes *s, const int64_t *labels, double *const *in,
                    double *const *out)
{
    (void)labels;
    for (uint64_t i = 0; i < tokens_of(s) * s->inner; i++) {
        const double x = in[0][i];
        out[0][i] = x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
}

void reference_add(const struct op_sizes *s, const int64_t *labels, double *const *in,
                   double *const *out)
{
    (void)labels;
    for (uint64_t i = 0; i < tokens_of(s) * s->hidden; i++)
        out[0][i] = in[0][i] + in[1][i];
}

void reference_copy(const struct op_sizes *s, const int64_t *labels, double *const *in,
                    double *const *out)
{
    (void)labels;
    memcpy(out[0], in[0], tokens_of(s) * s->hidden * sizeof *out[0]);
}

void reference_sigmoid(const struct op_sizes *s, const int64_t *labels, double *const *in,
                       double *const *out)
{
    (void)labels;
    for (uint64_t i = 0; i < tokens_of(s) * s->heads; i++)
        out[0][i] = sigmoid(in[0][i]);
}

/* ---- KDA ---------------------------------------------------------------------------------- */

void reference_short_conv(const struct op_sizes *s, const int64_t *labels, double *const *in,
                          double *const *out)
{
    const uint64_t width = s->heads * s->head_dim;
    (void)labels;
    for (uint64_t t = 0; t < tokens_of(s); t++)
        for (uint64_t c = 0; c < width; c++) {
            double z = 0;
            for (uint64_t j = 0; j < 4; j++)
                if (t % s->seq + j >= 3)
                    z += in[1][c * 4 + j] * in[0][(t + j - 3) * width + c];
            out[0][t * width + c] = z * sigmoid(z);
        }
}

void reference_l2_norm(const struct op_sizes *s, const int64_t *labels, double *const *in,
                       double *const *out)
{
    const uint64_t d = s->head_dim;
    (void)labels;
    for (uint64_t r = 0; r < tokens_of(s) * s->heads; r++) {
        out[1][r] = 1 / sqrt(mean_square(in[0] + r * d, 0, d) * (double)d + 1e-6);
        for (uint64_t i = 0; i < d; i++)
            out[0][r * d + i] = in[0][r * d + i] * out[1][r];
    }
}

void reference_decay(const struct op_sizes *s, const int64_t *labels, double *const *in,
                     double *const *out)
{
    const uint64_t width = s->heads * s->head_dim;
    (void)labels;
    for (uint64_t t = 0; t < tokens_of(s); t++)
        for (uint64_t c = 0; c < width; c++)
            out[0][t * width + c] =
                -exp(in[1][c / s->head_dim]) * log(1 + exp(in[0][t * width + c] + in[2][c]));
}

/* One token of one head: S as it is before becomes S as it is after. */
static void delta_token(uint64_t d, double *state, double *const *at, double beta, double *o)
{
    const double *q = at[0], *k = at[1], *v = at[2], *g = at[3];
    for (uint64_t i = 0; i < d; i++)
        for (uint64_t j = 0; j < d; j++)
            state[i * d + j] *= exp(g[i]);
    for (uint64_t j = 0; j < d; j++) {
        double e = v[j];
        for (uint64_t i = 0; i < d; i++)
            e -= state[i * d + j] * k[i];
        o[j] = 0;
        for (uint64_t i = 0; i < d; i++) {
            state[i * d + j] += k[i] * beta * e;
            o[j] += state[i * d + j] * q[i] / sqrt((double)d);
        }
    }
}

void reference_delta_rule(const struct op_sizes *s, const int64_t *labels, double *const *in,
                          double *const *out)
{
    const uint64_t d = s->head_dim, chunk = 64, n_chunk = (s->seq + chunk - 1) / chunk;
    double *state = malloc(d * d * sizeof *state);
    (void)labels;
    for (uint64_t b = 0; b < s->batch; b++)
        for (uint64_t h = 0; h < s->heads; h++) {
            memset(state, 0, d * d * sizeof *state);
            for (uint64_t t = 0; t < s->seq; t++) {
                const uint64_t at = (b * s->seq + t) * s->heads + h;
                double *const of[] = {in[0] + at * d, in[1] + at * d, in[2] + at * d,
                                      in[3] + at * d};
                if (t % chunk == 0)
                    memcpy(out[1] + ((b * n_chunk + t / chunk) * s->heads + h) * d * d, state,
                           d * d * sizeof *state);
                delta_token(d, state, of, in[4][at], out[0] + at * d);
            }
        }
    free(state);
}

void reference_gated_rms(const struct op_sizes *s, const int64_t *labels, double *const *in,
                         double *const *out)
{
    const uint64_t d = s->head_dim;
    (void)labels;
    for (uint64_t r = 0; r < tokens_of(s) * s->heads; r++) {
        out[1][r] = 1 / sqrt(mean_square(in[0] + r * d, 0, d) + 1e-5);
        for (uint64_t i = 0; i < d; i++)
            out[0][r * d + i] = in[0][r * d + i] * out[1][r] * in[1][i] * sigmoid(in[2][r * d + i]);
    }
}

/* ---- losses ------------------------------------------------------------------------------- */

void reference_cross_entropy(const struct op_sizes *s, const int64_t *labels, double *const *in,
                             double *const *out)
{
    double total = 0;
    for (uint64_t t = 0; t < tokens_of(s); t++) {
        const double *l = in[0] + t * s->vocab;
        double max = -INFINITY, sum = 0;
        for (uint64_t i = 0; i < s->vocab; i++)
            max = fmax(max, l[i]);
        for (uint64_t i = 0; i < s->vocab; i++)
            sum += exp(l[i] - max);
        out[0][t] = max + log(sum);
        total += out[0][t] - l[labels[t]];
    }
    out[1][0] = total / (double)tokens_of(s);
}

void reference_mean(const struct op_sizes *s, const int64_t *labels, double *const *in,
                    double *const *out)
{
    (void)labels;
    out[0][0] = mean_of(in[0], tokens_of(s) * s->hidden);
}
