/*
 * Streams, events and graphs of the fake CUDA; see fake_cuda.h.
 *
 * A stream that captures puts its items into a graph; so does each that waits for an event that was
 * recorded in one. A launch of a graph is one item of a stream, which does those of the graph stream
 * by stream, in any order that their waits allow; collectives keep theirs, as NCCL has them do.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_inner.h"
#include "tests/tap.h"

enum { MAX_STREAMS = 64 };

/* One thing to do: work; or a record, or a wait, of an event. */
struct item {
    struct item *next;
    fake_run *run, *drop;
    void *context;
    struct CUevent_st *event;
    uint64_t number; /* of the record that is made or waited for */
    bool waits;
};

/* Of a graph: an item and what it is behind. */
struct node {
    struct node *next; /* in the order of issue */
    struct item item;
    const struct CUstream_st *stream;
    struct node *before, *recorded; /* in its stream; where it waits, the record */
    bool is_collective, is_done, is_joined;
};

struct CUevent_st {
    uint64_t issued, done; /* records */
    int64_t at_ns;
    struct CUgraph_st *graph; /* that it was recorded in last, or NULL */
    struct node *node;
};

struct CUstream_st {
    struct item *first, **end;
    struct CUgraph_st *graph; /* that it captures into, or NULL */
    struct node *last;        /* of the graph */
};

struct CUgraph_st {
    struct node *first, **end;
    uint32_t n_node, users;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph;
};

static struct {
    struct fake_setup *setup;
    struct CUstream_st *streams[MAX_STREAMS];
    uint64_t graph_launches;
    uint32_t captures; /* that are on */
    enum cudaStreamCaptureMode mode;
    bool next_is_collective;
} fake;

void fake_streams_init(struct fake_setup *setup)
{
    memset(&fake, 0, sizeof fake);
    fake.setup = setup;
    fake.mode = cudaStreamCaptureModeThreadLocal;
}

uint64_t fake_cuda_graph_launches(void)
{
    return fake.graph_launches;
}

void fake_cuda_order_collective(void)
{
    fake.next_is_collective = true;
}

bool fake_streams_refuse(void)
{
    return fake.captures > 0 && fake.mode != cudaStreamCaptureModeRelaxed;
}

static void *room(size_t bytes)
{
    void *at = calloc(1, bytes);
    if (!at)
        tap_bail("no memory for the fake device");
    fake_cuda_count(1);
    return at;
}

static void drop(void *at)
{
    fake_cuda_count(at ? -1 : 0);
    free(at);
}

/* ---- queues -------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void note_record(struct CUevent_st *event, uint64_t number)
{
    event->done = number;
    event->at_ns = now_ns();
}

/* Whether the first item of the stream could be done, and was. */
static bool run_one(struct CUstream_st *stream)
{
    struct item *item = stream->first;

    if (!item || (item->waits && item->event->done < item->number))
        return false;
    stream->first = item->next;
    if (!stream->first)
        stream->end = &stream->first;
    if (item->run) {
        item->run(item->context);
        if (item->drop)
            item->drop(item->context);
    } else if (!item->waits) {
        note_record(item->event, item->number);
    }
    free(item);
    return true;
}

void fake_streams_run(void)
{
    for (bool did = true; did;) {
        did = false;
        for (int s = 0; s < MAX_STREAMS; s++)
            while (fake.streams[s] && run_one(fake.streams[s]))
                did = true;
    }
}

/* A few items, of any streams. */
static void run_some(void)
{
    for (uint64_t n = tap_below(&fake.setup->seed, 8) + 1; n > 0; n--) {
        struct CUstream_st *stream = fake.streams[tap_below(&fake.setup->seed, MAX_STREAMS)];
        if (stream)
            run_one(stream);
    }
}

static struct node *put_node(struct CUstream_st *stream, struct item item)
{
    struct node *node = room(sizeof *node);

    *node = (struct node){.item = item,
                          .stream = stream,
                          .before = stream->last,
                          .is_collective = fake.next_is_collective};
    fake.next_is_collective = false;
    stream->last = node;
    *stream->graph->end = node;
    stream->graph->end = &node->next;
    stream->graph->n_node++;
    return node;
}

static void put(struct CUstream_st *stream, struct item item)
{
    struct item *kept;

    if (stream->graph) {
        put_node(stream, item);
        return;
    }
    fake.next_is_collective = false;
    kept = malloc(sizeof *kept);
    if (!kept)
        tap_bail("no memory for the fake device");
    *kept = item;
    *stream->end = kept;
    stream->end = &kept->next;
    if (!fake.setup->defers)
        fake_streams_run();
}

void fake_cuda_enqueue(void *stream, fake_run *run, fake_run *drop_context, void *context)
{
    put(stream, (struct item){.run = run, .drop = drop_context, .context = context});
}

/* ---- streams and events -------------------------------------------------------------------- */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    FAIL_POINT();
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    struct CUstream_st *stream;
    int s = 0;
    (void)flags, (void)priority;
    FAIL_POINT();
    while (s < MAX_STREAMS && fake.streams[s])
        s++;
    if (s == MAX_STREAMS)
        return cudaErrorMemoryAllocation;
    stream = room(sizeof *stream);
    stream->end = &stream->first;
    fake.streams[s] = stream;
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    for (struct item *item = stream->first, *next; item; item = next) {
        next = item->next;
        if (item->drop)
            item->drop(item->context);
        free(item);
    }
    for (int s = 0; s < MAX_STREAMS; s++)
        if (fake.streams[s] == stream)
            fake.streams[s] = NULL;
    drop(stream);
    FAIL_POINT();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    FAIL_POINT();
    if (stream->graph && event->graph != stream->graph)
        return cudaErrorStreamCaptureIsolation;
    if (event->graph && !stream->graph)
        stream->graph = event->graph;
    if (stream->graph)
        put_node(stream, (struct item){.event = event, .waits = true})->recorded = event->node;
    else
        put(stream, (struct item){.event = event, .number = event->issued, .waits = true});
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    (void)flags;
    FAIL_POINT();
    *out = room(sizeof **out);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    drop(event);
    FAIL_POINT();
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    FAIL_POINT();
    event->graph = stream->graph;
    if (stream->graph) {
        event->node = put_node(stream, (struct item){.event = event});
        return cudaSuccess;
    }
    event->issued++;
    put(stream, (struct item){.event = event, .number = event->issued});
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    if (event->graph)
        return cudaErrorCapturedEvent;
    if (fake.setup->defers)
        run_some();
    return event->done == event->issued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    while (event->done != event->issued)
        run_some();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    FAIL_POINT();
    *ms = (float)((double)(end->at_ns - start->at_ns) / 1e6);
    return cudaSuccess;
}

/* ---- graphs -------------------------------------------------------------------------------- */

static void let_go(struct CUgraph_st *graph)
{
    if (--graph->users > 0)
        return;
    for (struct node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (node->item.drop)
            node->item.drop(node->item.context);
        drop(node);
    }
    drop(graph);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    const enum cudaStreamCaptureMode before = fake.mode;
    FAIL_POINT();
    fake.mode = *mode;
    *mode = before;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    FAIL_POINT();
    if (stream->graph || mode != cudaStreamCaptureModeThreadLocal)
        return cudaErrorIllegalState;
    stream->graph = room(sizeof *stream->graph);
    stream->graph->end = &stream->graph->first;
    stream->graph->users = 1;
    fake.captures++;
    return cudaSuccess;
}

/* All that a node is behind. */
static void note_joined(struct node *node)
{
    for (; node && !node->is_joined; node = node->before) {
        node->is_joined = true;
        note_joined(node->recorded);
    }
}

static bool is_whole(const struct CUgraph_st *graph, struct node *last)
{
    note_joined(last);
    for (const struct node *node = graph->first; node; node = node->next)
        if (!node->is_joined)
            return false;
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    struct CUgraph_st *graph = stream->graph;
    const bool fails = fake_cuda_fails(__func__);

    if (!graph)
        return cudaErrorIllegalState;
    const bool whole = is_whole(graph, stream->last);
    for (int s = 0; s < MAX_STREAMS; s++)
        if (fake.streams[s] && fake.streams[s]->graph == graph) {
            fake.streams[s]->graph = NULL;
            fake.streams[s]->last = NULL;
        }
    fake.captures--;
    *out = NULL;
    if (fails || !whole) {
        let_go(graph);
        return fails ? cudaErrorUnknown : cudaErrorStreamCaptureUnjoined;
    }
    *out = graph;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    FAIL_POINT();
    *out = room(sizeof **out);
    (*out)->graph = graph;
    graph->users++;
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)exec, (void)stream;
    FAIL_POINT();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    let_go(graph);
    FAIL_POINT();
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    let_go(exec->graph);
    drop(exec);
    FAIL_POINT();
    return cudaSuccess;
}

static bool is_ready(const struct CUgraph_st *graph, const struct node *node)
{
    if (node->is_done || (node->before && !node->before->is_done) ||
        (node->recorded && !node->recorded->is_done))
        return false;
    for (const struct node *at = graph->first; node->is_collective && at != node; at = at->next)
        if (at->is_collective && !at->is_done)
            return false;
    return true;
}

/* One of those that can be done now, any. */
static struct node *choose(struct CUgraph_st *graph)
{
    struct node *chosen = NULL;
    uint64_t n = 0;

    for (struct node *node = graph->first; node; node = node->next)
        if (is_ready(graph, node) && tap_below(&fake.setup->seed, ++n) == 0)
            chosen = node;
    return chosen;
}

static void run_graph(void *context)
{
    struct CUgraph_st *graph = ((struct CUgraphExec_st *)context)->graph;

    for (struct node *node = graph->first; node; node = node->next)
        node->is_done = false;
    for (uint32_t n = 0; n < graph->n_node; n++) {
        struct node *node = choose(graph);
        if (!node)
            tap_bail("a graph that waits for itself");
        if (node->item.run)
            node->item.run(node->item.context);
        node->is_done = true;
    }
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    FAIL_POINT();
    REFUSE_IN_CAPTURE();
    fake.graph_launches++;
    put(stream, (struct item){.run = run_graph, .context = exec});
    return cudaSuccess;
}
