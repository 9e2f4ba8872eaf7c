/*
 * The state of a schedule before its first instruction; see pieces.h.
 */
#include "src/schedule/pieces.h"

/* Member sizes of the groups of each unit shape, once. */
static void prepare_shapes(struct schedule *sched, struct arena *arena)
{
    const uint64_t compute_bytes = dtype_bytes(sched->plan->param_dtype);
    bool *done = arena_array(arena, bool, sched->layout->n_shape + 1);

    sched->shapes = arena_array(arena, struct shape_members, sched->layout->n_shape + 1);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        const struct unit_layout *unit = layout_of(sched, u);
        struct shape_members *shape = &sched->shapes[unit->shape];
        const uint64_t storage_bytes = dtype_bytes(unit->storage_dtype);
        const uint32_t n = unit->n_param;
        if (done[unit->shape])
            continue;
        done[unit->shape] = true;
        uint64_t *bytes = arena_array(arena, uint64_t, (size_t)(3 + ADAMW_STATES) * n);
        uint64_t *shard = bytes, *full = bytes + n, *grads = bytes + 2 * n, *states = bytes + 3 * n;
        for (uint32_t i = 0; i < n; i++) {
            const struct param_layout *p = &sched->layout->params[unit->param + i];
            shard[i] = p->shard_elements * storage_bytes;
            full[i] = p->shard_elements * sched->plan->world * compute_bytes;
            grads[i] = p->numel * compute_bytes;
            states[ADAMW_STATES * i] = dtype_bytes(DTYPE_FP32);
            states[ADAMW_STATES * i + 1] = states[ADAMW_STATES * i + 2] = shard[i];
            shape->states_bytes += dtype_bytes(DTYPE_FP32) + 2 * shard[i];
        }
        shape->shard = build_members(&sched->build, shard, n);
        shape->full = build_members(&sched->build, full, n);
        shape->grads = build_members(&sched->build, grads, n);
        shape->states = build_members(&sched->build, states, ADAMW_STATES * n);
    }
}

static uint32_t lasting_buffer(struct schedule *sched, uint32_t buffer)
{
    sched->build.program->buffers[buffer].scope = SCOPE_RUN;
    return buffer;
}

/* The task that first fills a lasting group of a unit, one kernel a member. */
static uint32_t init_task(struct schedule *sched, uint32_t u, uint32_t buffer, enum dtype dtype)
{
    const struct buffer *filled = &sched->build.program->buffers[buffer];
    struct task *task = build_task(&sched->build, TASK_INIT, STREAM_C, (uint16_t)u);

    task->dtype = (uint8_t)dtype;
    task->elements = filled->bytes / dtype_bytes(dtype);
    task->kernels = (uint16_t)filled->n_member;
    build_access(&sched->build, buffer, ACCESS_WRITE);
    return sched->build.program->n_task - 1;
}

/* What lives to the end of the run is made ahead of every section; where it is born they say. */
static void make_lasting(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        const struct unit_layout *unit = layout_of(sched, u);
        const struct shape_members *shape = members_of(sched, u);
        struct unit_state *state = &sched->units[u];
        state->shard = lasting_buffer(
            sched,
            build_group(&sched->build, ROLE_SHARD, STREAM_C, (uint16_t)u, shape->shard,
                        unit->n_param, unit->shard_elements * dtype_bytes(unit->storage_dtype)));
        state->init_shard = init_task(sched, u, state->shard, unit->storage_dtype);
        state->states = lasting_buffer(
            sched, build_group(&sched->build, ROLE_STATE, STREAM_C, (uint16_t)u, shape->states,
                               ADAMW_STATES * unit->n_param, shape->states_bytes));
        state->init_states = init_task(sched, u, state->states, DTYPE_FP32);
    }
    for (int thread = 0; thread < 2; thread++)
        sched->workspace[thread] =
            lasting_buffer(sched, build_buffer(&sched->build, ROLE_WORKSPACE, STREAM_C, NO_UNIT,
                                               sched->plan->options.workspace_bytes));
}

void schedule_init(struct schedule *sched, const struct plan *plan, const struct layout *layout,
                   const struct body_table *bodies, struct arena *arena, struct program *program)
{
    *sched = (struct schedule){
        .plan = plan,
        .layout = layout,
        .bodies = bodies,
        .units = arena_array(arena, struct unit_state, plan->n_unit + 1),
        .order = arena_array(arena, uint32_t, plan->n_unit + 1),
        .frames = arena_array(arena, uint32_t, plan->n_segment + 1),
        .gathered = {.buffer = NO_BUFFER},
    };
    program_builder_init(&sched->build, plan, layout, bodies, arena, program);
    for (uint32_t u = 0; u < plan->n_unit; u++)
        sched->units[u].grads = sched->units[u].grad_shard = NO_BUFFER;
    prepare_shapes(sched, arena);
    make_lasting(sched);
}
