/*
 * What streams have reached, and when: an event at each end of a task, brought to CLOCK_MONOTONIC.
 *
 * CUDA tells only the time between two events, in FP32 milliseconds: one event whose time is known is
 * the base, and a later one takes its place before the digits run out. The last task that a stream
 * finished is known by the same events. Not here: waiting.
 *
 * Invariant: the marks of a stream are reached in their order.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/bell.h"
#include "gpu/cuda_inner.h"

/* FP32 tells a microsecond apart up to here. */
#define BASE_MAX_MS 4000

/* ---- events -------------------------------------------------------------------------------- */

static enum status take_event(struct cuda_clock *clock, cudaEvent_t *out, struct err *err)
{
    if (clock->n_spare == 0)
        return CUDA_CALL(err, cudaEventCreateWithFlags, out, cudaEventDefault);
    *out = clock->spare[--clock->n_spare];
    return STATUS_OK;
}

static void give_event(struct cuda_clock *clock, cudaEvent_t event)
{
    if (clock->n_spare == clock->cap_spare) {
        clock->cap_spare = clock->cap_spare ? 2 * clock->cap_spare : 256;
        clock->spare = realloc(clock->spare, clock->cap_spare * sizeof(*clock->spare));
        if (!clock->spare)
            err_out_of_memory(clock->cap_spare * sizeof(*clock->spare));
    }
    clock->spare[clock->n_spare++] = event;
}

/* ---- marks --------------------------------------------------------------------------------- */

static struct cuda_mark *mark_at(const struct cuda_marks *marks, uint32_t i)
{
    return &marks->ring[(marks->first + i) % marks->cap];
}

static void push(struct cuda_marks *marks, struct cuda_mark mark)
{
    if (marks->n == marks->cap) {
        struct cuda_marks larger = {.cap = marks->cap ? 2 * marks->cap : 256};
        larger.ring = malloc(larger.cap * sizeof(*larger.ring));
        if (!larger.ring)
            err_out_of_memory(larger.cap * sizeof(*larger.ring));
        for (; larger.n < marks->n; larger.n++)
            larger.ring[larger.n] = *mark_at(marks, larger.n);
        free(marks->ring);
        *marks = larger;
    }
    *mark_at(marks, marks->n++) = mark;
}

enum status cuda_clock_start(struct cuda_clock *clock, cudaStream_t stream, struct err *err)
{
    enum status status = take_event(clock, &clock->base, err);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaEventRecord, clock->base, stream);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaEventSynchronize, clock->base);
    clock->base_ns = bell_now_ns();
    return status;
}

enum status cuda_clock_mark(struct cuda_clock *clock, enum stream number, cudaStream_t stream,
                            int64_t *at_ns, uint32_t task, struct err *err)
{
    struct cuda_mark mark = {.at_ns = at_ns, .task = task};
    enum status status = take_event(clock, &mark.event, err);

    if (status != STATUS_OK)
        return status;
    push(&clock->marks[number], mark);
    return CUDA_CALL(err, cudaEventRecord, mark.event, stream);
}

/* When the mark was reached. Late ones become the base. */
static enum status read_mark(struct cuda_clock *clock, const struct cuda_mark *mark,
                             struct err *err)
{
    cudaEvent_t done = mark->event;
    float ms = 0;
    const enum status status = CUDA_CALL(err, cudaEventElapsedTime, &ms, clock->base, mark->event);

    if (status != STATUS_OK)
        return status;
    *mark->at_ns = clock->base_ns + (int64_t)((double)ms * 1e6);
    if (ms > BASE_MAX_MS) {
        done = clock->base;
        clock->base = mark->event;
        clock->base_ns = *mark->at_ns;
    }
    give_event(clock, done);
    return STATUS_OK;
}

static enum status collect_stream(struct cuda_clock *clock, int number, uint64_t *n,
                                  struct err *err)
{
    struct cuda_marks *marks = &clock->marks[number];

    for (; marks->n > 0; ++*n) {
        const struct cuda_mark mark = *mark_at(marks, 0);
        const cudaError_t error = cudaEventQuery(mark.event);
        if (error == cudaErrorNotReady)
            return STATUS_OK;
        enum status status = cuda_status(error, "cudaEventQuery", err);
        if (status == STATUS_OK)
            status = read_mark(clock, &mark, err);
        if (status != STATUS_OK)
            return status;
        marks->first = (marks->first + 1) % marks->cap;
        marks->n--;
        if (mark.task > 0 && clock->last_task)
            clock->last_task[number] = mark.task;
    }
    return STATUS_OK;
}

enum status cuda_clock_collect(struct cuda_clock *clock, uint64_t *n, struct err *err)
{
    enum status status = STATUS_OK;

    *n = 0;
    for (int s = 0; s < STREAM_N && status == STATUS_OK; s++)
        status = collect_stream(clock, s, n, err);
    return status;
}

void cuda_clock_release(struct cuda_clock *clock)
{
    for (int s = 0; s < STREAM_N; s++) {
        for (uint32_t i = 0; i < clock->marks[s].n; i++)
            cudaEventDestroy(mark_at(&clock->marks[s], i)->event);
        free(clock->marks[s].ring);
    }
    for (uint32_t i = 0; i < clock->n_spare; i++)
        cudaEventDestroy(clock->spare[i]);
    if (clock->base)
        cudaEventDestroy(clock->base);
    free(clock->spare);
    memset(clock, 0, sizeof(*clock));
}
