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
 * Memory of the device may be out of the caller's reach: segments, the state and what work points to
 * are only handed on, and read() is how their bytes come back.
 *
 * Invariants: memory of a segment stays mapped from its operation to the one that ends it; the device
 * allocates nothing behind a caller's back that grows with the model, but what it says in outside().
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
#define NO_TASK UINT32_MAX
struct submission {
    const struct work *work;
    uint32_t step, task; /* NO_TASK: it is not the program's */
    uint8_t parts;       /* enum stamp_parts: which ends of the task this is */
    struct stamp *stamp; /* or NULL */
};

/* Called right after the work, before anything later of the stream: what it wrote may be read, by
   read() where it is not the host's. For tests: it may make streams wait. NULL: none. */
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

/* What a device holds beside the segments. */
struct device_outside {
    uint64_t context_bytes; /* for being there at all */
    uint64_t comm_bytes;    /* of communicators */
    uint64_t table_bytes;   /* of what was prepared, and the state */
    uint64_t scratch_bytes; /* of operators */
};

/* What it is, for people: a name, its size, the software that was really loaded. */
struct device_facts {
    char name[80], software[160];
    uint64_t memory_bytes;
    uint32_t processors; /* multiprocessors of a GPU, cores of the host */
    uint32_t devices;    /* how many of its kind are here */
};

struct device_ops {
    const char *name; /* "host", "cuda" */
    /* Whether this machine has one. STATUS_DEVICE: what is missing. Ranks may be forked after it. */
    enum status (*probe)(struct err *err);
    void *(*make)(void);
    void (*free)(void *self); /* closed, or never opened; NULL is allowed */
    enum status (*open)(void *self, const struct device_setup *setup, struct err *err);
    enum status (*segment)(void *self, const struct segment_op *op, struct err *err);
    char *(*segment_base)(void *self, uint32_t segment); /* of a live one */
    /* The state that work shares, as it is at the start; once, and until the device is closed. */
    enum status (*state)(void *self, const struct step_state *first, struct step_state **out,
                         struct err *err);
    /* Takes what work needs on the device beside its operands: once when it is bound, ahead of its
       first submission, until forget(), which drops all of it after a drain. Work without a list,
       a table or an operator need not be prepared. */
    enum status (*prepare)(void *self, struct work *work, struct err *err);
    void (*forget)(void *self);
    enum status (*submit)(void *self, enum stream stream, const struct submission *submission,
                          struct err *err);
    enum status (*record)(void *self, uint32_t event, enum stream stream, struct err *err);
    enum status (*wait)(void *self, uint32_t event, enum stream stream, struct err *err);
    enum status (*host_wait)(void *self, uint32_t event, struct err *err);
    enum status (*drain)(void *self, struct err *err); /* all that was submitted is done */
    /* Graphs; NULL where the device has none. What is submitted, recorded and waited for between
       begin and end is kept under a number and not done; all of it has been prepared, nobody has a
       stamp or looks at it, and no segment changes afterwards. */
    enum status (*capture_begin)(void *self, struct err *err);
    enum status (*capture_end)(void *self, uint32_t *graph, struct err *err);
    /* All of it, for this step, behind all that was submitted before; what is submitted to stream C
       comes behind it. */
    enum status (*replay)(void *self, uint32_t graph, uint32_t step, struct err *err);
    /* Bytes of a segment or of the state, right after a drain or in an observer. */
    enum status (*read)(void *self, void *to, const void *from, uint64_t bytes, struct err *err);
    uint64_t (*mapped_bytes)(void *self); /* of all segments, as the system reports it now */
    void (*outside)(void *self, struct device_outside *out);
    enum status (*describe)(void *self, struct device_facts *out, struct err *err);
    void (*close)(void *self); /* also after a failed open */
};

extern const struct device_ops host_device_ops; /* gpu/host_device.c */
/* gpu/cuda_device.c, where it is built. To be opened after ranks are forked: CUDA does not live
   through that. */
extern const struct device_ops cuda_device_ops;

#endif
