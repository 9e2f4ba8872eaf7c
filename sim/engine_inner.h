/*
 * Inside the virtual clock: what sim/engine.c (the host: calls, queues, its own time),
 * sim/engine_run.c (the device: streams, communicators, contention), sim/engine_wire.c (shared wires)
 * and sim/causes.c (what held each task) share. Nobody else includes it.
 *
 * Invariants: the collectives of one communicator are disjoint in time and in order of start, and so
 * are the tasks of one stream; every time fits in 63 bits, because what may be issued is bounded
 * (left_ns).
 */
#ifndef SIM_ENGINE_INNER_H
#define SIM_ENGINE_INNER_H

#include "sim/engine.h"

/* An item of a queue: what it is in the low bits, above them an id in spans or in records. */
enum { ITEM_RECORD, ITEM_WAIT, ITEM_LAUNCH, ITEM_COLLECTIVE, ITEM_OP_BITS = 2, ITEM_OP = 3 };

/* A span's, either way. */
static inline bool item_is_task(uint32_t item)
{
    return (item & ITEM_OP) >= ITEM_LAUNCH;
}

struct queue {
    uint32_t *items;
    uint32_t n, cap;
    uint32_t next;   /* items before it are done */
    int64_t free_ns; /* when they were */
};

/* The collectives of a communicator, in order of issue. */
struct comm_queue {
    uint32_t *spans;
    uint32_t n, cap;
    uint32_t n_started; /* the last of these may be open: it has begun, its end is not known */
    uint32_t n_passed;  /* of these, over before where C is */
    uint32_t waiters;   /* bits of streams */
    uint32_t wire;      /* bits of the communicators that share its wire, itself included */
    int64_t free_ns;    /* when the last one that is not open was done */
    int64_t left;       /* work of the open one */
};

/* One RECORD as it is issued: the same event of the next step has another one of these. */
struct record {
    int64_t ns; /* when it is reached; until then when it was issued */
    uint32_t event;
    uint8_t waiters; /* bits of what goes on when it is reached */
    bool issued, reached;
};
#define NO_RECORD UINT32_MAX
#define NO_EVENT_ID UINT32_MAX /* of a point that nobody waits for */

/*
 * The host stood still up to waited_ns, for a record or, with NO_RECORD, for all streams; it did
 * not where it came later than they were done (was_late). Until ns it was busy with memory.
 */
struct stop {
    int64_t waited_ns, ns;
    uint32_t record;
    bool was_late;
};

/* Bits of what can wait: one a stream, one for the host. */
enum { BIT_C = 1 << STREAM_C, BIT_HOST = 1 << STREAM_N, BITS_STREAMS = BIT_HOST - 1 };
_Static_assert(BIT_HOST <= UINT8_MAX, "record.waiters holds all bits");

struct engine {
    const struct prices *prices;
    const struct program *program;
    struct arena *arena;

    int64_t host_ns; /* the host's clock */
    struct host_costs host;
    uint64_t left_ns; /* what may still be issued */
    bool giving_back; /* what the host did last was to give memory back to the driver */

    /* What was issued. */
    struct queue queues[STREAM_N];
    struct span *spans;
    struct record *records;
    uint32_t *latest;     /* by event: its last record */
    uint32_t *step_spans; /* by step: spans when it was over */
    struct stop *stops;   /* those that cost the host time */
    uint32_t n_span, n_record, n_step, n_stop;
    uint32_t cap_span, cap_record, cap_latest, cap_step, cap_stop;

    /* What has run. */
    struct comm_queue comms[COMM_N];
    uint32_t comm_bits; /* those that the plan has */
    uint32_t open;      /* bits of those that have an open collective */
    int64_t wire_ns;    /* up to when these are worked off */
    int64_t horizon_ns; /* up to when their speeds are known; without one, the end of time */
    int64_t issue_ns; /* what is not issued starts then or later; the end of time: all is issued */
    bool computing;   /* C's next task has begun, is done up to compute_ns, and has work left */
    int64_t compute_ns, compute_left;
    uint32_t awake; /* bits */
};

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Done with its work, but not before its last kernel, issued by the host, whose end is in end_ns. */
static inline void end_task(struct queue *queue, struct span *span, int64_t worked_ns)
{
    span->worked_ns = worked_ns;
    span->end_ns = later(span->end_ns, worked_ns);
    queue->free_ns = span->end_ns;
}

static inline void end_collective(struct engine *engine, struct comm_queue *comm,
                                  struct queue *queue, struct span *span, int64_t worked_ns)
{
    end_task(queue, span, worked_ns);
    comm->free_ns = span->end_ns;
    engine->awake |= comm->waiters;
    comm->waiters = 0;
}

/* Open what a communicator started last. */
void engine_wire_start(struct engine *engine, enum comm comm);
/* Open collectives up to the horizon, and from there to the next; false where none is open. */
bool engine_wire_advance(struct engine *engine);

/* Until the host is woken or nothing can go on. */
void engine_run_streams(struct engine *engine);
/* The same while the host stands at ns, which is not before its own time. */
void engine_run_until(struct engine *engine, int64_t ns);
/* The same, and then every queue is done; else STATUS_RUN. */
enum status engine_run_all(struct engine *engine, struct err *err);
/* STATUS_RUN: host (what it waits for) and all streams that are not done, with what stops them. */
enum status engine_deadlock(const struct engine *engine, const char *host, struct err *err);

#endif
