/*
 * One unit's share of a program; see unit_cost.h. Tasks, buffers and bodies are gone through once each.
 */
#include "sim/unit_cost.h"

static void add_task(const struct program *program, const struct prices *prices, uint32_t id,
                     struct unit_cost *cost)
{
    const struct task *task = &program->tasks[id];

    if (task->stream == STREAM_C)
        cost->compute_ns += prices->task_ns[id];
    else if (task->comm != COMM_NONE)
        cost->comm_ns[task->comm] += prices->task_ns[id];
    if (task->kind == TASK_PACK)
        cost->finish_ns = 0;
    else if (task->stream == STREAM_RS || task->stream == STREAM_AR)
        cost->finish_ns += prices->task_ns[id];
}

/* Of the first gather: until C has copied it out. */
static bool is_gather(const struct task *task)
{
    return task->kind == TASK_COPY_IN || task->kind == TASK_ALL_GATHER;
}

static void add_buffer(const struct buffer *buffer, struct unit_cost *cost, uint64_t *grads,
                       uint64_t *packed)
{
    switch ((enum buffer_role)buffer->role) {
    case ROLE_ACCUMULATED:
    case ROLE_GRADS:
        *grads = *grads == 0 || buffer->bytes < *grads ? buffer->bytes : *grads;
        break;
    case ROLE_REDUCE_IN:
        *packed = buffer->bytes > *packed ? buffer->bytes : *packed;
        break;
    case ROLE_GRAD_SHARD:
        cost->reduced_bytes = buffer->bytes;
        break;
    case ROLE_FULL:
        cost->full_bytes = buffer->bytes;
        break;
    default:
        break;
    }
}

static void sum_tasks(const struct program *program, const struct prices *prices, uint32_t unit,
                      struct unit_cost *cost)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    bool gathered = false;

    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct task *task = &program->tasks[program->instrs[i].id];
        if (program->instrs[i].op != INSTR_LAUNCH || task->unit != unit)
            continue;
        add_task(program, prices, program->instrs[i].id, cost);
        gathered |= task->kind == TASK_COPY_OUT;
        if (!gathered && is_gather(task))
            cost->gather_ns += prices->task_ns[program->instrs[i].id];
    }
}

static void sum_buffers(const struct program *program, uint32_t unit, struct unit_cost *cost)
{
    uint64_t grads = 0, packed = 0;

    for (uint32_t b = 0; b < program->n_buffer; b++)
        if (program->buffers[b].unit == unit)
            add_buffer(&program->buffers[b], cost, &grads, &packed);
    cost->packing_bytes = packed > 0 ? grads + packed : 0;
}

/* Forward's bodies of the unit, and the output of the last of them. */
static void sum_bodies(const struct program *program, uint32_t unit, struct unit_cost *cost)
{
    const struct plan *plan = program->plan;
    const struct body_table *bodies = program->bodies;

    for (uint32_t s = 0; s < plan->n_segment; s++) {
        if (plan->segments[s].unit != unit)
            continue;
        const struct body_pair *pair = &bodies->pairs[segment_pair(bodies, &plan->segments[s])];
        cost->left_bytes += (uint64_t)bodies->bodies[pair->forward].net_bytes;
        cost->out_bytes = bodies->slots[pair->slot + SLOT_OUT].bytes;
    }
}

void unit_cost_read(const struct program *program, const struct prices *prices, uint32_t unit,
                    struct unit_cost *cost)
{
    *cost = (struct unit_cost){0};
    sum_tasks(program, prices, unit, cost);
    if (unit == NO_UNIT)
        return;
    cost->may_finish = !program->plan->units[unit].input_has_grad;
    sum_buffers(program, unit, cost);
    sum_bodies(program, unit, cost);
}
