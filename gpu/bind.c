/*
 * The binder's frame; see bind.h: caches, addresses, and which part binds which task.
 */
#include "gpu/bind_inner.h"

#include <assert.h>
#include <stdlib.h>

#include "src/arch/arch.h"

static const double ROPE_BASE = 10000;

/* ---- what is known once ------------------------------------------------------------------- */

static void find_homes(struct bind *bind)
{
    const struct plan *plan = bind->plan;
    const struct model *model = plan->model;
    uint64_t ignored_at = 0;

    bind->homes = arena_array(&bind->lasting, struct param_home, model->n_param + 1);
    for (uint32_t i = 0; i < model->n_param; i++) {
        bind->homes[i] = (struct param_home){.unit = NO_UNIT, .ignored_at = ignored_at};
        if (!plan->policy[i].managed)
            ignored_at += model->params[i].numel * dtype_bytes(plan->policy[i].storage);
    }
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        uint32_t n_grad = 0, n_zeros = 0;
        for (uint32_t i = 0; i < plan->units[u].n_param; i++) {
            const struct member member = member_of(bind, u, i);
            struct param_home *home = &bind->homes[member.param];
            home->unit = (uint16_t)u;
            home->member = i;
            home->grad = member.policy->has_grad ? n_grad++ : n_zeros;
            n_zeros += plan_fills_zeros(plan, member.policy);
        }
    }
}

static void find_writers(struct bind *bind)
{
    const struct program *program = bind->program;

    bind->writers = arena_array(&bind->lasting, const struct task *, program->n_buffer + 1);
    for (uint32_t t = 0; t < program->n_task; t++)
        for (uint32_t i = 0; i < program->tasks[t].n_access; i++) {
            const struct access *access = &program->accesses[program->tasks[t].access + i];
            if (access->mode != ACCESS_READ && !bind->writers[access->buffer])
                bind->writers[access->buffer] = &program->tasks[t];
        }
}

static void count_launches(struct bind *bind)
{
    for (int s = 0; s < SECTION_N; s++) {
        struct expand cursor;
        struct expanded at;
        expand_begin(&cursor, bind->program, (enum section_id)s);
        while (expand_next(&cursor, &at))
            bind->n_launch[s] += at.op == INSTR_LAUNCH;
    }
}

static struct op_shape shape_of(const struct plan *plan)
{
    const struct dims *dims = &plan->model->dims;
    const bool rotates = dims->positions == 0 && plan->model->arch == &arch_llama;

    return (struct op_shape){.batch = plan->options.batch,
                             .seq = plan->options.seq,
                             .heads = dims->heads,
                             .kv_heads = dims->kv_heads,
                             .head_dim = dims->head_dim,
                             .vocab = dims->vocab,
                             .rope_base = rotates ? ROPE_BASE : 0};
}

struct bind *bind_new(const struct bind_setup *setup)
{
    struct bind *bind = calloc(1, sizeof *bind);

    if (!bind)
        err_out_of_memory(sizeof *bind);
    bind->setup = *setup;
    bind->program = setup->program;
    bind->plan = setup->program->plan;
    bind->layout = setup->program->layout;
    bind->shard_rank = (uint32_t)(setup->rank % bind->plan->shard_ranks);
    bind->shape = shape_of(bind->plan);
    arena_init(&bind->lasting);
    arena_init(&bind->arena);
    find_homes(bind);
    find_writers(bind);
    count_launches(bind);
    return bind;
}

void bind_free(struct bind *bind)
{
    if (!bind)
        return;
    arena_release(&bind->arena);
    arena_release(&bind->lasting);
    free(bind);
}

void bind_forget(struct bind *bind)
{
    arena_reset(&bind->arena);
    bind->n_pass = 0;
}

/* ---- launches ----------------------------------------------------------------------------- */

static struct bound_pass *pass_of(struct bind *bind, uint32_t step)
{
    const struct place_step *placed = placement_step(bind->setup.placement, step);
    const enum section_id section = step < SECTION_STEADY ? step : SECTION_STEADY;

    for (uint32_t i = 0; i < bind->n_pass; i++)
        if (bind->passes[i].step == placed)
            return &bind->passes[i];
    assert(bind->n_pass < PLACE_MAX_STEPS + 1);
    struct bound_pass *pass = &bind->passes[bind->n_pass++];
    pass->step = placed;
    pass->launches = arena_array(&bind->arena, struct bound, bind->n_launch[section] + 1);
    return pass;
}

static enum status bind_task(struct binding *to, struct err *err)
{
    switch ((enum task_kind)to->task->kind) {
    case TASK_INIT:
        bind_init(to);
        break;
    case TASK_COPY_INPUT:
        bind_input(to);
        break;
    case TASK_FORWARD:
    case TASK_BACKWARD:
        return bind_operator(to, err);
    case TASK_ALL_GATHER:
    case TASK_REDUCE_SCATTER:
    case TASK_ALL_REDUCE:
        bind_collective(to);
        break;
    case TASK_UNSCALE:
    case TASK_GRAD_NORM:
    case TASK_CLIP:
    case TASK_OPTIMIZER:
        bind_over_grads(to);
        break;
    default:
        bind_move(to);
    }
    return STATUS_OK;
}

static enum status prepare_works(const struct binding *of, struct err *err)
{
    const struct bind_setup *setup = &of->bind->setup;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < of->n && status == STATUS_OK; i++)
        status = setup->device->prepare(setup->device_self, &of->works[i], err);
    return status;
}

enum status bind_launch(struct bind *bind, const struct launch *launch, uint32_t n,
                        struct bound *out, struct err *err)
{
    struct bound *bound = &pass_of(bind, launch->step)->launches[n];

    if (!bound->works) {
        struct binding to = {
            .bind = bind, .launch = launch, .task = &bind->program->tasks[launch->task]};
        const enum status status = bind_task(&to, err);
        if (status != STATUS_OK)
            return status;
        if (to.n == 0)
            binding_add(&to, WORK_NOTHING);
        const enum status prepared = prepare_works(&to, err);
        if (prepared != STATUS_OK)
            return prepared;
        *bound = (struct bound){.works = to.works, .n_work = to.n};
    }
    *out = *bound;
    return STATUS_OK;
}
