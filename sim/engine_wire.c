/*
 * Collectives that share a wire with others; see engine.h for which do.
 *
 * Such a collective stays open after its start: its end is not known until all that can run beside
 * it have started. Open ones are worked off together from moment to moment, where one of them begins
 * or is done, so that in between each has a constant speed. The next such moment is the horizon. A
 * collective shares from its start to its end, also while the host still issues kernels of it.
 */
#include <assert.h>

#include "sim/engine_inner.h"

/* Work of a ns alone: a whole number also for each of up to COMM_N that share. */
enum { WORK_OF_NS = 60 };
_Static_assert(COMM_N == 6, "1 to COMM_N divide WORK_OF_NS");

static struct span *open_span(const struct engine *engine, const struct comm_queue *comm)
{
    return &engine->spans[comm->spans[comm->n_started - 1]];
}

/* Bits of the open ones that begin at wire_ns or have begun. */
static uint32_t running(const struct engine *engine)
{
    uint32_t bits = 0;

    for (uint32_t open = engine->open; open != 0; open &= open - 1) {
        const struct comm_queue *comm = &engine->comms[__builtin_ctz(open)];
        if (open_span(engine, comm)->start_ns <= engine->wire_ns)
            bits |= open & -open;
    }
    return bits;
}

static int64_t work_per_ns(const struct comm_queue *comm, uint32_t running)
{
    return WORK_OF_NS / __builtin_popcount(running & comm->wire);
}

static int64_t worked_end(const struct engine *engine, const struct comm_queue *comm,
                          int64_t per_ns)
{
    return engine->wire_ns + (comm->left + per_ns - 1) / per_ns;
}

static int64_t host_end(const struct engine *engine, const struct span *span)
{
    return span->launched_ns + engine->prices->last_ns[span->task];
}

static void set_horizon(struct engine *engine)
{
    const uint32_t now = running(engine);

    engine->horizon_ns = INT64_MAX;
    for (uint32_t open = engine->open; open != 0; open &= open - 1) {
        const struct comm_queue *comm = &engine->comms[__builtin_ctz(open)];
        const struct span *span = open_span(engine, comm);
        int64_t ns = span->start_ns;
        if ((now & open & -open) != 0)
            ns = later(worked_end(engine, comm, work_per_ns(comm, now)), host_end(engine, span));
        engine->horizon_ns = sooner(engine->horizon_ns, ns);
    }
}

void engine_wire_start(struct engine *engine, enum comm c)
{
    struct comm_queue *comm = &engine->comms[c];
    struct span *span = open_span(engine, comm);

    assert(span->start_ns >= engine->wire_ns);
    comm->left = engine->prices->task_ns[span->task] * WORK_OF_NS;
    span->worked_ns = span->start_ns;
    span->end_ns = INT64_MAX;
    engine->open |= 1u << c;
    set_horizon(engine);
}

/* Up to the horizon. */
static void work_off(const struct engine *engine, struct comm_queue *comm, int64_t per_ns)
{
    const int64_t end_ns = worked_end(engine, comm, per_ns);

    if (comm->left == 0)
        return;
    comm->left -= (engine->horizon_ns - engine->wire_ns) * per_ns;
    if (end_ns <= engine->horizon_ns) {
        open_span(engine, comm)->worked_ns = end_ns;
        comm->left = 0;
    }
}

/* Its stream goes on behind it. */
static void close_span(struct engine *engine, struct comm_queue *comm)
{
    struct span *span = open_span(engine, comm);
    struct queue *queue = &engine->queues[engine->program->tasks[span->task].stream];

    span->end_ns = host_end(engine, span);
    end_collective(engine, comm, queue, span, span->worked_ns);
    queue->next++;
    engine->open &= ~(1u << (comm - engine->comms));
}

bool engine_wire_advance(struct engine *engine)
{
    const uint32_t now = running(engine);

    if (engine->open == 0 || engine->horizon_ns > engine->issue_ns)
        return false;
    for (uint32_t bits = now; bits != 0; bits &= bits - 1) {
        struct comm_queue *comm = &engine->comms[__builtin_ctz(bits)];
        work_off(engine, comm, work_per_ns(comm, now));
        if (comm->left == 0 && host_end(engine, open_span(engine, comm)) <= engine->horizon_ns)
            close_span(engine, comm);
    }
    engine->wire_ns = engine->horizon_ns;
    engine->awake |= BIT_C;
    set_horizon(engine);
    return true;
}
