/*
 * A run of the history, simulated again from what it kept: its model, and the options in force.
 *
 * The cluster is opened by its name, and the program is built by this version, so that either may
 * have changed since; what differs is told and no reason to stop.
 */
#ifndef SRC_CLI_STORED_RUN_H
#define SRC_CLI_STORED_RUN_H

#include "src/cli/sim_report.h"
#include "src/run.h"

struct stored_run {
    int64_t id;
    struct run run;
};

/*
 * The run that the operand names, and its plan; options that were typed take the place of the run's.
 * *stored lives in arena.
 */
enum status stored_run_prepare(struct options *options, struct arena *arena,
                               struct stored_run *stored, struct prepared *out, struct err *err);

/* The same of a run that was read. */
enum status stored_run_open(const struct stored_run *stored, struct options *options,
                            struct arena *arena, struct prepared *out, struct err *err);

bool stored_run_same_program(const struct stored_run *stored, const struct prepared *prepared);
bool stored_run_same_cluster(const struct stored_run *stored, const struct prepared *prepared);
/* A line for each that is not the same. */
void stored_run_warn(const struct stored_run *stored, const struct prepared *prepared,
                     struct text *warnings);

#endif
