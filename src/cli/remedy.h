/*
 * Remedies: what could be done about stalls, each tried by simulating the step with it.
 *
 * A remedy changes an option or the cluster, and its gain is the difference of two simulated steps
 * at mid prices. It is tried only where the causes that it is for hold much of the idle time, so
 * that what would help any step is not sold as a cure. What cannot be built with it is left out.
 */
#ifndef SRC_CLI_REMEDY_H
#define SRC_CLI_REMEDY_H

#include "sim/stalls.h"
#include "src/cli/sim_report.h"

struct trial {
    uint32_t row;           /* of the table: what is easier to do comes first */
    int64_t gain_permille;  /* of the step: gains that differ by less are equal */
    const char *bottleneck; /* what it is a remedy for: "slow links" */
    const char *change;     /* the option as one would type it, or what another cluster has */
    unsigned causes;        /* bits of enum stall_cause */
    int64_t step_ns, gain_ns;
    bool fits; /* or takes no more memory than before, where that did not fit either */
};

/* The best first: those that fit, by their gain. */
struct trials {
    struct trial *at;
    uint32_t n;
};

/* Of an evaluated step. What is written lives in arena. */
enum status remedies_try(const struct sim_report *report, const struct stalls *stalls,
                         struct arena *arena, struct trials *out, struct err *err);

/* The best trial that gains something and is for this cause, or NULL. */
const struct trial *trials_for(const struct trials *trials, enum stall_cause cause);

#endif
