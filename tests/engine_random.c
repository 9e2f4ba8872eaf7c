/*
 * The virtual clock against a slow simulator on random programs.
 *
 * The slow one below goes through time ns by ns and asks everybody at each of them what can be done
 * now; no queue is run ahead of another. What a WAIT is for is found by search in the list of all
 * that is issued. It shares nothing with the engine but the prices.
 *
 * What the engine's causes say of these programs has to sum up to their times, whatever they are.
 */
#include <string.h>

#include "sim/stalls.h"
#include "tests/engine_rig.h"
#include "tests/tap.h"

enum { N_CASES = 300, MAX_SCRIPT = 512, MAX_DRAINS = 8 };

/* One call as the host makes it, and what the slow simulator knows of it. */
struct call {
    uint32_t op, id, step; /* enum instr_op */
    enum stream stream;
    bool drain;            /* in place of op: the host waits for all */
    int target;            /* WAIT, HOST_WAIT: the RECORD it is for, or -1 */
    bool started, done;
    int64_t first_ns, last_ns; /* LAUNCH: no start before, no end before */
    int64_t left;              /* work, in 1/(1000 + c) of a ns */
    int64_t start_ns, end_ns;
};

struct slow {
    const struct rig *rig;
    struct call calls[MAX_SCRIPT];
    int n_call;
    int n_issued; /* the host is at this call */
    int64_t now_ns, host_busy_ns;
    bool deadlock;
};

static const struct task *task_of(const struct slow *slow, int i)
{
    return &slow->rig->program.tasks[slow->calls[i].id];
}

static bool is_collective(const struct slow *slow, int i)
{
    return slow->calls[i].op == INSTR_LAUNCH && !slow->calls[i].drain &&
           task_of(slow, i)->comm != COMM_NONE;
}

/* The last RECORD of the event before call i; where there is none the first after it. */
static int find_target(const struct slow *slow, int i)
{
    for (int j = i - 1; j >= 0; j--) {
        if (slow->calls[j].op == INSTR_RECORD && slow->calls[j].id == slow->calls[i].id)
            return j;
    }
    for (int j = i + 1; j < slow->n_call; j++) {
        if (slow->calls[j].op == INSTR_RECORD && slow->calls[j].id == slow->calls[i].id)
            return j;
    }
    return -1;
}

static bool reached(const struct slow *slow, int i)
{
    const int target = slow->calls[i].target;
    return target >= 0 && slow->calls[target].done;
}

/* All calls before i on its stream are done; same_comm: all collectives before it are. */
static bool heads(const struct slow *slow, int i, bool same_comm)
{
    for (int j = 0; j < i; j++) {
        const struct call *call = &slow->calls[j];
        if (call->done || call->op == INSTR_HOST_WAIT || call->drain)
            continue;
        if (same_comm ? is_collective(slow, j) : call->stream == slow->calls[i].stream)
            return false;
    }
    return true;
}

static void issue_launch(struct slow *slow, struct call *call)
{
    const struct prices *prices = &slow->rig->prices;
    const struct task *task = &slow->rig->program.tasks[call->id];
    const bool unshard = task->kind == TASK_COPY_IN || task->kind == TASK_ALL_GATHER ||
                         task->kind == TASK_COPY_OUT;
    int64_t cost = task->kernels * prices->host_launch_ns;
    int64_t first = task->kernels > 0 ? prices->host_launch_ns : 0;

    if (prices->host_all_gather_ns > 0 && unshard)
        first = cost = task->kind == TASK_ALL_GATHER ? prices->host_all_gather_ns : 0;
    call->first_ns = slow->now_ns + first;
    call->last_ns = slow->now_ns + cost + prices->last_ns[call->id];
    call->left = prices->task_ns[call->id] * (1000 + prices->contention_permille);
    slow->host_busy_ns = slow->now_ns + cost;
}

/* True where the host makes its next call now. */
static bool host_goes_on(struct slow *slow)
{
    if (slow->n_issued == slow->n_call || slow->now_ns < slow->host_busy_ns)
        return false;
    struct call *call = &slow->calls[slow->n_issued];
    if (call->drain) {
        for (int i = 0; i < slow->n_issued; i++) {
            if (!slow->calls[i].done)
                return false;
        }
        call->done = true;
    } else if (call->op == INSTR_HOST_WAIT) {
        if (!reached(slow, slow->n_issued))
            return false;
        call->done = true;
    } else if (call->op == INSTR_LAUNCH) {
        issue_launch(slow, call);
    }
    slow->n_issued++;
    return true;
}

/* True where something about an issued call changes now. */
static bool call_goes_on(struct slow *slow, int i)
{
    struct call *call = &slow->calls[i];

    if (call->done || !heads(slow, i, false))
        return false;
    if (call->op == INSTR_RECORD)
        return call->done = true;
    if (call->op == INSTR_WAIT)
        return call->done = reached(slow, i);
    if (!call->started) {
        if (slow->now_ns < call->first_ns || (is_collective(slow, i) && !heads(slow, i, true)))
            return false;
        call->start_ns = slow->now_ns;
        return call->started = true;
    }
    if (call->left > 0 || slow->now_ns < call->last_ns)
        return false;
    call->end_ns = slow->now_ns;
    return call->done = true;
}

/* One ns passes; false where nobody waits for time, so that nothing will ever change. */
static bool time_goes_on(struct slow *slow)
{
    const int64_t full = 1000 + slow->rig->prices.contention_permille;
    bool beside = false, waiting = slow->now_ns < slow->host_busy_ns;

    for (int i = 0; i < slow->n_issued; i++) {
        const struct call *call = &slow->calls[i];
        beside |= call->started && !call->done && is_collective(slow, i);
        waiting |= call->op == INSTR_LAUNCH && (call->started || slow->now_ns < call->first_ns) &&
                   !call->done;
    }
    for (int i = 0; i < slow->n_issued; i++) {
        struct call *call = &slow->calls[i];
        if (call->op != INSTR_LAUNCH || !call->started || call->done)
            continue;
        const bool slowed = call->stream == STREAM_C && !is_collective(slow, i) && beside;
        call->left -= slowed ? 1000 : full;
    }
    slow->now_ns++;
    return waiting;
}

static void slow_run(struct slow *slow)
{
    for (int i = 0; i < slow->n_call; i++)
        slow->calls[i].target = find_target(slow, i);
    do {
        bool changed;
        do {
            changed = host_goes_on(slow);
            for (int i = 0; i < slow->n_issued; i++)
                changed |= call_goes_on(slow, i);
        } while (changed);
    } while (time_goes_on(slow));
    for (int i = 0; i < slow->n_call; i++)
        slow->deadlock |= !slow->calls[i].done;
}

/* A random program: its sections in the rig, its drains as a placement. */
struct random_case {
    struct rig rig;
    struct placed_op drains[SECTION_N][MAX_DRAINS];
    struct placement placement;
    uint32_t steps;
};

static void random_launch(struct random_case *c, uint64_t *state)
{
    static const uint8_t kinds[] = {TASK_COPY_IN, TASK_ALL_GATHER,    TASK_COPY_OUT,
                                    TASK_FORWARD, TASK_REDUCE_SCATTER, TASK_BACKWARD};
    const enum stream stream = tap_below(state, 5) < 2 ? STREAM_C : tap_below(state, STREAM_N);
    const enum task_kind kind = kinds[tap_below(state, sizeof kinds)];
    const int64_t task_ns = tap_below(state, 8) ? (int64_t)tap_below(state, 40) : 0;

    struct task *task = rig_launch(&c->rig, stream, kind, 0, task_ns);
    task->kernels = (uint16_t)tap_below(state, 4);
    c->rig.last_ns[c->rig.program.n_task - 1] = (int64_t)tap_below(state, 6);
}

/* An event to wait for: one that was recorded, or where wild any, even one that never is. */
static uint32_t random_event(const struct random_case *c, bool wild, uint64_t *state)
{
    return (uint32_t)tap_below(state, c->rig.program.n_event + (wild ? 3 : 0));
}

static void random_section(struct random_case *c, enum section_id section, bool wild,
                           uint64_t *state)
{
    struct program *program = &c->rig.program;
    struct place_step *placed =
        section == SECTION_INIT ? &c->placement.init : &c->placement.steps[section - 1];

    placed->ops = c->drains[section];
    build_section_begin(&c->rig.build, section);
    for (uint64_t n = tap_below(state, 40); n > 0; n--) {
        const uint64_t what = tap_below(state, 100);
        const enum stream stream = tap_below(state, STREAM_N);
        if (what < 45)
            random_launch(c, state);
        else if (what < 65)
            build_record(&c->rig.build, stream);
        else if (program->n_event > 0 && what < 94)
            build_wait(&c->rig.build, stream, random_event(c, wild, state));
        else if (program->n_event > 0 && what < 97)
            rig_host_wait(&c->rig, random_event(c, false, state));
        if (tap_below(state, 40) == 0 && placed->n_op < MAX_DRAINS && n > 1)
            placed->ops[placed->n_op++] = (struct placed_op){
                .op = {.act = SEGMENT_RELEASE}, .instr = program->n_instr};
    }
    build_launch(&c->rig.build, TASK_COPY_INPUT, STREAM_C, NO_UNIT); /* what a drain may precede */
    build_section_end(&c->rig.build);
}

static void random_case_init(struct random_case *c, uint64_t *state)
{
    static const uint32_t contentions[] = {0, 1, 300, 450, 999, 1500};
    const bool wild = tap_below(state, 4) == 0;
    const int64_t launch_ns = (int64_t)tap_below(state, 4);
    const int64_t all_gather_ns = tap_below(state, 2) ? 9 : 0;

    memset(c, 0, sizeof *c);
    rig_init(&c->rig, launch_ns, all_gather_ns, contentions[tap_below(state, 6)]);
    for (uint32_t s = 0; s < SECTION_N; s++)
        random_section(c, (enum section_id)s, wild, state);
    c->rig.program.n_event += 3; /* those that are never recorded */
    c->placement.n_step = 2;
    c->placement.period = 1;
    c->steps = 1 + (uint32_t)tap_below(state, 4);
}

/* All that the host will call, in a row. */
static void slow_init(struct slow *slow, const struct random_case *c)
{
    const struct program *program = &c->rig.program;

    memset(slow, 0, sizeof *slow);
    slow->rig = &c->rig;
    for (uint32_t step = 0; step <= c->steps; step++) {
        const uint32_t section = step < SECTION_STEADY ? step : SECTION_STEADY;
        const struct place_step *placed =
            section == SECTION_INIT ? &c->placement.init : &c->placement.steps[section - 1];
        const uint32_t end = program->sections[section].end;
        for (uint32_t i = program->sections[section].begin; i < end; i++) {
            const struct instr *instr = &program->instrs[i];
            for (uint32_t d = 0; d < placed->n_op; d++) {
                if (placed->ops[d].instr == i)
                    slow->calls[slow->n_call++] = (struct call){.op = INSTR_N, .drain = true};
            }
            slow->calls[slow->n_call++] = (struct call){
                .op = instr->op, .id = instr->id, .step = step, .stream = instr->stream};
        }
    }
}

static uint32_t count_launches(const struct slow *slow)
{
    uint32_t n = 0;

    for (int i = 0; i < slow->n_call; i++)
        n += slow->calls[i].op == INSTR_LAUNCH;
    return n;
}

static bool same_spans(const struct slow *slow, const struct engine *engine)
{
    uint32_t n, k = 0;
    const struct span *spans = engine_spans(engine, &n);

    for (int i = 0; i < slow->n_call && k < n; i++) {
        const struct call *call = &slow->calls[i];
        if (call->op != INSTR_LAUNCH)
            continue;
        const struct span *span = &spans[k++];
        if (span->task != call->id || span->step != call->step ||
            span->start_ns != call->start_ns || span->end_ns != call->end_ns) {
            tap_note("span %u: engine %lld … %lld, slow simulator %lld … %lld", k - 1,
                     (long long)span->start_ns, (long long)span->end_ns,
                     (long long)call->start_ns, (long long)call->end_ns);
            return false;
        }
    }
    return n == count_launches(slow);
}

/* The pieces of the last step's critical path follow one another from its begin to its end. */
static bool path_is_whole(const struct causes *causes, uint32_t step, struct arena *arena)
{
    const int64_t end_ns = causes_end_ns(causes, step);
    int64_t at_ns = causes_end_ns(causes, step - 1);
    struct path path;

    critical_path(causes, step, arena, &path);
    for (uint32_t i = 0; i < path.n; i++) {
        if (path.at[i].begin_ns != at_ns || path.at[i].end_ns <= at_ns)
            return false;
        at_ns = path.at[i].end_ns;
    }
    return path.n == 0 ? end_ns <= at_ns : end_ns == at_ns;
}

/* Time of the last step in which nothing runs on C, asked of the spans alone. */
static int64_t idle_on_c(const struct causes *causes, uint32_t step)
{
    const int64_t end_ns = causes_end_ns(causes, step);
    int64_t idle_ns = 0, free_ns = causes_end_ns(causes, step - 1);

    for (uint32_t i = 0; i < causes->n_span; i++) {
        const struct span *span = &causes->spans[i];
        if (causes->program->tasks[span->task].stream != STREAM_C || span->end_ns <= free_ns)
            continue;
        idle_ns += span->start_ns > free_ns ? span->start_ns - free_ns : 0;
        free_ns = span->end_ns;
    }
    return idle_ns + (end_ns > free_ns ? end_ns - free_ns : 0);
}

/* Stalls cover that time, and each of them is parted without a rest. */
static bool stalls_are_whole(const struct causes *causes, uint32_t step, struct arena *arena)
{
    struct stalls stalls;
    int64_t outside_ns = 0, by_cause_ns = 0;

    stalls_find(causes, step, arena, &stalls);
    for (uint32_t i = 0; i < stalls.n; i++) {
        const struct stall *stall = &stalls.at[i];
        int64_t left_ns = stall->end_ns - stall->begin_ns;
        outside_ns += stall->inside ? 0 : left_ns;
        for (unsigned c = 0; c < STALL_CAUSE_N; c++)
            left_ns -= stall->parts_ns[c];
        if (left_ns != 0)
            return false;
    }
    for (unsigned c = 0; c < STALL_CAUSE_N; c++)
        by_cause_ns += stalls.by_cause_ns[c];
    return by_cause_ns == stalls.idle_ns && outside_ns == idle_on_c(causes, step);
}

static bool is_explained(struct random_case *c)
{
    struct causes causes;

    causes_find(c->rig.engine, &c->rig.arena, &causes);
    return path_is_whole(&causes, c->steps, &c->rig.arena) &&
           stalls_are_whole(&causes, c->steps, &c->rig.arena);
}

/* Was anything longer than its price says for a task alone? */
static bool has_contention(const struct slow *slow)
{
    for (int i = 0; i < slow->n_call; i++) {
        const struct call *call = &slow->calls[i];
        if (call->op == INSTR_LAUNCH && call->end_ns > call->last_ns &&
            call->end_ns - call->start_ns > slow->rig->prices.task_ns[call->id])
            return true;
    }
    return false;
}

/* The same engine once more: equal spans from memory that is used again. */
static bool same_again(struct random_case *c)
{
    uint32_t n, m;
    const struct span *spans = engine_spans(c->rig.engine, &n);
    struct span *before = arena_array(&c->rig.arena, struct span, n + 1);
    if (n > 0)
        memcpy(before, spans, n * sizeof *before);
    rig_run(&c->rig, c->steps, &c->placement, NULL);
    spans = engine_spans(c->rig.engine, &m);
    return n == m && (n == 0 || !memcmp(before, spans, n * sizeof *before));
}

int main(void)
{
    uint64_t state = tap_seed(20240611);
    uint32_t equal = 0, blocked = 0, contended = 0, repeated = 0, explained = 0;
    static struct random_case c;
    static struct slow slow;

    for (uint32_t i = 0; i < N_CASES; i++) {
        struct err err = {0};
        random_case_init(&c, &state);
        slow_init(&slow, &c);
        slow_run(&slow);
        const enum status status = rig_run(&c.rig, c.steps, &c.placement, &err);
        const bool same = slow.deadlock ? status == STATUS_RUN && !strncmp(err.text, "deadlock", 8)
                                        : status == STATUS_OK && same_spans(&slow, c.rig.engine);
        if (!same)
            tap_note("case %u differs: status %d, %s", i, status, err.text);
        equal += same;
        blocked += slow.deadlock;
        contended += !slow.deadlock && has_contention(&slow);
        explained += slow.deadlock || is_explained(&c);
        repeated += same_again(&c);
        rig_release(&c.rig);
    }
    is_int(equal, N_CASES, "the engine is as the slow simulator in all random programs");
    is_int(explained, N_CASES, "critical path and stalls sum to the step and to its idle time");
    is_int(repeated, N_CASES, "a second run gives the same spans");
    tap_note("%u blocked, %u with contention", blocked, contended);
    ok(blocked > N_CASES / 30 && blocked < N_CASES / 3, "some of the programs block for ever");
    ok(contended > N_CASES / 4, "many have contention");
    return tap_done();
}
