/*
 * OP_MM as one product of matrices, for devices: c[m,n] = a[m,k] b[k,n] + bias[n], whichever pass it
 * is and whichever way the weight lies. Plain C that a CUDA compiler takes too; computes nothing.
 */
#ifndef GPU_PRODUCT_H
#define GPU_PRODUCT_H

#include "gpu/convert.h"
#include "gpu/ops.h"

/* Element (i, j) is number i * row + j * column of the tensor; one of the two is 1. */
struct op_matrix {
    const struct op_tensor *tensor;
    uint64_t row, column;
    bool transposed; /* row is the one */
};

/* c lies row after row. */
struct op_product {
    struct op_matrix a, b;
    const struct op_tensor *bias, *c; /* bias NULL or absent: none */
    uint64_t m, n, k;
};

HOST_DEVICE struct op_matrix matrix_of(const struct op_tensor *tensor, uint64_t pitch,
                                       bool transposed)
{
    const struct op_matrix matrix = {tensor, transposed ? 1 : pitch, transposed ? pitch : 1,
                                     transposed};
    return matrix;
}

/* The call's m, n and k are the product's, but for a wgrad whose weight has features in first: then
   it is x' d_y in place of d_y' x. */
HOST_DEVICE struct op_product product_of(const struct op_call *call)
{
    const struct op_tensor *t = call->tensors;
    const bool in_first = call->weight_in_first;
    struct op_product product = {matrix_of(&t[0], call->k, false),
                                 matrix_of(&t[1], 0, false),
                                 0,
                                 &t[2],
                                 call->m,
                                 call->n,
                                 call->k};

    if (call->pass == PASS_WGRAD) {
        const struct op_matrix d_y = matrix_of(&t[0], call->m, !in_first);
        const struct op_matrix x = matrix_of(&t[1], call->n, in_first);
        product.a = in_first ? x : d_y;
        product.b = in_first ? d_y : x;
        product.m = in_first ? call->n : call->m;
        product.n = in_first ? call->m : call->n;
    } else if (call->pass == PASS_DGRAD) {
        product.b = matrix_of(&t[1], in_first ? call->k : call->n, in_first);
    } else {
        product.b = matrix_of(&t[1], in_first ? call->n : call->k, !in_first);
        product.bias = &t[2];
        product.c = &t[3];
    }
    return product;
}

#endif
