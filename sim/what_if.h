/*
 * Brackets of a step: its time with one cost at zero.
 *
 * Each is simulated, with other prices or with waits left out; it bounds what any remedy for that
 * cost could gain, and is no prediction of a step that anybody can run.
 */
#ifndef SIM_WHAT_IF_H
#define SIM_WHAT_IF_H

#include "sim/simulate.h"

/* X(ENUM, name, words) */
#define WHAT_IFS(X)                                                            \
    X(NO_COMM, "no-comm", "collectives take no time")                          \
    X(INFINITE_HOST, "infinite-host", "issuing takes the host no time")        \
    X(NO_COPY, "no-copy", "copy_in, copy_out, pack and post_reduce take none") \
    X(PERFECT_OVERLAP, "perfect-overlap", "collectives hold nothing up, only slow compute")

enum what_if {
#define X(id, name, words) WHAT_IF_##id,
    WHAT_IFS(X)
#undef X
        WHAT_IF_N
};
const char *what_if_name(enum what_if what);
const char *what_if_words(enum what_if what);

/* As simulate(); the program and its prices are left as they are. */
enum status what_if_simulate(enum what_if what, const struct program *program,
                             const struct prices *prices, const struct placement *placement,
                             struct arena *arena, struct step_time *out, struct err *err);

#endif
