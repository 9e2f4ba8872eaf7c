/*
 * Inside the CUDA device: what gpu/cuda_device.c (the calls), gpu/cuda_probe.c (is there one),
 * gpu/cuda_segment.c (memory), gpu/cuda_table.c (what work needs beside it), gpu/cuda_clock.c (what
 * is done, and when), gpu/cuda_graph.c (steps as graphs), gpu/cuda_work.c, gpu/cuda_product.c and
 * gpu/cuda_nccl.c (what is done) share.
 * Nobody else includes it.
 *
 * All of it runs on the caller's thread: CUDA has the streams. Whoever waits asks again and again, so
 * that a rank that is gone or a stream that hangs ends the run.
 *
 * Invariants: a failure stays; after one nothing is submitted. A stamp, a result and a staged buffer
 * are read or written again only when the event behind them is done.
 */
#ifndef GPU_CUDA_INNER_H
#define GPU_CUDA_INNER_H

#include <cuda_runtime_api.h>

#include "gpu/cuda_ops.h"
#include "gpu/cuda_pack.h"
#include "gpu/device.h"
#include "src/arena.h"

/* STATUS_RUN with the call's name, where it failed. CUDA_CALL(err, cudaMalloc, at, bytes) */
enum status cuda_status(cudaError_t error, const char *call, struct err *err);
#define CUDA_CALL(err, call, ...) cuda_status(call(__VA_ARGS__), #call, err)

/* ---- gpu/cuda_probe.c --------------------------------------------------------------------- */

/* STATUS_DEVICE with which of driver and device is missing. Starts CUDA in this process, */
enum status cuda_count(int *n_device, struct err *err);
/* and this in another one. */
enum status cuda_probe(struct err *err);
/* What it is, and the versions of what was loaded. */
enum status cuda_describe(int number, struct device_facts *out, struct err *err);
/* The rank's own device among the machine's. */
enum status cuda_choose(const struct device_setup *setup, int n_device, int *out, struct err *err);

/* ---- gpu/cuda_segment.c ------------------------------------------------------------------- */

struct cuda_segment {
    char *base; /* NULL: not live */
    uint64_t bytes;
    bool *mapped; /* by page, of an expandable one; else NULL */
};

struct cuda_driver; /* calls of the driver for expandable segments */

struct cuda_segments {
    struct cuda_segment *list; /* by number */
    uint32_t n;
    int device;
    struct cuda_driver *driver; /* NULL: not needed yet */
};

enum status cuda_segments_apply(struct cuda_segments *segments, const struct segment_op *op,
                                bool poison, struct err *err);
void cuda_segments_release(struct cuda_segments *segments);

/* ---- gpu/cuda_table.c --------------------------------------------------------------------- */

/* What is taken from the device beside segments: as the device says, which counts in pages. */
struct cuda_outside {
    uint64_t bytes;
};

enum status cuda_free_bytes(uint64_t *out, struct err *err);
enum status cuda_outside_take(struct cuda_outside *outside, uint64_t bytes, void **out,
                              struct err *err);
enum status cuda_outside_give(struct cuda_outside *outside, void **at, struct err *err);

struct cuda_chunk {
    char *base;
    uint64_t bytes, used;
};

/* Copies of lists, on the device. */
struct cuda_tables {
    struct cuda_outside *outside;
    struct cuda_chunk *chunks;
    uint32_t n, cap;
};

enum status cuda_tables_put(struct cuda_tables *tables, const void *from, uint64_t bytes,
                            void **out, struct err *err);
void cuda_tables_reset(struct cuda_tables *tables); /* what was put is gone, its memory is kept */
uint64_t cuda_tables_bytes(const struct cuda_tables *tables);
void cuda_tables_release(struct cuda_tables *tables);

/* ---- gpu/cuda_clock.c --------------------------------------------------------------------- */

/* An end of a task that a stream has to reach. */
struct cuda_mark {
    cudaEvent_t event;
    int64_t *at_ns;
    uint32_t task; /* 1 + the task that then is finished; 0: it begins */
};

/* Marks of a stream, oldest first: a ring. */
struct cuda_marks {
    struct cuda_mark *ring;
    uint32_t first, n, cap;
};

struct cuda_clock {
    cudaEvent_t base; /* NULL: not started */
    int64_t base_ns;
    cudaEvent_t *spare;
    uint32_t n_spare, cap_spare;
    struct cuda_marks marks[STREAM_N];
    _Atomic uint32_t *last_task;
};

/* A device that is idle. */
enum status cuda_clock_start(struct cuda_clock *clock, cudaStream_t stream, struct err *err);
enum status cuda_clock_mark(struct cuda_clock *clock, enum stream number, cudaStream_t stream,
                            int64_t *at_ns, uint32_t task, struct err *err);
/* Takes in what was reached; how many marks. */
enum status cuda_clock_collect(struct cuda_clock *clock, uint64_t *n, struct err *err);
void cuda_clock_release(struct cuda_clock *clock);

/* ---- gpu/cuda_nccl.c ---------------------------------------------------------------------- */

struct cuda_comms; /* NULL where every group is of one rank */

/* Collective over all ranks. */
enum status cuda_comms_open(const struct device_setup *setup, struct cuda_comms **out,
                            struct err *err);
enum status cuda_comms_run(struct cuda_comms *comms, const struct work_collective *collective,
                           cudaStream_t stream, struct err *err);
/* What NCCL noticed behind the caller's back. */
enum status cuda_comms_check(struct cuda_comms *comms, struct err *err);
void cuda_comms_close(struct cuda_comms *comms, bool aborts);

int cuda_nccl_version(void); /* 10000 major + 100 minor + patch; 0: it does not say */

/* ---- gpu/cuda_product.c ------------------------------------------------------------------- */

struct cuda_products; /* the library, and products that were prepared */
struct cuda_product;

enum status cuda_products_new(struct cuda_products **out, struct err *err);
/* NULL: the library has no such product. */
enum status cuda_products_prepare(struct cuda_products *products, const struct op_call *call,
                                  struct cuda_product **out, struct err *err);
/* Of a result that is added to: room for the product itself. */
uint64_t cuda_product_scratch_bytes(const struct op_call *call);
enum status cuda_products_run(struct cuda_products *products, const struct cuda_product *product,
                              const struct cuda_op *op, cudaStream_t stream, struct err *err);
void cuda_products_reset(struct cuda_products *products);
void cuda_products_free(struct cuda_products *products);

int cuda_product_version(void); /* 10000 major + 100 minor + patch, of the library */

/* ---- gpu/cuda_graph.c --------------------------------------------------------------------- */

/* Where the host's bytes wait for a graph to take them. */
struct cuda_landing {
    struct work_give give;
    void *at;
};

struct cuda_graph {
    cudaGraphExec_t exec; /* NULL: it is not whole yet */
    struct cuda_landing *landings;
    uint32_t n, cap;
};

struct cuda_graphs {
    struct cuda_graph *list;
    uint32_t n;
    bool captures;               /* the last one is on */
    cudaEvent_t joins[STREAM_N]; /* by the stream that they are recorded on */
};

struct cuda_device;
enum status cuda_graph_begin(struct cuda_device *device, struct err *err);
enum status cuda_graph_end(struct cuda_device *device, uint32_t *number, struct err *err);
enum status cuda_graph_replay(struct cuda_device *device, uint32_t number, uint32_t step,
                              struct err *err);
/* WORK_GIVE in a capture. */
enum status cuda_graph_give(struct cuda_device *device, const struct work_give *give,
                            cudaStream_t stream, struct err *err);
void cuda_graphs_release(struct cuda_device *device);

/* ---- the device --------------------------------------------------------------------------- */

/* From the host by way of memory that the device can copy from by itself. */
struct cuda_stage {
    void *at;
    uint64_t bytes;
    cudaEvent_t used; /* behind the copy */
};

/* A step's end on its way back. */
struct cuda_result {
    struct step_result *from, *to;
    cudaEvent_t written;
};

enum { CUDA_STAGES = 4, CUDA_RESULTS = 16 };

struct cuda_device {
    struct device_setup setup;
    struct err fault; /* the first one; status 0: none */
    int number;
    cudaStream_t streams[STREAM_N];
    cudaEvent_t *events;
    uint8_t *recorded; /* 1 + the stream, of each event that was recorded */
    cudaEvent_t drained;
    struct cuda_segments segments;
    struct cuda_tables tables;
    struct arena kept; /* of the host: what was prepared, beside the tables */
    struct cuda_clock clock;
    struct cuda_graphs graphs;
    struct cuda_comms *comms;
    cudaEvent_t emulated[COMM_N]; /* behind the last stand-in of a communicator; NULL: none yet */
    bool follows[COMM_N];         /* the next one comes behind it */
    struct cuda_products *products;
    struct cuda_pack_grid grid;
    struct step_state *state;
    void *scratch; /* of stream C */
    uint64_t scratch_bytes;
    struct cuda_stage stages[CUDA_STAGES];
    uint32_t next_stage;
    struct step_result *results; /* [CUDA_RESULTS], that device and host reach */
    struct cuda_result pending[CUDA_RESULTS];
    uint32_t first_result, n_result;
    struct cuda_outside outside;
    uint64_t free_bytes, all_bytes; /* of the device, when it was opened */
    uint64_t comm_bytes;
    uint64_t n_submitted;
};

/* gpu/cuda_open.c: of a device that is zero but for what is kept; released also where opening failed.
   failed: peers may be gone, so that communicators are aborted. */
enum status cuda_device_open(struct cuda_device *device, const struct device_setup *setup,
                             struct err *err);
void cuda_device_release(struct cuda_device *device, bool failed);

/* gpu/cuda_device.c: waits for an event as long as anything is finished in time. */
enum status cuda_join(struct cuda_device *device, cudaEvent_t event, const char *who,
                      struct err *err);

/* gpu/cuda_work.c */
enum status cuda_prepare(struct cuda_device *device, struct work *work, struct err *err);
enum status cuda_work_run(struct cuda_device *device, enum stream number,
                          const struct submission *submission, struct err *err);
/* What the callback yields for the step, to an address of the device, by way of a stage. */
enum status cuda_give(struct cuda_device *device, const struct work_give *give, void *to,
                      uint32_t step, cudaStream_t stream, struct err *err);
/* Results that have come back go to where they belong. */
enum status cuda_results_collect(struct cuda_device *device, struct err *err);

#endif
