/*
 * The host side of the virtual clock: calls of the executor, with the host's own time.
 *
 * launch, record and wait append to the queue of a stream; what the host alone says about their
 * times is written where the result will stand. Nothing runs until the host has to know a time: at
 * HOST_WAIT, at a drain, at the end (sim/engine_run.c). Opened again, the engine starts anew in the
 * memory that it has.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/engine_inner.h"
#include "src/issue.h"
#include "src/program_print.h"

/* Rare, and out of the way of what is not. */
__attribute__((cold, noinline)) static void *grow(struct engine *engine, void *array, uint32_t *cap,
                                                  size_t element_bytes)
{
    return arena_grow(engine->arena, array, cap, *cap + 1, element_bytes);
}

#define APPEND(engine, array, n, cap, value)                            \
    do {                                                                \
        if (__builtin_expect((n) == (cap), 0))                          \
            (array) = grow((engine), (array), &(cap), sizeof *(array)); \
        (array)[(n)++] = (value);                                       \
    } while (0)

struct engine *engine_new(const struct prices *prices, struct arena *arena)
{
    struct engine *engine = arena_array(arena, struct engine, 1);
    engine->prices = prices;
    engine->arena = arena;
    return engine;
}

/* The price at a unit's all-gather stands for the launches of unshard and wait (COST section 5). */
struct host_costs host_costs_of(const struct prices *prices, const struct plan *plan)
{
    struct host_costs costs = {{0}, {0}};

    for (uint32_t kind = 0; kind < TASK_KIND_N; kind++)
        costs.kernel_ns[kind] = prices->host_launch_ns;
    if (prices->host_all_gather_ns > 0 && plan->shard_ranks > 1) {
        costs.task_ns[TASK_ALL_GATHER] = prices->host_all_gather_ns;
        costs.kernel_ns[TASK_COPY_IN] = 0;
        costs.kernel_ns[TASK_ALL_GATHER] = 0;
        costs.kernel_ns[TASK_COPY_OUT] = 0;
    }
    return costs;
}

/*
 * No time passes the sum of all that was issued, slowed: issued * full / 1000, and 1 ns of rounding
 * a task; what a collective loses on a shared wire another one does in that time. Work is counted in
 * ns * full, full being 1000 or more. Half of the range is kept for the rounding.
 */
static enum status set_range(struct engine *engine, struct err *err)
{
    const struct prices *prices = engine->prices;
    const int64_t full = 1000 + (int64_t)prices->contention_permille;
    const int64_t range_ns = INT64_MAX / 2 / full / (full / 1000 + 1);

    if (prices->host_launch_ns > range_ns / UINT16_MAX || prices->host_all_gather_ns > range_ns)
        return err_set(err, STATUS_RUN,
                       "virtual clock out of range: host costs of %lld and %lld ns",
                       (long long)prices->host_launch_ns, (long long)prices->host_all_gather_ns);
    engine->left_ns = (uint64_t)range_ns;
    return STATUS_OK;
}

static enum status out_of_range(const char *where, struct err *err)
{
    return err_set(err, STATUS_RUN, "virtual clock out of range at %s: the steps would take weeks",
                   where);
}

__attribute__((cold, noinline)) static enum status task_out_of_range(const struct engine *engine,
                                                                     uint32_t task, struct err *err)
{
    char name[PROGRAM_NAME_MAX], where[PROGRAM_NAME_MAX + 8];

    snprintf(where, sizeof where, "task '%s'", program_task_name(engine->program, task, name));
    return out_of_range(where, err);
}

/* Which collectives have to split their speed; see engine.h for why. */
static bool share_wire(const struct plan *plan, enum comm a, enum comm b)
{
    const struct comm_ranks x = comm_ranks_of(plan, a), y = comm_ranks_of(plan, b);

    if ((a == COMM_REPLICATE) == (b == COMM_REPLICATE))
        return true;
    return (x.ranks > x.per_node) == (y.ranks > y.per_node);
}

static void set_comms(struct engine *engine)
{
    const struct plan *plan = engine->program->plan;

    engine->comm_bits = 0;
    for (uint32_t c = 0; c < COMM_N; c++)
        if (comm_ranks_of(plan, (enum comm)c).ranks > 1)
            engine->comm_bits |= 1u << c;
    for (uint32_t c = 0; c < COMM_N; c++) {
        struct comm_queue *comm = &engine->comms[c];
        comm->n = comm->n_started = comm->n_passed = comm->waiters = comm->wire = 0;
        comm->free_ns = 0;
        for (uint32_t other = 0; other < COMM_N; other++)
            if (share_wire(plan, (enum comm)c, (enum comm)other))
                comm->wire |= engine->comm_bits & 1u << other;
    }
}

static enum status engine_open(void *self, const struct program *program,
                               const struct placement *placement, struct err *err)
{
    struct engine *engine = self;

    (void)placement;
    engine->program = program;
    engine->host_ns = engine->wire_ns = 0;
    engine->horizon_ns = engine->issue_ns = INT64_MAX;
    engine->n_span = engine->n_record = engine->n_step = engine->n_stop = 0;
    engine->open = engine->awake = 0;
    engine->computing = engine->giving_back = false;
    for (uint32_t s = 0; s < STREAM_N; s++) {
        struct queue *queue = &engine->queues[s];
        queue->n = queue->next = 0;
        queue->free_ns = 0;
    }
    engine->host = host_costs_of(engine->prices, program->plan);
    set_comms(engine);
    engine->latest = arena_grow(engine->arena, engine->latest, &engine->cap_latest,
                                program->n_event, sizeof *engine->latest);
    if (program->n_event > 0)
        memset(engine->latest, 0xff, program->n_event * sizeof *engine->latest);
    return set_range(engine, err);
}

static inline void queue_add(struct engine *engine, enum stream stream, uint32_t op, uint32_t id)
{
    struct queue *queue = &engine->queues[stream];

    assert(id <= UINT32_MAX >> ITEM_OP_BITS);
    APPEND(engine, queue->items, queue->n, queue->cap, id << ITEM_OP_BITS | op);
}

/*
 * Until the task runs its span holds what the host alone says: no start before the first launch was
 * issued, no end before the last kernel, issued last, has run.
 */
__attribute__((always_inline)) static inline enum status
engine_launch(void *self, const struct launch *launch, struct err *err)
{
    struct engine *engine = self;
    const struct task *task = &engine->program->tasks[launch->task];
    const int64_t task_ns = engine->prices->task_ns[launch->task];
    const int64_t last_ns = engine->prices->last_ns[launch->task];
    const int64_t unit_ns = engine->host.task_ns[task->kind];
    const int64_t kernel_ns = engine->host.kernel_ns[task->kind];
    const int64_t issue_ns = unit_ns + kernel_ns * task->kernels;
    const uint64_t all_ns = (uint64_t)task_ns + (uint64_t)last_ns + (uint64_t)issue_ns;

    assert(launch->body_op == NO_OP);
    if (all_ns > engine->left_ns)
        return task_out_of_range(engine, launch->task, err);
    engine->left_ns -= all_ns;
    engine->giving_back = false;

    const struct span span = {
        .task = launch->task,
        .step = launch->step,
        .launch_ns = engine->host_ns,
        .launched_ns = engine->host_ns + issue_ns,
        .start_ns = engine->host_ns + unit_ns + (task->kernels > 0 ? kernel_ns : 0),
        .end_ns = engine->host_ns + issue_ns + last_ns,
    };
    engine->host_ns += issue_ns;
    if (task->comm != COMM_NONE) {
        struct comm_queue *comm = &engine->comms[task->comm];
        assert(engine->comm_bits >> task->comm & 1);
        APPEND(engine, comm->spans, comm->n, comm->cap, engine->n_span);
    }
    queue_add(engine, task->stream, task->comm != COMM_NONE ? ITEM_COLLECTIVE : ITEM_LAUNCH,
              engine->n_span);
    APPEND(engine, engine->spans, engine->n_span, engine->cap_span, span);
    return STATUS_OK;
}

static inline uint32_t new_record(struct engine *engine, uint32_t event)
{
    const struct record record = {.event = event};

    engine->latest[event] = engine->n_record;
    APPEND(engine, engine->records, engine->n_record, engine->cap_record, record);
    return engine->latest[event];
}

int64_t engine_host_ns(const struct engine *engine, enum task_kind kind, uint32_t kernels)
{
    if (kernels == 0)
        return engine->host_ns;
    return engine->host_ns + engine->host.task_ns[kind] + engine->host.kernel_ns[kind] * kernels;
}

uint32_t engine_point(struct engine *engine, enum stream stream)
{
    const struct record record = {.event = NO_EVENT_ID, .issued = true, .ns = engine->host_ns};

    queue_add(engine, stream, ITEM_RECORD, engine->n_record);
    APPEND(engine, engine->records, engine->n_record, engine->cap_record, record);
    return engine->n_record - 1;
}

bool engine_reached(struct engine *engine, uint32_t point, int64_t ns)
{
    const struct record *record = &engine->records[point];

    if (!record->reached)
        engine_run_until(engine, ns);
    return record->reached && record->ns <= ns;
}

static inline enum status engine_record(void *self, uint32_t event, enum stream stream,
                                        struct err *err)
{
    struct engine *engine = self;
    uint32_t id = engine->latest[event];

    (void)err;
    if (id == NO_RECORD || engine->records[id].issued)
        id = new_record(engine, event);
    engine->records[id].issued = true;
    engine->records[id].ns = engine->host_ns;
    queue_add(engine, stream, ITEM_RECORD, id);
    return STATUS_OK;
}

/*
 * What a wait issued now waits for: the last RECORD before it, as on a device. Where there is none
 * a device would not wait; here it waits for the RECORD to come, so that a program that verify
 * would refuse gets slow or blocked but never fast.
 */
static uint32_t record_to_wait_for(struct engine *engine, uint32_t event)
{
    const uint32_t id = engine->latest[event];
    return id != NO_RECORD ? id : new_record(engine, event);
}

static inline enum status engine_wait(void *self, uint32_t event, enum stream stream,
                                      struct err *err)
{
    struct engine *engine = self;

    (void)err;
    queue_add(engine, stream, ITEM_WAIT, record_to_wait_for(engine, event));
    return STATUS_OK;
}

/* The host goes on busy_ns after ns, or after it came, where that is later. */
static void stop_host(struct engine *engine, int64_t ns, int64_t busy_ns, uint32_t record)
{
    const int64_t waited_ns = later(ns, engine->host_ns);
    const struct stop stop = {.waited_ns = waited_ns,
                              .ns = waited_ns + busy_ns,
                              .record = record,
                              .was_late = ns <= engine->host_ns};

    if (stop.ns == engine->host_ns)
        return;
    engine->host_ns = stop.ns;
    APPEND(engine, engine->stops, engine->n_stop, engine->cap_stop, stop);
}

static enum status engine_host_wait(void *self, uint32_t event, struct err *err)
{
    struct engine *engine = self;
    const uint32_t id = record_to_wait_for(engine, event);
    struct record *record = &engine->records[id];

    if (!record->reached) {
        record->waiters |= BIT_HOST;
        engine_run_streams(engine);
    }
    if (!record->reached) {
        char host[32];
        snprintf(host, sizeof host, "the host for event %u", event);
        return engine_deadlock(engine, host, err);
    }
    stop_host(engine, record->ns, 0, id);
    return STATUS_OK;
}

/*
 * The driver takes memory back only from an idle device: the host waits for all streams. What is
 * given back in one go is one retry of the allocator, which has its price.
 */
static enum status engine_segment(void *self, const struct segment_op *op, struct err *err)
{
    struct engine *engine = self;
    const bool gives_back = op->act == SEGMENT_RELEASE || op->act == SEGMENT_UNMAP;
    const bool is_retry = gives_back && !engine->giving_back;
    const int64_t retry_ns = is_retry ? engine->prices->host_retry_ns : 0;
    enum status status;

    engine->giving_back = gives_back;
    if (!gives_back)
        return STATUS_OK;
    if ((uint64_t)retry_ns > engine->left_ns)
        return out_of_range("a retry of the allocator", err);
    engine->left_ns -= (uint64_t)retry_ns;
    if ((status = engine_run_all(engine, err)))
        return status;
    int64_t idle_ns = 0;
    for (uint32_t s = 0; s < STREAM_N; s++)
        idle_ns = later(idle_ns, engine->queues[s].free_ns);
    stop_host(engine, idle_ns, retry_ns, NO_RECORD);
    return STATUS_OK;
}

static enum status engine_step_end(void *self, uint32_t step, struct err *err)
{
    struct engine *engine = self;

    (void)err;
    (void)step;
    assert(step == engine->n_step);
    APPEND(engine, engine->step_spans, engine->n_step, engine->cap_step, engine->n_span);
    return STATUS_OK;
}

static enum status engine_finish(void *self, struct err *err)
{
    return engine_run_all(self, err);
}

/* Spans stay for who asks: they go with the arena, or with the next open. */
static void engine_close(void *self)
{
    (void)self;
}

const struct backend_ops engine_backend = {
    .name = "sim",
    .open = engine_open,
    .segment = engine_segment,
    .launch = engine_launch,
    .record = engine_record,
    .wait = engine_wait,
    .host_wait = engine_host_wait,
    .step_end = engine_step_end,
    .finish = engine_finish,
    .close = engine_close,
};

enum status engine_step(struct engine *engine, const struct program *program,
                        enum section_id section, struct err *err)
{
    enum status status = engine_open(engine, program, NULL, err);

    if (status == STATUS_OK)
        status = issue_range(&engine_backend, engine, program, program->sections[section], 0, err);
    return status == STATUS_OK ? engine_run_all(engine, err) : status;
}

const struct span *engine_spans(const struct engine *engine, uint32_t *n)
{
    *n = engine->n_span;
    return engine->spans;
}

int64_t engine_step_end_ns(const struct engine *engine, uint32_t step)
{
    assert(step < engine->n_step);
    const uint32_t begin = step > 0 ? engine->step_spans[step - 1] : 0;
    int64_t end_ns = 0;

    for (uint32_t i = begin; i < engine->step_spans[step]; i++)
        end_ns = later(end_ns, engine->spans[i].end_ns);
    return end_ns;
}
