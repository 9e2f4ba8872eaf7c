/*
 * What a CUDA device is made of: streams, events, communicators and libraries, opened and given back.
 *
 * Not here: any work. Invariant: what is opened half way is released whole, so that every member that
 * was not reached is zero.
 */
#include <stdlib.h>

#include "gpu/cuda_inner.h"
#include "gpu/cuda_library.h"

/* As FSDP2 has them: compute and the all-reduce are behind the others (spec FSDP2 1.1). */
static enum status open_streams(struct cuda_device *device, struct err *err)
{
    static const bool is_high[STREAM_N] = {
        [STREAM_AGI] = true, [STREAM_AG] = true, [STREAM_RS] = true};
    int least = 0, greatest = 0;
    enum status status = CUDA_CALL(err, cudaDeviceGetStreamPriorityRange, &least, &greatest);

    for (int s = 0; s < STREAM_N && status == STATUS_OK; s++)
        status = CUDA_CALL(err, cudaStreamCreateWithPriority, &device->streams[s],
                           cudaStreamNonBlocking, is_high[s] ? greatest : least);
    return status;
}

static enum status open_events(struct cuda_device *device, struct err *err)
{
    const uint32_t n = device->setup.n_event;
    const unsigned flags = cudaEventDisableTiming;
    enum status status = CUDA_CALL(err, cudaEventCreateWithFlags, &device->drained, flags);

    device->events = calloc(n + 1, sizeof(*device->events));
    device->recorded = calloc(n + 1, sizeof(*device->recorded));
    if (!device->events || !device->recorded)
        err_out_of_memory(n * sizeof(*device->events));
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++)
        status = CUDA_CALL(err, cudaEventCreateWithFlags, &device->events[i], flags);
    for (int i = 0; i < CUDA_STAGES && status == STATUS_OK; i++)
        status = CUDA_CALL(err, cudaEventCreateWithFlags, &device->stages[i].used, flags);
    for (int i = 0; i < CUDA_RESULTS && status == STATUS_OK; i++)
        status = CUDA_CALL(err, cudaEventCreateWithFlags, &device->pending[i].written, flags);
    return status;
}

static enum status open_comms(struct cuda_device *device, struct err *err)
{
    uint64_t before = 0, after = 0;
    enum status status = cuda_free_bytes(&before, err);

    if (status == STATUS_OK)
        status = cuda_comms_open(&device->setup, &device->comms, err);
    if (status == STATUS_OK)
        status = cuda_free_bytes(&after, err);
    device->comm_bytes = before > after ? before - after : 0;
    return status;
}

/* All that takes memory by being there comes first; from then on differences are ours. */
static enum status open_all(struct cuda_device *device, struct err *err)
{
    const size_t result_bytes = CUDA_RESULTS * sizeof(*device->results);
    size_t available, all = 0;
    enum status status = CUDA_CALL(err, cudaMemGetInfo, &available, &all);

    device->all_bytes = all;
    if (status == STATUS_OK)
        status = open_streams(device, err);
    if (status == STATUS_OK)
        status = open_events(device, err);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaMallocHost, (void **)&device->results, result_bytes);
    if (status == STATUS_OK)
        status = cuda_pack_grid_init(0, &device->grid, err);
    if (status == STATUS_OK)
        status = cuda_products_new(&device->products, err);
    if (status == STATUS_OK)
        status = cuda_ops_load(device->streams[STREAM_C], err);
    if (status == STATUS_OK)
        status = cuda_clock_start(&device->clock, device->streams[STREAM_C], err);
    if (status == STATUS_OK)
        status = open_comms(device, err);
    if (status == STATUS_OK)
        status = cuda_free_bytes(&device->free_bytes, err);
    return status;
}

enum status cuda_device_open(struct cuda_device *device, const struct device_setup *setup,
                             struct err *err)
{
    int n_device = 0;

    if (setup->debug.slow_comm)
        return err_set(err, STATUS_DEVICE, "device cuda cannot slow down collectives");
    device->setup = *setup;
    device->clock.last_task = setup->last_task;
    device->tables.outside = &device->outside;
    /* Code that came with the first launch of a kernel would look like a segment. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    enum status status = cuda_count(&n_device, err);
    if (status == STATUS_OK)
        status = cuda_libraries_load(err);
    if (status == STATUS_OK)
        status = cuda_choose(setup, n_device, &device->number, err);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaSetDevice, device->number);
    device->segments.device = device->number;
    if (status == STATUS_OK)
        status = open_all(device, err);
    return status;
}

static void close_events(struct cuda_device *device)
{
    for (uint32_t i = 0; device->events && i < device->setup.n_event; i++)
        if (device->events[i])
            cudaEventDestroy(device->events[i]);
    for (int i = 0; i < CUDA_STAGES; i++) {
        if (device->stages[i].used)
            cudaEventDestroy(device->stages[i].used);
        if (device->stages[i].at)
            cudaFreeHost(device->stages[i].at);
    }
    for (int i = 0; i < CUDA_RESULTS; i++)
        if (device->pending[i].written)
            cudaEventDestroy(device->pending[i].written);
    if (device->drained)
        cudaEventDestroy(device->drained);
    for (int c = 0; c < COMM_N; c++)
        if (device->emulated[c])
            cudaEventDestroy(device->emulated[c]);
    free(device->events);
    free(device->recorded);
}

/* Communicators first: a stream that waits for a peer ends only with them. Before them what NCCL has
   put into graphs. */
void cuda_device_release(struct cuda_device *device, bool failed)
{
    cuda_graphs_release(device);
    cuda_comms_close(device->comms, failed);
    for (int s = 0; s < STREAM_N; s++)
        if (device->streams[s])
            cudaStreamDestroy(device->streams[s]);
    cuda_clock_release(&device->clock);
    close_events(device);
    cuda_products_free(device->products);
    cuda_tables_release(&device->tables);
    arena_release(&device->kept);
    if (device->results)
        cudaFreeHost(device->results);
    if (device->state)
        cudaFree(device->state);
    if (device->scratch)
        cudaFree(device->scratch);
    cuda_segments_release(&device->segments);
    *device = (struct cuda_device){0};
}
