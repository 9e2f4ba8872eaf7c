/*
 * The host's short convolution of KDA: over four tokens of one feature, causal, then SiLU.
 *
 *     z[t,c] = sum over j of w[c,j] x[t - 3 + j, c], zeros before a sequence;  y = silu(z)
 *     with d_z = d_y silu'(z):  d_x[t,c] = sum over j of w[c,j] d_z[t + 3 - j, c] within the sequence,
 *     d_w[c,j] = sum over tokens of d_z[t,c] x[t - 3 + j, c]
 * z is computed again in backward.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"

enum { TAPS = 4 };

struct conv {
    const struct op_tensor *x, *d_y;
    uint64_t seq, width;
    float *w;       /* [TAPS, width] */
    float *x_rows;  /* [TAPS, width]: x of the token and of the three before it */
    float *z, *d_z; /* [width], and [TAPS, width]: that of token t in row t % TAPS */
};

static void conv_init(struct conv *conv, const struct op_call *call, const struct op_tensor *w,
                      const struct op_tensor *d_y)
{
    *conv = (struct conv){.x = &call->tensors[0], .d_y = d_y, .seq = call->shape->seq};
    conv->width = conv->x->n / host_tokens(call);
    conv->w = host_floats(3 * TAPS + 1, conv->width);
    conv->x_rows = conv->w + TAPS * conv->width;
    conv->z = conv->x_rows + TAPS * conv->width;
    conv->d_z = conv->z + conv->width;
    for (uint64_t c = 0; c < conv->width; c++) {
        float taps[TAPS];
        host_widen(w, c * TAPS, TAPS, taps);
        for (uint64_t j = 0; j < TAPS; j++)
            conv->w[j * conv->width + c] = taps[j];
    }
}

static void conv_release(struct conv *conv)
{
    free(conv->w);
}

/* x_rows and z of a token. */
static void conv_load(struct conv *conv, uint64_t sequence, uint64_t t)
{
    const uint64_t n = conv->width;
    memset(conv->z, 0, n * sizeof *conv->z);
    for (uint64_t j = 0; j < TAPS; j++) {
        float *row = conv->x_rows + j * n;
        if (t + j < TAPS - 1) {
            memset(row, 0, n * sizeof *row);
            continue;
        }
        host_widen(conv->x, (sequence * conv->seq + t + j - (TAPS - 1)) * n, n, row);
        for (uint64_t c = 0; c < n; c++)
            conv->z[c] += conv->w[j * n + c] * row[c];
    }
}

void host_short_conv(const struct op_call *call)
{
    struct conv conv;
    conv_init(&conv, call, &call->tensors[1], NULL);
    for (uint64_t row = 0; row < host_tokens(call); row++) {
        conv_load(&conv, row / conv.seq, row % conv.seq);
        for (uint64_t c = 0; c < conv.width; c++)
            conv.z[c] *= host_sigmoid_of(conv.z[c]);
        host_store(&call->tensors[2], row * conv.width, conv.width, conv.z);
    }
    conv_release(&conv);
}

/* x_rows of a token, and its row of d_z. */
static float *conv_load_slope(struct conv *conv, uint64_t sequence, uint64_t t)
{
    const uint64_t n = conv->width;
    float *d_z = conv->d_z + t % TAPS * n;
    conv_load(conv, sequence, t);
    host_widen(conv->d_y, (sequence * conv->seq + t) * n, n, d_z);
    for (uint64_t c = 0; c < n; c++)
        d_z[c] *= host_silu_slope(conv->z[c]);
    return d_z;
}

/* Tokens from last to first: d_z of the three behind are there. */
static void conv_dgrad_sequence(struct conv *conv, uint64_t sequence, const struct op_tensor *d_x)
{
    const uint64_t n = conv->width;
    for (uint64_t t = conv->seq; t-- > 0;) {
        conv_load_slope(conv, sequence, t);
        memset(conv->z, 0, n * sizeof *conv->z);
        for (uint64_t j = 0; j < TAPS; j++) {
            const uint64_t later = t + TAPS - 1 - j;
            const float *d_z = conv->d_z + later % TAPS * n;
            for (uint64_t c = 0; later < conv->seq && c < n; c++)
                conv->z[c] += conv->w[j * n + c] * d_z[c];
        }
        host_store(d_x, (sequence * conv->seq + t) * n, n, conv->z);
    }
}

void host_short_conv_dgrad(const struct op_call *call)
{
    struct conv conv;
    conv_init(&conv, call, &call->tensors[1], &call->tensors[2]);
    for (uint64_t sequence = 0; sequence < call->shape->batch; sequence++)
        conv_dgrad_sequence(&conv, sequence, &call->tensors[3]);
    conv_release(&conv);
}

void host_short_conv_wgrad(const struct op_call *call)
{
    struct conv conv;
    conv_init(&conv, call, &call->tensors[1], &call->tensors[2]);
    float *d_w = host_floats(conv.width, TAPS);
    for (uint64_t row = 0; row < host_tokens(call); row++) {
        const float *d_z = conv_load_slope(&conv, row / conv.seq, row % conv.seq);
        for (uint64_t j = 0; j < TAPS; j++)
            for (uint64_t c = 0; c < conv.width; c++)
                d_w[c * TAPS + j] += d_z[c] * conv.x_rows[j * conv.width + c];
    }
    host_store(&call->tensors[3], 0, conv.width * TAPS, d_w);
    free(d_w);
    conv_release(&conv);
}
