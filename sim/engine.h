/*
 * The virtual clock: a backend that turns a priced program into spans.
 *
 * Streams and communicators are queues, the host issues at its own cost, and compute (stream C)
 * runs at 1/(1+c) while a collective runs. All integer; ties break by issue order: same input, same
 * spans. It never sees an address.
 *
 * How: calls of exec only queue, with the host's time. Then streams run as far as known events
 * allow, C last of all: when all others are blocked, they are blocked by C, so every collective
 * that can overlap C's next task is already known and its slowed end is exact.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/cost.h"
#include "src/backend.h"

struct span {
    uint32_t task, step;            /* step as in struct launch */
    int64_t launch_ns, launched_ns; /* the host begins to issue it, has issued its last kernel */
    int64_t start_ns, end_ns;       /* the device begins, is done */
    int64_t worked_ns; /* its end, had the host issued all of it at once; not after end_ns */
};

struct engine;

/* Dies with arena. Opened again it forgets its spans and runs in the memory that it has. */
struct engine *engine_new(const struct prices *prices, struct arena *arena);
extern const struct backend_ops engine_backend; /* self: struct engine * */

/* After finish: spans in order of issue; end of a step's last span (0 is init, 1 the first). */
const struct span *engine_spans(const struct engine *engine, uint32_t *n);
int64_t engine_step_end_ns(const struct engine *engine, uint32_t step);

#endif
