/*
 * The backend that executes: a placed program on a real device, for one rank.
 *
 * Decides nothing: passes on what src/exec.c gives it, with addresses from the binder, and notes
 * times. What it adds is outside the program and changes no order: the end of a step on stream C,
 * which notes the loss, and under debug.poison fills of memory that was freed (gpu/poison.h).
 *
 * Invariant: each instruction of the program is one call of the device, in its order; of a step that
 * is replayed (gpu/step_graph.h) all of them are one call.
 */
#ifndef GPU_EXECUTE_H
#define GPU_EXECUTE_H

#include "gpu/bind.h"
#include "gpu/run_log.h"

struct executor;

struct execute_setup {
    const struct program *program;
    const struct placement *placement;
    uint32_t rank;
    const struct device_ops *device;
    void *device_self;
    struct device_setup device_setup; /* but groups and events, which follow */
    const struct values *values;
    struct optimizer_options optimizer;
    float max_norm;
    bool sums_microbatches; /* gradients are those of the sum of losses, not of the mean */
    const int64_t
        *emulated_ns; /* one rank stands for all of the plan (gpu/bind.h); NULL: it does not */
    const int64_t *pace_ns;   /* the host's time by task (gpu/pace.h), or NULL */
    uint32_t bare_from;       /* every second step behind this one has no stamps; 0: all have */
    bool graph;               /* replay steps where the device can (gpu/step_graph.h) */
    int64_t alloc_bias_bytes; /* a deliberate error of the account, for tests of the check */
    struct run_log *log;
    /* After all is done and while the device still has everything; NULL: nothing to do. */
    enum status (*at_end)(void *context, struct executor *executor, struct err *err);
    void *at_end_context;
};

extern const struct backend_ops execute_backend;
/* What setup points to has to outlive it. */
struct executor *executor_new(const struct execute_setup *setup);
void executor_free(struct executor *executor);

/* For at_end: where a buffer's member lies now in the device's memory, bytes of it, and how the loss
   scaler stands; zeros: none. */
char *executor_member(struct executor *executor, uint32_t buffer, uint32_t member);
enum status executor_read(const struct executor *executor, void *to, const void *from,
                          uint64_t bytes, struct err *err);
enum status executor_scaler(const struct executor *executor, struct scaler_state *out,
                            struct err *err);

#endif
