/*
 * The comparison notices: programs, layouts and expectations that agree are changed a little, at
 * random places, and every change has to be found.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/oracle_compare.h"
#include "tests/oracle_folder.h"
#include "tests/tap.h"

enum { TRIES = 8 }; /* of each mutation of each case */

/* A case that compares, its program, and both as they were. */
struct specimen {
    struct oracle_case of;
    struct prepared *prepared;
    struct instr *instrs;
    struct task *tasks;
    struct param_layout *params;
    uint32_t n_param; /* in the layout */
    uint64_t *state;
};

/* What stands in the steady section and in the recorded lists. */
static bool is_listed(const struct program *program, const struct instr *instr)
{
    if (instr->op == INSTR_FREE)
        return program->buffers[instr->id].role == ROLE_FULL;
    if (instr->op != INSTR_LAUNCH)
        return false;
    const unsigned kind = program->tasks[instr->id].kind;
    return kind == TASK_COPY_IN || kind == TASK_ALL_GATHER || kind == TASK_COPY_OUT ||
           kind == TASK_PACK || kind == TASK_REDUCE_SCATTER || kind == TASK_ALL_REDUCE;
}

/* The first listed instruction from this one on, or the end of the section. */
static uint32_t next_listed(const struct program *program, uint32_t i)
{
    while (i < program->sections[SECTION_STEADY].end && !is_listed(program, &program->instrs[i]))
        i++;
    return i;
}

static uint32_t random_listed(const struct specimen *s)
{
    const struct program *program = &s->prepared->program;
    const struct section *steady = &program->sections[SECTION_STEADY];
    const uint32_t at = next_listed(
        program, steady->begin + (uint32_t)tap_below(s->state, steady->end - steady->begin));
    return at < steady->end ? at : next_listed(program, steady->begin);
}

/* A task of the lists, or NULL where the instruction is none. */
static struct task *random_task(struct specimen *s)
{
    const struct program *program = &s->prepared->program;
    const struct instr *instr = &program->instrs[random_listed(s)];
    return instr->op == INSTR_LAUNCH ? &program->tasks[instr->id] : NULL;
}

static bool swap_events(struct specimen *s)
{
    struct program *program = &s->prepared->program;
    const uint32_t i = random_listed(s), j = next_listed(program, i + 1);
    if (j == program->sections[SECTION_STEADY].end)
        return false;
    const struct instr first = program->instrs[i];
    program->instrs[i] = program->instrs[j];
    program->instrs[j] = first;
    return true;
}

static bool drop_event(struct specimen *s)
{
    s->prepared->program.instrs[random_listed(s)].op = INSTR_RECORD;
    return true;
}

static bool change_elements(struct specimen *s)
{
    struct task *task = random_task(s);
    if (task)
        task->elements += tap_below(s->state, 2) ? 1 : -UINT64_C(1);
    return task;
}

static bool change_dtype(struct specimen *s)
{
    struct task *task = random_task(s);
    if (task)
        task->dtype = (uint8_t)((task->dtype + 1 + tap_below(s->state, DTYPE_N - 1)) % DTYPE_N);
    return task;
}

static bool change_reduction(struct specimen *s)
{
    struct task *task = random_task(s);
    if (!task || task->reduction == REDUCE_NONE)
        return false;
    task->reduction = (uint8_t)(task->reduction % (REDUCTION_N - 1) + 1);
    return true;
}

static bool change_unit(struct specimen *s)
{
    struct task *task = random_task(s);
    const uint32_t n = s->prepared->plan.n_unit;
    if (!task || n == 1)
        return false;
    task->unit = (uint16_t)((task->unit + 1 + tap_below(s->state, n - 1)) % n);
    return true;
}

static struct param_layout *random_place(struct specimen *s)
{
    return &s->prepared->layout.params[tap_below(s->state, s->n_param)];
}

static bool change_pad(struct specimen *s)
{
    struct param_layout *place = random_place(s);
    place->shard_elements += place->row_elements;
    return true;
}

static bool change_chunk(struct specimen *s)
{
    random_place(s)->chunk_rows++;
    return true;
}

static bool change_offset(struct specimen *s)
{
    if (s->prepared->plan.shard_ranks == 1) /* such layouts have none */
        return false;
    random_place(s)->gather_offset_bytes += dtype_bytes(DTYPE_FP32);
    return true;
}

static bool change_count(struct specimen *s)
{
    s->of.counts.of[tap_below(s->state, 2) ? ORACLE_ALL_GATHER : ORACLE_REDUCE_SCATTER]++;
    return true;
}

static bool change_divisor(struct specimen *s)
{
    *(tap_below(s->state, 2) ? &s->of.divide.pre : &s->of.divide.post) *= 2;
    return true;
}

static bool change_bound(struct specimen *s)
{
    s->of.peaks[tap_below(s->state, s->of.n_peak)].bound_bytes *= tap_below(s->state, 2) ? 2 : 0.5;
    return true;
}

/* What has to be stated for it to show; changes something and returns true, or finds nothing. */
static const struct {
    const char *name;
    enum oracle_check shows;
    bool (*change)(struct specimen *s);
} mutations[] = {
    {"two events swapped", ORACLE_CHECK_EVENTS, swap_events},
    {"an event dropped", ORACLE_CHECK_EVENTS, drop_event},
    {"elements off by one", ORACLE_CHECK_EVENTS, change_elements},
    {"another dtype", ORACLE_CHECK_EVENTS, change_dtype},
    {"another reduction", ORACLE_CHECK_EVENTS, change_reduction},
    {"another unit", ORACLE_CHECK_EVENTS, change_unit},
    {"a row of padding too much", ORACLE_CHECK_PARAMS, change_pad},
    {"a chunk too large", ORACLE_CHECK_PARAMS, change_chunk},
    {"an offset that is wrong", ORACLE_CHECK_PARAMS, change_offset},
    {"a count off by one", ORACLE_CHECK_COUNTS, change_count},
    {"another divisor", ORACLE_CHECK_DIVIDE, change_divisor},
    {"half or double a bound", ORACLE_CHECK_PEAKS, change_bound},
};
enum { N_MUTATIONS = sizeof mutations / sizeof *mutations };

struct tally {
    uint64_t state;
    uint32_t tried[N_MUTATIONS], noticed[N_MUTATIONS];
};

/* The checks that agree, as bits. */
static unsigned agreement(const struct specimen *s)
{
    struct arena arena;
    struct text why;
    unsigned agree = 0;

    arena_init(&arena);
    text_init(&why);
    const struct oracle_subject subject = oracle_subject_of(&s->of, s->prepared, &arena);
    for (int check = 0; check < ORACLE_CHECK_N; check++)
        if (oracle_check_stated(&s->of, (enum oracle_check)check) &&
            oracle_agrees(&subject, (enum oracle_check)check, &why))
            agree |= 1u << check;
    text_release(&why);
    arena_release(&arena);
    return agree;
}

static void restore(struct specimen *s, const struct oracle_case *of, struct oracle_peak *peaks)
{
    const struct program *program = &s->prepared->program;

    memcpy(program->instrs, s->instrs, program->n_instr * sizeof *s->instrs);
    memcpy(program->tasks, s->tasks, program->n_task * sizeof *s->tasks);
    memcpy(s->prepared->layout.params, s->params, s->n_param * sizeof *s->params);
    s->of = *of;
    s->of.peaks = peaks;
    if (of->n_peak > 0)
        memcpy(peaks, of->peaks, of->n_peak * sizeof *peaks);
}

static void try_mutation(struct specimen *s, const struct oracle_case *of, int m,
                         struct tally *tally)
{
    struct oracle_peak peaks[16];

    if (!oracle_check_stated(of, mutations[m].shows))
        return;
    restore(s, of, peaks);
    const unsigned before = agreement(s);
    const uint64_t state = *s->state;
    if (!mutations[m].change(s))
        return;
    tally->tried[m]++;
    if (agreement(s) != before)
        tally->noticed[m]++;
    else
        tap_note("%s: %s is not noticed; state %#llx", of->name, mutations[m].name,
                 (unsigned long long)state);
}

static void *copy(struct arena *arena, const void *from, size_t bytes)
{
    return memcpy(arena_take(arena, bytes), from, bytes);
}

static void mutate_case(const struct oracle_case *of, struct oracle_plan *plan, struct tally *tally)
{
    const struct program *program = &plan->prepared.program;
    struct arena arena;

    arena_init(&arena);
    struct specimen s = {
        .prepared = &plan->prepared,
        .instrs = copy(&arena, program->instrs, program->n_instr * sizeof *program->instrs),
        .tasks = copy(&arena, program->tasks, program->n_task * sizeof *program->tasks),
        .state = &tally->state,
    };
    for (uint32_t u = 0; u < plan->prepared.plan.n_unit; u++) {
        const struct unit_layout *unit = plan->prepared.layout.units[u];
        if (unit->param + unit->n_param > s.n_param)
            s.n_param = unit->param + unit->n_param;
    }
    s.params = copy(&arena, plan->prepared.layout.params, s.n_param * sizeof *s.params);
    for (int m = 0; m < N_MUTATIONS; m++)
        for (int i = 0; i < TRIES; i++)
            try_mutation(&s, of, m, tally);
    arena_release(&arena);
}

/* Recorded lists name all kinds of event, so that every change of one shows. */
static void mutate_file(const struct oracle_file *file, void *context)
{
    for (uint32_t i = 0; i < file->n_case; i++) {
        const struct oracle_case *of = &file->cases[i];
        struct oracle_plan plan;
        if (of->n_arg == 0 || !(of->events.stated || of->n_peak > 0))
            continue;
        if (oracle_plan_init(of, &plan, NULL) == STATUS_OK)
            mutate_case(of, &plan, context);
        oracle_plan_release(&plan);
    }
}

int main(void)
{
    struct tally tally = {.state = tap_seed(20261129)};

    oracle_folder_walk(mutate_file, &tally);
    for (int m = 0; m < N_MUTATIONS; m++) {
        ok(tally.tried[m] > 0, "%s: tried %u times", mutations[m].name, tally.tried[m]);
        is_int(tally.noticed[m], tally.tried[m], "%s: noticed each time", mutations[m].name);
    }
    return tap_done();
}
