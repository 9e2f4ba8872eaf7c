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
};

struct engine;

/* Dies with arena. Opened again it forgets its spans and runs in the memory that it has. */
struct engine *engine_new(const struct prices *prices, struct arena *arena);
extern const struct backend_ops engine_backend; /* self: struct engine * */

/*
 * For memory that is tied to time (sim/timed_memory.c). When the host will have made so many
 * launches of a task of this kind, were it the next one; a point of a stream that lies behind all
 * that it has got, which costs nobody anything; and whether that is reached at ns, which is no time
 * after the next launch.
 */
int64_t engine_host_ns(const struct engine *engine, enum task_kind kind, uint32_t kernels);
uint32_t engine_point(struct engine *engine, enum stream stream);
bool engine_reached(struct engine *engine, uint32_t point, int64_t ns);

/* After finish: spans in order of issue; end of a step's last span (0 is init, 1 the first). */
const struct span *engine_spans(const struct engine *engine, uint32_t *n);
int64_t engine_step_end_ns(const struct engine *engine, uint32_t step);

#endif
