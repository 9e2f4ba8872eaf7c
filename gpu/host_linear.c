/*
 * The host's linear layers: y = x w' + bias and both gradients, as one product c = a b of matrices
 * that may lie transposed, so that weights of either orientation and every pass are the same code.
 *
 * With OpenBLAS (HAVE_CBLAS) the operands are widened whole and its product is taken. Without, a
 * block of c at a time is summed in cache, DEPTH of k after DEPTH, so that memory for a call has one
 * fixed size. The order of sums is fixed by the sizes; OpenBLAS has its own.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/host_ops.h"
#include "gpu/host_tile.h"
#include "gpu/lanes.h"

#ifdef HAVE_CBLAS
#include <cblas.h>
#include <limits.h>
#endif

/* Element (i, j) is number i * pitch + j of the tensor; transposed, i + j * pitch. */
struct matrix {
    const struct op_tensor *tensor;
    uint64_t pitch;
    bool transposed;
};

/* c[m,n] = a[m,k] b[k,n] + bias[n]; c lies row after row. */
struct product {
    struct matrix a, b;
    const struct op_tensor *bias, *c; /* bias NULL or absent: none */
    uint64_t m, n, k;
};

static void add_bias(const struct product *product, uint64_t first, struct tile c, uint64_t rows,
                     uint64_t columns)
{
    float line[HOST_LINE];
    if (!product->bias || !product->bias->at)
        return;
    for (uint64_t j = 0; j < columns; j += HOST_LINE) {
        const uint64_t n = host_min(HOST_LINE, columns - j);
        host_widen(product->bias, first + j, n, line);
        for (uint64_t i = 0; i < rows; i++)
            lanes_add(c.at + i * c.row + j, 1, line, n);
    }
}

#ifdef HAVE_CBLAS

/* The tensor in FP32, where it lies if it is that; else in scratch, to be freed. */
static const float *widen_all(const struct matrix *from, float **scratch)
{
    *scratch = NULL;
    if (from->tensor->dtype == DTYPE_FP32)
        return from->tensor->at;
    *scratch = host_floats(1, from->tensor->n);
    host_widen(from->tensor, 0, from->tensor->n, *scratch);
    return *scratch;
}

static enum CBLAS_TRANSPOSE order_of(const struct matrix *matrix)
{
    return matrix->transposed ? CblasTrans : CblasNoTrans;
}

static bool fits_blas(const struct product *product)
{
    return product->m <= INT_MAX && product->n <= INT_MAX && product->k <= INT_MAX;
}

static void product_by_blas(const struct product *product)
{
    const uint64_t m = product->m, n = product->n;
    float *of_a, *of_b, *c = host_floats(m, n);
    const float *a = widen_all(&product->a, &of_a), *b = widen_all(&product->b, &of_b);
    cblas_sgemm(CblasRowMajor, order_of(&product->a), order_of(&product->b), (int)m, (int)n,
                (int)product->k, 1, a, (int)product->a.pitch, b, (int)product->b.pitch, 0, c,
                (int)n);
    add_bias(product, 0, (struct tile){c, n, 1}, m, n);
    host_store(product->c, 0, m * n, c);
    free(of_a);
    free(of_b);
    free(c);
}

#endif

/* Blocks: a is HEIGHT by DEPTH, b DEPTH by WIDTH. Rows in memory are longer by a vector, so that
   those of a column do not fall on the same lines of the cache. */
enum { HEIGHT = 128, WIDTH = 128, DEPTH = 256 };

struct blocks {
    struct tile a, b, c;
};

static void blocks_init(struct blocks *blocks)
{
    const uint64_t deep = DEPTH + TILE_COLUMNS, wide = WIDTH + TILE_COLUMNS;
    float *at = host_floats(1, HEIGHT * deep + DEPTH * wide + HEIGHT * wide);
    blocks->a = (struct tile){at, deep, 1};
    blocks->b = (struct tile){at + HEIGHT * deep, wide, 1};
    blocks->c = (struct tile){blocks->b.at + DEPTH * wide, wide, 1};
}

static void blocks_release(struct blocks *blocks)
{
    free(blocks->a.at);
}

/* Widens the part of a matrix at (i, j), along the direction in which it lies in memory. */
static void load_block(const struct matrix *from, uint64_t i, uint64_t j, uint64_t rows,
                       uint64_t columns, struct tile to)
{
    float line[DEPTH];
    if (!from->transposed) {
        for (uint64_t r = 0; r < rows; r++)
            host_widen(from->tensor, (i + r) * from->pitch + j, columns, to.at + r * to.row);
        return;
    }
    for (uint64_t c = 0; c < columns; c++) {
        host_widen(from->tensor, i + (j + c) * from->pitch, rows, line);
        for (uint64_t r = 0; r < rows; r++)
            to.at[r * to.row + c] = line[r];
    }
}

static void product_block(const struct product *product, uint64_t i, uint64_t j,
                          struct blocks *blocks)
{
    const uint64_t rows = host_min(HEIGHT, product->m - i);
    const uint64_t columns = host_min(WIDTH, product->n - j);
    for (uint64_t r = 0; r < rows; r++)
        memset(blocks->c.at + r * blocks->c.row, 0, blocks->c.row * sizeof *blocks->c.at);
    for (uint64_t at = 0; at < product->k; at += DEPTH) {
        const uint64_t depth = host_min(DEPTH, product->k - at);
        load_block(&product->a, i, at, rows, depth, blocks->a);
        load_block(&product->b, at, j, depth, columns, blocks->b);
        tile_product(blocks->a, blocks->b, blocks->c, rows, columns, depth);
    }
    add_bias(product, j, blocks->c, rows, columns);
    for (uint64_t r = 0; r < rows; r++)
        host_store(product->c, (i + r) * product->n + j, columns, blocks->c.at + r * blocks->c.row);
}

static void product_by_blocks(const struct product *product)
{
    struct blocks blocks;
    blocks_init(&blocks);
    for (uint64_t i = 0; i < product->m; i += HEIGHT)
        for (uint64_t j = 0; j < product->n; j += WIDTH)
            product_block(product, i, j, &blocks);
    blocks_release(&blocks);
}

static void product_run(const struct product *product)
{
    if (!product->c->at)
        return;
#ifdef HAVE_CBLAS
    if (fits_blas(product)) {
        product_by_blas(product);
        return;
    }
#endif
    product_by_blocks(product);
}

/* The call's m, n and k are the product's: rows of c, columns of c, and what is summed over. */
void host_linear(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    const bool in_first = call->weight_in_first;
    product_run(&(struct product){.a = {&t[0], call->k, false},
                                  .b = {&t[1], in_first ? call->n : call->k, !in_first},
                                  .bias = &t[2],
                                  .c = &t[3],
                                  .m = call->m,
                                  .n = call->n,
                                  .k = call->k});
}

void host_linear_dgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    const bool in_first = call->weight_in_first;
    product_run(&(struct product){.a = {&t[0], call->k, false},
                                  .b = {&t[1], in_first ? call->k : call->n, in_first},
                                  .c = &t[2],
                                  .m = call->m,
                                  .n = call->n,
                                  .k = call->k});
}

/* d_y' x, of features out and in; where features in come first, its transpose x' d_y. */
void host_linear_wgrad(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    const uint64_t out = call->m, in = call->n;
    const struct matrix d_y = {&t[0], out, false}, x = {&t[1], in, false};
    struct product product = {.a = d_y, .b = x, .c = &t[2], .m = out, .n = in, .k = call->k};
    if (call->weight_in_first) {
        product.a = x;
        product.b = d_y;
        product.m = in;
        product.n = out;
    }
    product.a.transposed = true;
    product_run(&product);
}

void host_bias_wgrad(const struct op_call *call)
{
    const struct op_tensor *d_y = &call->tensors[0], *d_bias = &call->tensors[1];
    const uint64_t n = d_bias->n;
    float *sum = host_floats(2, n), *row = sum + n;
    for (uint64_t t = 0; t < d_y->n / n; t++) {
        host_widen(d_y, t * n, n, row);
        lanes_add(sum, 1, row, n);
    }
    host_store(d_bias, 0, n, sum);
    free(sum);
}
