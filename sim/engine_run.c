/*
 * The device side of the virtual clock: streams run as far as what is known lets them.
 *
 * A stream that cannot go on leaves its bit where it will be woken from, so that no list is
 * searched and each item of a queue is looked at about once.
 *
 * Why two things go last, C's next task T and open collectives (sim/engine_wire.c), and why that is
 * exact. The end of T depends on each collective that runs before that end, the end of an open
 * collective on those beside it on its wire; no other time depends on what comes later. A stream
 * stops where its queue is empty, at an event that is not reached, or at a collective that is open
 * or not its communicator's next; the host stops in HOST_WAIT, in a drain or at the end. Let all of
 * them have stopped. Follow from any one of them what it waits for: an empty queue waits for the
 * host, the host for an event or for all streams, an event for its stream or, if not recorded yet,
 * for the host, a collective for the stream of the one before it. Either the way ends in a circle,
 * and none of it ever starts, or it leads to an item behind T or behind an open collective. So what
 * has not started yet starts no earlier than the first of their ends, and up to there all that can
 * slow them is known. The horizon is no later than the first end of an open collective. If T ends by
 * then, T is done next; else all of them are worked off up to the horizon.
 */
#include "sim/engine_inner.h"
#include "src/program_print.h"

/* The first that started on a communicator and is not over at now; NULL where there is none yet. */
static inline const struct span *next_on_comm(const struct engine *engine, struct comm_queue *comm,
                                              int64_t now)
{
    uint32_t i = comm->n_passed;

    while (i < comm->n_started && engine->spans[comm->spans[i]].end_ns <= now)
        i++;
    comm->n_passed = i;
    return i < comm->n_started ? &engine->spans[comm->spans[i]] : NULL;
}

/* Of all that started and are not over at now, the one that begins first. */
static inline const struct span *next_collective(struct engine *engine, int64_t now)
{
    const struct span *first = NULL;

    for (uint32_t bits = engine->comm_bits; bits != 0; bits &= bits - 1) {
        const struct span *span = next_on_comm(engine, &engine->comms[__builtin_ctz(bits)], now);
        if (span && (!first || span->start_ns < first->start_ns))
            first = span;
    }
    return first;
}

/* Work from *now on, at most until a later time: true where nothing is left, at *now. */
static inline bool work_until(int64_t *now, int64_t *work, int64_t until_ns, int64_t per_ns)
{
    if (until_ns <= *now)
        return false;
    if (until_ns == INT64_MAX || *work <= (until_ns - *now) * per_ns) {
        *now += (*work + per_ns - 1) / per_ns;
        return true;
    }
    *work -= (until_ns - *now) * per_ns;
    *now = until_ns;
    return false;
}

/*
 * C's task up to its end or, where that is sooner, to the horizon: true where it is done. Work is
 * counted in units of which C does full a ns alone and 1000 a ns beside collectives: 1 to 1/(1+c),
 * without a fraction. What has no work is done where it begins: nothing can slow it.
 */
static inline bool compute(struct engine *engine, int64_t *now, int64_t *work, int64_t full)
{
    const int64_t horizon_ns = sooner(engine->horizon_ns, engine->issue_ns);

    if (*work == 0)
        return true;
    while (*now < horizon_ns) {
        const struct span *beside = next_collective(engine, *now);
        const int64_t begin_ns = beside ? beside->start_ns : INT64_MAX;
        const int64_t end_ns = beside ? beside->end_ns : INT64_MAX;
        if (work_until(now, work, sooner(begin_ns, horizon_ns), full) ||
            work_until(now, work, sooner(end_ns, horizon_ns), 1000))
            return true;
    }
    return false;
}

static inline bool run_on_c(struct engine *engine, struct queue *queue, struct span *span)
{
    const int64_t full = 1000 + (int64_t)engine->prices->contention_permille;
    int64_t now = span->start_ns, work = engine->prices->task_ns[span->task] * full;

    if (engine->computing) {
        now = engine->compute_ns;
        work = engine->compute_left;
    }
    engine->computing = !compute(engine, &now, &work, full);
    if (engine->computing) {
        engine->compute_ns = now;
        engine->compute_left = work;
        return false;
    }
    end_task(queue, span, now);
    return true;
}

/* False while it is open, or where its communicator has another one first. */
static inline bool run_collective(struct engine *engine, struct queue *queue, uint32_t bit,
                                  uint32_t id)
{
    struct span *span = &engine->spans[id];
    const enum comm c = (enum comm)engine->program->tasks[span->task].comm;
    struct comm_queue *comm = &engine->comms[c];
    const bool is_next = (engine->open >> c & 1) == 0 && comm->spans[comm->n_started] == id;
    const bool shares = comm->wire != 1u << c;

    if (is_next) {
        comm->n_started++;
        span->start_ns = later(span->start_ns, comm->free_ns);
    }
    if (is_next && !shares) {
        end_collective(engine, comm, queue, span,
                       span->start_ns + engine->prices->task_ns[span->task]);
        return true;
    }
    comm->waiters |= bit;
    if (is_next)
        engine_wire_start(engine, c);
    return false;
}

/* Run the task at a queue's head; false where it has to wait for others. */
static bool run_task(struct engine *engine, struct queue *queue, uint32_t bit, uint32_t op,
                     uint32_t id)
{
    struct span *span = &engine->spans[id];

    span->start_ns = later(span->start_ns, queue->free_ns);
    if (op == ITEM_COLLECTIVE)
        return run_collective(engine, queue, bit, id);
    if (bit == BIT_C)
        return run_on_c(engine, queue, span);
    end_task(queue, span, span->start_ns + engine->prices->task_ns[span->task]);
    return true;
}

static void reach_record(struct engine *engine, const struct queue *queue, uint32_t id)
{
    struct record *record = &engine->records[id];

    record->ns = later(record->ns, queue->free_ns);
    record->reached = true;
    engine->awake |= record->waiters;
}

/* False where the record is not reached yet. */
static bool pass_wait(struct engine *engine, struct queue *queue, uint32_t bit, uint32_t id)
{
    struct record *record = &engine->records[id];

    if (!record->reached) {
        record->waiters |= (uint8_t)bit;
        return false;
    }
    queue->free_ns = later(queue->free_ns, record->ns);
    return true;
}

/* False where the stream cannot go on; C goes no further than to a task that lets others go first. */
static inline bool run_item(struct engine *engine, struct queue *queue, uint32_t bit, uint32_t item)
{
    const uint32_t op = item & ITEM_OP, id = item >> ITEM_OP_BITS;

    if (op == ITEM_RECORD) {
        reach_record(engine, queue, id);
        return true;
    }
    if (op == ITEM_WAIT)
        return pass_wait(engine, queue, bit, id);
    if (bit == BIT_C && engine->awake != 0) {
        engine->awake |= bit;
        return false;
    }
    return run_task(engine, queue, bit, op, id);
}

static void run_stream(struct engine *engine, enum stream stream)
{
    struct queue *queue = &engine->queues[stream];
    const uint32_t *items = queue->items;
    const uint32_t bit = 1u << stream, n = queue->n;
    uint32_t next = queue->next;

    engine->awake &= ~bit;
    while (next < n && run_item(engine, queue, bit, items[next]))
        next++;
    queue->next = next;
}

void engine_run_streams(struct engine *engine)
{
    engine->awake = BITS_STREAMS;
    do {
        const uint32_t others = engine->awake & BITS_STREAMS & ~(uint32_t)BIT_C;
        if (others != 0)
            run_stream(engine, (enum stream)__builtin_ctz(others));
        else if ((engine->awake & BIT_HOST) != 0)
            return;
        else if ((engine->awake & BIT_C) != 0)
            run_stream(engine, STREAM_C);
    } while (engine->awake != 0 || engine_wire_advance(engine));
}

/*
 * A collective that the host has not issued yet starts at ns or later. So what C and open collectives
 * do until then is slowed by none of them, and the rest has to wait.
 */
void engine_run_until(struct engine *engine, int64_t ns)
{
    engine->issue_ns = ns;
    engine_run_streams(engine);
    engine->issue_ns = INT64_MAX;
}

/* What a stopped stream waits for, and the task that it keeps from starting. */
static void describe_stop(const struct engine *engine, enum stream stream, struct text *out)
{
    const struct queue *queue = &engine->queues[stream];
    const uint32_t item = queue->items[queue->next];
    uint32_t next = queue->next;
    char name[PROGRAM_NAME_MAX];

    text_add(out, ", stream %s", stream_name(stream));
    if ((item & ITEM_OP) == ITEM_WAIT)
        text_add(out, " for event %u", engine->records[item >> ITEM_OP_BITS].event);
    else
        text_add(out, " for its communicator");
    while (next < queue->n && !item_is_task(queue->items[next]))
        next++;
    if (next < queue->n) {
        const uint32_t task = engine->spans[queue->items[next] >> ITEM_OP_BITS].task;
        text_add(out, " before '%s'", program_task_name(engine->program, task, name));
    }
}

enum status engine_deadlock(const struct engine *engine, const char *host, struct err *err)
{
    struct text text;

    text_init(&text);
    text_add(&text, "deadlock: nothing ends the wait of %s", host);
    for (uint32_t s = 0; s < STREAM_N; s++) {
        if (engine->queues[s].next < engine->queues[s].n)
            describe_stop(engine, (enum stream)s, &text);
    }
    const enum status status = err_set(err, STATUS_RUN, "%s", text.at);
    text_release(&text);
    return status;
}

enum status engine_run_all(struct engine *engine, struct err *err)
{
    engine_run_streams(engine);
    for (uint32_t s = 0; s < STREAM_N; s++) {
        if (engine->queues[s].next < engine->queues[s].n)
            return engine_deadlock(engine, "the host for all streams", err);
    }
    return STATUS_OK;
}
