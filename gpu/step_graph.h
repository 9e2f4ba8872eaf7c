/*
 * Steps as graphs: which steps are executed call by call, which is kept, and which are only replayed.
 *
 * Steps up to the placement's last are executed call by call: in them work is bound and prepared. From
 * then on addresses repeat, so that each step of the period is captured the first time and replayed
 * ever after. Replays do all of a step behind all of the one before: what a program lets run across
 * the border of two steps does not.
 *
 * Not here: what a device makes of it (gpu/cuda_graph.c). Invariant: a captured step has nothing that
 * the host would have to do or to wait for in its midst.
 */
#ifndef GPU_STEP_GRAPH_H
#define GPU_STEP_GRAPH_H

#include "gpu/device.h"
#include "src/place.h"

/* STATUS_USAGE with the first instruction of the steady step that a graph cannot hold, or where
   addresses do not repeat. */
enum status step_graph_check(const struct program *program, const struct placement *placement,
                             struct err *err);
/* The last step that is not only a replay. */
uint32_t step_graph_last_bound(const struct placement *placement);

enum step_mode {
    STEP_CALLS,   /* executed call by call */
    STEP_CAPTURE, /* its calls are kept, and done at its end */
    STEP_REPLAY   /* its calls are passed over */
};

struct step_graph {
    const struct placement *placement; /* NULL: no graphs are wanted */
    const struct device_ops *device;
    void *device_self;
    uint32_t graphs[PLACE_MAX_STEPS]; /* by step of the period: 1 + the device's number, 0: none */
    enum step_mode mode;
};

/* Ahead of the first call of a step, */
enum status step_graph_begin(struct step_graph *graph, uint32_t step, struct err *err);
/* and behind its last one, which does what was kept. */
enum status step_graph_end(struct step_graph *graph, uint32_t step, struct err *err);

#endif
