/*
 * The state of a schedule before its first instruction; see pieces.h.
 */
#include "src/schedule/pieces.h"

#include <string.h>

/* The member sizes of one shape while they are written down. */
struct sizes {
    uint64_t *shard, *full, *kept, *grads, *accumulated, *zeros, *whole, *states;
    uint32_t n_grad, n_zeros, n_stateful;
};

static struct sizes sizes_new(struct arena *arena, uint32_t n_param)
{
    uint64_t *at = arena_array(arena, uint64_t, (size_t)(7 + ADAMW_STATES) * n_param + 1);
    return (struct sizes){
        .shard = at,
        .full = at + n_param,
        .kept = at + (size_t)2 * n_param,
        .grads = at + (size_t)3 * n_param,
        .accumulated = at + (size_t)4 * n_param,
        .zeros = at + (size_t)5 * n_param,
        .whole = at + (size_t)6 * n_param,
        .states = at + (size_t)7 * n_param,
    };
}

/* Moments have the shard's size and dtype, the counter is one FP32 number (fused AdamW). */
static void add_states(const struct schedule *sched, uint64_t shard_bytes, struct sizes *sizes,
                       struct shape_members *shape)
{
    if (sched->plan->options.optimizer == OPTIMIZER_SGD)
        return;
    uint64_t *states = &sizes->states[(size_t)ADAMW_STATES * sizes->n_stateful++];
    states[0] = dtype_bytes(DTYPE_FP32);
    states[1] = states[2] = shard_bytes;
    shape->states_bytes += states[0] + states[1] + states[2];
}

static void add_param(struct schedule *sched, const struct param_layout *place,
                      const struct param_policy *policy, uint32_t i, struct sizes *sizes,
                      struct shape_members *shape)
{
    const struct plan *plan = sched->plan;
    const uint64_t reduced_bytes = place->numel * dtype_bytes((enum dtype)policy->reduce);

    sizes->shard[i] = place->shard_elements * dtype_bytes((enum dtype)policy->storage);
    sizes->whole[i] = place->numel * dtype_bytes((enum dtype)policy->storage);
    shape->whole_bytes += sizes->whole[i];
    sizes->full[i] =
        place->shard_elements * plan->shard_ranks * dtype_bytes((enum dtype)policy->compute);
    if (plan->options.reshard == RESHARD_RANKS)
        sizes->kept[i] = sizes->full[i] / plan->options.reshard_ranks;
    shape->kept_bytes += sizes->kept[i];
    if (place->bucket != NO_BUCKET)
        add_states(sched, sizes->shard[i], sizes, shape);
    if (policy->has_grad) {
        sizes->accumulated[sizes->n_grad] = reduced_bytes;
        sizes->grads[sizes->n_grad++] = place->numel * dtype_bytes((enum dtype)policy->grad);
        shape->accumulated_bytes += reduced_bytes;
    } else if (plan_fills_zeros(plan, policy)) {
        sizes->zeros[sizes->n_zeros++] = place->numel * dtype_bytes((enum dtype)policy->grad);
        shape->zeros_bytes += place->numel * dtype_bytes((enum dtype)policy->grad);
    }
}

/* Of the flat parameter, or of what the first rank has of each: its logs are those that one reads. */
static void add_flat_states(const struct schedule *sched, const struct unit_layout *unit,
                            struct sizes *sizes, struct shape_members *shape)
{
    const uint64_t element_bytes = dtype_bytes((enum dtype)unit->casts[0].storage);

    if (!sched->plan->options.fsdp1.use_orig_params) {
        add_states(sched, unit->shard_bytes, sizes, shape);
        return;
    }
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct param_layout *param = &sched->layout->params[unit->param + i];
        const uint64_t piece = param_layout_piece(param, unit, 0);
        if (piece > 0)
            add_states(sched, piece * element_bytes, sizes, shape);
    }
}

/* In place of all parameters' the sizes of the flat one. */
static void flatten_sizes(const struct schedule *sched, const struct unit_layout *unit,
                          struct sizes *sizes, struct shape_members *shape)
{
    sizes->shard[0] = unit->shard_bytes;
    sizes->full[0] = unit->full_bytes;
    shape->n_shard = 1;
    shape->states_bytes = 0;
    sizes->n_stateful = 0;
    add_flat_states(sched, unit, sizes, shape);
}

static void prepare_shape(struct schedule *sched, uint32_t u, struct arena *arena)
{
    const struct unit_layout *unit = layout_of(sched, u);
    const uint32_t n = unit->n_param;
    struct shape_members *shape = &sched->shapes[unit->shape];
    struct sizes sizes = sizes_new(arena, n);

    for (uint32_t i = 0; i < n; i++)
        add_param(sched, &sched->layout->params[unit->param + i],
                  &sched->plan->policy[sched->plan->unit_params[sched->plan->units[u].param + i]],
                  i, &sizes, shape);
    shape->n_shard = n;
    shape->n_zeros = sizes.n_zeros;
    if (is_fsdp1(sched))
        flatten_sizes(sched, unit, &sizes, shape);
    if (is_fsdp1(sched))
        shape->whole = build_members(&sched->build, sizes.whole, n);
    shape->n_states = ADAMW_STATES * sizes.n_stateful;
    shape->shard = build_members(&sched->build, sizes.shard, shape->n_shard);
    shape->full = build_members(&sched->build, sizes.full, shape->n_shard);
    if (sched->plan->options.reshard == RESHARD_RANKS)
        shape->kept = build_members(&sched->build, sizes.kept, n);
    shape->grads = build_members(&sched->build, sizes.grads, sizes.n_grad);
    if (sched->plan->options.sync == MICROBATCH_LAST && sched->plan->options.accum > 1)
        shape->accumulated = build_members(&sched->build, sizes.accumulated, sizes.n_grad);
    shape->zeros = build_members(&sched->build, sizes.zeros, sizes.n_zeros);
    shape->states = build_members(&sched->build, sizes.states, shape->n_states);
}

/* Member sizes of the groups of each unit shape, once. */
static void prepare_shapes(struct schedule *sched, struct arena *arena)
{
    bool *done = arena_array(arena, bool, sched->layout->n_shape + 1);

    sched->shapes = arena_array(arena, struct shape_members, sched->layout->n_shape + 1);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        const uint32_t shape = layout_of(sched, u)->shape;
        if (!done[shape])
            prepare_shape(sched, u, arena);
        done[shape] = true;
    }
}

static uint32_t lasting_buffer(struct schedule *sched, uint32_t buffer)
{
    sched->build.program->buffers[buffer].scope = SCOPE_RUN;
    return buffer;
}

static void make_states(struct schedule *sched, uint32_t u)
{
    const struct shape_members *shape = members_of(sched, u);
    struct unit_state *state = &sched->units[u];

    state->states = NO_BUFFER;
    if (layout_of(sched, u)->n_updated == 0 || shape->n_states == 0)
        return;
    state->states =
        lasting_buffer(sched, build_group(&sched->build, ROLE_STATE, STREAM_C, (uint16_t)u,
                                          shape->states, shape->n_states, shape->states_bytes));
}

/* Parameters that fully_shard was told to ignore: whole on each rank, in their storage dtype. */
static void make_ignored(struct schedule *sched)
{
    const uint64_t bytes = sched->plan->ignored_bytes;

    sched->ignored = NO_BUFFER;
    if (bytes > 0)
        sched->ignored = lasting_buffer(
            sched, build_buffer(&sched->build, ROLE_IGNORED, STREAM_C, NO_UNIT, bytes));
}

/* What lives to the end of the run is made ahead of every section; where it is born they say. */
static void make_lasting(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        const struct unit_layout *unit = layout_of(sched, u);
        struct unit_state *state = &sched->units[u];
        state->shard =
            lasting_buffer(sched, build_group(&sched->build, ROLE_SHARD, STREAM_C, (uint16_t)u,
                                              members_of(sched, u)->shard,
                                              members_of(sched, u)->n_shard, unit->shard_bytes));
        make_states(sched, u);
    }
    make_ignored(sched);
    for (int thread = 0; thread < 2; thread++)
        sched->workspace[thread] =
            lasting_buffer(sched, build_buffer(&sched->build, ROLE_WORKSPACE, STREAM_C, NO_UNIT,
                                               sched->plan->options.workspace_bytes));
}

static void clear_unit(struct unit_state *unit)
{
    unit->grads = unit->accumulated = unit->zeros = unit->kept = NO_BUFFER;
    unit->post_event = NO_EVENT;
    for (int b = 0; b < MAX_BUCKETS; b++)
        unit->buckets[b] = (struct bucket_state){NO_BUFFER, NO_BUFFER, NO_BUFFER, NO_EVENT};
}

static struct divide divide_in(const struct plan *plan, enum dtype dtype)
{
    if (plan->options.system == SYSTEM_FSDP1)
        return divide_around_sums((double)plan->world);
    return divide_of(dtype, plan->options.divide_factor, plan->shard_ranks, plan->options.replicas,
                     plan->options.force_sum);
}

void schedule_init(struct schedule *sched, const struct plan *plan, const struct layout *layout,
                   const struct body_table *bodies, struct arena *arena, struct program *program)
{
    *sched = (struct schedule){
        .plan = plan,
        .layout = layout,
        .bodies = bodies,
        .units = arena_array(arena, struct unit_state, plan->n_unit + 1),
        .order = arena_array(arena, uint32_t, plan->n_unit * plan->options.accum + 1),
        .frames = arena_array(arena, uint32_t, plan->n_segment + 1),
        .gathered = {.buffer = NO_BUFFER},
        .reduce_in = arena_array(arena, struct held, plan->options.reduce_inputs + 2 * MAX_BUCKETS),
    };
    program_builder_init(&sched->build, plan, layout, bodies, arena, program);
    memset(sched->post_event, 0xff, sizeof sched->post_event);
    for (unsigned dtype = 0; dtype < DTYPE_N; dtype++)
        sched->divides[dtype] = divide_in(plan, (enum dtype)dtype);
    for (uint32_t u = 0; u < plan->n_unit; u++)
        clear_unit(&sched->units[u]);
    prepare_shapes(sched, arena);
    make_lasting(sched);
}
