/*
 * A report as a run: what is stored and exported.
 */
#ifndef SRC_CLI_RECORD_H
#define SRC_CLI_RECORD_H

#include "src/cli/sim_report.h"
#include "src/run.h"

/* Texts and arrays are in arena, or live as long as the report. command: what a person typed. */
void record_run(const struct sim_report *report, enum run_kind kind, const char *command,
                struct arena *arena, struct run *out);

#endif
