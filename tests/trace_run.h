/*
 * Runs to draw: a small one by hand and random ones, whose metrics are counted ns by ns.
 */
#ifndef TESTS_TRACE_RUN_H
#define TESTS_TRACE_RUN_H

#include "src/run.h"

enum { TRACE_RUN_NS = 4096 /* random runs end before that */ };

/* Two units, one step on two ranks; everything there is to draw once. Names may be changed. */
struct run *trace_run_small(struct arena *arena);
/* The same, among two replicas of eight ranks, each communicator used once; all-reduce at its end. */
struct run *trace_run_groups(struct arena *arena);

/*
 * Up to max_task tasks that keep the invariants of run.h: streams side by side, collectives of
 * several communicators at once, tasks that touch, gaps of 1 ns, spans and launches of no length,
 * launches before the window.
 */
struct run *trace_run_random(struct arena *arena, uint64_t *state, uint32_t max_task);

#endif
