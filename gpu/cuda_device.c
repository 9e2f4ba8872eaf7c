/*
 * CUDA as a device: the calls of gpu/device.h over CUDA's streams and events.
 *
 * Every record and wait is CUDA's own, literally. Waiting asks again and again, so that a peer that is
 * gone or a stream that hangs ends the run with a name. Not here: what a device is made of
 * (gpu/cuda_open.c), memory (gpu/cuda_segment.c), what work becomes (gpu/cuda_work.c), collectives
 * (gpu/cuda_nccl.c).
 *
 * Invariants: nothing of CUDA is called before open(), because ranks are forked; after the first
 * failure nothing is submitted and every call returns it.
 */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/bell.h"
#include "gpu/cuda_inner.h"

enum { POLLS_BEFORE_NAP = 256, NAP_NS = 20000, COLLECT_EVERY = 1024 };

static void *make_cuda(void)
{
    struct cuda_device *device = calloc(1, sizeof(*device));
    if (!device)
        err_out_of_memory(sizeof(*device));
    arena_init(&device->kept);
    return device;
}

static void free_cuda(void *self)
{
    free(self);
}

/* ---- failures and waiting ------------------------------------------------------------------ */

static enum status status_of(const struct cuda_device *device, struct err *err)
{
    if (device->fault.status != STATUS_OK && err)
        *err = device->fault;
    return device->fault.status;
}

/* A failure stays. */
static enum status note(struct cuda_device *device, enum status status, const struct err *err)
{
    if (status != STATUS_OK && device->fault.status == STATUS_OK)
        device->fault = *err;
    return status;
}

static enum status collect(struct cuda_device *device, uint64_t *n, struct err *err)
{
    enum status status = cuda_clock_collect(&device->clock, n, err);

    if (status == STATUS_OK)
        status = cuda_results_collect(device, err);
    if (status == STATUS_OK && device->comms)
        status = cuda_comms_check(device->comms, err);
    return status;
}

static enum status stands_still(const struct cuda_device *device, const char *who, struct err *err)
{
    return err_set(err, STATUS_RUN, "stream '%s' stands still: nothing was finished for %g s", who,
                   (double)device->setup.timeout_ns / 1e9);
}

enum status cuda_join(struct cuda_device *device, cudaEvent_t event, const char *who,
                      struct err *err)
{
    int64_t until_ns = bell_after(device->setup.timeout_ns);

    for (uint32_t polls = 0;; polls++) {
        uint64_t n = 0;
        const cudaError_t error = cudaEventQuery(event);
        const enum status status = collect(device, &n, err);
        if (status != STATUS_OK || error != cudaErrorNotReady)
            return status != STATUS_OK ? status : cuda_status(error, "cudaEventQuery", err);
        if (n > 0)
            until_ns = bell_after(device->setup.timeout_ns);
        else if (bell_now_ns() >= until_ns)
            return stands_still(device, who, err);
        if (polls > POLLS_BEFORE_NAP)
            nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
}

static enum status drain_stream(struct cuda_device *device, int number, struct err *err)
{
    enum status status = CUDA_CALL(err, cudaEventRecord, device->drained, device->streams[number]);

    if (status == STATUS_OK)
        status = cuda_join(device, device->drained, stream_name((enum stream)number), err);
    return status;
}

static enum status drain(struct cuda_device *device, struct err *err)
{
    enum status status = STATUS_OK;
    uint64_t n;

    for (int s = 0; s < STREAM_N && status == STATUS_OK; s++)
        status = drain_stream(device, s, err);
    return status == STATUS_OK ? collect(device, &n, err) : status;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static enum status open_cuda(void *self, const struct device_setup *setup, struct err *err)
{
    struct cuda_device *device = self;
    return note(device, cuda_device_open(device, setup, err), err);
}

static void close_cuda(void *self)
{
    struct cuda_device *device = self;
    struct err err;
    const bool failed = device->fault.status != STATUS_OK || drain(device, &err) != STATUS_OK;

    cuda_device_release(device, failed);
}

/* ---- memory -------------------------------------------------------------------------------- */

static enum status segment(struct cuda_device *device, const struct segment_op *op, struct err *err)
{
    const bool takes_away = op->act == SEGMENT_UNMAP || op->act == SEGMENT_RELEASE;
    enum status status = takes_away ? drain(device, err) : STATUS_OK;

    if (status == STATUS_OK)
        status = cuda_segments_apply(&device->segments, op, device->setup.debug.poison, err);
    return status;
}

static enum status apply_segment(void *self, const struct segment_op *op, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status : note(device, segment(device, op, err), err);
}

static char *segment_base(void *self, uint32_t number)
{
    const struct cuda_device *device = self;
    assert(number < device->segments.n && device->segments.list[number].base);
    return device->segments.list[number].base;
}

static enum status state(struct cuda_device *device, const struct step_state *first,
                         struct err *err)
{
    const enum status status =
        cuda_outside_take(&device->outside, sizeof(*first), (void **)&device->state, err);

    if (status != STATUS_OK)
        return status;
    return CUDA_CALL(err, cudaMemcpy, device->state, first, sizeof(*first), cudaMemcpyHostToDevice);
}

static enum status make_state(void *self, const struct step_state *first, struct step_state **out,
                              struct err *err)
{
    struct cuda_device *device = self;
    enum status status = status_of(device, err);

    if (status == STATUS_OK)
        status = note(device, state(device, first, err), err);
    if (status == STATUS_OK)
        *out = device->state;
    return status;
}

static enum status prepare(void *self, struct work *work, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status : note(device, cuda_prepare(device, work, err), err);
}

static void forget(void *self)
{
    struct cuda_device *device = self;
    cuda_tables_reset(&device->tables);
    arena_reset(&device->kept);
    cuda_products_reset(device->products);
}

static enum status read_bytes(void *self, void *to, const void *from, uint64_t bytes,
                              struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    if (status != STATUS_OK || bytes == 0)
        return status;
    return note(device, CUDA_CALL(err, cudaMemcpy, to, from, bytes, cudaMemcpyDeviceToHost), err);
}

static uint64_t mapped_bytes(void *self)
{
    const struct cuda_device *device = self;
    struct err err;
    uint64_t now = 0;

    if (cuda_free_bytes(&now, &err) != STATUS_OK)
        return 0;
    return device->free_bytes - now - device->outside.bytes;
}

static void say_outside(void *self, struct device_outside *out)
{
    const struct cuda_device *device = self;
    const uint64_t table_bytes = cuda_tables_bytes(&device->tables) + sizeof(*device->state);

    *out = (struct device_outside){.context_bytes =
                                       device->all_bytes - device->free_bytes - device->comm_bytes,
                                   .comm_bytes = device->comm_bytes,
                                   .table_bytes = table_bytes,
                                   .scratch_bytes = device->scratch_bytes};
}

static enum status describe(void *self, struct device_facts *out, struct err *err)
{
    const struct cuda_device *device = self;
    return cuda_describe(device->number, out, err);
}

/* ---- streams ------------------------------------------------------------------------------- */

static enum status mark(struct cuda_device *device, enum stream number,
                        const struct submission *submission, enum stamp_parts part, struct err *err)
{
    if (!submission->stamp || !(submission->parts & part))
        return STATUS_OK;
    const bool ends = part == STAMP_END, is_task = submission->task != NO_TASK;
    return cuda_clock_mark(&device->clock, number, device->streams[number],
                           ends ? &submission->stamp->end_ns : &submission->stamp->start_ns,
                           ends && is_task ? submission->task + 1 : 0, err);
}

/* An observer may read what was written: the stream has to be there. */
static enum status show(struct cuda_device *device, enum stream number,
                        const struct submission *submission, struct err *err)
{
    if (!device->setup.observe)
        return STATUS_OK;
    const enum status status = drain_stream(device, number, err);
    if (status == STATUS_OK)
        device->setup.observe(device->setup.observe_context, submission);
    return status;
}

static enum status run(struct cuda_device *device, enum stream number,
                       const struct submission *submission, struct err *err)
{
    enum status status = mark(device, number, submission, STAMP_START, err);
    uint64_t n;

    if (status == STATUS_OK)
        status = cuda_work_run(device, number, submission, err);
    if (status != STATUS_OK)
        err_prefix(err, "stream '%s'", stream_name(number));
    if (device->graphs.captures)
        return status; /* nothing is reached before the graph is launched */
    if (status == STATUS_OK)
        status = mark(device, number, submission, STAMP_END, err);
    if (status == STATUS_OK)
        status = show(device, number, submission, err);
    if (status == STATUS_OK && device->clock.marks[number].n >= COLLECT_EVERY)
        status = collect(device, &n, err);
    return status;
}

static enum status submit(void *self, enum stream number, const struct submission *submission,
                          struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status : note(device, run(device, number, submission, err), err);
}

static enum status record(void *self, uint32_t event, enum stream number, struct err *err)
{
    struct cuda_device *device = self;
    enum status status = status_of(device, err);

    assert(event < device->setup.n_event);
    if (status == STATUS_OK)
        status = note(
            device, CUDA_CALL(err, cudaEventRecord, device->events[event], device->streams[number]),
            err);
    if (status == STATUS_OK)
        device->recorded[event] = (uint8_t)(1 + number);
    return status;
}

static enum status wait(void *self, uint32_t event, enum stream number, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    assert(event < device->setup.n_event);
    if (status != STATUS_OK || !device->recorded[event])
        return status;
    return note(
        device,
        CUDA_CALL(err, cudaStreamWaitEvent, device->streams[number], device->events[event], 0),
        err);
}

static enum status host_wait(void *self, uint32_t event, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    assert(event < device->setup.n_event);
    if (status != STATUS_OK || !device->recorded[event])
        return status;
    const char *who = stream_name((enum stream)(device->recorded[event] - 1));
    return note(device, cuda_join(device, device->events[event], who, err), err);
}

static enum status drain_all(void *self, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status : note(device, drain(device, err), err);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static enum status capture_begin(void *self, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status : note(device, cuda_graph_begin(device, err), err);
}

static enum status capture_end(void *self, uint32_t *graph, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status : note(device, cuda_graph_end(device, graph, err), err);
}

static enum status replay(void *self, uint32_t graph, uint32_t step, struct err *err)
{
    struct cuda_device *device = self;
    const enum status status = status_of(device, err);

    return status != STATUS_OK ? status
                               : note(device, cuda_graph_replay(device, graph, step, err), err);
}

const struct device_ops cuda_device_ops = {
    .name = "cuda",
    .probe = cuda_probe,
    .make = make_cuda,
    .free = free_cuda,
    .open = open_cuda,
    .segment = apply_segment,
    .segment_base = segment_base,
    .state = make_state,
    .prepare = prepare,
    .forget = forget,
    .submit = submit,
    .record = record,
    .wait = wait,
    .host_wait = host_wait,
    .drain = drain_all,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .replay = replay,
    .read = read_bytes,
    .mapped_bytes = mapped_bytes,
    .outside = say_outside,
    .describe = describe,
    .close = close_cuda,
};
