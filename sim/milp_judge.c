/*
 * Exposed time by units, and memory by the largest; see milp_judge.h.
 */
#include "sim/milp_judge.h"

/* A run of one unit's computation, and what is on its way for it: its gathers and its reductions. */
struct stage {
    int64_t compute_ns, gather_ns, reduce_ns;
    uint16_t unit;
};

struct timeline {
    struct stage *stages; /* in the order of compute */
    uint32_t n;
    int64_t optimizer_ns; /* waits for all of them */
    int64_t *gather_ns;   /* by unit: issued, and not needed yet */
    uint32_t *last;       /* by unit: its newest stage */
};

static void compute(struct timeline *line, const struct task *task, int64_t ns)
{
    struct stage *stage = line->n > 0 ? &line->stages[line->n - 1] : NULL;

    if (!stage || stage->unit != task->unit) {
        stage = &line->stages[line->n++];
        *stage = (struct stage){.unit = task->unit};
    }
    stage->compute_ns += ns;
    if (task->unit == NO_UNIT)
        return;
    stage->gather_ns += line->gather_ns[task->unit];
    line->gather_ns[task->unit] = 0;
    line->last[task->unit] = line->n - 1;
}

static void add_task(struct timeline *line, const struct task *task, int64_t ns)
{
    switch ((enum task_kind)task->kind) {
    case TASK_FORWARD:
    case TASK_BACKWARD:
        compute(line, task, ns);
        break;
    case TASK_OPTIMIZER:
        line->optimizer_ns += ns;
        break;
    case TASK_ALL_GATHER:
        line->gather_ns[task->unit] += ns;
        break;
    case TASK_REDUCE_SCATTER:
    case TASK_ALL_REDUCE:
        if (task->unit != NO_UNIT)
            line->stages[line->last[task->unit]].reduce_ns += ns;
        break;
    default:
        break;
    }
}

/* Beside a stage the next one is gathered and the one before is reduced; the ends have nothing beside. */
static int64_t time_of(const struct timeline *line)
{
    int64_t total_ns = line->optimizer_ns;

    for (uint32_t i = 0; i < line->n; i++) {
        const int64_t gather_ns = i + 1 < line->n ? line->stages[i + 1].gather_ns : 0;
        const int64_t reduce_ns = i > 0 ? line->stages[i - 1].reduce_ns : 0;
        const int64_t comm_ns = gather_ns + reduce_ns, compute_ns = line->stages[i].compute_ns;
        total_ns += comm_ns > compute_ns ? comm_ns : compute_ns;
    }
    return line->n > 0 ? total_ns + line->stages[0].gather_ns + line->stages[line->n - 1].reduce_ns
                       : total_ns;
}

static int64_t exposed_step_ns(const struct program *program, const struct prices *prices,
                               struct arena *arena)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    const uint32_t n_unit = program->plan->n_unit;
    struct timeline line = {.stages = arena_array(arena, struct stage, program->n_task),
                            .gather_ns = arena_array(arena, int64_t, n_unit),
                            .last = arena_array(arena, uint32_t, n_unit)};

    for (uint32_t i = steady->begin; i < steady->end; i++)
        if (program->instrs[i].op == INSTR_LAUNCH)
            add_task(&line, &program->tasks[program->instrs[i].id],
                     prices->task_ns[program->instrs[i].id]);
    return time_of(&line);
}

/* What FSDP holds for a while only, and twice the largest unit stands for. */
static bool passes(const struct program *program, const struct buffer *buffer)
{
    switch ((enum buffer_role)buffer->role) {
    case ROLE_CAST_TEMP:
    case ROLE_GATHERED:
    case ROLE_CAT_TEMP:
    case ROLE_KEPT:
    case ROLE_PRECAST:
    case ROLE_REDUCE_IN:
    case ROLE_REDUCE_OUT:
    case ROLE_PARTIAL:
    case ROLE_QUOTIENT:
        return true;
    case ROLE_FULL:
        return program->plan->units[buffer->unit].reshard_after_forward;
    default:
        return false;
    }
}

/* What an instruction adds to what modules keep. */
static int64_t kept_by(const struct program *program, const struct instr *instr)
{
    if (instr->op == INSTR_LAUNCH) {
        const uint32_t body = program->tasks[instr->id].body;
        return body == NO_BODY ? 0 : program->bodies->bodies[body].net_bytes;
    }
    if (instr->op > INSTR_FREE || (instr->flags & INSTR_BY_BODY) != 0 ||
        passes(program, &program->buffers[instr->id]))
        return 0;
    const int64_t bytes = (int64_t)program->buffers[instr->id].bytes;
    return instr->op == INSTR_ALLOC ? bytes : -bytes;
}

static uint64_t largest_unit(const struct program *program)
{
    uint64_t most = 0;

    for (uint32_t b = 0; b < program->n_buffer; b++)
        if (program->buffers[b].role == ROLE_FULL && program->buffers[b].bytes > most)
            most = program->buffers[b].bytes;
    return most;
}

static uint64_t peak_bytes(const struct program *program)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    struct summary summary;
    int64_t live = 0, peak = 0;

    summary_of(program, &summary);
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        live += kept_by(program, &program->instrs[i]);
        peak = live > peak ? live : peak;
    }
    return summary.end_bytes[SECTION_INIT] + (uint64_t)peak + 2 * largest_unit(program);
}

enum status milp_judge_plan(struct judge *judge, const struct plan *plan, struct judged *out,
                            struct err *err)
{
    const enum status status = judge_price(judge, plan, err);

    if (status != STATUS_OK)
        return status;
    const struct program *program = judge_program(judge);
    *out = (struct judged){.step_ns =
                               exposed_step_ns(program, judge_prices(judge), judge_arena(judge)),
                           .peak_bytes = peak_bytes(program)};
    return STATUS_OK;
}
