/*
 * The kernel of stand-ins; see cuda_stand_in.h. A thread has the same bytes of every copy, so that
 * copies are written in their order without a barrier.
 */
extern "C" {
#include "gpu/cuda_stand_in.h"
}
#include <cuda_runtime_api.h>

#ifdef __CUDA_ARCH__

static __device__ __forceinline__ uint64_t now_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Sleeping, so that kernels beside it have what is left of the processor. */
static __device__ __forceinline__ void wait_until(uint64_t until)
{
    while (now_ns() < until)
        __nanosleep(500);
}

#else

static __device__ __forceinline__ uint64_t now_ns()
{
    return 0;
}

static __device__ __forceinline__ void wait_until(uint64_t)
{
}

#endif

/* Bytes begin to end of each copy, by elements of a type that they and all addresses are multiples of. */
template <class Element>
static __device__ __forceinline__ void move(const struct stand_in *in, uint64_t begin, uint64_t end)
{
    const uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;

    for (uint32_t copy = 0; copy < in->n; copy++) {
        const Element *from = (const Element *)(in->from + copy * in->from_step + begin);
        Element *to = (Element *)(in->to + copy * in->to_step + begin);
        for (uint64_t i = first; i < (end - begin) / sizeof(Element); i += step)
            to[i] = from[i];
    }
}

static __global__ void stand_in_kernel(const struct stand_in in, const bool is_aligned)
{
    const uint64_t start = now_ns();

    for (uint32_t piece = 0; piece < STAND_IN_PIECES; piece++) {
        const uint64_t begin = stand_in_cut(&in, piece), end = stand_in_cut(&in, piece + 1);
        if (is_aligned)
            move<uint4>(&in, begin, end);
        else
            move<char>(&in, begin, end);
        wait_until(start + (uint64_t)stand_in_due_ns(&in, piece));
    }
}

static bool is_aligned(const struct stand_in *in)
{
    const uint64_t all = (uint64_t)(uintptr_t)in->from | (uint64_t)(uintptr_t)in->to |
                         (uint64_t)in->from_step | (uint64_t)in->to_step | in->bytes;
    return all % STAND_IN_ALIGN == 0;
}

enum status cuda_stand_in(const struct stand_in *in, struct CUstream_st *stream, struct err *err)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(STAND_IN_BLOCKS);
    config.blockDim = dim3(STAND_IN_THREADS);
    config.stream = stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, stand_in_kernel, *in, is_aligned(in));
    if (error == cudaSuccess)
        return STATUS_OK;
    return err_set(err, STATUS_RUN, "cannot launch a stand-in of a collective: %s",
                   cudaGetErrorString(error));
}
