/*
 * Other prices and a program with fewer waits; see what_if.h.
 *
 * A placement names instructions by their position. So a wait that is left out becomes a mark, which
 * takes no time, and everything stays where it is.
 */
#include "sim/what_if.h"

#include <string.h>

const char *what_if_name(enum what_if what)
{
    static const char *const names[] = {
#define X(id, name, words) name,
        WHAT_IFS(X)
#undef X
    };
    return names[what];
}

const char *what_if_words(enum what_if what)
{
    static const char *const all[] = {
#define X(id, name, words) words,
        WHAT_IFS(X)
#undef X
    };
    return all[what];
}

static bool is_collective(const struct task *task)
{
    return task->comm != COMM_NONE;
}

static bool is_copy(const struct task *task)
{
    return task->kind == TASK_COPY_IN || task->kind == TASK_COPY_OUT || task->kind == TASK_PACK ||
           task->kind == TASK_POST_REDUCE;
}

/* The same prices, but for such tasks, which cost the device nothing. */
static struct prices without(const struct program *program, const struct prices *prices,
                             bool (*is_free)(const struct task *), struct arena *arena)
{
    struct prices out = *prices;
    int64_t *task_ns = arena_array(arena, int64_t, 2 * (size_t)program->n_task);
    int64_t *last_ns = task_ns + program->n_task;

    for (uint32_t t = 0; t < program->n_task; t++) {
        const bool costs = !is_free(&program->tasks[t]);
        task_ns[t] = costs ? prices->task_ns[t] : 0;
        last_ns[t] = costs ? prices->last_ns[t] : 0;
    }
    out.task_ns = task_ns;
    out.last_ns = last_ns;
    return out;
}

/* By event: is it recorded on a stream that has collectives, and so behind one? */
static bool *events_of_collectives(const struct program *program, struct arena *arena)
{
    bool *events = arena_array(arena, bool, program->n_event);
    bool streams[STREAM_N] = {false};

    for (uint32_t t = 0; t < program->n_task; t++)
        streams[program->tasks[t].stream] |= is_collective(&program->tasks[t]);
    for (uint32_t i = 0; i < program->n_instr; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op == INSTR_RECORD)
            events[instr->id] = streams[instr->stream];
    }
    return events;
}

static struct program without_waits(const struct program *program, struct arena *arena)
{
    const bool *events = events_of_collectives(program, arena);
    struct program out = *program;

    out.instrs = arena_array(arena, struct instr, program->n_instr);
    memcpy(out.instrs, program->instrs, program->n_instr * sizeof *out.instrs);
    for (uint32_t i = 0; i < out.n_instr; i++) {
        struct instr *instr = &out.instrs[i];
        if ((instr->op == INSTR_WAIT || instr->op == INSTR_HOST_WAIT) && events[instr->id])
            *instr = (struct instr){.op = INSTR_MARK};
    }
    return out;
}

enum status what_if_simulate(enum what_if what, const struct program *program,
                             const struct prices *prices, const struct placement *placement,
                             struct arena *arena, struct step_time *out, struct err *err)
{
    struct program changed = *program;
    struct prices other = *prices;

    switch (what) {
    case WHAT_IF_NO_COMM:
        other = without(program, prices, is_collective, arena);
        break;
    case WHAT_IF_INFINITE_HOST:
        other.host_launch_ns = other.host_all_gather_ns = 0;
        break;
    case WHAT_IF_NO_COPY:
        other = without(program, prices, is_copy, arena);
        break;
    case WHAT_IF_PERFECT_OVERLAP:
        changed = without_waits(program, arena);
        break;
    case WHAT_IF_N:
        break;
    }
    return simulate(&changed, &other, placement, arena, out, NULL, err);
}
