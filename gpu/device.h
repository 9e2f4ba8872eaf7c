/*
 * The seam to a real device: streams, events, segments, communicators. CUDA and the host fill it in.
 *
 * All calls come from one host thread, in program order. submit, record and wait only enqueue.
 * Streams run in order of submission each, and side by side; a collective starts when it heads both
 * its stream and its communicator. record and wait are taken literally: a wait is for the record of
 * that event that was issued last before it, and for nothing where there is none. Memory is unmapped
 * or released only when all that was submitted is done. A failure on a stream (a peer is gone, time
 * is over) is returned by the next call of any kind, and everything submitted later is dropped.
 *
 * Invariants: memory of a segment stays mapped from its operation to the one that ends it; the device
 * allocates nothing behind a caller's back that grows with the model, but what it says in outside.
 */
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include "gpu/transport.h"
#include "gpu/work.h"
#include "src/alloc.h"

/* Nanoseconds of CLOCK_MONOTONIC, or the device's own clock brought to it. */
struct stamp {
    int64_t start_ns, end_ns;
};

enum stamp_parts { STAMP_START = 1, STAMP_END = 2 };

/* One thing to do and what is noted of it. A task of several operators has one stamp. */
struct submission {
    const struct work *work;
    uint32_t step, task;
    uint8_t parts;       /* enum stamp_parts: which ends of the task this is */
    struct stamp *stamp; /* or NULL */
};

/* Called on the stream right after the work, before anything later of the stream: what it wrote may
   be read. For tests and for counting values; NULL: none. */
typedef void device_observer(void *context, const struct submission *submission);

struct device_debug {
    bool poison;          /* fresh memory is 0xA5 (what is freed: the executor, by WORK_FILL) */
    uint64_t jitter_seed; /* random delays on every stream and communicator; 0: none */
    bool slow_comm;       /* each collective takes as long as its bytes at slow_bytes_per_s */
    double slow_bytes_per_s;
};

struct device_setup {
    uint32_t rank, ranks;
    struct comm_group groups[COMM_N]; /* n 0: the program has no such communicator */
    uint32_t n_event;
    struct device_debug debug;
    /* Of whoever waits for another rank or for a stream: how long nothing at all may be finished. */
    int64_t timeout_ns;
    const struct transport_ops *transport; /* open while the device is; NULL: one rank */
    void *transport_self;
    device_observer *observe;
    void *observe_context;
    _Atomic uint32_t *last_task; /* [STREAM_N]: 1 + the task that a stream finished last, or NULL */
};

struct device_ops {
    const char *name; /* "host", "cuda" */
    enum status (*open)(void *self, const struct device_setup *setup, struct err *err);
    enum status (*segment)(void *self, const struct segment_op *op, struct err *err);
    char *(*segment_base)(void *self, uint32_t segment); /* of a live one */
    enum status (*submit)(void *self, enum stream stream, const struct submission *submission,
                          struct err *err);
    enum status (*record)(void *self, uint32_t event, enum stream stream, struct err *err);
    enum status (*wait)(void *self, uint32_t event, enum stream stream, struct err *err);
    enum status (*host_wait)(void *self, uint32_t event, struct err *err);
    enum status (*drain)(void *self, struct err *err); /* all that was submitted is done */
    uint64_t (*mapped_bytes)(void *self); /* of all segments, as the system reports it now */
    void (*close)(void *self);            /* also after a failed open */
};

/* gpu/host_device.c */
struct host_device;
extern const struct device_ops host_device_ops;
struct host_device *host_device_new(void);
void host_device_free(struct host_device *device);
/* What collectives use beside the program's memory: a constant for each rank of a group. */
uint64_t host_device_scratch_bytes(const struct host_device *device);

#endif
