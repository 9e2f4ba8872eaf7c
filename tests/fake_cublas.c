/*
 * cuBLASLt on the host, see fake_cuda.h: the product that was described, column after column, with the
 * sums of the host's own kernel.
 *
 * What the library would refuse is refused: rows that are longer than their pitch, operands whose
 * dtypes do not go together.
 */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/ops.h"
#include "tests/fake_cuda.h"
#include "tests/tap.h"

struct desc {
    int32_t op_a, op_b, bias_type;
    uint32_t epilogue;
    const void *bias;
};

struct layout {
    uint8_t dtype;
    uint64_t rows, columns;
    int64_t pitch;
};

#define FAIL_POINT()                             \
    do {                                         \
        if (fake_cuda_fails(__func__))           \
            return CUBLAS_STATUS_INTERNAL_ERROR; \
    } while (0)

static void *make(const void *from, size_t bytes)
{
    void *at = malloc(bytes);
    if (!at)
        tap_bail("no memory for the fake library");
    memcpy(at, from, bytes);
    fake_cuda_count(1);
    return at;
}

static cublasStatus_t drop(void *at)
{
    free(at);
    fake_cuda_count(-1);
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "internal error";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    static const int nothing;
    FAIL_POINT();
    *out = make(&nothing, sizeof nothing);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return drop(handle);
}

static uint8_t dtype_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? DTYPE_FP32 : type == CUDA_R_16BF ? DTYPE_BF16 : DTYPE_FP16;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t pitch)
{
    const struct layout layout = {dtype_of(type), rows, columns, pitch};
    FAIL_POINT();
    if (columns > 1 && (uint64_t)pitch < rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *out = make(&layout, sizeof layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return drop(layout);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    const struct desc desc = {.epilogue = CUBLASLT_EPILOGUE_DEFAULT, .bias_type = -1};
    FAIL_POINT();
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *out = make(&desc, sizeof desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return drop(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    struct desc *desc = (struct desc *)handle;
    void *to = attribute == CUBLASLT_MATMUL_DESC_TRANSA           ? (void *)&desc->op_a
               : attribute == CUBLASLT_MATMUL_DESC_TRANSB         ? (void *)&desc->op_b
               : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE       ? (void *)&desc->epilogue
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER   ? (void *)&desc->bias
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? (void *)&desc->bias_type
                                                                  : NULL;
    FAIL_POINT();
    if (!to)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    static const int nothing;
    FAIL_POINT();
    *out = make(&nothing, sizeof nothing);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    (void)preference, (void)attribute, (void)value, (void)bytes;
    FAIL_POINT();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return drop(preference);
}

/* Odd sizes have no algorithm here, so that both ways are tried. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const struct layout *left = (const struct layout *)a;
    (void)handle, (void)desc, (void)b, (void)c, (void)d, (void)preference, (void)asked;
    (void)results;
    FAIL_POINT();
    if (left->rows % 2 != 0 || left->columns % 2 != 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product --------------------------------------------------------------------------- */

struct product {
    struct desc desc;
    struct layout left, right, to;
    const void *a, *b;
    void *d;
};

static float get(const struct layout *layout, const void *at, bool across, uint64_t i, uint64_t j)
{
    const uint64_t place =
        across ? i * (uint64_t)layout->pitch + j : j * (uint64_t)layout->pitch + i;
    const struct op_tensor tensor = {
        .at = (void *)(uintptr_t)at, .n = place + 1, .dtype = layout->dtype};
    float value;
    host_widen(&tensor, place, 1, &value);
    return value;
}

/* Sums in pieces of 256, as gpu/host_linear.c has its blocks. */
static float element(const struct product *of, uint64_t i, uint64_t j)
{
    const bool across_a = of->desc.op_a == CUBLAS_OP_T, across_b = of->desc.op_b == CUBLAS_OP_T;
    const uint64_t depth = across_a ? of->left.rows : of->left.columns;
    float total = 0, sum = 0;

    for (uint64_t k = 0; k < depth; k++) {
        sum += get(&of->right, of->b, across_b, k, j) * get(&of->left, of->a, across_a, i, k);
        if (k % 256 == 255 || k + 1 == depth) {
            total += sum;
            sum = 0;
        }
    }
    return total;
}

static void run(void *context)
{
    const struct product *of = context;
    const struct layout bias = {.dtype = of->to.dtype, .pitch = 0};

    for (uint64_t j = 0; j < of->to.columns; j++)
        for (uint64_t i = 0; i < of->to.rows; i++) {
            const uint64_t place = j * (uint64_t)of->to.pitch + i;
            const struct op_tensor to = {
                .at = of->d, .n = place + 1, .dtype = of->to.dtype, .mode = OP_WRITE};
            float value = element(of, i, j);
            if (of->desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
                value += get(&bias, of->desc.bias, false, i, 0);
            host_store(&to, place, 1, &value);
        }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    struct product *product = malloc(sizeof *product);
    (void)handle, (void)c, (void)c_layout, (void)algo, (void)workspace, (void)workspace_bytes;

    if (!product)
        tap_bail("no memory for the fake library");
    if (fake_cuda_fails(__func__) || *(const float *)alpha != 1 || *(const float *)beta != 0) {
        free(product);
        return CUBLAS_STATUS_INTERNAL_ERROR;
    }
    *product = (struct product){.desc = *(const struct desc *)desc,
                                .left = *(const struct layout *)a_layout,
                                .right = *(const struct layout *)b_layout,
                                .to = *(const struct layout *)d_layout,
                                .a = a,
                                .b = b,
                                .d = d};
    fake_cuda_note_product();
    fake_cuda_enqueue(stream, run, free, product);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return 130002;
}
