/*
 * One pass in host order, which is an order of the graph: whatever a node follows was issued before
 * it. See slow_path.h.
 */
#include "tests/slow_path.h"

#include <stdlib.h>
#include <string.h>

/* The earliest moment at which each is free, and how long it has been busy. */
struct clocks {
    const struct program *program;
    const struct prices *prices;
    int64_t host_ns, end_ns;
    int64_t stream_ns[STREAM_N], comm_ns[COMM_N], *event_ns;
    int64_t stream_busy_ns[STREAM_N], comm_busy_ns[COMM_N];
};

static void raise_to(int64_t *ns, int64_t least)
{
    if (*ns < least)
        *ns = least;
}

/* An unshard costs the host one sum, at its all-gather, where there is one and a price for it. */
static bool is_in_sum(const struct clocks *clocks, const struct task *task)
{
    return clocks->prices->host_all_gather_ns > 0 && clocks->program->plan->shard_ranks > 1 &&
           (task->kind == TASK_COPY_IN || task->kind == TASK_ALL_GATHER ||
            task->kind == TASK_COPY_OUT);
}

/* The host issues: it reaches the first kernel, behind which the task may start, and the last. */
static int64_t issue(struct clocks *clocks, const struct task *task)
{
    const int64_t before_ns = clocks->host_ns, launch_ns = clocks->prices->host_launch_ns;

    if (is_in_sum(clocks, task)) {
        if (task->kind == TASK_ALL_GATHER)
            clocks->host_ns += clocks->prices->host_all_gather_ns;
        return clocks->host_ns;
    }
    clocks->host_ns += task->kernels * launch_ns;
    return before_ns + (task->kernels > 0 ? launch_ns : 0);
}

/* A task follows its stream and communicator, and ends no earlier than its last kernel can. */
static void launch(struct clocks *clocks, uint32_t id)
{
    const struct task *task = &clocks->program->tasks[id];
    const int64_t task_ns = clocks->prices->task_ns[id];
    int64_t *stream_ns = &clocks->stream_ns[task->stream];

    raise_to(stream_ns, issue(clocks, task));
    if (task->comm != COMM_NONE)
        raise_to(stream_ns, clocks->comm_ns[task->comm]);
    *stream_ns += task_ns;
    raise_to(stream_ns, clocks->host_ns + clocks->prices->last_ns[id]);
    raise_to(&clocks->end_ns, *stream_ns);
    clocks->stream_busy_ns[task->stream] += task_ns;
    if (task->comm == COMM_NONE)
        return;
    clocks->comm_ns[task->comm] = *stream_ns;
    clocks->comm_busy_ns[task->comm] += task_ns;
}

static void walk(struct clocks *clocks, enum section_id id)
{
    const struct section *section = &clocks->program->sections[id];

    for (uint32_t i = section->begin; i < section->end; i++) {
        const struct instr *in = &clocks->program->instrs[i];
        if (in->op == INSTR_LAUNCH)
            launch(clocks, in->id);
        else if (in->op == INSTR_RECORD)
            clocks->event_ns[in->id] = clocks->stream_ns[in->stream];
        else if (in->op == INSTR_WAIT)
            raise_to(&clocks->stream_ns[in->stream], clocks->event_ns[in->id]);
        else if (in->op == INSTR_HOST_WAIT)
            raise_to(&clocks->host_ns, clocks->event_ns[in->id]);
    }
}

static int64_t highest(const int64_t *ns, size_t n)
{
    int64_t most_ns = 0;
    for (size_t i = 0; i < n; i++)
        raise_to(&most_ns, ns[i]);
    return most_ns;
}

void slow_path_of(const struct program *program, const struct prices *prices, uint32_t steps,
                  struct slow_path *out)
{
    struct clocks clocks = {.program = program,
                            .prices = prices,
                            .event_ns = calloc(program->n_event + 1, sizeof(int64_t))};

    if (clocks.event_ns == NULL)
        abort();
    walk(&clocks, SECTION_INIT);
    for (uint32_t step = 1; step <= steps; step++)
        walk(&clocks, step == 1 ? SECTION_FIRST : SECTION_STEADY);
    *out = (struct slow_path){.longest_ns = clocks.end_ns,
                              .busiest_stream_ns = highest(clocks.stream_busy_ns, STREAM_N),
                              .busiest_comm_ns = highest(clocks.comm_busy_ns, COMM_N)};
    for (int comm = 0; comm < COMM_N; comm++)
        out->n_comm += clocks.comm_busy_ns[comm] > 0;
    free(clocks.event_ns);
}
