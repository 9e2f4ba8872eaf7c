/*
 * NCCL and cuBLASLt, found when a device is asked for and not when the program starts: so that one
 * program runs where neither is, and says which of them a device lacks.
 *
 * Their calls are members of two tables, which hold nothing before they are loaded. Which file it is
 * follows from the headers: the major version that they are of.
 */
#ifndef GPU_CUDA_LIBRARY_H
#define GPU_CUDA_LIBRARY_H

#include <cublasLt.h>
#include <nccl.h>

#include "src/err.h"

/* X(name) */
#define NCCL_CALLS(X)           \
    X(ncclAllGather)            \
    X(ncclAllReduce)            \
    X(ncclCommAbort)            \
    X(ncclCommDestroy)          \
    X(ncclCommFinalize)         \
    X(ncclCommGetAsyncError)    \
    X(ncclCommInitRankConfig)   \
    X(ncclGetErrorString)       \
    X(ncclGetLastError)         \
    X(ncclGetUniqueId)          \
    X(ncclGetVersion)           \
    X(ncclRedOpCreatePreMulSum) \
    X(ncclRedOpDestroy)         \
    X(ncclReduceScatter)

#define CUBLASLT_CALLS(X)                   \
    X(cublasLtCreate)                       \
    X(cublasLtDestroy)                      \
    X(cublasLtGetStatusString)              \
    X(cublasLtGetVersion)                   \
    X(cublasLtMatmul)                       \
    X(cublasLtMatmulAlgoGetHeuristic)       \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatrixLayoutDestroy)

#define X(name) __typeof__(&name) name;
struct nccl_calls {
    NCCL_CALLS(X)
};
struct cublaslt_calls {
    CUBLASLT_CALLS(X)
};
#undef X
extern struct nccl_calls nccl;
extern struct cublaslt_calls cublaslt;

/* Both, once in a process. STATUS_DEVICE: which is not here, and why. */
enum status cuda_libraries_load(struct err *err);

/* gpu/cuda_link.c, by the dynamic linker. open: NULL with the linker's words. find: NULL where the
   library has no such call. */
typedef void cuda_any_call(void);
void *cuda_library_open(const char *file, const char **why);
cuda_any_call *cuda_library_find(void *library, const char *name);

#endif
