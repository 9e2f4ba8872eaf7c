/*
 * A run: what was asked, what it was asked of, and what came out. The record that is stored,
 * exported and compared, the same for a simulated step and for one that really ran.
 *
 * Plain data in one arena; knows no database and no trace format. Times are int64 ns from the
 * beginning of the measured step, which is the end of the step before: what the host does ahead,
 * and streams that need not wait, are before 0. Metrics count from 0 on. Sizes are bytes. Texts
 * that identify something (model, plan, cluster) are canonical JSON: equal things have equal text.
 * Invariants: tasks are in order of issue; on one stream they do not overlap; samples are in order
 * of time, and the largest allocated among them is the metric peak_allocated_bytes; a communicator
 * that a collective has is one of the run.
 */
#ifndef SRC_RUN_H
#define SRC_RUN_H

#include "src/arena.h"
#include "src/program.h"

/* X(ENUM, name) */
#define RUN_KINDS(X) \
    X(SIM, "sim")    \
    X(PLAN, "plan")  \
    X(REAL, "real")  \
    X(EMULATED, "emulated") /* really ran, on one rank, with stand-ins for collectives */

enum run_kind {
#define X(id, name) RUN_##id,
    RUN_KINDS(X)
#undef X
        RUN_KIND_N
};
const char *run_kind_name(enum run_kind kind);

/* Whether it has what struct run_real says. */
static inline bool run_kind_has_run(enum run_kind kind)
{
    return kind == RUN_REAL || kind == RUN_EMULATED;
}

/*
 * The numbers of a run that have a name, each an int64 in the unit that its name says. A metric that
 * a run does not have (MFU on a cluster without rates) is RUN_NO_METRIC. X(ENUM, name)
 */
#define RUN_METRICS(X)                                    \
    X(STEP_LOW, "step_low_ns")                            \
    X(STEP, "step_ns")                                    \
    X(STEP_HIGH, "step_high_ns")                          \
    X(COMPUTE, "compute_ns")                              \
    X(COMM, "comm_ns")                                    \
    X(EXPOSED_COMM, "exposed_comm_ns")                    \
    X(CONTENTION, "contention_ns")                        \
    X(RETRY, "retry_ns")                                  \
    X(TOKENS_PER_S_PER_GPU, "tokens_per_s_per_gpu_milli") \
    X(MFU, "mfu_micro")                                   \
    X(HFU, "hfu_micro")                                   \
    X(PEAK_ALLOCATED, "peak_allocated_bytes")             \
    X(PEAK_ACTIVE, "peak_active_bytes")                   \
    X(PEAK_RESERVED, "peak_reserved_bytes")               \
    X(FIRST_PEAK_ALLOCATED, "first_peak_allocated_bytes") \
    X(FIRST_PEAK_RESERVED, "first_peak_reserved_bytes")   \
    X(INIT_PEAK, "init_peak_bytes")                       \
    X(OUTSIDE, "outside_bytes")                           \
    X(MEMORY_LIMIT, "memory_limit_bytes")                 \
    X(FITS, "fits")                                       \
    X(RETRIES, "retries")                                 \
    X(WITHHELD, "withheld_bytes")

enum run_metric {
#define X(id, name) RUN_METRIC_##id,
    RUN_METRICS(X)
#undef X
        RUN_METRIC_N
};
const char *run_metric_name(enum run_metric metric);
#define RUN_NO_METRIC INT64_MIN

struct run_unit {
    const char *name;
    uint64_t elements, padded_elements, shard_elements;
    bool reshard_after_forward;
    const char *const *params; /* names, in the unit's order */
    uint32_t n_param;
};

struct run_task {
    const char *name;            /* "all_gather model.layers.0" */
    uint8_t kind, stream, dtype; /* enum task_kind, enum stream, enum dtype */
    uint8_t phase;               /* enum phase */
    uint8_t comm, reduction;     /* enum comm or COMM_NONE, enum reduction */
    uint16_t unit, microbatch;   /* NO_UNIT */
    uint32_t kernels;
    uint64_t elements;
    int64_t launch_ns, launched_ns; /* the host is at it */
    int64_t start_ns, end_ns;       /* the device is */
};

/* Memory when the host was there: the highest since the sample before. */
struct run_sample {
    int64_t at_ns;
    uint64_t allocated, reserved;
    uint64_t by_class[CLASS_N]; /* sums to allocated */
};

struct run_collective {
    uint8_t kind, comm, dtype, reduction;
    uint64_t elements, bytes;
    uint32_t count; /* per rank and optimizer step */
};

/* One step of a real run. */
struct run_step {
    int64_t step_ns; /* from the end of the step before; 0 of the first, and of one without end */
    double loss;     /* mean over ranks and microbatches; NAN of a step without, or emulated */
    uint64_t not_finite; /* elements of the gradients that the optimizer read, on all ranks */
    bool skipped;        /* by a loss scaler */
};

/* How a rank ended. */
struct run_rank {
    const char *error;               /* NULL: it did all */
    const char *last_task[STREAM_N]; /* names, of what each stream finished last; NULL: nothing */
    uint64_t step;                   /* that its host thread was in */
};

/* Reserved bytes as the program counts them, and as the system reports them. */
struct run_check {
    uint64_t rank, step, reserved_bytes, mapped_bytes;
};

/* What a run has that really ran; of any other n_step and n_rank are 0. */
struct run_real {
    const char *device, *transport; /* "host"; "shm", "tcp", "mpi", "none" or "emulated" */
    bool emulated;                  /* of kind emulated: one rank ran, alone */
    uint64_t seed, warmup;
    struct run_step *steps; /* from the first on */
    struct run_rank *ranks;
    struct run_check *checks;
    uint32_t n_step, n_rank, n_check;
    const char *error; /* NULL: the run did all of its steps */
};

struct run {
    enum run_kind kind;
    int64_t created_ns; /* since 1970 UTC; 0 until it is stored */
    const char *tool_version;
    const char *command;            /* what a person typed, arguments in order */
    const char *environment;        /* JSON: system, machine, compiler; names no host */
    const char *model, *model_json; /* name, canonical description */
    const char *plan_json;          /* options in force, every default filled in */
    const char *cluster, *cluster_json;
    uint64_t program_hash, placement_hash;
    uint64_t world, gpus_per_node, parameters;
    uint64_t comm_ranks[COMM_N]; /* of the group that a rank is in; 0: the run does not use it */
    uint64_t group;              /* rows of one `plan` share it; 0: none */
    int64_t metrics[RUN_METRIC_N];
    uint8_t peak_phase;
    uint16_t peak_unit; /* NO_UNIT */
    uint64_t peak_by_class[CLASS_N];
    struct run_unit *units;
    struct run_task *tasks;
    struct run_sample *samples;
    struct run_collective *collectives;
    uint32_t n_unit, n_task, n_sample, n_collective;
    struct run_real real;
};

#endif
