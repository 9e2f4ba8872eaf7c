/*
 * The threads of the host device: each takes items from a queue of its own, in order.
 *
 * One ring for each queue, without a lock: the host's thread writes items and counts them as pushed,
 * the queue's thread does them and counts them as done. Both sleep only where they have to wait, and
 * are woken when that is there: to wake a thread takes as long as a small operator. Not here: what
 * work does (gpu/host_work.c).
 *
 * Invariants: pushed - done <= QUEUE_ITEMS, and an item's place is written again only once it is
 * done; a thread waits for other queues only, so that a failure, which wakes all, ends every wait;
 * who sleeps for progress has said for which, in wanted, after the last time that it was reset.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host_inner.h"

struct wait_for {
    struct host_queue *queue;
    uint64_t done;
};

static bool has_failed(const struct host_device *device)
{
    return device->fault.is_set;
}

static void want_done(struct host_queue *queue, uint64_t done)
{
    uint64_t least = queue->wanted;

    while (done < least && !atomic_compare_exchange_weak(&queue->wanted, &least, done))
        ;
}

/* Says first what it wants, so that either it sees that this is done, or is rung for it. */
static bool is_done(void *context)
{
    const struct wait_for *want = context;

    want_done(want->queue, want->done);
    return want->queue->done >= want->done || has_failed(want->queue->device);
}

static bool has_item(void *context)
{
    const struct wait_for *want = context;
    return want->queue->pushed > want->done || want->queue->device->closing;
}

static bool has_failed_now(void *context)
{
    return has_failed(context);
}

static void ring_all(struct host_device *device)
{
    for (uint32_t i = 0; i < QUEUE_N; i++) {
        bell_ring(&device->queues[i].pushes);
        bell_ring(&device->queues[i].progress);
    }
}

void host_fail(struct host_device *device, const struct err *err)
{
    pthread_mutex_lock(&device->fault.lock);
    if (!device->fault.is_set)
        device->fault.err = *err;
    device->fault.is_set = true;
    pthread_mutex_unlock(&device->fault.lock);
    ring_all(device);
}

enum status host_status(struct host_device *device, struct err *err)
{
    if (!has_failed(device))
        return STATUS_OK;
    if (err)
        *err = device->fault.err; /* not written any more once it is set */
    return device->fault.err.status;
}

void host_sleep_until(struct host_queue *queue, int64_t until_ns)
{
    bell_wait(&queue->progress, has_failed_now, queue->device, until_ns);
}

/* Up to 200 us, the same for an item wherever and whenever it runs. */
static void jitter(struct host_queue *queue, uint64_t position)
{
    uint64_t bits = queue->device->setup.debug.jitter_seed;
    if (bits == 0)
        return;
    bits = (bits * QUEUE_N + queue->number) * 0x9e3779b97f4a7c15u + position;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    host_sleep_until(queue, bell_after((int64_t)((bits ^ (bits >> 31)) % 200000)));
}

static void note_finished(struct host_device *device, const struct host_item *item)
{
    const struct submission *submission = &item->submission;

    if (device->setup.observe)
        device->setup.observe(device->setup.observe_context, submission);
    if (device->setup.last_task && submission->parts & STAMP_END && submission->task != NO_TASK)
        device->setup.last_task[item->stream] = submission->task + 1;
}

static void do_work(struct host_queue *queue, const struct host_item *item)
{
    struct host_device *device = queue->device;
    const struct submission *submission = &item->submission;
    struct err err = {0};

    if (submission->stamp && submission->parts & STAMP_START)
        submission->stamp->start_ns = bell_now_ns();
    if (host_work_run(queue, submission, &err) != STATUS_OK) {
        err_prefix(&err, "stream '%s'", stream_name((enum stream)item->stream));
        host_fail(device, &err);
        return;
    }
    if (submission->stamp && submission->parts & STAMP_END)
        submission->stamp->end_ns = bell_now_ns();
    note_finished(device, item);
}

static void do_item(struct host_queue *queue, const struct host_item *item, uint64_t position)
{
    struct host_device *device = queue->device;

    jitter(queue, position);
    if (item->after.queue != NO_QUEUE) {
        struct host_queue *other = &device->queues[item->after.queue];
        struct wait_for want = {other, item->after.done};
        bell_wait(&other->progress, is_done, &want, BELL_NEVER);
    }
    if (item->submission.work && !has_failed(device))
        do_work(queue, item);
}

/* All who sleep are woken, and those who want more say so again. */
static void set_done(struct host_queue *queue, uint64_t done)
{
    queue->done = done;
    if (done < queue->wanted)
        return;
    queue->wanted = UINT64_MAX;
    bell_ring(&queue->progress);
}

static void *run_queue(void *context)
{
    struct host_queue *queue = context;

    for (struct wait_for next = {queue, 0};; next.done++) {
        bell_wait(&queue->pushes, has_item, &next, BELL_NEVER);
        if (queue->pushed == next.done)
            return NULL;
        do_item(queue, &queue->items[next.done % QUEUE_ITEMS], next.done);
        set_done(queue, next.done + 1);
    }
}

enum status host_queue_start(struct host_queue *queue, struct err *err)
{
    queue->items = calloc(QUEUE_ITEMS, sizeof(*queue->items));
    if (!queue->items)
        return err_set(err, STATUS_RUN, "out of memory for a queue of the host device");
    queue->wanted = UINT64_MAX;
    const int failure = pthread_create(&queue->thread, NULL, run_queue, queue);
    if (failure)
        return err_set(err, STATUS_RUN, "cannot start a thread: %s", strerror(failure));
    queue->runs = true;
    return STATUS_OK;
}

void host_queue_stop(struct host_queue *queue)
{
    if (!queue->runs)
        return;
    bell_ring(&queue->pushes);
    pthread_join(queue->thread, NULL);
    queue->runs = false;
}

void host_queue_release(struct host_queue *queue)
{
    free(queue->items);
    free(queue->scratch);
    queue->items = NULL;
    queue->scratch = NULL;
}

enum status host_queue_push(struct host_queue *queue, const struct host_item *item, struct err *err)
{
    const uint64_t pushed = queue->pushed;

    if (pushed - queue->done >= QUEUE_ITEMS) {
        const struct host_point room = {queue->number, pushed - QUEUE_ITEMS + 1};
        if (host_join(queue->device, room, err) != STATUS_OK)
            return host_status(queue->device, NULL);
    }
    queue->items[pushed % QUEUE_ITEMS] = *item;
    queue->pushed = pushed + 1;
    bell_ring(&queue->pushes);
    return STATUS_OK;
}

static uint64_t count_done(const struct host_device *device)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < QUEUE_N; i++)
        done += device->queues[i].done;
    return done;
}

/* The failure of a device that does nothing any more while somebody waits for it. */
static void fail_by_silence(struct host_device *device, const struct host_queue *queue)
{
    const bool is_comm = queue->number >= QUEUE_COMM;
    struct err err;
    err_set(&err, STATUS_RUN, "%s '%s' stands still: nothing was finished for %g s",
            is_comm ? "communicator" : "stream",
            is_comm ? comm_name((enum comm)(queue->number - QUEUE_COMM))
                    : stream_name((enum stream)queue->number),
            (double)device->setup.timeout_ns / 1e9);
    host_fail(device, &err);
}

enum status host_join(struct host_device *device, struct host_point point, struct err *err)
{
    struct host_queue *queue = &device->queues[point.queue];
    struct wait_for want = {queue, point.done};
    /* Later than a transport, which can say who is late. */
    const int64_t patience_ns = device->setup.timeout_ns + device->setup.timeout_ns / 8;

    for (uint64_t before = count_done(device), now;; before = now) {
        if (bell_wait(&queue->progress, is_done, &want, bell_after(patience_ns)))
            return host_status(device, err);
        now = count_done(device);
        if (now == before)
            fail_by_silence(device, queue);
    }
}
