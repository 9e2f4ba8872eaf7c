/*
 * The proof that a program is safe; see verify.h, and verify_inner.h for why clocks prove it.
 *
 * One walk in host order, as often as a run needs to show all that a later step could meet: init,
 * the first step, a steady one, and one that follows a steady one. Here are streams, events and
 * memory; it knows no times, sizes or addresses. The walk stops at the first fault.
 */
#include "src/verify.h"

#include "src/verify_inner.h"

_Static_assert((int)INSTR_ALLOC < INSTR_LAUNCH && (int)INSTR_FREE < INSTR_LAUNCH,
               "what comes before LAUNCH is ALLOC or FREE");

#define X(id, name) [STREAM_##id] = {.at[STREAM_##id] = 1},
const struct clock verify_one[] = {STREAMS(X)};
#undef X

const uint8_t verify_walks[] = {SECTION_N, SECTION_INIT, SECTION_FIRST, SECTION_STEADY,
                                SECTION_STEADY};

static inline bool walk_alloc(struct verify *v, const struct instr *instr)
{
    struct life *life = &v->lives[instr->id];
    const bool by_body = (instr->flags & INSTR_BY_BODY) != 0;

    if ((life->flags & ALIVE) != 0)
        return verify_fault_of(v, FAULT_LIFETIME, UINT32_MAX, instr->id, "is allocated twice");
    life->uses = v->pools[instr->stream];
    life->written = 0;
    life->born = 0;
    life->users = 0;
    life->flags = by_body ? ALIVE | BY_BODY : ALIVE;
    v->n_alive++;
    return !by_body || verify_body_alloc(v, instr->id);
}

/* What a FREE of a recorded buffer leaves to others: uses that none of its events lies behind. */
static void forget_recorded(const struct verify *v, struct life *life)
{
    for (uint32_t users = life->users; users != 0; users &= users - 1)
        clock_forget(&life->uses, &v->streams[__builtin_ctz(users)]);
}

static bool walk_record_stream(struct verify *v, const struct instr *instr)
{
    struct life *life = &v->lives[instr->id];

    if ((life->flags & ALIVE) == 0)
        return verify_fault_of(v, FAULT_LIFETIME, UINT32_MAX, instr->id,
                               "is recorded where it is not allocated");
    life->users |= (uint16_t)(1u << instr->stream);
    return true;
}

static inline bool walk_free(struct verify *v, const struct instr *instr)
{
    struct life *life = &v->lives[instr->id];

    if ((life->flags & ALIVE) == 0)
        return verify_fault_of(v, FAULT_LIFETIME, UINT32_MAX, instr->id,
                               "is freed where it is not allocated");
    if ((instr->flags & INSTR_BY_BODY) != 0 && !verify_body_free(v, instr->id))
        return false;
    if ((life->flags & BY_BODY) != 0 && life->born != v->program->buffers[instr->id].n_member)
        return verify_fault_of(v, FAULT_BODY, UINT32_MAX, instr->id,
                               "is freed before all of it was born");
    if (life->users != 0)
        forget_recorded(v, life);
    clock_join(&v->pools[instr->stream], &life->uses);
    life->written = 0;
    life->flags = 0;
    v->n_alive--;
    return true;
}

/* A read of what is not allocated or not written; written is 0 in both cases. */
static bool fault_unwritten(struct verify *v, const struct life *life, uint32_t task,
                            uint32_t buffer)
{
    const bool alive = (life->flags & ALIVE) != 0;
    return verify_fault_of(v, alive ? FAULT_UNWRITTEN : FAULT_DEAD, task, buffer, NULL);
}

/* The first write of a buffer may lack uses of what its memory was before, a later one its own. */
static bool fault_write(struct verify *v, const struct clock *clock, const struct life *life,
                        uint32_t task, uint32_t buffer)
{
    if (life->written == 0)
        return verify_fault_reuse(v, clock, task, v->program->buffers[buffer].pool, buffer);
    return verify_fault_use(v, FAULT_RACE, clock, task, buffer);
}

/* A read follows the last write; a write follows all uses, before its buffer's ALLOC and since. */
static inline bool walk_access(struct verify *v, const struct clock *clock, uint32_t stream,
                               const struct access *access, uint32_t task)
{
    struct life *life = &v->lives[access->buffer];

    if ((access->mode & ACCESS_READ) != 0) {
        if (life->written == 0)
            return fault_unwritten(v, life, task, access->buffer);
        if (clock->at[life->writer] < life->written)
            return verify_fault_after(v, FAULT_RACE, life->writer, life->written, task,
                                      access->buffer, NULL);
    }
    if ((access->mode & ACCESS_WRITE) != 0) {
        if ((life->flags & ALIVE) == 0)
            return verify_fault_of(v, FAULT_DEAD, task, access->buffer, NULL);
        if (!clock_follows(clock, &life->uses))
            return fault_write(v, clock, life, task, access->buffer);
        life->written = clock->at[stream];
        life->writer = (uint16_t)stream;
        life->uses = *clock;
    } else {
        clock_join(&life->uses, clock);
    }
    return true;
}

/* A collective also follows what its communicator did before, on whatever stream. */
static inline bool walk_launch(struct verify *v, const struct instr *instr)
{
    const struct task *task = &v->program->tasks[instr->id];
    const struct access *access = &v->program->accesses[task->access];
    const struct access *end = access + task->n_access;
    struct clock *clock = &v->streams[instr->stream];

    clock_count(clock, instr->stream);
    if (task->comm != COMM_NONE) {
        clock_join(clock, &v->comms[task->comm]);
        v->comms[task->comm] = *clock;
    }
    if (task->body != NO_BODY && !verify_body_launch(v, clock, instr))
        return false;
    for (; access < end; access++)
        if (!walk_access(v, clock, instr->stream, access, instr->id))
            return false;
    return true;
}

/* What the host waits for lies before all that it issues afterwards, on every stream. */
static bool walk_host_wait(struct verify *v, const struct instr *instr)
{
    if (!v->recorded[instr->id])
        return verify_fault_event(v, instr);
    for (int s = 0; s < STREAM_N; s++)
        clock_join(&v->streams[s], &v->events[instr->id]);
    return true;
}

static inline bool walk_wait(struct verify *v, const struct instr *instr)
{
    if (!v->recorded[instr->id])
        return verify_fault_event(v, instr);
    clock_join(&v->streams[instr->stream], &v->events[instr->id]);
    return true;
}

static inline void walk_record(struct verify *v, const struct instr *instr)
{
    v->events[instr->id] = v->streams[instr->stream];
    v->recorded[instr->id] = true;
}

/* Compares and no switch: its jump is what the walk would spend most of its time on. */
static inline bool walk_instr(struct verify *v, const struct instr *instr)
{
    if (v->beside && !verify_body_settle(v, instr))
        return false;
    if (instr->op < INSTR_LAUNCH)
        return instr->op == INSTR_ALLOC ? walk_alloc(v, instr) : walk_free(v, instr);
    if (instr->op == INSTR_LAUNCH)
        return walk_launch(v, instr);
    if (instr->op == INSTR_RECORD)
        walk_record(v, instr);
    if (instr->op == INSTR_WAIT)
        return walk_wait(v, instr);
    if (instr->op == INSTR_RECORD_STREAM)
        return walk_record_stream(v, instr);
    return instr->op != INSTR_HOST_WAIT || walk_host_wait(v, instr);
}

/*
 * Buffers of scope STEP must be gone. A steady walk is looked through only where it changes how
 * many buffers there are: should it have freed one of scope RUN in place of a STEP one, the next
 * would do so again, and fail.
 */
static bool walk_end(struct verify *v, uint32_t n_alive)
{
    const struct program *program = v->program;
    const bool steady = verify_walks[v->walk] == SECTION_STEADY;

    if (v->beside && !verify_body_settle(v, NULL))
        return false;
    for (uint32_t b = 0; (!steady || v->n_alive != n_alive) && b < program->n_buffer; b++)
        if ((v->lives[b].flags & ALIVE) != 0 && program->buffers[b].scope == SCOPE_STEP)
            return verify_fault_of(v, FAULT_LIFETIME, UINT32_MAX, b,
                                   "is alive at the end of its section");
    return verify_body_end(v);
}

static bool walk_section(struct verify *v)
{
    const struct instr *instrs = v->program->instrs;
    const struct section *section = &v->program->sections[verify_walks[v->walk]];
    const struct instr *end = instrs + section->end;
    const uint32_t n_alive = v->n_alive;

    for (const struct instr *instr = instrs + section->begin; instr < end; instr++)
        if (!walk_instr(v, instr)) {
            v->instr = (uint32_t)(instr - instrs);
            return false;
        }
    v->instr = section->end;
    return walk_end(v, n_alive);
}

enum status verify_program(const struct program *program, struct arena *arena, struct fault *fault,
                           struct err *err)
{
    struct verify v = {
        .program = program,
        .arena = arena,
        .events = arena_take(arena, program->n_event * sizeof(struct clock)),
        .recorded = arena_array(arena, bool, program->n_event),
        .lives = arena_array(arena, struct life, program->n_buffer),
        .frames = arena_array(arena, struct frame_life, program->n_frame),
        .acts = arena_array(arena, struct acts, program->bodies->n_body),
    };

    v.cap_alloc = SLOT_GRAD + 1; /* a group for each unit whose gradients one body bears */
    for (uint32_t s = 0; s < program->plan->n_segment; s++)
        if (SLOT_GRAD + 1 + program->plan->segments[s].n_inner > v.cap_alloc)
            v.cap_alloc = SLOT_GRAD + 1 + program->plan->segments[s].n_inner;
    v.allocs = arena_array(arena, uint32_t, v.cap_alloc);
    verify_body_acts(&v);
    for (v.walk = 1; v.walk <= WALKS; v.walk++) {
        if (walk_section(&v))
            continue;
        verify_fault_report(&v, err);
        *fault = v.fault;
        return STATUS_RUN;
    }
    return STATUS_OK;
}
