/*
 * Steps as CUDA graphs: captured from the streams, launched on stream C.
 *
 * A capture begins on C and takes the other streams in by an event each, and has them join C again at
 * its end, so that a graph is behind all that C was given before and ahead of all that it is given
 * later. A wait for an event that was not recorded in the capture is for what is behind the graph
 * anyway, and is left out. The host's bytes do not go through a graph: before each launch they are
 * copied to a buffer of their own, from which the graph takes them.
 *
 * Not here: which steps (gpu/step_graph.h). Invariants: nothing is queried, taken or freed while a
 * capture is on, but where it is said; graphs go before communicators do.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_inner.h"

/* ---- what the host gives -------------------------------------------------------------------- */

/* CUDA refuses to take memory in a capture, because the stream would wait for it; this one does not. */
static enum status take_landing(struct cuda_device *device, uint64_t bytes, void **out,
                                struct err *err)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    enum status status = CUDA_CALL(err, cudaThreadExchangeStreamCaptureMode, &mode);

    if (status != STATUS_OK)
        return status;
    status = cuda_outside_take(&device->outside, bytes, out, err);
    if (status != STATUS_OK) {
        cudaThreadExchangeStreamCaptureMode(&mode);
        return status;
    }
    return CUDA_CALL(err, cudaThreadExchangeStreamCaptureMode, &mode);
}

static struct cuda_landing *add_landing(struct cuda_graph *graph, const struct work_give *give)
{
    if (graph->n == graph->cap) {
        graph->cap = graph->cap ? 2 * graph->cap : 8;
        graph->landings = realloc(graph->landings, graph->cap * sizeof(*graph->landings));
        if (!graph->landings)
            err_out_of_memory(graph->cap * sizeof(*graph->landings));
    }
    graph->landings[graph->n] = (struct cuda_landing){.give = *give};
    return &graph->landings[graph->n++];
}

enum status cuda_graph_give(struct cuda_device *device, const struct work_give *give,
                            cudaStream_t stream, struct err *err)
{
    struct cuda_graphs *graphs = &device->graphs;
    struct cuda_landing *landing = add_landing(&graphs->list[graphs->n - 1], give);
    const enum status status = take_landing(device, give->bytes, &landing->at, err);

    return status != STATUS_OK ? status
                               : CUDA_CALL(err, cudaMemcpyAsync, give->to, landing->at, give->bytes,
                                           cudaMemcpyDeviceToDevice, stream);
}

/* ---- capturing ------------------------------------------------------------------------------ */

/* to comes behind what from was given until now. */
static enum status put_behind(struct cuda_device *device, int to, int from, struct err *err)
{
    const cudaEvent_t event = device->graphs.joins[from];
    enum status status = CUDA_CALL(err, cudaEventRecord, event, device->streams[from]);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaStreamWaitEvent, device->streams[to], event, 0);
    return status;
}

static enum status gather_streams(struct cuda_device *device, struct err *err)
{
    enum status status = STATUS_OK;

    for (int s = 0; s < STREAM_N && status == STATUS_OK; s++)
        if (s != STREAM_C)
            status = put_behind(device, STREAM_C, s, err);
    return status;
}

static enum status part_streams(struct cuda_device *device, struct err *err)
{
    enum status status = STATUS_OK;

    for (int s = 0; s < STREAM_N && status == STATUS_OK; s++)
        if (s != STREAM_C)
            status = put_behind(device, s, STREAM_C, err);
    return status;
}

static enum status make_joins(struct cuda_device *device, struct err *err)
{
    enum status status = STATUS_OK;

    for (int s = 0; s < STREAM_N && status == STATUS_OK; s++)
        if (!device->graphs.joins[s])
            status = CUDA_CALL(err, cudaEventCreateWithFlags, &device->graphs.joins[s],
                               cudaEventDisableTiming);
    return status;
}

static void add_graph(struct cuda_graphs *graphs)
{
    graphs->list = realloc(graphs->list, (graphs->n + 1) * sizeof(*graphs->list));
    if (!graphs->list)
        err_out_of_memory((graphs->n + 1) * sizeof(*graphs->list));
    graphs->list[graphs->n++] = (struct cuda_graph){.exec = NULL};
}

/* Events count as not recorded, so that only what the capture records is waited for in it; stand-ins
   of communicators follow those of the capture, too. */
enum status cuda_graph_begin(struct cuda_device *device, struct err *err)
{
    const cudaStream_t origin = device->streams[STREAM_C];
    enum status status = make_joins(device, err);

    assert(!device->graphs.captures);
    if (status == STATUS_OK)
        status = gather_streams(device, err);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaStreamBeginCapture, origin, cudaStreamCaptureModeThreadLocal);
    if (status != STATUS_OK)
        return status;
    device->graphs.captures = true;
    add_graph(&device->graphs);
    memset(device->recorded, 0, device->setup.n_event * sizeof(*device->recorded));
    memset(device->follows, 0, sizeof(device->follows));
    return part_streams(device, err);
}

/* What the device takes for it counts as outside of segments. */
static enum status make_ready(struct cuda_device *device, cudaGraph_t captured,
                              struct cuda_graph *graph, struct err *err)
{
    uint64_t before = 0, after = 0;
    enum status status = cuda_free_bytes(&before, err);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaGraphInstantiate, &graph->exec, captured, 0);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaGraphUpload, graph->exec, device->streams[STREAM_C]);
    if (status == STATUS_OK)
        status = cuda_free_bytes(&after, err);
    device->outside.bytes += status == STATUS_OK && before > after ? before - after : 0;
    return status;
}

enum status cuda_graph_end(struct cuda_device *device, uint32_t *number, struct err *err)
{
    struct cuda_graphs *graphs = &device->graphs;
    cudaGraph_t captured = NULL;
    enum status status = gather_streams(device, err);

    if (status != STATUS_OK)
        return status;
    graphs->captures = false;
    status = CUDA_CALL(err, cudaStreamEndCapture, device->streams[STREAM_C], &captured);
    if (status == STATUS_OK)
        status = make_ready(device, captured, &graphs->list[graphs->n - 1], err);
    if (captured)
        cudaGraphDestroy(captured);
    if (status == STATUS_OK)
        *number = graphs->n - 1;
    return status;
}

/* ---- replaying ------------------------------------------------------------------------------ */

enum status cuda_graph_replay(struct cuda_device *device, uint32_t number, uint32_t step,
                              struct err *err)
{
    const struct cuda_graph *graph = &device->graphs.list[number];
    const cudaStream_t stream = device->streams[STREAM_C];
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < graph->n && status == STATUS_OK; i++)
        status =
            cuda_give(device, &graph->landings[i].give, graph->landings[i].at, step, stream, err);
    return status != STATUS_OK ? status : CUDA_CALL(err, cudaGraphLaunch, graph->exec, stream);
}

void cuda_graphs_release(struct cuda_device *device)
{
    struct cuda_graphs *graphs = &device->graphs;
    cudaGraph_t left = NULL;

    if (graphs->captures && cudaStreamEndCapture(device->streams[STREAM_C], &left) == cudaSuccess)
        cudaGraphDestroy(left);
    for (uint32_t g = 0; g < graphs->n; g++) {
        if (graphs->list[g].exec)
            cudaGraphExecDestroy(graphs->list[g].exec);
        for (uint32_t i = 0; i < graphs->list[g].n; i++)
            if (graphs->list[g].landings[i].at)
                cudaFree(graphs->list[g].landings[i].at);
        free(graphs->list[g].landings);
    }
    for (int s = 0; s < STREAM_N; s++)
        if (graphs->joins[s])
            cudaEventDestroy(graphs->joins[s]);
    free(graphs->list);
    *graphs = (struct cuda_graphs){.n = 0};
}
