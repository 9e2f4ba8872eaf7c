/*
 * What the benchmarks share: the step that they are about, measuring, and both shapes of the answer.
 *
 * Stages are run again and again on the same inputs. Medians, since a busy machine only ever adds;
 * CPU time of the process beside the clock on the wall where a busy machine would hide a goal.
 */
#ifndef SRC_CLI_BENCH_H
#define SRC_CLI_BENCH_H

#include "src/cli/sim_report.h"
#include "src/run.h"

enum { BENCH_MAX_RUNS = 101, BENCH_MAX_TURNS = 2 };

struct bench_stage {
    unsigned warm_up, runs;     /* runs: odd, at most BENCH_MAX_RUNS */
    void (*before)(void *self); /* each run, not measured; or NULL */
    enum status (*run)(void *self, struct err *err);
};

struct bench_time {
    double wall_s, cpu_s; /* cpu: of all threads, user and system */
};

/* Medians; the first run that fails ends it. */
enum status bench_measure(const struct bench_stage *stage, void *self, struct bench_time *out,
                          struct err *err);

/* The same for stages of as many runs each, one after the other again and again, so that what else
   the machine does hits all of them. */
enum status bench_measure_in_turn(const struct bench_stage *stages, unsigned n, void *self,
                                  struct bench_time *out, struct err *err);

/* The unit that a key ends in; a goal for times and memory is an upper limit, for rates and shares a
   lower one; of a share that should be small an upper one. */
enum bench_unit { BENCH_US, BENCH_MS, BENCH_PER_S, BENCH_PERCENT, BENCH_PERCENT_AT_MOST, BENCH_MB };

struct bench_line {
    const char *key;
    enum bench_unit unit;
    double value, goal; /* value NAN: not measurable here; goal 0: none */
    const char *covers;
};

/* A whole number of what was measured: key of JSON, words of text. */
struct bench_fact {
    const char *key, *words;
    uint64_t n;
};

struct bench_report {
    const char *benchmark; /* the word behind `bench` */
    const struct prepared *prepared;
    const struct bench_fact *facts;
    const struct bench_line *lines;
    unsigned n_fact, n_line;
};
void bench_print(const struct bench_report *report, const struct options *options,
                 struct output *out);

/* The plan that all is measured on; whatever else it needs are the defaults of `sim`. */
enum status bench_prepare(struct options *options, struct prepared *out, struct err *err);

/* Its step as the run that `sim` would store. */
struct bench_step {
    struct options options;
    struct prepared prepared;
    struct sim_report report;
    struct run run;
};
/* To be released on every path; must not move in between. */
enum status bench_step_make(struct bench_step *step, struct err *err);
void bench_step_release(struct bench_step *step);

/*
 * A run of n_task tasks and n_sample samples: those of one step again and again, later each time.
 * Everything else is the step's.
 */
void bench_repeat(const struct run *step, uint32_t n_task, uint32_t n_sample, struct arena *arena,
                  struct run *out);

/* A new folder in TMPDIR, or in /tmp. To be removed, with the files in it, where it was made. */
enum status bench_folder_make(struct arena *arena, const char **path, struct err *err);
void bench_folder_remove(const char *path);

enum status bench_host(const struct options *options, struct output *out, struct err *err);
enum status bench_search(const struct options *options, struct output *out, struct err *err);
enum status bench_sim(const struct options *options, struct output *out, struct err *err);
enum status bench_store(const struct options *options, struct output *out, struct err *err);
enum status bench_trace(const struct options *options, struct output *out, struct err *err);

#endif
