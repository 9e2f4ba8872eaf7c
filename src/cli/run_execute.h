/*
 * From options to a real run and its report: what `run` does, for whoever runs plans of their own.
 *
 * Prepares, simulates and executes. Prints and stores nothing. Where a launcher started the ranks, each
 * comes here with the same options, and has the logs of all afterwards.
 */
#ifndef SRC_CLI_RUN_EXECUTE_H
#define SRC_CLI_RUN_EXECUTE_H

#include "gpu/devices.h"
#include "src/cli/run_report.h"

struct run_execution {
    struct prepared prepared;
    struct sim_report sim;
    struct run_report report; /* its log is NULL where nothing was run */
    struct world world;       /* where ranks are launched, rank 0 tells of all */
};

/*
 * model_json: as of prepare_open(). The report is there of a run that failed, too; the status says
 * why. To be released on every path, when all that is to be told is told; must not move in between.
 */
enum status run_execute(struct options *options, const char *model_json, struct run_execution *out,
                        struct err *err);
void run_execution_release(struct run_execution *execution);

#endif
