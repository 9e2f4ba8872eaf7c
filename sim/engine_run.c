/*
 * The device side of the virtual clock: streams run as far as what is known lets them.
 *
 * A stream that cannot go on leaves its bit where it will be woken from, so that no list is
 * searched and each item of a queue is looked at about once.
 *
 * Why stream C goes last, and why that is exact. The end of a compute task depends on each
 * collective that runs before that end; no other time depends on a slowdown. A stream stops where
 * its queue is empty, at an event that is not reached, or at a collective that is not its
 * communicator's next; the host stops in HOST_WAIT, in a drain or at the end. Let all of them have
 * stopped but C, whose next task is T. Follow from any one of them what it waits for: an empty
 * queue waits for the host, the host for an event or for all streams, an event for its stream or,
 * if not recorded yet, for the host, a collective for the stream of the one before it. Either the
 * way ends in a circle, and none of it ever starts, or it leads to an item behind T on C. So what
 * has not started yet starts at the end of T or later: all collectives that can slow T down have
 * started, and their ends are known, since nothing slows them.
 */
#include "sim/engine_inner.h"
#include "src/program_print.h"

/*
 * When work of task_ns that starts at start_ns on C is done. Work is counted in units of which C
 * does full a ns alone and 1000 a ns beside a collective: 1 to 1/(1+c), without a fraction.
 */
static inline int64_t slowed_end(const struct engine *engine, uint32_t *passed, int64_t start_ns,
                                 int64_t task_ns)
{
    const int64_t full = 1000 + (int64_t)engine->prices->contention_permille;
    int64_t now = start_ns, work = task_ns * full;
    uint32_t i = *passed;

    while (i < engine->n_started && engine->spans[engine->collectives[i]].end_ns <= start_ns)
        i++;
    *passed = i;
    for (; i < engine->n_started; i++) {
        const struct span *collective = &engine->spans[engine->collectives[i]];
        if (collective->start_ns > now) {
            const int64_t alone = (collective->start_ns - now) * full;
            if (work <= alone)
                break;
            work -= alone;
            now = collective->start_ns;
        }
        const int64_t beside = (collective->end_ns - now) * 1000;
        if (work <= beside)
            return now + (work + 999) / 1000;
        work -= beside;
        now = collective->end_ns;
    }
    return now + (work + full - 1) / full;
}

/* Run the task at a queue's head; false where its communicator has another one first, or where it
   ends on C behind the horizon. */
static bool run_task(struct engine *engine, struct queue *queue, uint32_t bit, uint32_t id)
{
    struct span *span = &engine->spans[id];
    const bool collective = engine->program->tasks[span->task].comm != COMM_NONE;
    const int64_t task_ns = engine->prices->task_ns[span->task];

    if (collective && engine->collectives[engine->n_started] != id) {
        engine->comm_waiters |= bit;
        return false;
    }
    span->start_ns = later(span->start_ns, queue->free_ns);
    if (collective) {
        span->start_ns = later(span->start_ns, engine->comm_free_ns);
        span->end_ns = later(span->end_ns, span->start_ns + task_ns);
        engine->comm_free_ns = span->end_ns;
        engine->n_started++;
        engine->awake |= engine->comm_waiters;
        engine->comm_waiters = 0;
    } else if (bit == BIT_C) {
        const int64_t end_ns =
            later(span->end_ns, slowed_end(engine, &engine->n_passed, span->start_ns, task_ns));
        if (end_ns > engine->horizon_ns)
            return false;
        span->end_ns = end_ns;
    } else {
        span->end_ns = later(span->end_ns, span->start_ns + task_ns);
    }
    queue->free_ns = span->end_ns;
    return true;
}

int64_t engine_worked_end(const struct engine *engine, uint32_t id, uint32_t *passed)
{
    const struct span *span = &engine->spans[id];
    const struct task *task = &engine->program->tasks[span->task];
    const int64_t task_ns = engine->prices->task_ns[span->task];

    if (task->stream == STREAM_C && task->comm == COMM_NONE)
        return slowed_end(engine, passed, span->start_ns, task_ns);
    return span->start_ns + task_ns;
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

/* As far as a stream can go; C no further than to a task that has to let others go first. */
static void run_stream(struct engine *engine, enum stream stream)
{
    struct queue *queue = &engine->queues[stream];
    const uint32_t bit = 1u << stream;

    engine->awake &= ~bit;
    for (; queue->next < queue->n; queue->next++) {
        const uint32_t op = queue->items[queue->next] & ITEM_OP;
        const uint32_t id = queue->items[queue->next] >> ITEM_OP_BITS;
        if (op == ITEM_RECORD) {
            reach_record(engine, queue, id);
        } else if (op == ITEM_WAIT) {
            if (!pass_wait(engine, queue, bit, id))
                return;
        } else if (stream == STREAM_C && engine->awake != 0) {
            engine->awake |= bit;
            return;
        } else if (!run_task(engine, queue, bit, id)) {
            return;
        }
    }
}

void engine_run_streams(struct engine *engine)
{
    engine->awake = BITS_STREAMS;
    while (engine->awake != 0) {
        const uint32_t others = engine->awake & BITS_STREAMS & ~(uint32_t)BIT_C;
        if (others != 0)
            run_stream(engine, (enum stream)__builtin_ctz(others));
        else if ((engine->awake & BIT_HOST) != 0)
            return;
        else
            run_stream(engine, STREAM_C);
    }
}

/*
 * A collective that the host has not issued yet starts at ns or later. So what ends on C until then
 * is slowed by none of them, and the rest of C has to wait.
 */
void engine_run_until(struct engine *engine, int64_t ns)
{
    engine->horizon_ns = ns;
    engine_run_streams(engine);
    engine->horizon_ns = INT64_MAX;
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
    while (next < queue->n && (queue->items[next] & ITEM_OP) != ITEM_LAUNCH)
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
