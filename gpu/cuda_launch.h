/*
 * Launching kernels that take a number of items, from .cu files. Not here: what an item is.
 */
#ifndef GPU_CUDA_LAUNCH_H
#define GPU_CUDA_LAUNCH_H

extern "C" {
#include "src/err.h"
}

enum { LAUNCH_THREADS = 128 };
static const uint64_t LAUNCH_MAX_BLOCKS = 1 << 20;

/* Calls body(i) for the items of this thread. */
template <class Body> static __device__ __forceinline__ void each_item(uint64_t n, Body body)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        body(i);
}

/* kernel(n, given ...) over n items; a block for none, too. */
template <class... Args, class... Given>
static enum status launch_some(void (*kernel)(uint64_t, Args...), uint64_t n, const char *what,
                               struct CUstream_st *stream, struct err *err, Given... given)
{
    const uint64_t enough = n == 0 ? 1 : (n + LAUNCH_THREADS - 1) / LAUNCH_THREADS;
    const uint64_t blocks = enough < LAUNCH_MAX_BLOCKS ? enough : LAUNCH_MAX_BLOCKS;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(LAUNCH_THREADS);
    config.stream = stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, n, given...);
    if (error == cudaSuccess)
        return STATUS_OK;
    return err_set(err, STATUS_RUN, "cannot launch %s: %s", what, cudaGetErrorString(error));
}

/* Nothing where there are no items. */
template <class... Args, class... Given>
static enum status launch_items(void (*kernel)(uint64_t, Args...), uint64_t n, const char *what,
                                struct CUstream_st *stream, struct err *err, Given... given)
{
    return n == 0 ? STATUS_OK : launch_some(kernel, n, what, stream, err, given...);
}

#endif
