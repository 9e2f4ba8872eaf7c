/*
 * The allocator beside the virtual clock; see timed_memory.h.
 *
 * Invariant: for each stream the allocator's events that are not done are the queue's, oldest first.
 * Requests are where the allocator looks at its events, so nobody asks the engine at another time.
 */
#include "sim/timed_memory.h"

#include "src/place_pass.h"

/* Points of one stream, in order; those before first are reached. */
struct event_queue {
    uint32_t *points;
    uint32_t first, n, cap;
};

struct timed_memory {
    struct engine *engine;
    const struct alloc_config *config;
    struct arena *arena;
    struct placement *out;
    struct memory_curve *curve;
    uint32_t curve_step, step;
    uint32_t retries; /* of the allocator, as far as they are known here */
    struct place_pass pass;
    struct pass_clock clock;
    enum task_kind kind; /* of the task at hand */
    struct event_queue events[STREAM_N];
};

struct timed_memory *timed_memory_new(struct engine *engine, const struct alloc_config *config,
                                      uint32_t curve_step, struct arena *arena,
                                      struct placement *out, struct memory_curve *curve)
{
    struct timed_memory *memory = arena_array(arena, struct timed_memory, 1);

    memory->engine = engine;
    memory->config = config;
    memory->arena = arena;
    memory->out = out;
    memory->curve = curve;
    memory->curve_step = curve_step;
    return memory;
}

/* When it is short of memory the allocator waits for all of its events. */
static void forget_waited(struct timed_memory *memory)
{
    if (memory->retries == memory->pass.stats->retries)
        return;
    memory->retries = memory->pass.stats->retries;
    for (uint32_t s = 0; s < STREAM_N; s++)
        memory->events[s].first = memory->events[s].n;
}

/* As the allocator polls before each request: of every stream as many events as are reached. */
static void poll_events(void *self, uint32_t kernels)
{
    struct timed_memory *memory = self;
    const int64_t ns = engine_host_ns(memory->engine, memory->kind, kernels);

    forget_waited(memory);
    for (uint32_t s = 0; s < STREAM_N; s++) {
        struct event_queue *queue = &memory->events[s];
        while (queue->first < queue->n &&
               engine_reached(memory->engine, queue->points[queue->first], ns)) {
            alloc_event_done(memory->pass.alloc, (uint8_t)s);
            queue->first++;
        }
    }
}

static void add_events(void *self, uint32_t streams)
{
    struct timed_memory *memory = self;

    forget_waited(memory);
    for (; streams != 0; streams &= streams - 1) {
        const enum stream stream = (enum stream)__builtin_ctz(streams);
        struct event_queue *queue = &memory->events[stream];
        queue->points = arena_grow(memory->arena, queue->points, &queue->cap, queue->n + 1,
                                   sizeof *queue->points);
        queue->points[queue->n++] = engine_point(memory->engine, stream);
    }
}

static void begin_step(struct timed_memory *memory, uint32_t step)
{
    const enum section_id section = step < SECTION_STEADY ? (enum section_id)step : SECTION_STEADY;
    struct placement *out = memory->out;

    memory->step = step;
    memory->pass.curve = step == memory->curve_step ? memory->curve : NULL;
    if (memory->pass.curve)
        memory_curve_begin(memory->curve, memory->arena, memory->pass.stats);
    place_pass_begin(&memory->pass, section, step == 0 ? &out->init : &out->steps[step - 1]);
}

static enum status memory_open(void *self, const struct program *program,
                               const struct placement *placement, struct err *err)
{
    struct timed_memory *memory = self;

    memory->clock =
        (struct pass_clock){.self = memory, .before_alloc = poll_events, .deferred = add_events};
    place_pass_init(&memory->pass, program, memory->config, memory->arena, memory->out);
    memory->pass.clock = &memory->clock;
    begin_step(memory, 0);
    return engine_backend.open(memory->engine, program, placement, err);
}

/* Hand what the driver was asked for to the engine, or say that it had too little. */
static enum status settle(struct timed_memory *memory, bool placed, uint32_t n_op, struct err *err)
{
    const struct place_step *step = memory->pass.step;
    enum status status = STATUS_OK;

    for (uint32_t i = n_op; i < step->n_op && status == STATUS_OK; i++)
        status = engine_backend.segment(memory->engine, &step->ops[i].op, err);
    if (placed)
        return status;
    memory->out->oom_step = memory->step;
    return err_set(err, STATUS_RUN, "out of memory in step %u: no room for another %llu bytes",
                   memory->out->oom_step, (unsigned long long)memory->out->oom_bytes);
}

static enum status memory_alloc(void *self, uint32_t buffer, struct err *err)
{
    struct timed_memory *memory = self;
    const uint32_t n_op = memory->pass.step->n_op;

    return settle(memory, place_pass_alloc(&memory->pass, buffer), n_op, err);
}

static enum status memory_free(void *self, uint32_t buffer, struct err *err)
{
    struct timed_memory *memory = self;

    (void)err;
    place_pass_free(&memory->pass, buffer);
    return STATUS_OK;
}

static enum status memory_record_stream(void *self, uint32_t buffer, enum stream user,
                                        struct err *err)
{
    struct timed_memory *memory = self;

    (void)err;
    place_pass_record_stream(&memory->pass, buffer, user);
    return STATUS_OK;
}

static enum status memory_launch(void *self, const struct launch *launch, struct err *err)
{
    struct timed_memory *memory = self;
    const uint32_t n_op = memory->pass.step->n_op;

    memory->kind = (enum task_kind)memory->pass.program->tasks[launch->task].kind;
    const enum status status =
        settle(memory, place_pass_launch(&memory->pass, launch->task), n_op, err);
    return status == STATUS_OK ? engine_backend.launch(memory->engine, launch, err) : status;
}

static enum status memory_record(void *self, uint32_t event, enum stream stream, struct err *err)
{
    return engine_backend.record(((struct timed_memory *)self)->engine, event, stream, err);
}

static enum status memory_wait(void *self, uint32_t event, enum stream stream, struct err *err)
{
    return engine_backend.wait(((struct timed_memory *)self)->engine, event, stream, err);
}

static enum status memory_host_wait(void *self, uint32_t event, struct err *err)
{
    return engine_backend.host_wait(((struct timed_memory *)self)->engine, event, err);
}

static enum status memory_mark(void *self, enum phase phase, bool end, struct err *err)
{
    struct timed_memory *memory = self;

    (void)err;
    place_pass_mark(&memory->pass, phase, end);
    return STATUS_OK;
}

static enum status memory_step_end(void *self, uint32_t step, struct err *err)
{
    struct timed_memory *memory = self;

    place_pass_end(&memory->pass);
    memory->out->n_step = memory->out->n_walked = step;
    if (step < PLACE_MAX_STEPS)
        begin_step(memory, step + 1);
    return engine_backend.step_end(memory->engine, step, err);
}

static enum status memory_finish(void *self, struct err *err)
{
    return engine_backend.finish(((struct timed_memory *)self)->engine, err);
}

static void memory_close(void *self)
{
    engine_backend.close(((struct timed_memory *)self)->engine);
}

const struct backend_ops timed_memory_backend = {
    .name = "sim",
    .open = memory_open,
    .buf_alloc = memory_alloc,
    .buf_free = memory_free,
    .buf_record_stream = memory_record_stream,
    .launch = memory_launch,
    .record = memory_record,
    .wait = memory_wait,
    .host_wait = memory_host_wait,
    .mark = memory_mark,
    .step_end = memory_step_end,
    .finish = memory_finish,
    .close = memory_close,
};
