/*
 * Who is to blame: from a fault in clocks to two tasks and a buffer, and to one line of text.
 *
 * The walk keeps counts, not names, so that it stays fast. What a message needs beyond that is found
 * here by going through the host's instructions again, from the start to the fault.
 */
#include <stdio.h>

#include "src/program_print.h"
#include "src/verify_inner.h"

struct replay {
    uint32_t walk, instr; /* the instruction to come */
};

/* The next instruction before the fault, or NULL. */
static const struct instr *replay_next(const struct verify *v, struct replay *replay)
{
    const struct section *sections = v->program->sections;

    while (replay->walk < v->walk &&
           (replay->walk == 0 || replay->instr == sections[verify_walks[replay->walk]].end))
        replay->instr = sections[verify_walks[++replay->walk]].begin;
    if (replay->walk == v->walk && replay->instr == v->instr)
        return NULL;
    return &v->program->instrs[replay->instr++];
}

static bool uses_buffer(const struct program *program, uint32_t task, uint32_t buffer)
{
    const struct task *t = &program->tasks[task];
    for (uint32_t i = 0; i < t->n_access; i++)
        if (program->accesses[t->access + i].buffer == buffer)
            return true;
    return false;
}

static void find_first(struct verify *v, struct replay *replay)
{
    const struct instr *instr;
    int32_t left = v->blame.count;

    while (left > 0 && (instr = replay_next(v, replay)) != NULL)
        if (instr->op == INSTR_LAUNCH && instr->stream == v->blame.stream && --left == 0)
            v->fault.first = instr->id;
}

/* Stays NO_BUFFER where the first task used a slot inside its body. */
static void find_freed(struct verify *v, struct replay *replay)
{
    const struct blame *blame = &v->blame;
    const struct instr *instr;
    uint32_t freed = NO_BUFFER;

    while ((instr = replay_next(v, replay)) != NULL) {
        if (instr->op == INSTR_ALLOC && instr->id == blame->written)
            v->fault.buffer = freed;
        if (freed == NO_BUFFER && instr->op == INSTR_FREE && instr->stream == blame->pool &&
            uses_buffer(v->program, v->fault.first, instr->id))
            freed = instr->id;
    }
    if (blame->written == NO_BUFFER)
        v->fault.buffer = freed;
}

bool fault_of(struct verify *v, enum fault_kind kind, uint32_t second, uint32_t buffer,
              const char *why)
{
    v->fault = (struct fault){
        .kind = kind, .first = UINT32_MAX, .second = second, .buffer = buffer};
    v->blame = (struct blame){.stream = STREAM_N, .pool = STREAM_N};
    v->why = why;
    return false;
}

bool fault_after(struct verify *v, enum fault_kind kind, uint32_t stream, int32_t count,
                 uint32_t second, uint32_t buffer, const char *why)
{
    fault_of(v, kind, second, buffer, why);
    v->blame.stream = stream;
    v->blame.count = count;
    return false;
}

/* The first stream of which clock lacks a task. */
static uint32_t missing(const struct clock *clock, const struct clock *all)
{
    uint32_t stream = 0;
    while (clock->at[stream] >= all->at[stream])
        stream++;
    return stream;
}

bool fault_order(struct verify *v, enum fault_kind kind, const struct clock *clock,
                 const struct clock *all, uint32_t second, uint32_t buffer)
{
    const uint32_t stream = missing(clock, all);
    return fault_after(v, kind, stream, all->at[stream], second, buffer, NULL);
}

bool fault_reuse(struct verify *v, const struct clock *clock, const struct clock *freed,
                 uint32_t second, uint32_t pool, uint32_t written)
{
    fault_order(v, FAULT_REUSE, clock, freed, second, NO_BUFFER);
    v->blame.pool = pool;
    v->blame.written = written;
    return false;
}

/* Second is a task that the wait would hold back: the next one, of its stream or of any. */
bool fault_event(struct verify *v, const struct instr *wait)
{
    const uint32_t end = v->program->sections[verify_walks[v->walk]].end;
    const struct instr *next = wait + 1;

    while (next < v->program->instrs + end &&
           (next->op != INSTR_LAUNCH ||
            (wait->op == INSTR_WAIT && next->stream != wait->stream)))
        next++;
    return fault_of(v, FAULT_EVENT, next < v->program->instrs + end ? next->id : UINT32_MAX,
                    wait->id, NULL);
}

/* Of tasks and buffer what there is. */
static void report_why(const struct verify *v, const char *first, const char *second,
                       const char *buffer, struct err *err)
{
    const struct fault *f = &v->fault;
    const char *sole = f->second != UINT32_MAX ? second : first;
    char who[2 * PROGRAM_NAME_MAX + 16] = "";

    if (f->first != UINT32_MAX && f->second != UINT32_MAX)
        snprintf(who, sizeof who, ": '%s' after '%s'", second, first);
    else if (f->first != UINT32_MAX || f->second != UINT32_MAX)
        snprintf(who, sizeof who, ": '%s'", sole);
    if (f->buffer != NO_BUFFER)
        err_set(err, STATUS_RUN, "buffer '%s' %s%s", buffer, v->why, who);
    else
        err_set(err, STATUS_RUN, "%s%s", v->why, who);
}

static void report_what(const struct verify *v, const char *first, const char *second,
                        const char *buffer, struct err *err)
{
    switch (v->fault.kind) {
    case FAULT_RACE:
        err_set(err, STATUS_RUN, "race on buffer '%s': '%s' does not follow '%s'", buffer, second,
                first);
        break;
    case FAULT_REUSE:
        err_set(err, STATUS_RUN, "memory of '%s', freed, may be written by '%s' while '%s' uses it",
                buffer, second, first);
        break;
    case FAULT_UNWRITTEN:
        err_set(err, STATUS_RUN, "buffer '%s' is read by '%s' and nothing wrote it", buffer, second);
        break;
    case FAULT_DEAD:
        err_set(err, STATUS_RUN, "buffer '%s' is used by '%s' and not allocated", buffer, second);
        break;
    case FAULT_EVENT:
        err_set(err, STATUS_RUN, "wait for event %u that nothing recorded, before '%s'",
                v->fault.buffer, second);
        break;
    default:
        report_why(v, first, second, buffer, err);
    }
}

enum status fault_report(struct verify *v, struct err *err)
{
    const struct fault *f = &v->fault;
    char first[PROGRAM_NAME_MAX] = "", second[PROGRAM_NAME_MAX] = "the end of the section";
    char buffer[PROGRAM_NAME_MAX] = "a slot of its body";

    struct replay replay = {0};

    if (v->blame.stream != STREAM_N)
        find_first(v, &replay);
    if (v->blame.pool != STREAM_N)
        find_freed(v, &replay);
    if (f->first != UINT32_MAX)
        program_task_name(v->program, f->first, first);
    if (f->second != UINT32_MAX)
        program_task_name(v->program, f->second, second);
    if (f->buffer != NO_BUFFER && f->kind != FAULT_EVENT)
        program_buffer_name(v->program, f->buffer, buffer);
    report_what(v, first, second, buffer, err);
    err_prefix(err, "section '%s'", section_name(verify_walks[v->walk]));
    return STATUS_RUN;
}
