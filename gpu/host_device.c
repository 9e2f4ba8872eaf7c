/*
 * The host as a device: the calls of gpu/device.h over queues, points and mappings.
 *
 * Everything runs for real, on threads of this process. Not here: what threads do with an item
 * (gpu/host_queue.c), what work does (gpu/host_work.c). Invariant: only the caller's thread reads or
 * writes events and segments.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "gpu/host_inner.h"

static void *host_make(void)
{
    /* Queues keep what two threads write on lines of their own. */
    struct host_device *device = aligned_alloc(alignof(struct host_device), sizeof(*device));
    if (!device)
        err_out_of_memory(sizeof(*device));
    memset(device, 0, sizeof(*device));
    pthread_mutex_init(&device->fault.lock, NULL);
    return device;
}

static void host_free(void *self)
{
    struct host_device *device = self;
    if (device)
        pthread_mutex_destroy(&device->fault.lock);
    free(device);
}

static enum status open_queue(struct host_device *device, uint32_t number, struct err *err)
{
    struct host_queue *queue = &device->queues[number];

    queue->device = device;
    queue->number = number;
    if (number >= QUEUE_COMM) {
        const struct comm_group *group = &device->setup.groups[number - QUEUE_COMM];
        if (group->n == 0)
            return STATUS_OK;
        assert(group->n == 1 || device->setup.transport);
        queue->scratch_bytes = host_collective_scratch(group);
        queue->scratch = malloc(queue->scratch_bytes);
        if (!queue->scratch)
            return err_set(err, STATUS_RUN, "out of memory for communicator '%s'",
                           comm_name((enum comm)(number - QUEUE_COMM)));
    }
    return host_queue_start(queue, err);
}

static enum status host_probe(struct err *err)
{
    (void)err;
    return STATUS_OK;
}

static enum status host_open(void *self, const struct device_setup *setup, struct err *err)
{
    struct host_device *device = self;
    enum status status = STATUS_OK;

    device->setup = *setup;
    device->events = calloc(setup->n_event + 1, sizeof(*device->events));
    if (!device->events)
        return err_set(err, STATUS_RUN, "out of memory for events");
    for (uint32_t i = 0; i < setup->n_event; i++)
        device->events[i].queue = NO_QUEUE;
    for (uint32_t i = 0; i < QUEUE_N && status == STATUS_OK; i++)
        status = open_queue(device, i, err);
    return status;
}

/* All that the stream was given until now. */
static struct host_point now_of(const struct host_device *device, uint32_t queue)
{
    return (struct host_point){queue, device->queues[queue].pushed};
}

static enum status host_drain(void *self, struct err *err)
{
    struct host_device *device = self;
    enum status status = host_status(device, err);

    for (uint32_t i = 0; i < STREAM_N && status == STATUS_OK; i++)
        status = host_join(device, now_of(device, i), err);
    return status;
}

static enum status host_segment(void *self, const struct segment_op *op, struct err *err)
{
    struct host_device *device = self;
    const bool takes_away = op->act == SEGMENT_UNMAP || op->act == SEGMENT_RELEASE;

    const enum status status = takes_away ? host_drain(device, err) : host_status(device, err);
    if (status != STATUS_OK)
        return status;
    return host_segments_apply(&device->segments, op, device->setup.debug.poison, err);
}

static char *host_segment_base(void *self, uint32_t segment)
{
    struct host_device *device = self;
    assert(segment < device->segments.n && device->segments.list[segment].base);
    return device->segments.list[segment].base;
}

static enum status host_state(void *self, const struct step_state *first, struct step_state **out,
                              struct err *err)
{
    struct host_device *device = self;
    (void)err;
    device->state = *first;
    *out = &device->state;
    return STATUS_OK;
}

/* All that work names is in reach of the threads. */
static enum status host_prepare(void *self, struct work *work, struct err *err)
{
    (void)self, (void)work, (void)err;
    return STATUS_OK;
}

static void host_forget(void *self)
{
    (void)self;
}

static enum status host_read(void *self, void *to, const void *from, uint64_t bytes,
                             struct err *err)
{
    (void)self, (void)err;
    memcpy(to, from, bytes);
    return STATUS_OK;
}

static enum status push(struct host_device *device, uint32_t queue, const struct host_item *item,
                        struct err *err)
{
    const enum status status = host_status(device, err);
    return status == STATUS_OK ? host_queue_push(&device->queues[queue], item, err) : status;
}

static enum status submit_collective(struct host_device *device, enum stream stream,
                                     const struct submission *submission, struct err *err)
{
    const uint32_t comm = QUEUE_COMM + submission->work->is.collective.comm;
    const struct host_item work = {now_of(device, stream), *submission, stream};
    assert(device->queues[comm].runs);

    const enum status status = push(device, comm, &work, err);
    if (status != STATUS_OK)
        return status;
    return push(device, stream, &(struct host_item){.after = now_of(device, comm)}, err);
}

static enum status host_submit(void *self, enum stream stream, const struct submission *submission,
                               struct err *err)
{
    if (submission->work->kind == WORK_COLLECTIVE)
        return submit_collective(self, stream, submission, err);
    const struct host_item item = {{NO_QUEUE, 0}, *submission, stream};
    return push(self, stream, &item, err);
}

static enum status host_record(void *self, uint32_t event, enum stream stream, struct err *err)
{
    struct host_device *device = self;
    const struct host_item item = {.after = {.queue = NO_QUEUE}};

    assert(event < device->setup.n_event);
    const enum status status = push(device, stream, &item, err);
    if (status == STATUS_OK)
        device->events[event] = now_of(device, stream);
    return status;
}

static enum status host_wait(void *self, uint32_t event, enum stream stream, struct err *err)
{
    struct host_device *device = self;
    assert(event < device->setup.n_event);
    return push(device, stream, &(struct host_item){.after = device->events[event]}, err);
}

static enum status host_host_wait(void *self, uint32_t event, struct err *err)
{
    struct host_device *device = self;

    assert(event < device->setup.n_event);
    const enum status status = host_status(device, err);
    if (status != STATUS_OK || device->events[event].queue == NO_QUEUE)
        return status;
    return host_join(device, device->events[event], err);
}

static uint64_t host_mapped_bytes(void *self)
{
    struct host_device *device = self;
    return host_segments_mapped(&device->segments);
}

static void host_outside(void *self, struct device_outside *out)
{
    const struct host_device *device = self;
    *out = (struct device_outside){.table_bytes = sizeof(device->state)};
    for (uint32_t i = 0; i < QUEUE_N; i++)
        out->comm_bytes += device->queues[i].scratch_bytes;
}

/* One that the system does not name is a machine. */
static void name_processor(char *out, size_t bytes)
{
    char line[256], *value;
    FILE *file = fopen("/proc/cpuinfo", "r");

    snprintf(out, bytes, "a machine");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", strlen("model name")) || !(value = strchr(line, ':')))
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, bytes, "%s", value + 2);
        break;
    }
    if (file)
        fclose(file);
}

static enum status host_describe(void *self, struct device_facts *out, struct err *err)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct utsname system = {0};

    (void)self, (void)err;
    *out = (struct device_facts){
        .memory_bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 1,
        .processors = cores > 0 ? (uint32_t)cores : 1,
        .devices = 1};
    name_processor(out->name, sizeof out->name);
    uname(&system);
    snprintf(out->software, sizeof out->software, "%.60s %.60s", system.sysname, system.release);
    return STATUS_OK;
}

/* What is still queued is dropped as after a failure. */
static void host_close(void *self)
{
    struct host_device *device = self;
    struct err err;

    err_set(&err, STATUS_RUN, "the host device was closed");
    host_fail(device, &err);
    device->closing = true;
    for (uint32_t i = 0; i < QUEUE_N; i++)
        host_queue_stop(&device->queues[i]);
    for (uint32_t i = 0; i < QUEUE_N; i++)
        host_queue_release(&device->queues[i]);
    free(device->events);
    device->events = NULL;
    host_segments_release(&device->segments);
}

const struct device_ops host_device_ops = {
    .name = "host",
    .probe = host_probe,
    .make = host_make,
    .free = host_free,
    .open = host_open,
    .segment = host_segment,
    .segment_base = host_segment_base,
    .state = host_state,
    .prepare = host_prepare,
    .forget = host_forget,
    .submit = host_submit,
    .record = host_record,
    .wait = host_wait,
    .host_wait = host_host_wait,
    .drain = host_drain,
    .read = host_read,
    .mapped_bytes = host_mapped_bytes,
    .outside = host_outside,
    .describe = host_describe,
    .close = host_close,
};
