/*
 * Inside the host device: what gpu/host_device.c (the calls), gpu/host_queue.c (threads and their
 * queues), gpu/host_segment.c (memory), gpu/host_work.c, gpu/host_collective.c and
 * gpu/host_update.c (what is done) share. Nobody else includes it.
 *
 * A stream is a queue with a thread, and so is a communicator. An item of a queue may wait for
 * another queue to have done so many items, and may have work. That is all:
 *
 *     submit     an item with work
 *     record     an item with nothing; the event is "this queue has done this many"
 *     wait       an item that waits for what the event stands for at this moment
 *     collective on the communicator an item with the work, which waits until the stream has done all
 *                that is before; on the stream an item that waits for that one
 *
 * Invariants: one thread pushes, one takes; an item is counted as done after everything that it
 * wrote; after a failure, items pass without waiting and without work.
 */
#ifndef GPU_HOST_INNER_H
#define GPU_HOST_INNER_H

#include <pthread.h>
#include <stdalign.h>

#include "gpu/bell.h"
#include "gpu/device.h"

enum { QUEUE_COMM = STREAM_N, QUEUE_N = STREAM_N + COMM_N, NO_QUEUE = QUEUE_N };
enum { QUEUE_ITEMS = 4096 };

/* The queue has done so many items since it began; NO_QUEUE: nothing to wait for. */
struct host_point {
    uint32_t queue;
    uint64_t done;
};

struct host_item {
    struct host_point after;
    struct submission submission; /* work NULL: nothing to do */
    uint32_t stream;              /* whose work it is */
};

struct host_queue {
    struct host_device *device;
    uint32_t number; /* enum stream, or QUEUE_COMM + enum comm */
    bool runs;       /* has a thread */
    pthread_t thread;
    struct host_item *items; /* item i in i % QUEUE_ITEMS */
    char *scratch;           /* of a communicator */
    uint64_t scratch_bytes;
    alignas(64) _Atomic uint64_t pushed;
    struct bell pushes;
    alignas(64) _Atomic uint64_t done;
    _Atomic uint64_t
        wanted; /* the least done that somebody may sleep for; UINT64_MAX: nobody does */
    struct bell progress;
};

struct host_segment {
    char *base; /* NULL: not live */
    uint64_t bytes;
};

struct host_segments {
    struct host_segment *list; /* by number */
    uint32_t n;
};

/* The first failure. */
struct host_fault {
    pthread_mutex_t lock;
    _Atomic bool is_set;
    struct err err;
};

struct host_device {
    struct device_setup setup;
    struct host_queue queues[QUEUE_N];
    struct host_point *events; /* the record of each that was issued last */
    struct host_segments segments;
    struct step_state state;
    struct host_fault fault;
    _Atomic bool closing;
};

/* gpu/host_queue.c */
enum status host_queue_start(struct host_queue *queue, struct err *err);
void host_queue_stop(struct host_queue *queue);    /* after device->closing was set */
void host_queue_release(struct host_queue *queue); /* after all were stopped */
/* Waits while the queue is full. */
enum status host_queue_push(struct host_queue *queue, const struct host_item *item,
                            struct err *err);
/* Waits for the point, as long as the device does anything. */
enum status host_join(struct host_device *device, struct host_point point, struct err *err);
/* Sleeps, but not beyond a failure. */
void host_sleep_until(struct host_queue *queue, int64_t until_ns);
void host_fail(struct host_device *device, const struct err *err); /* the first one stays */
enum status host_status(struct host_device *device, struct err *err);

/* gpu/host_segment.c */
enum status host_segments_apply(struct host_segments *segments, const struct segment_op *op,
                                bool poison, struct err *err);
uint64_t host_segments_mapped(const struct host_segments *segments);
void host_segments_release(struct host_segments *segments);

/* gpu/host_work.c */
enum status host_work_run(struct host_queue *queue, const struct submission *submission,
                          struct err *err);

/* gpu/host_collective.c */
uint64_t host_collective_scratch(const struct comm_group *group);
enum status host_collective(struct host_queue *queue, const struct work_collective *collective,
                            struct err *err);

/* gpu/host_update.c */
void host_squares(const struct work_squares *squares, const struct step_state *state);
void host_scale(const struct work_scale *scale);
void host_update(const struct work_update *update);
/* Elements of gradients that the optimizer reads. */
uint64_t host_not_finite(const struct work_update *update);

#endif
