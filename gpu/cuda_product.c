/*
 * Products of matrices by cuBLASLt: FP32 sums of BF16, FP16 or FP32 operands, never TF32.
 *
 * The library counts columns first. A matrix that lies row after row is its own transpose there, so
 * that c = a b becomes c' = b' a', and nothing is copied. What is added to a result (OP_UPDATE) is
 * rounded first, as gpu/ops.h has it: the product goes to scratch, and a cast adds it. Descriptions
 * and the algorithm are found once, when work is prepared.
 *
 * Invariant: a product that the library does not take is NULL, and the caller's own kernel runs.
 */
#include <stdlib.h>

#include "gpu/cuda_inner.h"
#include "gpu/cuda_library.h"
#include "gpu/product.h"

struct cuda_product {
    struct cuda_product *next;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t left, right, to; /* b', a', c' */
    cublasLtMatmulAlgo_t algo;
    struct op_product of; /* of the tensors that follow */
    struct op_call call;
};

struct cuda_products {
    cublasLtHandle_t handle;
    struct cuda_product *list;
};

static enum status said(cublasStatus_t status, const char *call, struct err *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    return err_set(err, STATUS_RUN, "%s: %s", call, cublaslt.cublasLtGetStatusString(status));
}
#define LT_CALL(err, call, ...) said(cublaslt.call(__VA_ARGS__), #call, err)

enum status cuda_products_new(struct cuda_products **out, struct err *err)
{
    struct cuda_products *products = calloc(1, sizeof(*products));

    if (!products)
        err_out_of_memory(sizeof(*products));
    const enum status status = LT_CALL(err, cublasLtCreate, &products->handle);
    if (status == STATUS_OK)
        *out = products;
    else
        free(products);
    return status;
}

/* ---- what the library takes ---------------------------------------------------------------- */

static cudaDataType_t type_of(uint8_t dtype)
{
    if (dtype == DTYPE_FP32)
        return CUDA_R_32F;
    return dtype == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

static bool has_bias(const struct op_product *of)
{
    return of->bias && of->bias->at;
}

/* Operands of one dtype, and results of it or of FP32. */
static bool is_taken(const struct op_product *of)
{
    const uint8_t dtype = of->a.tensor->dtype;

    return of->b.tensor->dtype == dtype && (of->c->dtype == dtype || of->c->dtype == DTYPE_FP32) &&
           (!has_bias(of) || of->bias->dtype == of->c->dtype);
}

/* rows x columns as they lie, of a matrix whose transpose is asked for. */
static enum status layout_of(const struct op_matrix *matrix, uint64_t rows, uint64_t columns,
                             cublasLtMatrixLayout_t *out, struct err *err)
{
    const uint64_t pitch = matrix->transposed ? matrix->column : matrix->row;
    return LT_CALL(err, cublasLtMatrixLayoutCreate, out, type_of(matrix->tensor->dtype),
                   matrix->transposed ? columns : rows, matrix->transposed ? rows : columns,
                   (int64_t)pitch);
}

static enum status set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                       const void *value, size_t bytes, struct err *err)
{
    return LT_CALL(err, cublasLtMatmulDescSetAttribute, desc, attribute, value, bytes);
}

static enum status describe_bias(cublasLtMatmulDesc_t desc, const struct op_tensor *bias,
                                 struct err *err)
{
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const int32_t type = (int32_t)type_of(bias->dtype);
    enum status status = set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue), err);

    if (status == STATUS_OK)
        status = set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias->at, sizeof(bias->at), err);
    if (status == STATUS_OK)
        status = set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof(type), err);
    return status;
}

static enum status describe(struct cuda_product *product, struct err *err)
{
    const struct op_product *of = &product->of;
    const cublasOperation_t left = of->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = of->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const struct op_matrix c = matrix_of(of->c, of->n, false);
    enum status status =
        LT_CALL(err, cublasLtMatmulDescCreate, &product->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);

    if (status == STATUS_OK)
        status = set(product->desc, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left), err);
    if (status == STATUS_OK)
        status = set(product->desc, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right), err);
    if (status == STATUS_OK && has_bias(of))
        status = describe_bias(product->desc, of->bias, err);
    if (status == STATUS_OK)
        status = layout_of(&of->b, of->n, of->k, &product->left, err);
    if (status == STATUS_OK)
        status = layout_of(&of->a, of->k, of->m, &product->right, err);
    if (status == STATUS_OK)
        status = layout_of(&c, of->n, of->m, &product->to, err);
    return status;
}

/* found 0: the library has none for these sizes, which is no error. */
static enum status find_algo(const struct cuda_products *products, struct cuda_product *product,
                             int *found, struct err *err)
{
    const uint64_t bytes = product->call.workspace_bytes;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result = {0};
    enum status status = LT_CALL(err, cublasLtMatmulPreferenceCreate, &preference);

    *found = 0;
    if (status != STATUS_OK)
        return status;
    status = LT_CALL(err, cublasLtMatmulPreferenceSetAttribute, preference,
                     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    if (status == STATUS_OK) {
        const cublasStatus_t answer = cublaslt.cublasLtMatmulAlgoGetHeuristic(
            products->handle, product->desc, product->left, product->right, product->to,
            product->to, preference, 1, &result, found);
        if (answer != CUBLAS_STATUS_NOT_SUPPORTED)
            status = said(answer, "cublasLtMatmulAlgoGetHeuristic", err);
    }
    cublaslt.cublasLtMatmulPreferenceDestroy(preference);
    product->algo = result.algo;
    return status;
}

static void product_free(struct cuda_product *product)
{
    if (product->to)
        cublaslt.cublasLtMatrixLayoutDestroy(product->to);
    if (product->right)
        cublaslt.cublasLtMatrixLayoutDestroy(product->right);
    if (product->left)
        cublaslt.cublasLtMatrixLayoutDestroy(product->left);
    if (product->desc)
        cublaslt.cublasLtMatmulDescDestroy(product->desc);
    free(product);
}

enum status cuda_products_prepare(struct cuda_products *products, const struct op_call *call,
                                  struct cuda_product **out, struct err *err)
{
    struct cuda_product *product = calloc(1, sizeof(*product));
    int found = 0;
    enum status status = STATUS_OK;

    if (!product)
        err_out_of_memory(sizeof(*product));
    product->call = *call;
    product->of = product_of(&product->call);
    *out = NULL;
    if (product->of.c->at && is_taken(&product->of)) {
        status = describe(product, err);
        if (status == STATUS_OK)
            status = find_algo(products, product, &found, err);
    }
    if (status != STATUS_OK || found == 0) {
        product_free(product);
        return status;
    }
    product->next = products->list;
    products->list = product;
    *out = product;
    return STATUS_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

static bool is_added(const struct op_product *of)
{
    return of->c->mode == OP_UPDATE;
}

uint64_t cuda_product_scratch_bytes(const struct op_call *call)
{
    const struct op_product of = product_of(call);
    return is_added(&of) ? of.c->n * dtype_bytes((enum dtype)of.c->dtype) : 0;
}

static enum status add_rounded(const struct op_product *of, const struct cuda_op *op,
                               cudaStream_t stream, struct err *err)
{
    struct cuda_op add = *op;

    add.call.kind = OP_TO;
    add.call.pass = PASS_FORWARD;
    add.call.tensors[0] = (struct op_tensor){
        .at = op->scratch, .n = of->c->n, .dtype = of->c->dtype, .mode = OP_READ};
    add.call.tensors[1] = *of->c;
    return cuda_op_run(&add, stream, err);
}

enum status cuda_products_run(struct cuda_products *products, const struct cuda_product *product,
                              const struct cuda_op *op, cudaStream_t stream, struct err *err)
{
    const struct op_product *of = &product->of;
    const float one = 1, zero = 0;
    void *to = is_added(of) ? op->scratch : of->c->at;
    enum status status = LT_CALL(err, cublasLtMatmul, products->handle, product->desc, &one,
                                 of->b.tensor->at, product->left, of->a.tensor->at, product->right,
                                 &zero, to, product->to, to, product->to, &product->algo,
                                 product->call.workspace, product->call.workspace_bytes, stream);

    if (status == STATUS_OK && is_added(of))
        status = add_rounded(of, op, stream, err);
    return status;
}

void cuda_products_reset(struct cuda_products *products)
{
    while (products->list) {
        struct cuda_product *product = products->list;
        products->list = product->next;
        product_free(product);
    }
}

void cuda_products_free(struct cuda_products *products)
{
    if (!products)
        return;
    cuda_products_reset(products);
    cublaslt.cublasLtDestroy(products->handle);
    free(products);
}

int cuda_product_version(void)
{
    return (int)cublaslt.cublasLtGetVersion();
}
