/*
 * The host's operators that take each element by itself: SwiGLU, GELU, sigmoid, sums and casts.
 *
 * A line is read as a whole before any of it is written, so that an operand may be written in place.
 */
#include <math.h>

#include "gpu/host_ops.h"

enum { MAX_IN = 3, MAX_OUT = 2 };

typedef void point_fn(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE]);

/* The first n_in operands are read, the n_out behind them written. */
static void each_line(const struct op_call *call, uint32_t n_in, uint32_t n_out, point_fn *compute)
{
    const struct op_tensor *tensors = call->tensors;
    float in[MAX_IN][HOST_LINE], out[MAX_OUT][HOST_LINE];
    for (uint64_t first = 0; first < tensors[0].n; first += HOST_LINE) {
        const uint64_t n = host_min(HOST_LINE, tensors[0].n - first);
        for (uint32_t i = 0; i < n_in; i++)
            host_widen(&tensors[i], first, n, in[i]);
        compute(n, in, out);
        for (uint32_t i = 0; i < n_out; i++)
            host_store(&tensors[n_in + i], first, n, out[i]);
    }
}

static void swiglu(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++)
        out[0][i] = in[0][i] * host_sigmoid_of(in[0][i]) * in[1][i];
}

static void swiglu_dgrad(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++) {
        const float gate = in[0][i], up = in[1][i], d_y = in[2][i];
        out[0][i] = d_y * up * host_silu_slope(gate);
        out[1][i] = d_y * gate * host_sigmoid_of(gate);
    }
}

/* x / 2 (1 + tanh(root (x + cube x^3))), root = sqrt(2 / pi) */
static const float gelu_root = 0.79788456080286536f, gelu_cube = 0.044715f;

static void gelu(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++) {
        const float x = in[0][i];
        out[0][i] = 0.5f * x * (1 + tanhf(gelu_root * (x + gelu_cube * x * x * x)));
    }
}

static void gelu_dgrad(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++) {
        const float x = in[0][i];
        const float t = tanhf(gelu_root * (x + gelu_cube * x * x * x));
        const float slope = gelu_root * (1 + 3 * gelu_cube * x * x) * (1 - t * t);
        out[0][i] = in[1][i] * 0.5f * (1 + t + x * slope);
    }
}

static void sigmoid(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++)
        out[0][i] = host_sigmoid_of(in[0][i]);
}

static void sigmoid_dgrad(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++)
        out[0][i] = in[1][i] * in[0][i] * (1 - in[0][i]);
}

static void add(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++)
        out[0][i] = in[0][i] + in[1][i];
}

static void copy(uint64_t n, float (*in)[HOST_LINE], float (*out)[HOST_LINE])
{
    for (uint64_t i = 0; i < n; i++)
        out[0][i] = in[0][i];
}

void host_swiglu(const struct op_call *call)
{
    each_line(call, 2, 1, swiglu);
}

void host_swiglu_dgrad(const struct op_call *call)
{
    each_line(call, 3, 2, swiglu_dgrad);
}

void host_gelu(const struct op_call *call)
{
    each_line(call, 1, 1, gelu);
}

void host_gelu_dgrad(const struct op_call *call)
{
    each_line(call, 2, 1, gelu_dgrad);
}

void host_sigmoid(const struct op_call *call)
{
    each_line(call, 1, 1, sigmoid);
}

void host_sigmoid_dgrad(const struct op_call *call)
{
    each_line(call, 2, 1, sigmoid_dgrad);
}

void host_add(const struct op_call *call)
{
    each_line(call, 2, 1, add);
}

void host_cast(const struct op_call *call)
{
    each_line(call, 1, 1, copy);
}
