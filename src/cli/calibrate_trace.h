/*
 * Rates from profiles, for `calibrate --from trace`. Known to src/cli/calibrate_trace*.c alone.
 */
#ifndef SRC_CLI_CALIBRATE_TRACE_H
#define SRC_CLI_CALIBRATE_TRACE_H

#include "src/cli/calibrate.h"
#include "traces/kineto.h"

struct calibrate_traces {
    const struct kineto *traces; /* n of them */
    uint32_t n;
    const char *origin; /* which they are, as each source begins */
    struct arena *arena;
    struct text set;    /* what was set, in words, parted by commas */
    uint64_t n_between; /* collectives that are not inside a node */
};

/* Rows of collectives inside a node. */
void calibrate_trace_comm(struct calibrate_traces *of, struct cluster *out);

#endif
