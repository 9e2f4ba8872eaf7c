/*
 * A plan's step time and peak; see judge.h.
 *
 * All of a plan is built in one arena that is reset for the next: after some plans nothing is taken
 * from the heap any more.
 */
#include "sim/judge.h"

#include "sim/simulate.h"
#include "src/exec.h"
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
    status = cost_price(judge->cluster, SPREAD_MID, &program, &judge->scratch, &prices, err);
    if (status == STATUS_OK)
        status = simulate(&program, &prices, NULL, &judge->scratch, &time, NULL, err);
    if (status == STATUS_OK)
        *step_ns = time.step_ns;
    return status;
}

static bool host_waits(const struct program *program)
{
    const struct section *steady = &program->sections[SECTION_STEADY];

    for (uint32_t i = steady->begin; i < steady->end; i++)
        if (program->instrs[i].op == INSTR_HOST_WAIT)
            return true;
    return false;
}

/* What the host needs for a step, and the work of stream C in it. */
static void sum_step(const struct judge *judge, const struct host_costs *host,
                     const struct span *spans, uint32_t n, int64_t *host_ns, int64_t *compute_ns)
{
    *host_ns = *compute_ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct task *task = &judge->program.tasks[spans[i].task];
        *host_ns += host->task_ns[task->kind] + host->kernel_ns[task->kind] * task->kernels;
        if (task->stream == STREAM_C)
            *compute_ns += judge->prices.task_ns[spans[i].task];
    }
}

/*
 * Whether a late host would change nothing of the third step: its first kernel is issued before the
 * task starts, its last before the task ends less that kernel.
 */
static bool host_is_ahead(const struct judge *judge, const struct span *spans, uint32_t n)
{
    const struct host_costs host = host_costs_of(&judge->prices, judge->program.plan);
    int64_t step_ns, compute_ns;

    sum_step(judge, &host, spans, n, &step_ns, &compute_ns);
    int64_t now_ns = 2 * (step_ns - compute_ns);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *task = &judge->program.tasks[spans[i].task];
        const int64_t kernel_ns = host.kernel_ns[task->kind];
        const int64_t issue_ns = host.task_ns[task->kind] + kernel_ns * task->kernels;
        const int64_t first_ns = host.task_ns[task->kind] + (task->kernels > 0 ? kernel_ns : 0);
        if (now_ns + first_ns > spans[i].start_ns ||
            now_ns + issue_ns + judge->prices.last_ns[spans[i].task] > spans[i].end_ns)
            return false;
        now_ns += issue_ns;
    }
    return true;
}

/* C does the last of the step, so that the next one finds the device as this one did. */
static bool ends_on_c(const struct judge *judge, const struct span *spans, uint32_t n,
                      int64_t end_ns)
{
    for (uint32_t i = n; i-- > 0;)
        if (spans[i].end_ns == end_ns && judge->program.tasks[spans[i].task].stream == STREAM_C)
            return true;
    return false;
}

/* False where one step does not tell. */
static enum status judge_one(struct judge *judge, bool *tells, int64_t *step_ns, struct err *err)
{
    uint32_t n;

    *tells = false;
    if (host_waits(&judge->program))
        return STATUS_OK;
    judge->on_device = judge->prices;
    judge->on_device.host_launch_ns = judge->on_device.host_all_gather_ns = 0;
    const enum status status = exec_program(&judge->program, EXEC_UNIT, NULL, SECTION_STEADY,
                                            &engine_backend, judge->engine, err);
    if (status != STATUS_OK)
        return status;
    const struct span *spans = engine_spans(judge->engine, &n);
    *step_ns = engine_step_end_ns(judge->engine, SECTION_STEADY);
    *tells = ends_on_c(judge, spans, n, *step_ns) && host_is_ahead(judge, spans, n);
    return STATUS_OK;
}

enum status judge_plan(struct judge *judge, const struct plan *plan, struct judged *out,
                       struct err *err)
{
    struct arena *arena = &judge->scratch;
    struct summary summary;
    int64_t step_ns = 0;
    bool tells = false;
    enum status status = layout_build(plan, arena, &judge->layout, err);

    if (status != STATUS_OK)
        return status;
    judge->count.all++;
    schedule_fsdp2_steady(plan, &judge->layout, judge->bodies, arena, &judge->program);
    status = cost_price(judge->cluster, SPREAD_MID, &judge->program, arena, &judge->prices, err);
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

static uint64_t reserved_bytes(const struct placement *placement)
{
    const struct place_step *steps[] = {&placement->init, placement_step(placement, 1),
                                        placement_step(placement, SIMULATED_STEPS)};
    uint64_t most = 0;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] && steps[i]->stats.peak_reserved > most)
            most = steps[i]->stats.peak_reserved;
    return most;
}

/* Without a limit first: what then stays below it never has to give memory back. */
static struct placed place(struct judge *judge, const struct program *program,
                           const struct alloc_config *config)
{
    struct alloc_config without_limit = *config;
    struct placement placement;

    without_limit.capacity_bytes = ALLOC_UNLIMITED;
    place_program(program, &without_limit, &judge->scratch, &placement);
    struct placed out = {.reserved_bytes = reserved_bytes(&placement)};
    out.fits = !placement.out_of_memory && out.reserved_bytes <= config->capacity_bytes;
    if (out.fits)
        return out;
    place_program(program, config, &judge->scratch, &placement);
    if (placement.out_of_memory)
        return out;
    return (struct placed){
        .reserved_bytes = reserved_bytes(&placement), .fits = true, .retries = true};
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
