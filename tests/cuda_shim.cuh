/*
 * As much of CUDA as the packing kernels need, for a C++ compiler: put before a .cu file with
 * -include, so that the very file that nvcc compiles runs under the sanitizers of a host.
 *
 * A launch runs its threads one after the other, which is right for kernels that have no barrier and
 * no shared memory. Each access that the body traces goes to shim_look(), each launch's grid to
 * shim_launch(). A call of CUDA fails where shim_fails() says so. Not here: speed, memory, streams.
 */
#ifndef TESTS_CUDA_SHIM_CUH
#define TESTS_CUDA_SHIM_CUH

#include <cstddef>
#include <cstdint>

extern "C" {
void shim_look(const void *at, uint32_t bytes, bool writes);
void shim_launch(uint32_t blocks, uint32_t threads);
bool shim_fails(void);
uint32_t shim_processors(void);
}
#define PACK_TRACE(at, bytes, writes) shim_look((at), (bytes), (writes))

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(threads, blocks)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
static dim3 gridDim, blockDim, blockIdx, threadIdx;

typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorUnknown = 999 };
enum { cudaDevAttrMultiProcessorCount = 16 };

static cudaError_t shim_result()
{
    return shim_fails() ? cudaErrorUnknown : cudaSuccess;
}

static const char *cudaGetErrorString(cudaError_t)
{
    return "the shim was told to fail";
}

static cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return shim_result();
}

static cudaError_t cudaDeviceGetAttribute(int *value, int, int)
{
    *value = (int)shim_processors();
    return shim_result();
}

template <class Kernel>
static cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel, int, size_t)
{
    *blocks = 1;
    return shim_result();
}

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    struct CUstream_st *stream;
};

template <class... Args, class... Given>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Args...),
                                      Given... given)
{
    if (shim_fails())
        return cudaErrorUnknown;
    gridDim = config->gridDim;
    blockDim = config->blockDim;
    shim_launch(gridDim.x, blockDim.x);
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
            kernel(given...);
    return cudaSuccess;
}

#endif
