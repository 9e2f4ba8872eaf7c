/*
 * The executing backend; see execute.h.
 */
#include "gpu/execute.h"

#include <stdlib.h>
#include <time.h>

#include "gpu/bell.h"
#include "gpu/pace.h"
#include "gpu/poison.h"
#include "gpu/step_graph.h"

enum { FIRST_LOSS_SCALE = 65536 };

struct executor {
    struct execute_setup setup;
    struct bind *bind;
    struct arena arena;
    struct rank_log *log;
    struct step_state *state; /* the device's */
    struct work step_end;
    struct poison poison;
    struct pace pace;
    struct step_graph graph;
    bool entered;            /* a call of this step has come */
    uint32_t step, n_launch; /* launches of this step so far */
    uint64_t reserved_bytes; /* by segment operations so far */
    int64_t cpu_begin_ns;    /* CPU time of the host's thread before the first step that counts */
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct executor *executor_new(const struct execute_setup *setup)
{
    struct executor *executor = calloc(1, sizeof *executor);

    if (!executor)
        err_out_of_memory(sizeof *executor);
    executor->setup = *setup;
    executor->log = &setup->log->rank[setup->rank];
    arena_init(&executor->arena);
    poison_init(&executor->poison, setup->program, setup->device, setup->device_self,
                &executor->arena);
    executor->pace = (struct pace){.task_ns = setup->pace_ns};
    executor->graph = (struct step_graph){.placement = setup->graph ? setup->placement : NULL,
                                          .device = setup->device,
                                          .device_self = setup->device_self};
    return executor;
}

void executor_free(struct executor *executor)
{
    if (!executor)
        return;
    bind_free(executor->bind);
    arena_release(&executor->arena);
    free(executor);
}

char *executor_member(struct executor *executor, uint32_t buffer, uint32_t member)
{
    return bind_address(executor->bind, executor->step,
                        executor->setup.program->buffers[buffer].expanded + member);
}

enum status executor_scaler(const struct executor *executor, struct scaler_state *out,
                            struct err *err)
{
    const struct execute_setup *setup = &executor->setup;
    struct step_state state;
    const enum status status =
        setup->device->read(setup->device_self, &state, executor->state, sizeof state, err);

    if (status == STATUS_OK)
        *out = state.scales ? (struct scaler_state){.loss_scale = state.loss_scale,
                                                    .good_steps = state.good_steps}
                            : (struct scaler_state){0};
    return status;
}

enum status executor_read(const struct executor *executor, void *to, const void *from,
                          uint64_t bytes, struct err *err)
{
    const struct execute_setup *setup = &executor->setup;
    return setup->device->read(setup->device_self, to, from, bytes, err);
}

/* ---- what is checked beside the program ---------------------------------------------------- */

static void check_memory(struct executor *executor)
{
    const struct execute_setup *setup = &executor->setup;
    const uint64_t mapped_bytes = setup->device->mapped_bytes(setup->device_self);
    struct rank_log *log = executor->log;
    const uint32_t at = log->n_check < MEMORY_CHECKS ? log->n_check++ : MEMORY_CHECKS - 1;

    log->checks[at] = (struct memory_check){.step = executor->step,
                                            .reserved_bytes = executor->reserved_bytes +
                                                              (uint64_t)setup->alloc_bias_bytes,
                                            .mapped_bytes = mapped_bytes};
}

/* ---- backend ------------------------------------------------------------------------------- */

static struct step_state first_state(const struct execute_setup *setup)
{
    const struct plan_options *options = &setup->program->plan->options;
    const struct scaler_state *saved = &setup->values->scaler;
    const float first = saved->loss_scale > 0 ? saved->loss_scale : FIRST_LOSS_SCALE;
    const float loss_scale = options->scaler ? first : 1;
    const float loss_factor = setup->sums_microbatches ? 1 : 1 / (float)options->accum;

    return (struct step_state){.loss_scale = loss_scale,
                               .grad_scale = loss_scale * loss_factor,
                               .loss_factor = loss_factor,
                               .microbatches = (uint32_t)options->accum,
                               .good_steps = saved->good_steps,
                               .scales = options->scaler};
}

static void bind(struct executor *executor)
{
    const struct execute_setup *setup = &executor->setup;

    executor->step_end = (struct work){
        .kind = WORK_STEP_END, .state = executor->state, .is.results = executor->log->results};
    executor->bind = bind_new(&(struct bind_setup){.program = setup->program,
                                                   .placement = setup->placement,
                                                   .rank = setup->rank,
                                                   .device = setup->device,
                                                   .device_self = setup->device_self,
                                                   .values = setup->values,
                                                   .optimizer = &executor->setup.optimizer,
                                                   .max_norm = setup->max_norm,
                                                   .emulated_ns = setup->emulated_ns,
                                                   .state = executor->state});
}

static enum status executor_open(void *self, const struct program *program,
                                 const struct placement *placement, struct err *err)
{
    struct executor *executor = self;
    const struct execute_setup *setup = &executor->setup;
    const struct step_state first = first_state(setup);
    struct device_setup device = setup->device_setup;

    (void)placement;
    device.n_event = program->n_event;
    device.last_task = executor->log->last_task;
    bind_groups(setup->program, setup->rank, &executor->arena, device.groups);
    for (int c = 0; setup->emulated_ns && c < COMM_N; c++)
        device.groups[c].n = device.groups[c].n > 1 ? 1 : device.groups[c].n;
    enum status status = setup->device->open(setup->device_self, &device, err);
    if (status == STATUS_OK)
        status = setup->device->state(setup->device_self, &first, &executor->state, err);
    if (status == STATUS_OK)
        bind(executor);
    return status;
}

/* What was bound may point into what goes now. */
static enum status executor_segment(void *self, const struct segment_op *op, struct err *err)
{
    struct executor *executor = self;
    const struct execute_setup *setup = &executor->setup;
    const bool maps = op->expandable ? op->act == SEGMENT_MAP : op->act == SEGMENT_RESERVE;
    const bool unmaps = op->expandable ? op->act == SEGMENT_UNMAP : op->act == SEGMENT_RELEASE;

    if (op->act == SEGMENT_UNMAP || op->act == SEGMENT_RELEASE) {
        const enum status status = setup->device->drain(setup->device_self, err);
        if (status != STATUS_OK)
            return status;
        setup->device->forget(setup->device_self);
        bind_forget(executor->bind);
        poison_forget(&executor->poison);
    }
    executor->reserved_bytes += maps ? op->bytes : 0;
    executor->reserved_bytes -= unmaps ? op->bytes : 0;
    return setup->device->segment(setup->device_self, op, err);
}

/* Whether nothing is bound for the first time in the step, so that its host's time counts. */
static bool counts(const struct executor *executor)
{
    return executor->step > executor->setup.placement->n_step;
}

/* Whether tasks have time stamps. What is replayed has none. */
static bool is_stamped(const struct executor *executor)
{
    const uint32_t from = executor->setup.bare_from;
    const bool bare = from > 0 && executor->step > from && (executor->step - from) % 2 == 0;

    return executor->graph.mode == STEP_CALLS && !bare;
}

static void begin_step(struct executor *executor, uint32_t step)
{
    const bool counted = counts(executor);

    executor->step = step;
    if (counts(executor) && !counted)
        executor->cpu_begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    executor->n_launch = 0;
    executor->entered = false;
    executor->log->step = step;
}

/* Ahead of every call of a step: whether there is nothing to do, because the step is replayed. */
static enum status enter(struct executor *executor, bool *passes, struct err *err)
{
    enum status status = STATUS_OK;

    if (!executor->entered)
        status = step_graph_begin(&executor->graph, executor->step, err);
    executor->entered = true;
    *passes = executor->graph.mode == STEP_REPLAY;
    return status;
}

static enum status submit(struct executor *executor, enum stream stream, const struct work *work,
                          const struct launch *launch, unsigned parts, struct err *err)
{
    struct task_time *time =
        rank_log_time(executor->setup.log, executor->setup.rank, launch->step, launch->task);
    const struct submission submission = {.work = work,
                                          .step = launch->step,
                                          .task = launch->task,
                                          .parts = (uint8_t)parts,
                                          .stamp = is_stamped(executor) ? &time->stamp : NULL};
    return executor->setup.device->submit(executor->setup.device_self, stream, &submission, err);
}

static enum status executor_touch(void *self, uint32_t expanded_id, uint64_t bytes,
                                  enum stream pool, bool freed, struct err *err)
{
    struct executor *executor = self;
    bool passes;
    const enum status status = enter(executor, &passes, err);

    if (status != STATUS_OK || passes || !executor->setup.device_setup.debug.poison || bytes == 0)
        return status;
    if (freed)
        poison_note_death(&executor->poison, pool,
                          bind_address(executor->bind, executor->step, expanded_id), bytes);
    else
        poison_note_birth(&executor->poison, expanded_id);
    return STATUS_OK;
}

static void count_instr(struct executor *executor, int64_t begin_ns, int64_t end_ns)
{
    if (!counts(executor))
        return;
    executor->log->instrs++;
    executor->log->issue_ns += end_ns - begin_ns;
}

/* ---- launches ------------------------------------------------------------------------------ */

/* Which ends of its task's time a launch is. */
static unsigned parts_of(const struct program *program, const struct launch *launch)
{
    const struct task *task = &program->tasks[launch->task];

    if (launch->body_op == NO_OP)
        return STAMP_START | STAMP_END;
    const struct body *body = &program->bodies->bodies[task->body];
    return (launch->body_op == body->op ? STAMP_START : 0u) |
           (launch->body_op == body->op + body->n_op - 1 ? STAMP_END : 0u);
}

static enum status submit_bound(struct executor *executor, const struct launch *launch,
                                const struct bound *bound, struct err *err)
{
    const struct program *program = executor->setup.program;
    const unsigned parts = parts_of(program, launch);
    const enum stream stream = (enum stream)program->tasks[launch->task].stream;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < bound->n_work && !status; i++) {
        const unsigned first = i == 0 ? STAMP_START : 0;
        const unsigned last = i + 1 == bound->n_work ? STAMP_END : 0;
        status = submit(executor, stream, &bound->works[i], launch, parts & (first | last), err);
    }
    return status;
}

/* How long that took. */
static int64_t keep_pace(struct executor *executor, const struct launch *launch)
{
    const struct program *program = executor->setup.program;

    if (launch->body_op == NO_OP)
        return pace_launch(&executor->pace, launch->task, 0, 1);
    const struct body *body = &program->bodies->bodies[program->tasks[launch->task].body];
    return pace_launch(&executor->pace, launch->task, launch->body_op - body->op, body->n_op);
}

static enum status executor_launch(void *self, const struct launch *launch, struct err *err)
{
    struct executor *executor = self;
    struct task_time *time =
        rank_log_time(executor->setup.log, executor->setup.rank, launch->step, launch->task);
    struct bound bound;
    bool passes;
    enum status status = enter(executor, &passes, err);

    if (status != STATUS_OK || passes)
        return status;
    const int64_t begin_ns = bell_now_ns();
    status = bind_launch(executor->bind, launch, executor->n_launch++, &bound, err);
    if (!status && executor->setup.device_setup.debug.poison)
        status = poison_before(&executor->poison, launch, err);
    const int64_t waited_ns = keep_pace(executor, launch);
    if (!status)
        status = submit_bound(executor, launch, &bound, err);
    if (time->launch_ns == 0)
        time->launch_ns = begin_ns;
    time->launched_ns = bell_now_ns();
    count_instr(executor, begin_ns + waited_ns, time->launched_ns);
    return status;
}

static enum status executor_record(void *self, uint32_t event, enum stream stream, struct err *err)
{
    struct executor *executor = self;
    const struct execute_setup *setup = &executor->setup;
    bool passes;
    enum status status = enter(executor, &passes, err);

    if (status != STATUS_OK || passes)
        return status;
    const int64_t begin_ns = bell_now_ns();
    status = setup->device->record(setup->device_self, event, stream, err);
    count_instr(executor, begin_ns, bell_now_ns());
    return status;
}

static enum status executor_wait(void *self, uint32_t event, enum stream stream, struct err *err)
{
    struct executor *executor = self;
    const struct execute_setup *setup = &executor->setup;
    bool passes;
    enum status status = enter(executor, &passes, err);

    if (status != STATUS_OK || passes)
        return status;
    const int64_t begin_ns = bell_now_ns();
    status = setup->device->wait(setup->device_self, event, stream, err);
    count_instr(executor, begin_ns, bell_now_ns());
    return status;
}

static enum status executor_host_wait(void *self, uint32_t event, struct err *err)
{
    struct executor *executor = self;
    const struct execute_setup *setup = &executor->setup;
    bool passes;
    enum status status = enter(executor, &passes, err);

    if (status != STATUS_OK || passes)
        return status;
    status = setup->device->host_wait(setup->device_self, event, err);
    pace_waited(&executor->pace);
    return status;
}

/* The end of the step on stream C, which every step notes, whether its tasks have times or not. */
static enum status submit_step_end(struct executor *executor, uint32_t step, struct err *err)
{
    const struct execute_setup *setup = &executor->setup;
    const struct submission submission = {.work = &executor->step_end,
                                          .step = step,
                                          .task = NO_TASK,
                                          .parts = STAMP_END,
                                          .stamp = &executor->log->ends[step]};

    return setup->device->submit(setup->device_self, STREAM_C, &submission, err);
}

/* Checks on the way, after init and each of the first steps; the last one is at the end. */
static enum status executor_step_end(void *self, uint32_t step, struct err *err)
{
    struct executor *executor = self;
    enum status status = step_graph_end(&executor->graph, step, err);

    if (status == STATUS_OK && step > 0)
        status = submit_step_end(executor, step, err);
    if (executor->log->n_check < MEMORY_CHECKS - 1)
        check_memory(executor);
    begin_step(executor, step + 1);
    return status;
}

static enum status executor_finish(void *self, struct err *err)
{
    struct executor *executor = self;
    const struct execute_setup *setup = &executor->setup;
    enum status status;

    executor->step--; /* the last one, whose placement holds */
    if (counts(executor))
        executor->log->issue_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - executor->cpu_begin_ns;
    status = setup->device->drain(setup->device_self, err);
    if (status == STATUS_OK)
        check_memory(executor);
    if (status == STATUS_OK && setup->at_end)
        status = setup->at_end(setup->at_end_context, executor, err);
    return status;
}

static void executor_close(void *self)
{
    struct executor *executor = self;
    executor->setup.device->close(executor->setup.device_self);
}

const struct backend_ops execute_backend = {
    .name = "run",
    .open = executor_open,
    .segment = executor_segment,
    .launch = executor_launch,
    .record = executor_record,
    .wait = executor_wait,
    .host_wait = executor_host_wait,
    .touch = executor_touch,
    .step_end = executor_step_end,
    .finish = executor_finish,
    .close = executor_close,
};
