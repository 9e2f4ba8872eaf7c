/*
 * Why each task started when it did: read from the queues of an engine that is done.
 *
 * A start is the latest of what it had to wait for; the cause is the one that was the latest, and
 * of equal ones the nearest: its stream, then its communicator, then the host. Nothing is recorded
 * while the clock runs but ends of work and where the host stood still, so that who only wants times
 * pays nothing.
 */
#ifndef SIM_CAUSES_H
#define SIM_CAUSES_H

#include "sim/engine.h"

enum cause_kind {
    CAUSE_HOST,      /* it was issued no sooner; has no span */
    CAUSE_STREAM,    /* the task before it on its stream */
    CAUSE_EVENT,     /* a task of another stream, by an event */
    CAUSE_COMM,      /* the collective before it on its communicator */
    CAUSE_HOST_WAIT, /* of the host: it waited for an event */
    CAUSE_DRAIN,     /* of the host: memory was given back, for which all streams have to be idle;
                        has no span where they were */
};

struct cause {
    uint32_t span; /* the end of this one is what was waited for */
    uint8_t kind;
};
#define NO_SPAN UINT32_MAX

/*
 * The host stood still up to waited_ns; in a drain it was then busy with memory until ns. A drain
 * without a span: it found the device idle.
 */
struct host_stop {
    int64_t waited_ns, ns;
    struct cause cause;
};

struct causes {
    const struct program *program;
    const struct span *spans;
    const struct cause *starts;    /* by span */
    const struct host_stop *stops; /* in order of time */
    uint32_t n_span, n_stop;
};

/* After finish. What is written lives in arena, spans in the engine. */
void causes_find(const struct engine *engine, struct arena *arena, struct causes *out);

/* The span of a step that ends last, of equal ones the first that was issued; its end, or 0. */
uint32_t causes_last(const struct causes *causes, uint32_t step);
int64_t causes_end_ns(const struct causes *causes, uint32_t step);
/* The last stop not after ns, or NULL: what the host does at ns goes back to it without a pause. */
const struct host_stop *causes_stop(const struct causes *causes, int64_t ns);
/* The task that the host issues at the end of the time up to ns > 0. */
uint32_t causes_issued(const struct causes *causes, int64_t ns);

#endif
