/*
 * Two runs of the history side by side: what they have in common, where they differ, and its two
 * shapes, text and JSON.
 *
 * Any two runs can be compared; the usual pair is a simulation and the real run of the same program,
 * whose difference is then an error of prices, never of the plan. An error is signed, in percent of
 * the second run. Both shapes are made from struct comparison alone.
 */
#ifndef SRC_CLI_COMPARE_H
#define SRC_CLI_COMPARE_H

#include "sim/paired.h"
#include "src/cli/stored_run.h"

enum { COMPARE_RUNS = 2, COMPARE_SHOWN_TASKS = 10 };

/* An option that differs, as text; NULL: that run has none of the name. */
struct compare_option {
    const char *name, *values[COMPARE_RUNS];
};

/* Tasks of one kind: how many, and the sum of their durations. */
struct compare_kind {
    uint32_t n[COMPARE_RUNS];
    int64_t ns[COMPARE_RUNS];
};

/* The durations of one task; its number is that of v_task. */
struct compare_task {
    uint32_t task;
    int64_t ns[COMPARE_RUNS];
};

/* Which of two simulated steps is faster for sure; see sim/paired.h. */
struct compare_paired {
    const char *unknown; /* why nothing is known of it, or NULL; nothing below then */
    int64_t apart_ns;    /* the first less the second */
    int64_t uncertainty_ns;
    bool tie;
};

struct comparison {
    const struct stored_run *runs; /* two */
    bool same_program, same_placement, same_model, same_cluster;
    bool emulated; /* of a run that is, no difference is an error: it has none in percent */
    struct compare_option *options; /* in the order of the first run, then of the second */
    struct compare_kind kinds[TASK_KIND_N];
    struct compare_task *tasks; /* the largest difference first */
    uint32_t n_option, n_task;
    const struct compare_paired *paired; /* NULL: a real run, other clusters or one program */
    const char *not_matched; /* why no task of one is a task of the other; NULL: they all are */
};

/*
 * Everything lives in arena, and runs outlive it. STATUS_INPUT where the options of a run are no
 * JSON.
 */
enum status compare_runs(const struct stored_run runs[COMPARE_RUNS], struct arena *arena,
                         struct comparison *out, struct err *err);

/* Simulates both again and fills in paired. */
void compare_paired(struct comparison *comparison, struct arena *arena);

/* The first less the second; what 64 bits do not hold is the largest that they do. */
int64_t compare_difference(const int64_t values[COMPARE_RUNS]);
/* That in percent of the second; NAN where there is nothing to divide by, or nothing is an error. */
double compare_error_pct(const struct comparison *comparison, const int64_t values[COMPARE_RUNS]);

void compare_text(const struct comparison *comparison, struct arena *arena, const struct term *term,
                  struct text *out);
void compare_json(const struct comparison *comparison, struct text *out);

#endif
