/*
 * A .cu file for a C++ compiler: put before it with -include, so that its kernels run on the streams
 * of tests/fake_cuda.h. A launch runs its threads one after the other, which is right for kernels
 * without barriers and shared memory.
 */
#ifndef TESTS_FAKE_KERNEL_CUH
#define TESTS_FAKE_KERNEL_CUH

#include <cuda_runtime_api.h>

extern "C" {
#include "tests/fake_cuda.h"
}

/* The runtime's own headers say __global__ and the like already. */
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(threads, blocks)
#define __grid_constant__

static dim3 gridDim, blockDim, blockIdx, threadIdx;

static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value)
{
    const unsigned long long old = *to;
    *to += value;
    return old;
}

template <class Kernel>
static cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel, int, size_t)
{
    *blocks = 1;
    return fake_cuda_fails("cudaOccupancyMaxActiveBlocksPerMultiprocessor") ? cudaErrorUnknown
                                                                            : cudaSuccess;
}

/* A launch that waits for its turn; its body is a lambda. */
template <class Body> struct fake_launch {
    dim3 grid, block;
    Body body;
};

template <class Body> static void fake_launch_run(void *context)
{
    const fake_launch<Body> *launch = (const fake_launch<Body> *)context;
    gridDim = launch->grid;
    blockDim = launch->block;
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
            launch->body();
}

template <class Body> static void fake_launch_drop(void *context)
{
    delete (fake_launch<Body> *)context;
}

template <class Body> static void fake_launch_put(const cudaLaunchConfig_t *config, Body body)
{
    if (!fake_cuda_note_launch())
        return;
    fake_cuda_enqueue(config->stream, fake_launch_run<Body>, fake_launch_drop<Body>,
                      new fake_launch<Body>{config->gridDim, config->blockDim, body});
}

template <class... Args, class... Given>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Args...),
                                      Given... given)
{
    if (fake_cuda_fails("cudaLaunchKernel"))
        return cudaErrorUnknown;
    fake_launch_put(config, [=]() { kernel(given...); });
    return cudaSuccess;
}

#endif
