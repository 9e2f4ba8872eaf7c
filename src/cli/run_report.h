/*
 * A run that really ran, with what was predicted for it, and its two shapes: text and JSON.
 *
 * Both are made from this struct alone. Measured times are rank 0's, losses the mean over ranks.
 */
#ifndef SRC_CLI_RUN_REPORT_H
#define SRC_CLI_RUN_REPORT_H

#include "gpu/run_log.h"
#include "src/cli/sim_report.h"
#include "src/run.h"

/* The dtypes that a parameter was seen in: of its shard, unsharded, of its gradient as autograd
   yields it and as it is reduced. DTYPE_N: there was no such buffer. */
struct seen_dtypes {
    uint8_t storage, compute, grad, reduce;
};

struct run_report {
    struct sim_report *sim; /* the prediction, of the same program and placement */
    struct run_log *log;
    struct run_real real;
    uint32_t n_measured;               /* steps behind the warm-up that have a time */
    int64_t min_ns, median_ns, max_ns; /* of these; RUN_NO_METRIC: none */
    bool has_tasks;                    /* these have time stamps at their tasks; else none has */
    uint32_t n_bare;                   /* steps behind the warm-up without stamps */
    int64_t bare_ns;                   /* the median of these; RUN_NO_METRIC: none */
    uint32_t median_step;              /* the one whose tasks are stored; 0: none */
    int64_t origin_ns;                 /* its begin, by the clock of the log */
    struct step_time time;             /* of it, contention left out */
    struct seen_dtypes *dtypes;        /* by parameter */
    int64_t host_instr_ns;             /* the host's time per instruction; RUN_NO_METRIC */
    bool memory_agrees;                /* all checks of reserved bytes */
};

/* From the log of a run that has ended, well or not; status and why are how. Texts to arena. */
void run_report_make(struct sim_report *sim, struct run_log *log, const struct run_real *asked,
                     const struct err *why, struct arena *arena, struct run_report *out);

/* Its measured step as a run for the history. */
void run_report_record(const struct run_report *report, const char *command, struct arena *arena,
                       struct run *out);

void run_report_text(const struct run_report *report, const struct term *term, struct text *out);
void run_report_json(const struct run_report *report, struct text *out);
/* A line for each thing that is not as it should be. */
void run_report_warn(const struct run_report *report, struct text *warnings);

#endif
