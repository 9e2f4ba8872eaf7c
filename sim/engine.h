/*
 * The virtual clock: a backend that turns a priced program into spans.
 *
 * Streams and communicators are queues, the host issues at its own cost, and compute (stream C)
 * runs at 1/(1+c) while a collective runs, however many do. All integer; ties break by issue order:
 * same input, same spans. It never sees an address.
 *
 * A second communicator is a second queue, but not more bandwidth: k collectives that run side by
 * side on a wire have 1/k of their speed each (spec COST 4; of all of their time, as if a start were
 * bandwidth too). Those over a shard's ranks share one wire: what crosses nodes loads the links
 * inside as well, at about their bandwidth (on H100 340 of 350 GB/s). Replicas use one adapter in G,
 * with G ranks of a shard in a node. So their all-reduces share with the others where both stay
 * inside nodes or both cross them; across nodes, beside shards inside, they have their own wire.
 *
 * How: calls of exec only queue, with the host's time. Then streams run as far as known events
 * allow. Two things wait for what may still come to run beside them: C's next task and collectives
 * that share a wire. When all else is blocked, it is blocked by these, so that everything up to the
 * first of their ends is known, and exact.
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

/* What the host spends on a task, and on each of its kernels, before the device has it. */
struct host_costs {
    int64_t task_ns[TASK_KIND_N], kernel_ns[TASK_KIND_N];
};
struct host_costs host_costs_of(const struct prices *prices, const struct plan *plan);

struct engine;

/* Dies with arena. Opened again it forgets its spans and runs in the memory that it has. */
struct engine *engine_new(const struct prices *prices, struct arena *arena);
extern const struct backend_ops engine_backend; /* self: struct engine * */

/*
 * One section alone, from time 0 and without a placement: as a program of it alone would run, for a
 * search that does so by the thousand.
 */
enum status engine_step(struct engine *engine, const struct program *program,
                        enum section_id section, struct err *err);

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
