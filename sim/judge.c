/*
 * A plan's step time and peak; see judge.h.
 *
 * All of a plan is built in one arena that is reset for the next: after some plans nothing is taken
 * from the heap any more.
 */
#include "sim/judge.h"

#include "sim/simulate.h"
#include "src/schedule/fsdp2.h"
#include "src/schedule/system.h"

struct judge {
    const struct cluster *cluster;
    const struct body_table *bodies;
    struct arena scratch; /* of one plan */
    struct arena lasting; /* the engine and its queues */
    struct layout layout;
    struct program program;
    struct prices prices;    /* with the host's */
    struct prices on_device; /* without: what the engine of one step sees */
    struct engine *engine;
    struct judge_count count;
};

struct judge *judge_new(const struct cluster *cluster, const struct body_table *bodies)
{
    struct arena lasting;

    arena_init(&lasting);
    struct judge *judge = arena_array(&lasting, struct judge, 1);
    judge->cluster = cluster;
    judge->bodies = bodies;
    judge->lasting = lasting;
    arena_init(&judge->scratch);
    judge->engine = engine_new(&judge->on_device, &judge->lasting);
    return judge;
}

void judge_free(struct judge *judge)
{
    if (!judge)
        return;
    struct arena lasting = judge->lasting; /* the judge is in it */
    arena_release(&judge->scratch);
    arena_release(&lasting);
}

struct arena *judge_arena(struct judge *judge)
{
    return &judge->scratch;
}

const struct program *judge_program(const struct judge *judge)
{
    return &judge->program;
}

const struct prices *judge_prices(const struct judge *judge)
{
    return &judge->prices;
}

struct judge_count judge_count(const struct judge *judge)
{
    return judge->count;
}

/* All three steps, with the host. */
static enum status judge_three(struct judge *judge, const struct plan *plan, int64_t *step_ns,
                               struct err *err)
{
    struct program program;
    struct prices prices;
    struct step_time time;
    enum status status;

    judge->count.three++;
    schedule_program(plan, &judge->layout, judge->bodies, &judge->scratch, &program);
    status = cost_price_times(judge->cluster, SPREAD_MID, &program, &judge->scratch, &prices, err);
    if (status == STATUS_OK)
        status = simulate(&program, &prices, NULL, &judge->scratch, &time, NULL, err);
    if (status == STATUS_OK)
        *step_ns = time.step_ns;
    return status;
}

/* One step without a host, and what a host would have to do for it. */
struct device_step {
    int64_t end_ns, c_end_ns; /* of the last task of all, and of stream C */
    int64_t compute_ns;       /* work of stream C */
    int64_t host_ns;          /* to issue all tasks */
    int64_t late_ns; /* of the task that needs it most: had the host to begin so much earlier */
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A task's first kernel is issued before it starts, its last before it ends less that kernel. */
static struct device_step read_step(const struct judge *judge, const struct span *spans, uint32_t n)
{
    const struct host_costs host = host_costs_of(&judge->prices, judge->program.plan);
    const struct prices *prices = &judge->prices;
    struct device_step step = {.late_ns = INT64_MIN};

    for (const struct span *span = spans; span < spans + n; span++) {
        const struct task *task = &judge->program.tasks[span->task];
        const int64_t kernel_ns = host.kernel_ns[task->kind];
        const int64_t begun_ns = step.host_ns + host.task_ns[task->kind];
        const int64_t first_ns = begun_ns + (task->kernels > 0 ? kernel_ns : 0);
        step.host_ns = begun_ns + kernel_ns * task->kernels;
        const int64_t last_ns = step.host_ns + prices->last_ns[span->task];
        step.late_ns =
            later(step.late_ns, later(first_ns - span->start_ns, last_ns - span->end_ns));
        step.end_ns = later(step.end_ns, span->end_ns);
        if (task->stream != STREAM_C)
            continue;
        step.compute_ns += prices->task_ns[span->task];
        step.c_end_ns = later(step.c_end_ns, span->end_ns);
    }
    return step;
}

/*
 * Whether the third step is this one: C does the last of it, so that the next one finds the device as
 * this one did; and a host that two steps of C's work alone have let get so far behind is in time for
 * every task.
 */
static bool tells_third(const struct device_step *step)
{
    return step->c_end_ns == step->end_ns &&
           2 * (step->host_ns - step->compute_ns) + step->late_ns <= 0;
}

/* False where one step does not tell. */
static enum status judge_one(struct judge *judge, bool *tells, int64_t *step_ns, struct err *err)
{
    uint32_t n;

    *tells = false;
    if (judge->program.host_waits)
        return STATUS_OK;
    judge->on_device = judge->prices;
    judge->on_device.host_launch_ns = judge->on_device.host_all_gather_ns = 0;
    const enum status status = engine_step(judge->engine, &judge->program, SECTION_STEADY, err);
    if (status != STATUS_OK)
        return status;
    const struct span *spans = engine_spans(judge->engine, &n);
    const struct device_step step = read_step(judge, spans, n);
    *step_ns = step.end_ns;
    *tells = tells_third(&step);
    return STATUS_OK;
}

enum status judge_price(struct judge *judge, const struct plan *plan, struct err *err)
{
    struct arena *arena = &judge->scratch;
    const enum status status = layout_build(plan, arena, &judge->layout, err);

    if (status != STATUS_OK)
        return status;
    judge->count.all++;
    schedule_fsdp2_steady(plan, &judge->layout, judge->bodies, arena, &judge->program);
    return cost_price_times(judge->cluster, SPREAD_MID, &judge->program, arena, &judge->prices,
                            err);
}

enum status judge_plan(struct judge *judge, const struct plan *plan, struct judged *out,
                       struct err *err)
{
    struct summary summary;
    int64_t step_ns = 0;
    bool tells = false;
    enum status status = judge_price(judge, plan, err);

    if (status == STATUS_OK)
        status = judge_one(judge, &tells, &step_ns, err);
    if (status == STATUS_OK && !tells)
        status = judge_three(judge, plan, &step_ns, err);
    if (status != STATUS_OK)
        return status;
    summary_of(&judge->program, &summary);
    *out = (struct judged){.step_ns = step_ns, .peak_bytes = summary.peak_bytes[SECTION_STEADY]};
    return STATUS_OK;
}

/* Without a limit first: what then stays below it never has to give memory back. */
static struct placed place(struct judge *judge, const struct program *program,
                           const struct alloc_config *config)
{
    struct alloc_config without_limit = *config;
    struct placement placement;

    without_limit.capacity_bytes = ALLOC_UNLIMITED;
    place_program(program, &without_limit, &judge->scratch, &placement);
    struct placed out = {.reserved_bytes = placement_reserved_bytes(&placement, SIMULATED_STEPS)};
    out.fits = !placement.out_of_memory && out.reserved_bytes <= config->capacity_bytes;
    if (out.fits)
        return out;
    place_program(program, config, &judge->scratch, &placement);
    if (placement.out_of_memory)
        return out;
    return (struct placed){.reserved_bytes = placement_reserved_bytes(&placement, SIMULATED_STEPS),
                           .fits = true,
                           .retries = true};
}

enum status judge_place(struct judge *judge, const struct plan *plan,
                        const struct alloc_config *config, struct placed *out, struct err *err)
{
    struct program program;
    const enum status status = layout_build(plan, &judge->scratch, &judge->layout, err);

    if (status != STATUS_OK)
        return status;
    schedule_program(plan, &judge->layout, judge->bodies, &judge->scratch, &program);
    *out = place(judge, &program, config);
    return STATUS_OK;
}
