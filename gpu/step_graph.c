/*
 * Steps as graphs; see step_graph.h.
 */
#include "gpu/step_graph.h"

#include "src/program_print.h"

/* ---- whether ------------------------------------------------------------------------------- */

/* The first step of the period, by index. */
static uint32_t first_of_period(const struct placement *placement)
{
    return placement->n_step - placement->period;
}

uint32_t step_graph_last_bound(const struct placement *placement)
{
    return placement->n_step + placement->period;
}

static const char *name_of(const struct program *program, uint32_t instr,
                           char out[PROGRAM_NAME_MAX])
{
    const struct instr *at = &program->instrs[instr];

    if (instr_has_buffer(at->op))
        return program_buffer_name(program, at->id, out);
    return at->op == INSTR_LAUNCH ? program_task_name(program, at->id, out) : "";
}

static enum status check_segments(const struct program *program, const struct placement *placement,
                                  struct err *err)
{
    char name[PROGRAM_NAME_MAX];

    for (uint32_t i = first_of_period(placement); i < placement->n_step; i++) {
        const struct place_step *step = &placement->steps[i];
        if (step->n_op > 0)
            return err_set(err, STATUS_USAGE,
                           "--graph: the allocator %s memory in the steady step, ahead of "
                           "instruction %u, '%s'; see --memory and --allocator",
                           step->ops[0].op.act == SEGMENT_MAP ||
                                   step->ops[0].op.act == SEGMENT_RESERVE
                               ? "takes"
                               : "gives back",
                           step->ops[0].instr, name_of(program, step->ops[0].instr, name));
    }
    return STATUS_OK;
}

/* The launch that the host was at last; there is one, because the host waits for something. */
static uint32_t launch_before(const struct program *program, uint32_t instr)
{
    while (instr > 0 && program->instrs[instr].op != INSTR_LAUNCH)
        instr--;
    return instr;
}

static enum status check_waits(const struct program *program, struct err *err)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    char name[PROGRAM_NAME_MAX];

    for (uint32_t i = steady->begin; i < steady->end; i++)
        if (program->instrs[i].op == INSTR_HOST_WAIT)
            return err_set(
                err, STATUS_USAGE,
                "--graph: in the steady step the host waits, by instruction %u, host_wait "
                "behind '%s'; leave out what it reads there",
                i, name_of(program, launch_before(program, i), name));
    return STATUS_OK;
}

enum status step_graph_check(const struct program *program, const struct placement *placement,
                             struct err *err)
{
    if (placement->period == 0)
        return err_set(err, STATUS_USAGE,
                       "--graph: addresses do not repeat within %u steps, so that no step stands "
                       "for the others",
                       placement->n_step);
    const enum status status = check_waits(program, err);
    return status == STATUS_OK ? check_segments(program, placement, err) : status;
}

/* ---- when ---------------------------------------------------------------------------------- */

static uint32_t *graph_of(struct step_graph *graph, uint32_t step)
{
    const struct placement *placement = graph->placement;
    return &graph->graphs[(step - placement->n_step - 1) % placement->period];
}

enum status step_graph_begin(struct step_graph *graph, uint32_t step, struct err *err)
{
    graph->mode = STEP_CALLS;
    if (!graph->placement || step <= graph->placement->n_step)
        return STATUS_OK;
    graph->mode = *graph_of(graph, step) > 0 ? STEP_REPLAY : STEP_CAPTURE;
    return graph->mode == STEP_CAPTURE ? graph->device->capture_begin(graph->device_self, err)
                                       : STATUS_OK;
}

enum status step_graph_end(struct step_graph *graph, uint32_t step, struct err *err)
{
    uint32_t number;

    if (graph->mode == STEP_CALLS)
        return STATUS_OK;
    if (graph->mode == STEP_CAPTURE) {
        const enum status status = graph->device->capture_end(graph->device_self, &number, err);
        if (status != STATUS_OK)
            return status;
        *graph_of(graph, step) = 1 + number;
    }
    graph->mode = STEP_CALLS;
    return graph->device->replay(graph->device_self, *graph_of(graph, step) - 1, step, err);
}
