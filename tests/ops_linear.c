/*
 * Linear layers past the borders of the host's blocks, every element against sums in double; and the
 * small product they are made of, bit by bit.
 *
 * Bound: FP32 sums of up to 300 terms, each partial sum rounded: 2e-6 of the norm, plus half a unit
 * of what is stored.
 */
#include <math.h>
#include <stdlib.h>

#include "gpu/host_tile.h"
#include "gpu/ops.h"

#include "tests/number.h"
#include "tests/tap.h"

static float draw(uint64_t *seed)
{
    return (float)tap_below(seed, 2001) / 1000 - 1;
}

/* ---- the small product -------------------------------------------------------------------- */

enum { SIDE = 40 };

struct square {
    float at[SIDE * SIDE];
};

static void square_fill(struct square *square, uint64_t *seed)
{
    for (uint64_t i = 0; i < SIDE * SIDE; i++)
        square->at[i] = draw(seed);
}

/* c + (a b), sums over k in rising order from zero. */
static float element(const struct tile *a, const struct tile *b, float c, uint64_t i, uint64_t j,
                     uint64_t k)
{
    float sum = 0;
    for (uint64_t at = 0; at < k; at++)
        sum += a->at[i * a->row + at * a->column] * b->at[at * b->row + j];
    return c + sum;
}

static bool product_is_exact(uint64_t m, uint64_t n, uint64_t k, bool transposed, uint64_t *seed)
{
    struct square a, b, c, before;
    square_fill(&a, seed);
    square_fill(&b, seed);
    square_fill(&c, seed);
    before = c;
    const struct tile of_a = {a.at, transposed ? 1 : SIDE, transposed ? SIDE : 1};
    const struct tile of_b = {b.at, SIDE, 1};
    tile_product(of_a, of_b, (struct tile){c.at, SIDE, 1}, m, n, k);
    bool good = true;
    for (uint64_t i = 0; i < SIDE; i++)
        for (uint64_t j = 0; j < SIDE; j++) {
            const float was = before.at[i * SIDE + j];
            const bool inside = i < m && j < tile_padded(n);
            good &= c.at[i * SIDE + j] == (inside ? element(&of_a, &of_b, was, i, j, k) : was);
        }
    return good;
}

static void check_tile(uint64_t *seed)
{
    bool good = true;
    for (uint64_t m = 1; m <= 9; m++)
        for (uint64_t n = 1; n <= 17; n++)
            for (uint64_t k = 0; k <= 37; k += 4)
                good &= product_is_exact(m, n, k, m % 2, seed);
    ok(good, "a small product has the plain loop's bits, and touches nothing else");
}

/* ---- layers ------------------------------------------------------------------------------- */

/* A tensor, and what is in it. */
struct values {
    struct op_tensor tensor;
    double *at;
};

struct layer {
    uint64_t tokens, in, out;
    bool in_first;
    enum dtype dtype;
    struct values x, w, bias, d_y, y, d_x, d_w;
};

static void values_read(struct values *values)
{
    for (uint64_t i = 0; i < values->tensor.n; i++)
        values->at[i] = number_get(values->tensor.dtype, values->tensor.at, i);
}

static struct values make_values(const struct layer *layer, uint64_t n, uint64_t *seed)
{
    struct values values = {.tensor = {.at = malloc(n * dtype_bytes(layer->dtype)),
                                       .n = n,
                                       .dtype = (uint8_t)layer->dtype,
                                       .mode = OP_WRITE},
                            .at = malloc(n * sizeof(double))};
    for (uint64_t i = 0; i < n; i++)
        number_set(layer->dtype, values.tensor.at, i, (double)draw(seed));
    values_read(&values);
    return values;
}

static void values_release(struct values *values)
{
    free(values->tensor.at);
    free(values->at);
}

static void layer_init(struct layer *layer, uint64_t *seed)
{
    layer->x = make_values(layer, layer->tokens * layer->in, seed);
    layer->w = make_values(layer, layer->in * layer->out, seed);
    layer->bias = make_values(layer, layer->out, seed);
    layer->d_y = make_values(layer, layer->tokens * layer->out, seed);
    layer->y = make_values(layer, layer->tokens * layer->out, seed);
    layer->d_x = make_values(layer, layer->tokens * layer->in, seed);
    layer->d_w = make_values(layer, layer->in * layer->out, seed);
}

static void layer_release(struct layer *layer)
{
    values_release(&layer->x);
    values_release(&layer->w);
    values_release(&layer->bias);
    values_release(&layer->d_y);
    values_release(&layer->y);
    values_release(&layer->d_x);
    values_release(&layer->d_w);
}

static void layer_run(const struct layer *layer)
{
    struct op_call call = {
        .kind = OP_MM,
        .weight_in_first = layer->in_first,
        .n_tensor = 4,
        .m = layer->tokens,
        .n = layer->out,
        .k = layer->in,
        .tensors = {layer->x.tensor, layer->w.tensor, layer->bias.tensor, layer->y.tensor}};
    host_op_find(OP_MM, PASS_FORWARD)(&call);
    call = (struct op_call){.kind = OP_MM,
                            .weight_in_first = layer->in_first,
                            .n_tensor = 3,
                            .m = layer->tokens,
                            .n = layer->in,
                            .k = layer->out,
                            .tensors = {layer->d_y.tensor, layer->w.tensor, layer->d_x.tensor}};
    host_op_find(OP_MM, PASS_DGRAD)(&call);
    call = (struct op_call){.kind = OP_MM,
                            .weight_in_first = layer->in_first,
                            .n_tensor = 3,
                            .m = layer->out,
                            .n = layer->in,
                            .k = layer->tokens,
                            .tensors = {layer->d_y.tensor, layer->x.tensor, layer->d_w.tensor}};
    host_op_find(OP_MM, PASS_WGRAD)(&call);
}

static uint64_t weight_at(const struct layer *layer, uint64_t out, uint64_t in)
{
    return layer->in_first ? in * layer->out + out : out * layer->in + in;
}

static double expect_y(const struct layer *layer, uint64_t e)
{
    const uint64_t t = e / layer->out, out = e % layer->out;
    double sum = layer->bias.at[out];
    for (uint64_t i = 0; i < layer->in; i++)
        sum += layer->x.at[t * layer->in + i] * layer->w.at[weight_at(layer, out, i)];
    return sum;
}

static double expect_d_x(const struct layer *layer, uint64_t e)
{
    const uint64_t t = e / layer->in, in = e % layer->in;
    double sum = 0;
    for (uint64_t i = 0; i < layer->out; i++)
        sum += layer->d_y.at[t * layer->out + i] * layer->w.at[weight_at(layer, i, in)];
    return sum;
}

static double expect_d_w(const struct layer *layer, uint64_t e)
{
    const uint64_t out = layer->in_first ? e % layer->out : e / layer->in;
    const uint64_t in = layer->in_first ? e / layer->out : e % layer->in;
    double sum = 0;
    for (uint64_t t = 0; t < layer->tokens; t++)
        sum += layer->d_y.at[t * layer->out + out] * layer->x.at[t * layer->in + in];
    return sum;
}

/* Norm-wise, of the bound. */
static double error_of(const struct layer *layer, struct values *got,
                       double (*expect)(const struct layer *layer, uint64_t e))
{
    double error = 0, size = 0;
    values_read(got);
    for (uint64_t e = 0; e < got->tensor.n; e++) {
        const double want = expect(layer, e), off = got->at[e] - want;
        error += off * off;
        size += want * want;
    }
    return sqrt(error / size) / (2e-6 + number_unit(got->tensor.dtype));
}

static void check_layer(struct layer layer, uint64_t *seed)
{
    layer_init(&layer, seed);
    layer_run(&layer);
    const double y = error_of(&layer, &layer.y, expect_y);
    const double d_x = error_of(&layer, &layer.d_x, expect_d_x);
    const double d_w = error_of(&layer, &layer.d_w, expect_d_w);
    ok(y <= 1 && d_x <= 1 && d_w <= 1,
       "%s, %d tokens, %d to %d%s: errors %.2f, %.2f, %.2f of the bound", dtype_name(layer.dtype),
       (int)layer.tokens, (int)layer.in, (int)layer.out, layer.in_first ? ", inputs first" : "", y,
       d_x, d_w);
    layer_release(&layer);
}

int main(void)
{
    static const struct layer layers[] = {
        {.tokens = 150, .in = 300, .out = 130},
        {.tokens = 128, .in = 256, .out = 129},
        {.tokens = 257, .in = 1, .out = 140},
        {.tokens = 1, .in = 270, .out = 3},
    };
    uint64_t seed = tap_seed(1);
    check_tile(&seed);
    for (uint32_t i = 0; i < 2 * sizeof layers / sizeof *layers; i++)
        for (int dtype = DTYPE_FP32; dtype <= DTYPE_FP16; dtype++) {
            struct layer layer = layers[i / 2];
            layer.in_first = i % 2;
            layer.dtype = (enum dtype)dtype;
            check_layer(layer, &seed);
        }
    return tap_done();
}
