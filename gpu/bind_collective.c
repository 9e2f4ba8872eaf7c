/*
 * Collectives: which bytes a rank sends and receives. Sums and rounding are the device's.
 */
#include "gpu/bind_inner.h"

struct comm_group bind_group(const struct plan *plan, enum comm comm, uint32_t rank,
                             uint32_t *ranks)
{
    const uint32_t n = (uint32_t)comm_ranks_of(plan, comm).ranks;
    const uint32_t stride = comm == COMM_REPLICATE ? (uint32_t)plan->shard_ranks : 1;
    const uint32_t me = rank / stride % n;

    for (uint32_t i = 0; i < n; i++)
        ranks[i] = rank - me * stride + i * stride;
    return (struct comm_group){.n = n, .me = me, .ranks = ranks};
}

void bind_groups(const struct program *program, uint32_t rank, struct arena *arena,
                 struct comm_group *groups)
{
    for (uint32_t t = 0; t < program->n_task; t++) {
        const uint8_t comm = program->tasks[t].comm;
        if (comm == COMM_NONE || groups[comm].n > 0)
            continue;
        groups[comm] = bind_group(program->plan, (enum comm)comm, rank,
                                  arena_array(arena, uint32_t, program->plan->world));
    }
}

/* In place: the rank's slice lies where it belongs. */
static void all_gather(struct binding *to, struct work_collective *out, uint32_t group_ranks,
                       uint32_t me)
{
    char *gathered = binding_member(to, binding_find(to, ROLE_GATHERED, 0), 0);

    out->elements = to->task->elements / group_ranks;
    out->recv = gathered;
    out->send = gathered + me * out->elements * dtype_bytes((enum dtype)to->task->dtype);
}

static void reduce_scatter(struct binding *to, struct work_collective *out, uint32_t group_ranks)
{
    enum access_mode mode;

    out->elements = to->task->elements / group_ranks;
    out->send = binding_member(to, binding_source(to), 0);
    out->recv = binding_member(to, binding_target(to, &mode), 0);
}

void bind_collective(struct binding *to)
{
    const struct plan *plan = to->bind->plan;
    const enum comm comm = (enum comm)to->task->comm;
    uint32_t *ranks = arena_array(&to->bind->arena, uint32_t, comm_ranks_of(plan, comm).ranks);
    const struct comm_group group = bind_group(plan, comm, to->bind->setup.rank, ranks);
    struct work_collective collective = {.kind = to->task->kind,
                                         .comm = to->task->comm,
                                         .dtype = to->task->dtype,
                                         .reduction = to->task->reduction,
                                         .divisor = to->task->divisor};
    const int64_t *emulated_ns = to->bind->setup.emulated_ns;
    enum access_mode mode;

    if (emulated_ns && group.n > 1) {
        collective.emulated_ranks = group.n;
        collective.emulated_ns = emulated_ns[to->launch->task];
    }
    if (to->task->kind == TASK_ALL_GATHER) {
        all_gather(to, &collective, group.n, group.me);
    } else if (to->task->kind == TASK_REDUCE_SCATTER) {
        reduce_scatter(to, &collective, group.n);
    } else {
        collective.elements = to->task->elements;
        collective.recv = binding_member(to, binding_target(to, &mode), 0);
        collective.send = collective.recv;
    }
    binding_add(to, WORK_COLLECTIVE)->is.collective = collective;
    if (to->task->kind == TASK_ALL_REDUCE)
        bind_verdict(to, binding_target(to, &mode));
}
