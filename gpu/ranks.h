/*
 * Running a placed program on all its ranks: forked on this machine, or this process as one of many.
 *
 * Before the first step ranks hold their programs, placements and settings against each other and
 * refuse to start where one differs. A rank that dies, fails or hangs ends the run on all, within the
 * timeout; what each had finished by then is in the log. Knows no options and no database.
 */
#ifndef GPU_RANKS_H
#define GPU_RANKS_H

#include "gpu/execute.h"

struct run_job {
    const struct program *program;
    const struct placement *placement;
    const struct device_ops *device;
    uint32_t ranks, steps;
    uint64_t settings_hash; /* of what ranks have to agree on beside program and placement */
    struct optimizer_options optimizer;
    float max_norm;
    bool sums_microbatches;
    int64_t timeout_ns;
    struct device_debug debug;
    const int64_t *emulated_ns; /* as in gpu/execute.h; ranks is 1 then */
    const int64_t *pace_ns;
    uint32_t bare_from;
    bool graph;
    int64_t alloc_bias_bytes;
    int64_t die_rank, hang_rank; /* for tests: at the begin of the third step; -1: none */

    void *context; /* of the callbacks, which are called in the rank's own process */
    enum status (*values)(void *context, uint32_t rank, struct values *out, struct err *err);
    device_observer *observe; /* or NULL; its context is this one */
    enum status (*at_end)(void *context, uint32_t rank, struct executor *executor, struct err *err);
};

/* Forks all ranks and waits for them. STATUS_RUN with who failed first, why, and where; or with the
   signal that ended them, where the caller watches for one (gpu/stop_signal.h). */
enum status run_forked(const struct run_job *job, struct run_log *log, struct err *err);

/* This process is the rank, and the log is shared with others; transport NULL where it is alone. */
enum status run_rank(const struct run_job *job, uint32_t rank,
                     const struct transport_ops *transport, void *transport_self,
                     struct run_log *log, struct err *err);

/* The same where ranks share no memory: the log is gathered at the end, by all. */
enum status run_launched(const struct run_job *job, uint32_t rank,
                         const struct transport_ops *transport, void *transport_self,
                         struct run_log *log, struct err *err);

#endif
