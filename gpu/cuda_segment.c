/*
 * The memory of the CUDA device, taken and given back as the placement says.
 *
 * A caching segment is one cudaMalloc. An expandable one is a range of addresses, of which parts are
 * mapped: page by page, so that any pages may go again. Those calls are the driver's, found through
 * the runtime, so that a program starts without one. Not here: who uses what, and whether it is
 * still in use.
 *
 * Invariant: a page's handle is given back once it is mapped; the mapping alone keeps it alive.
 */
#include <assert.h>
#include <cuda.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_inner.h"

enum { POISON = 0xa5 };

/* The least that any device maps, and what placements count in. */
#define PAGE_BYTES ((uint64_t)2 << 20)

/* X(field, name, parameters) */
#define DRIVER_CALLS(X)                                                                          \
    X(reserve, "cuMemAddressReserve",                                                            \
      (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                          \
    X(free, "cuMemAddressFree", (CUdeviceptr, size_t))                                           \
    X(create, "cuMemCreate",                                                                     \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long)) \
    X(drop, "cuMemRelease", (CUmemGenericAllocationHandle))                                      \
    X(map, "cuMemMap",                                                                           \
      (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))           \
    X(unmap, "cuMemUnmap", (CUdeviceptr, size_t))                                                \
    X(access, "cuMemSetAccess", (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))

struct cuda_driver {
#define X(field, name, parameters) CUresult(*field) parameters;
    DRIVER_CALLS(X)
#undef X
};

static enum status find_call(const char *name, void **out, struct err *err)
{
    enum cudaDriverEntryPointQueryResult found;
    const enum status status = CUDA_CALL(err, cudaGetDriverEntryPointByVersion, name, out, 12000,
                                         cudaEnableDefault, &found);

    if (status == STATUS_OK && found != cudaDriverEntryPointSuccess)
        return err_set(
            err, STATUS_RUN,
            "this NVIDIA driver has no %s; take an allocator without expandable segments", name);
    return status;
}

static enum status driver_new(struct cuda_driver **out, struct err *err)
{
    struct cuda_driver *driver = calloc(1, sizeof(*driver));
    enum status status = STATUS_OK;
    void *call;

    if (!driver)
        err_out_of_memory(sizeof(*driver));
#define X(field, name, parameters)            \
    if (status == STATUS_OK)                  \
        status = find_call(name, &call, err); \
    if (status == STATUS_OK)                  \
        memcpy(&driver->field, &call, sizeof(driver->field));
    DRIVER_CALLS(X)
#undef X
    if (status == STATUS_OK)
        *out = driver;
    else
        free(driver);
    return status;
}

static enum status said(CUresult result, const char *call, const struct segment_op *op,
                        struct err *err)
{
    if (result == CUDA_SUCCESS)
        return STATUS_OK;
    return err_set(err, STATUS_RUN,
                   "%s: error %d of the driver, for %" PRIu64 " bytes of segment "
                   "%" PRIu32,
                   call, (int)result, op->bytes, op->segment);
}

static enum status grow(struct cuda_segments *segments, const struct segment_op *op,
                        struct err *err)
{
    const uint32_t n = op->segment + 1;
    const size_t bytes = n * sizeof(*segments->list);

    if (n > segments->n) {
        segments->list = realloc(segments->list, bytes);
        if (!segments->list)
            err_out_of_memory(bytes);
        memset(segments->list + segments->n, 0, (n - segments->n) * sizeof(*segments->list));
        segments->n = n;
    }
    if (op->expandable && !segments->driver)
        return driver_new(&segments->driver, err);
    return STATUS_OK;
}

static enum status reserve(struct cuda_segments *segments, const struct segment_op *op,
                           struct err *err)
{
    struct cuda_segment segment = {.bytes = op->bytes};
    CUdeviceptr range = 0;
    enum status status = grow(segments, op, err);

    if (status != STATUS_OK)
        return status;
    if (op->expandable) {
        status = said(segments->driver->reserve(&range, op->bytes, PAGE_BYTES, 0, 0),
                      "cuMemAddressReserve", op, err);
        segment.base = (char *)range;
    } else {
        status = CUDA_CALL(err, cudaMalloc, (void **)&segment.base, op->bytes);
    }
    if (status != STATUS_OK)
        return status;
    if (op->expandable) {
        segment.mapped = calloc(op->bytes / PAGE_BYTES + 1, sizeof(*segment.mapped));
        if (!segment.mapped)
            err_out_of_memory(op->bytes / PAGE_BYTES);
    }
    segments->list[op->segment] = segment;
    return STATUS_OK;
}

static CUmemAllocationProp page_of(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static enum status map_page(const struct cuda_segments *segments, CUdeviceptr at,
                            const struct segment_op *op, struct err *err)
{
    const struct cuda_driver *driver = segments->driver;
    const CUmemAllocationProp page = page_of(segments->device);
    CUmemGenericAllocationHandle handle;
    enum status status =
        said(driver->create(&handle, PAGE_BYTES, &page, 0), "cuMemCreate", op, err);

    if (status != STATUS_OK)
        return status;
    status = said(driver->map(at, PAGE_BYTES, 0, handle, 0), "cuMemMap", op, err);
    const enum status dropped = said(driver->drop(handle), "cuMemRelease", op, err);
    return status != STATUS_OK ? status : dropped;
}

static enum status map(const struct cuda_segments *segments, const struct segment_op *op,
                       struct err *err)
{
    const struct cuda_segment *segment = &segments->list[op->segment];
    const CUdeviceptr at = (CUdeviceptr)segment->base + op->offset;
    const CUmemAccessDesc access = {.location = page_of(segments->device).location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    enum status status = STATUS_OK;
    uint64_t done = 0;

    assert(op->bytes % PAGE_BYTES == 0 && op->offset % PAGE_BYTES == 0);
    for (; done < op->bytes && status == STATUS_OK; done += PAGE_BYTES) {
        status = map_page(segments, at + done, op, err);
        segment->mapped[(op->offset + done) / PAGE_BYTES] = status == STATUS_OK;
    }
    if (status == STATUS_OK)
        status =
            said(segments->driver->access(at, op->bytes, &access, 1), "cuMemSetAccess", op, err);
    return status;
}

static enum status unmap(const struct cuda_segments *segments, const struct segment_op *op,
                         struct err *err)
{
    const struct cuda_segment *segment = &segments->list[op->segment];
    const CUdeviceptr at = (CUdeviceptr)segment->base + op->offset;
    const enum status status = said(segments->driver->unmap(at, op->bytes), "cuMemUnmap", op, err);

    for (uint64_t done = 0; done < op->bytes && status == STATUS_OK; done += PAGE_BYTES)
        segment->mapped[(op->offset + done) / PAGE_BYTES] = false;
    return status;
}

static enum status release(struct cuda_segments *segments, const struct segment_op *op,
                           struct err *err)
{
    struct cuda_segment *segment = &segments->list[op->segment];
    const enum status status =
        segment->mapped ? said(segments->driver->free((CUdeviceptr)segment->base, segment->bytes),
                               "cuMemAddressFree", op, err)
                        : CUDA_CALL(err, cudaFree, segment->base);

    if (status != STATUS_OK)
        return status;
    free(segment->mapped);
    *segment = (struct cuda_segment){0};
    return STATUS_OK;
}

static enum status apply(struct cuda_segments *segments, const struct segment_op *op,
                         struct err *err)
{
    if (op->act == SEGMENT_RESERVE)
        return reserve(segments, op, err);

    assert(segments->list[op->segment].base &&
           op->offset + op->bytes <= segments->list[op->segment].bytes);
    switch ((enum segment_act)op->act) {
    case SEGMENT_MAP:
        return map(segments, op, err);
    case SEGMENT_UNMAP:
        return unmap(segments, op, err);
    default:
        return release(segments, op, err);
    }
}

enum status cuda_segments_apply(struct cuda_segments *segments, const struct segment_op *op,
                                bool poison, struct err *err)
{
    const bool is_fresh = op->act == (op->expandable ? SEGMENT_MAP : SEGMENT_RESERVE);
    const enum status status = apply(segments, op, err);

    if (status != STATUS_OK || !is_fresh || !poison)
        return status;
    return CUDA_CALL(err, cudaMemset, segments->list[op->segment].base + op->offset, POISON,
                     op->bytes);
}

static void drop(const struct cuda_driver *driver, struct cuda_segment *segment)
{
    const CUdeviceptr at = (CUdeviceptr)segment->base;

    for (uint64_t page = 0; page < segment->bytes / PAGE_BYTES; page++)
        if (segment->mapped[page])
            driver->unmap(at + page * PAGE_BYTES, PAGE_BYTES);
    driver->free(at, segment->bytes);
    free(segment->mapped);
}

/* Whatever CUDA says of it: this is the end. */
void cuda_segments_release(struct cuda_segments *segments)
{
    for (uint32_t i = 0; i < segments->n; i++) {
        struct cuda_segment *segment = &segments->list[i];
        if (segment->mapped)
            drop(segments->driver, segment);
        else if (segment->base)
            cudaFree(segment->base);
    }
    free(segments->driver);
    free(segments->list);
    *segments = (struct cuda_segments){0};
}
