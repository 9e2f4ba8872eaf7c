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

/* How many of so many steps are measured, the last ones. */
static uint32_t measured_of(uint32_t steps)
{
    return steps == SIMULATED_STEPS ? 1 : SETTLED_MEASURED;
}

static bool retries_late(const struct placement *placement)
{
    const struct place_step *step = placement ? placement_step(placement, SIMULATED_STEPS) : NULL;
    return step && step->stats.retries > 0;
}

uint32_t step_time_retries(const struct step_time *time, const struct placement *placement)
{
    const uint32_t measured = measured_of(time->steps);
    uint32_t sum = 0;

    for (uint32_t i = 0; i < measured; i++)
        sum += placement_step(placement, time->steps - i)->stats.retries;
    return (sum + measured - 1) / measured;
}

static struct step_time measure(const struct program *program, const struct prices *prices,
                                const struct engine *engine, uint32_t steps, struct arena *arena)
{
    const uint32_t measured = measured_of(steps);
    const struct interval window = {
        .begin_ns = engine_step_end_ns(engine, steps - measured),
        .end_ns = engine_step_end_ns(engine, steps),
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
        .steps = steps,
    };
}

/* Execute on a clock, by itself or with memory beside it, and measure. */
static enum status run(const struct program *program, const struct prices *prices,
                       const struct placement *placement, const struct backend_ops *ops,
                       void *backend, struct engine *clock, uint32_t steps, struct arena *arena,
                       struct step_time *out, struct err *err)
{
    const enum status status =
        exec_program(program, EXEC_UNIT, placement, steps, ops, backend, err);

    if (status == STATUS_OK)
        *out = measure(program, prices, clock, steps, arena);
    return status;
}

enum status simulate(const struct program *program, const struct prices *prices,
                     const struct placement *placement, struct arena *arena, struct step_time *out,
                     struct engine **engine, struct err *err)
{
    const uint32_t steps = retries_late(placement) ? SETTLED_STEPS : SIMULATED_STEPS;
    struct engine *clock = engine_new(prices, arena);
    const enum status status =
        run(program, prices, placement, &engine_backend, clock, clock, steps, arena, out, err);

    if (status == STATUS_OK && engine)
        *engine = clock;
    return status;
}

/* So many steps, with memory of its own beside the clock. */
static enum status run_timed(const struct program *program, const struct prices *prices,
                             const struct alloc_config *config, uint32_t steps, struct arena *arena,
                             struct step_time *out, struct placement *placement,
                             struct memory_curve *curve, struct engine **engine, struct err *err)
{
    struct engine *clock = engine_new(prices, arena);
    struct timed_memory *memory = timed_memory_new(clock, config, steps, arena, placement, curve);
    const enum status status =
        run(program, prices, NULL, &timed_memory_backend, memory, clock, steps, arena, out, err);

    if (status == STATUS_OK && engine)
        *engine = clock;
    return status;
}

enum status simulate_timed(const struct program *program, const struct prices *prices,
                           const struct alloc_config *config, struct arena *arena,
                           struct step_time *out, struct placement *placement,
                           struct memory_curve *curve, struct engine **engine, struct err *err)
{
    const enum status status = run_timed(program, prices, config, SIMULATED_STEPS, arena, out,
                                         placement, curve, engine, err);

    if (status != STATUS_OK || !retries_late(placement))
        return status;
    return run_timed(program, prices, config, SETTLED_STEPS, arena, out, placement, curve, engine,
                     err);
}
