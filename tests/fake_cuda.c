/*
 * CUDA's runtime, and the driver's calls for mapped memory, on the host; see fake_cuda.h. What is
 * given back is gone, also where that is made to fail. Streams: tests/fake_stream.c.
 */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fake_inner.h"
#include "tests/tap.h"

enum { POISON = 0xa5 };
#define PAGE_BYTES ((uint64_t)2 << 20)

static struct {
    struct fake_setup setup;
    uint64_t calls, launches, products, collectives, used_bytes;
    int64_t live;
    const char *failed;
} fake;

/* ---- the test's side ----------------------------------------------------------------------- */

void fake_cuda_init(const struct fake_setup *setup)
{
    memset(&fake, 0, sizeof fake);
    fake.setup = *setup;
    if (fake.setup.device_bytes == 0)
        fake.setup.device_bytes = (uint64_t)80 << 30;
    fake_streams_init(&fake.setup);
}

uint64_t fake_cuda_calls(void)
{
    return fake.calls;
}

const char *fake_cuda_failed(void)
{
    return fake.failed;
}

int64_t fake_cuda_live(void)
{
    return fake.live;
}

uint64_t fake_cuda_launches(void)
{
    return fake.launches;
}

uint64_t fake_cuda_products(void)
{
    return fake.products;
}

uint64_t fake_cuda_collectives(void)
{
    return fake.collectives;
}

bool fake_cuda_fails(const char *call)
{
    if (fake.setup.of && strncmp(call, fake.setup.of, strlen(fake.setup.of)) != 0)
        return false;
    if (++fake.calls != fake.setup.fail_at)
        return false;
    fake.failed = call;
    return true;
}

bool fake_cuda_lacks(const char *name)
{
    const char *lacks = fake.setup.lacks;
    return lacks && strncmp(name, lacks, strlen(lacks)) == 0;
}

void fake_cuda_count(int64_t made)
{
    fake.live += made;
}

bool fake_cuda_note_launch(void)
{
    fake.launches++;
    return !fake.setup.loses_launches;
}

void fake_cuda_note_product(void)
{
    fake.products++;
}

void fake_cuda_note_collective(void)
{
    fake.collectives++;
}

/* ---- the device ---------------------------------------------------------------------------- */

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "unknown error";
}

cudaError_t cudaGetDeviceCount(int *n)
{
    if (fake.setup.driver < 13000)
        return cudaErrorInsufficientDriver;
    if (fake.setup.n_device == 0)
        return cudaErrorNoDevice;
    FAIL_POINT();
    *n = fake.setup.n_device;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fake.setup.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    FAIL_POINT();
    return device < fake.setup.n_device ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int *device)
{
    FAIL_POINT();
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)attribute, (void)device;
    FAIL_POINT();
    *value = 2;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    (void)device;
    FAIL_POINT();
    *out = (struct cudaDeviceProp){
        .name = "fake GPU", .totalGlobalMem = fake.setup.device_bytes, .multiProcessorCount = 2};
    return cudaSuccess;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* In front of what is given out. */
struct header {
    uint64_t bytes, taken_bytes;
};
enum { HEADER_BYTES = 512 };

static void *take(size_t bytes, uint64_t taken_bytes)
{
    char *at = aligned_alloc(HEADER_BYTES, (HEADER_BYTES + bytes + HEADER_BYTES - 1) /
                                               HEADER_BYTES * HEADER_BYTES);
    if (!at)
        tap_bail("no memory for the fake device");
    memset(at + HEADER_BYTES, POISON, bytes);
    *(struct header *)(void *)at = (struct header){bytes, taken_bytes};
    fake.live++;
    fake.used_bytes += taken_bytes;
    return at + HEADER_BYTES;
}

static void give_back(void *memory)
{
    char *at = (char *)memory - HEADER_BYTES;
    fake.used_bytes -= ((struct header *)(void *)at)->taken_bytes;
    fake.live--;
    free(at);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *all)
{
    FAIL_POINT();
    *available = fake.setup.device_bytes - fake.used_bytes;
    *all = fake.setup.device_bytes;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    const uint64_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    if (fake.used_bytes + pages > fake.setup.device_bytes)
        return cudaErrorMemoryAllocation;
    *out = take(bytes, pages);
    return cudaSuccess;
}

/* Waits for all streams, as CUDA does. */
cudaError_t cudaFree(void *at)
{
    fake_streams_run();
    give_back(at);
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    *out = take(bytes, 0);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at)
{
    give_back(at);
    FAIL_POINT();
    return cudaSuccess;
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    memset(at, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    memcpy(to, from, bytes);
    return cudaSuccess;
}

/* A copy, or a fill where from is NULL. */
struct move {
    void *to;
    const void *from;
    size_t bytes;
    int value;
};

static void run_move(void *context)
{
    const struct move *move = context;
    if (move->from)
        memcpy(move->to, move->from, move->bytes);
    else
        memset(move->to, move->value, move->bytes);
}

static void enqueue_move(cudaStream_t stream, struct move move)
{
    struct move *kept = malloc(sizeof *kept);
    if (!kept)
        tap_bail("no memory for the fake device");
    *kept = move;
    fake_cuda_enqueue(stream, run_move, free, kept);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    FAIL_POINT();
    enqueue_move(stream, (struct move){.to = at, .bytes = bytes, .value = value});
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    FAIL_POINT();
    enqueue_move(stream, (struct move){.to = to, .from = from, .bytes = bytes});
    return cudaSuccess;
}

/* ---- the driver ---------------------------------------------------------------------------- */

#define DRIVER_FAIL_POINT(name)        \
    do {                               \
        if (fake_cuda_fails(name))     \
            return CUDA_ERROR_UNKNOWN; \
    } while (0)

static CUresult reserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr hint,
                        unsigned long long flags)
{
    (void)align, (void)hint, (void)flags;
    DRIVER_FAIL_POINT("cuMemAddressReserve");
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.live++;
    *out = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr at, size_t bytes)
{
    munmap((void *)(uintptr_t)at, bytes);
    fake.live--;
    DRIVER_FAIL_POINT("cuMemAddressFree");
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes,
                       const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)bytes, (void)prop, (void)flags;
    DRIVER_FAIL_POINT("cuMemCreate");
    fake.live++;
    *out = 1;
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    fake.live--;
    DRIVER_FAIL_POINT("cuMemRelease");
    return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)offset, (void)handle, (void)flags;
    DRIVER_FAIL_POINT("cuMemMap");
    mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE);
    memset((void *)(uintptr_t)at, POISON, bytes);
    fake.used_bytes += bytes;
    fake.live++;
    return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr at, size_t bytes)
{
    mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    fake.used_bytes -= bytes;
    fake.live -= (int64_t)(bytes / PAGE_BYTES);
    DRIVER_FAIL_POINT("cuMemUnmap");
    return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    (void)at, (void)bytes, (void)access, (void)n;
    DRIVER_FAIL_POINT("cuMemSetAccess");
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"cuMemAddressReserve", (void (*)(void))reserve},
                 {"cuMemAddressFree", (void (*)(void))unreserve},
                 {"cuMemCreate", (void (*)(void))create},
                 {"cuMemRelease", (void (*)(void))release},
                 {"cuMemMap", (void (*)(void))map},
                 {"cuMemUnmap", (void (*)(void))unmap},
                 {"cuMemSetAccess", (void (*)(void))set_access}};
    (void)version, (void)flags;
    FAIL_POINT();
    *found = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name)) {
            memcpy(out, &calls[i].call, sizeof *out);
            *found = cudaDriverEntryPointSuccess;
        }
    return cudaSuccess;
}
