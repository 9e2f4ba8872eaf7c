/*
 * The host's pace: each launch waits until another host would have issued it, so that a run shows what
 * that one makes of the device.
 *
 * That host is a clock that goes on by a task's cost at its launches; of a body's operators each has
 * its part. What our own host takes is part of the cost; where it takes more the clock goes with it.
 * Not here: what a task costs (sim/cost.h).
 *
 * Invariant: no launch is issued before its time.
 */
#ifndef GPU_PACE_H
#define GPU_PACE_H

#include "src/program.h"

struct pace {
    const int64_t *task_ns; /* by task; NULL: as fast as it can */
    int64_t free_ns;        /* when that host is done with what was issued; 0: it has not begun */
};

/* Ahead of a launch of a task; op is its place among n_op operators. Returns when it is time, and how
   long that took. */
int64_t pace_launch(struct pace *pace, uint32_t task, uint32_t op, uint32_t n_op);
/* The host has waited for the device: that one has, too. */
void pace_waited(struct pace *pace);

#endif
