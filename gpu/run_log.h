/*
 * What ranks note of a run while it runs: times of tasks, losses, checks of memory, how each ended.
 *
 * One block of memory that all ranks share where they were forked, so that what a rank noted is there
 * when the rank is not. Measured, and so no part of the program. Each rank writes its own part only;
 * others read it when the rank has ended, but for what is atomic.
 */
#ifndef GPU_RUN_LOG_H
#define GPU_RUN_LOG_H

#include "gpu/device.h"

/* Of one task in one step, in ns of CLOCK_MONOTONIC; 0: it was not launched, or not in a step whose
   tasks have stamps. */
struct task_time {
    int64_t launch_ns, launched_ns; /* the host is at it */
    struct stamp stamp;
};

/* Reserved bytes by the program's account and by the system's. */
struct memory_check {
    uint32_t step;
    uint64_t reserved_bytes, mapped_bytes;
};
enum { MEMORY_CHECKS = 5 };

struct rank_log {
    _Atomic uint32_t last_task[STREAM_N]; /* 1 + the task that a stream finished last */
    _Atomic uint32_t step;                /* that the host is in */
    _Atomic bool ended;
    bool agreed; /* with all others, on what is run */
    enum status status;
    struct err err;
    struct memory_check checks[MEMORY_CHECKS];
    uint32_t n_check;
    uint64_t hash;               /* of program, placement and layout */
    uint64_t instrs;             /* issued by the host once all is bound */
    int64_t issue_ns;            /* how long it was at them, by the clock on the wall */
    int64_t issue_cpu_ns;        /* CPU time of its thread in the steps that have them */
    struct task_time *times;     /* [step 0 … steps][task] */
    struct step_result *results; /* [step 0 … steps] */
    struct stamp *ends; /* [step 0 … steps], of which the end counts: stream C has ended it */
};

struct run_log {
    uint32_t ranks, steps, n_task;
    size_t bytes, rank_bytes; /* all of it; the arrays of a rank, which lie together */
    bool is_whole;            /* of launched ranks: it was gathered */
    struct rank_log *rank;
};

/* STATUS_RUN where so much memory cannot be had. */
enum status run_log_new(uint32_t ranks, uint32_t steps, uint32_t n_task, struct run_log **out,
                        struct err *err);
void run_log_free(struct run_log *log);

/*
 * From ranks that share no memory: what each has noted, to all. To be called by every rank when its
 * own part is done. Where some did not answer, what others said is there, and STATUS_RUN is returned.
 */
enum status run_log_gather(struct run_log *log, uint32_t rank,
                           const struct transport_ops *transport, void *transport_self,
                           struct err *err);

static inline struct task_time *rank_log_time(const struct run_log *log, uint32_t rank,
                                              uint32_t step, uint32_t task)
{
    return &log->rank[rank].times[(size_t)step * log->n_task + task];
}

#endif
