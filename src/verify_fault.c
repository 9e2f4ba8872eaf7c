/*
 * Who is to blame: from a fault in clocks to two tasks and a buffer, and to one line of text.
 *
 * The walk keeps counts, not names, so that it stays fast. What a message needs beyond that is
 * found here by going through the host's instructions again, from the start to the fault.
 */
#include <stdio.h>
#include <string.h>

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

static void find_count(struct verify *v)
{
    struct replay replay = {0};
    const struct instr *instr;
    int32_t left = v->blame.count;

    while (left > 0 && (instr = replay_next(v, &replay)) != NULL)
        if (instr->op == INSTR_LAUNCH && instr->stream == v->blame.stream && --left == 0)
            v->fault.first = instr->id;
}

/* What a search of uses knows at an instruction. */
struct search {
    int32_t count[STREAM_N]; /* tasks so far */
    uint32_t *user;          /* by buffer: the first task of this life that the clock lacks */
    bool *recorded;          /* by buffer: the allocator waits for some of its uses */
    uint32_t task, freed;    /* the first such of what was freed in the pool */
};

static void search_launch(const struct verify *v, struct search *search, const struct instr *instr)
{
    const struct task *task = &v->program->tasks[instr->id];

    if (++search->count[instr->stream] <= v->blame.clock.at[instr->stream])
        return;
    for (uint32_t i = 0; i < task->n_access; i++) {
        uint32_t *user = &search->user[v->program->accesses[task->access + i].buffer];
        if (*user == UINT32_MAX)
            *user = instr->id;
    }
    if (task->body != NO_BODY && search->task == UINT32_MAX &&
        (instr->stream == v->blame.pool || v->frames[task->frame].stream == v->blame.pool))
        search->task = instr->id; /* slots of its own, or that its forward left to it */
}

/* A buffer has a name, which a slot inside a body has not; one that was recorded on a stream is
   blamed where there is no other. */
static void search_free(const struct verify *v, struct search *search, const struct instr *instr)
{
    const bool found = search->freed != NO_BUFFER && !search->recorded[search->freed];

    if (instr->stream != v->blame.pool || found || search->user[instr->id] == UINT32_MAX ||
        (search->freed != NO_BUFFER && search->recorded[instr->id]))
        return;
    search->task = search->user[instr->id];
    search->freed = instr->id;
}

static void find_use(struct verify *v)
{
    const struct blame *blame = &v->blame;
    struct search search = {.user = arena_array(v->arena, uint32_t, v->program->n_buffer),
                            .recorded = arena_array(v->arena, bool, v->program->n_buffer),
                            .task = UINT32_MAX,
                            .freed = NO_BUFFER};
    struct search at_alloc = search;
    struct replay replay = {0};
    const struct instr *instr;

    memset(search.user, 0xff, v->program->n_buffer * sizeof *search.user);
    while ((instr = replay_next(v, &replay)) != NULL) {
        if (instr->op == INSTR_ALLOC)
            search.user[instr->id] = UINT32_MAX;
        if (instr->op == INSTR_ALLOC && instr->id == blame->written)
            at_alloc = search;
        if (instr->op == INSTR_LAUNCH)
            search_launch(v, &search, instr);
        if (instr->op == INSTR_RECORD_STREAM)
            search.recorded[instr->id] = true;
        if (instr->op == INSTR_FREE)
            search_free(v, &search, instr);
    }
    if (blame->how == BLAME_USER) {
        v->fault.first = search.user[v->fault.buffer];
        return;
    }
    if (blame->written == NO_BUFFER)
        at_alloc = search;
    v->fault.first = at_alloc.task;
    v->fault.buffer = at_alloc.freed;
}

bool verify_fault_of(struct verify *v, enum fault_kind kind, uint32_t second, uint32_t buffer,
                     const char *why)
{
    v->fault =
        (struct fault){.kind = kind, .first = UINT32_MAX, .second = second, .buffer = buffer};
    v->blame = (struct blame){.how = BLAME_NOBODY};
    v->why = why;
    return false;
}

bool verify_fault_after(struct verify *v, enum fault_kind kind, uint32_t stream, int32_t count,
                        uint32_t second, uint32_t buffer, const char *why)
{
    verify_fault_of(v, kind, second, buffer, why);
    v->blame = (struct blame){.how = BLAME_COUNT, .stream = stream, .count = count};
    return false;
}

bool verify_fault_use(struct verify *v, enum fault_kind kind, const struct clock *clock,
                      uint32_t second, uint32_t buffer)
{
    verify_fault_of(v, kind, second, buffer, NULL);
    v->blame =
        (struct blame){.how = BLAME_USER, .clock = *clock, .pool = STREAM_N, .written = NO_BUFFER};
    return false;
}

bool verify_fault_reuse(struct verify *v, const struct clock *clock, uint32_t second, uint32_t pool,
                        uint32_t written)
{
    verify_fault_of(v, FAULT_REUSE, second, NO_BUFFER, NULL);
    v->blame =
        (struct blame){.how = BLAME_FREED, .clock = *clock, .pool = pool, .written = written};
    return false;
}

/* Second is a task that the wait would hold back: the next one, of its stream or of any. */
bool verify_fault_event(struct verify *v, const struct instr *wait)
{
    const uint32_t end = v->program->sections[verify_walks[v->walk]].end;
    const struct instr *next = wait + 1;

    while (next < v->program->instrs + end &&
           (next->op != INSTR_LAUNCH || (wait->op == INSTR_WAIT && next->stream != wait->stream)))
        next++;
    return verify_fault_of(v, FAULT_EVENT, next < v->program->instrs + end ? next->id : UINT32_MAX,
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
    const bool slot = v->fault.buffer == NO_BUFFER;

    switch (v->fault.kind) {
    case FAULT_RACE:
        err_set(err, STATUS_RUN, "race on buffer '%s': '%s' does not follow '%s'", buffer, second,
                first);
        break;
    case FAULT_REUSE:
        err_set(err, STATUS_RUN, "memory of %s%s%s may be written by '%s' while '%s' uses it",
                slot ? "a freed slot" : "freed buffer '", buffer, slot ? "" : "'", second, first);
        break;
    case FAULT_UNWRITTEN:
        err_set(err, STATUS_RUN, "buffer '%s' is read by '%s' and nothing wrote it", buffer,
                second);
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

enum status verify_fault_report(struct verify *v, struct err *err)
{
    const struct fault *f = &v->fault;
    char first[PROGRAM_NAME_MAX] = "", second[PROGRAM_NAME_MAX] = "the end of the section";
    char buffer[PROGRAM_NAME_MAX] = "";

    if (v->blame.how == BLAME_COUNT)
        find_count(v);
    else if (v->blame.how != BLAME_NOBODY)
        find_use(v);
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
