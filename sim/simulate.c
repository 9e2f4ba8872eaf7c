/*
 * The numbers of one step; see simulate.h for their definitions.
 *
 * Everything is counted inside the window of the measured step. The host runs ahead, so that a step
 * may begin before the one before it ends; that part of it is cut off. The span of a body counts as
 * busy throughout, the gaps that a late host leaves between its kernels included.
 */
#include "sim/simulate.h"

#include "sim/interval_set.h"
#include "src/exec.h"

static void add_within(struct interval_set *set, struct arena *arena, const struct span *span,
                       const struct interval *window)
{
    const int64_t begin_ns = span->start_ns, end_ns = span->end_ns;
    interval_set_add(set, arena, begin_ns > window->begin_ns ? begin_ns : window->begin_ns,
                     end_ns < window->end_ns ? end_ns : window->end_ns);
}

struct run_length {
    uint32_t steps, measured;
};
static const struct run_length reported = {SIMULATED_STEPS, 1};
static const struct run_length settled = {SETTLED_STEPS, SETTLED_MEASURED};

static bool retries_from(const struct placement *placement, uint32_t step)
{
    bool retries = false;

    for (; step <= placement->n_step; step++)
        retries |= placement_step(placement, step)->stats.retries > 0;
    return retries;
}

/* A placement that repeats does so from the end of the steps that it has. */
static struct run_length length_of(const struct placement *placement)
{
    if (!placement || placement->out_of_memory || !retries_from(placement, SIMULATED_STEPS))
        return reported;
    if (placement->period == 0)
        return settled;
    return (struct run_length){placement->n_step, placement->period};
}

struct retries step_time_retries(const struct step_time *time, const struct placement *placement)
{
    struct retries retries = {.steps = time->measured};

    for (uint32_t i = 0; i < time->measured; i++)
        retries.n += placement_step(placement, time->steps - i)->stats.retries;
    return retries;
}

static struct step_time measure(const struct program *program, const struct prices *prices,
                                const struct engine *engine, struct run_length length,
                                struct arena *arena)
{
    const uint32_t measured = length.measured;
    const struct interval window = {
        .begin_ns = engine_step_end_ns(engine, length.steps - measured),
        .end_ns = engine_step_end_ns(engine, length.steps),
    };
    struct interval_set comms[COMM_N] = {{0}}, compute = {0}; /* each in order of begin */
    uint32_t n;
    const struct span *spans = engine_spans(engine, &n);

    for (uint32_t i = 0; i < n; i++) {
        const struct task *task = &program->tasks[spans[i].task];
        if (task->comm != COMM_NONE)
            add_within(&comms[task->comm], arena, &spans[i], &window);
        if (task->stream == STREAM_C)
            add_within(&compute, arena, &spans[i], &window);
    }

    struct interval_set *comm = &comms[0];
    for (uint32_t c = 1; c < COMM_N; c++)
        interval_set_unite(comm, arena, &comms[c]);
    const int64_t comm_ns = interval_set_ns(comm);
    const int64_t overlap_ns = interval_set_common_ns(comm, &compute);
    const int64_t c = prices->contention_permille, full = 1000 + c;
    return (struct step_time){
        .step_ns = (window.end_ns - window.begin_ns) / measured,
        .exposed_comm_ns = (comm_ns - overlap_ns) / measured,
        .comm_ns = comm_ns / measured,
        .contention_ns = (overlap_ns * c + full / 2) / full / measured,
        .compute_ns = interval_set_ns(&compute) / measured,
        .steps = length.steps,
        .measured = measured,
    };
}

/* Execute on a clock, by itself or with memory beside it, and measure. */
static enum status run(const struct program *program, const struct prices *prices,
                       const struct placement *placement, const struct backend_ops *ops,
                       void *backend, struct engine *clock, struct run_length length,
                       struct arena *arena, struct step_time *out, struct err *err)
{
    const enum status status =
        exec_program(program, EXEC_UNIT, placement, length.steps, ops, backend, err);

    if (status == STATUS_OK)
        *out = measure(program, prices, clock, length, arena);
    return status;
}

enum status simulate(const struct program *program, const struct prices *prices,
                     const struct placement *placement, struct arena *arena, struct step_time *out,
                     struct engine **engine, struct err *err)
{
    struct engine *clock = engine_new(prices, arena);
    const enum status status = run(program, prices, placement, &engine_backend, clock, clock,
                                   length_of(placement), arena, out, err);

    if (status == STATUS_OK && engine)
        *engine = clock;
    return status;
}

enum status simulate_timed(const struct program *program, const struct prices *prices,
                           const struct alloc_config *config, struct arena *arena,
                           struct step_time *out, struct placement *placement,
                           struct memory_curve *curve, struct engine **engine, struct err *err)
{
    struct engine *clock = engine_new(prices, arena);
    struct run_length length = reported;
    enum status status;

    do {
        struct timed_memory *memory =
            timed_memory_new(clock, config, length.steps, arena, placement, curve);
        status = run(program, prices, NULL, &timed_memory_backend, memory, clock, length, arena,
                     out, err);
        if (length.steps == settled.steps)
            break;
        length = settled;
    } while (status == STATUS_OK && retries_from(placement, SIMULATED_STEPS));
    if (status == STATUS_OK && engine)
        *engine = clock;
    return status;
}
