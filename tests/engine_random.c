/*
 * The virtual clock against a slow simulator on random programs of one to six communicators.
 *
 * What the engine's causes say of these programs has to sum up to their times, whatever they are, and
 * who asks on the way how far streams have come changes none of them.
 */
#include <string.h>

#include "sim/stalls.h"
#include "src/exec.h"
#include "tests/slow_engine.h"
#include "tests/tap.h"

enum { N_CASES = 400, MAX_DRAINS = 8 };

/* A random program: its sections in the rig, its drains as a placement. */
struct random_case {
    struct rig rig;
    struct placed_op drains[SECTION_N][MAX_DRAINS];
    struct placement placement;
    uint32_t steps;
    bool wild; /* events may be waited for before they are recorded */
};

/* Any number of communicators, with any ranks: which of them share a wire differs. */
static void random_comms(struct plan *plan, uint64_t *state)
{
    plan->gpus_per_node = 1 + tap_below(state, 4);
    plan->shard_ranks = 2 + tap_below(state, 4);
    plan->options.separate_reduce_comm = tap_below(state, 2);
    plan->options.replicas = 1 + tap_below(state, 3);
    plan->options.reshard = tap_below(state, 2) ? RESHARD_RANKS : RESHARD_YES;
    plan->options.reshard_ranks = 2 + tap_below(state, 4);
}

static enum comm random_comm(const struct plan *plan, uint64_t *state)
{
    const enum comm comm = (enum comm)tap_below(state, COMM_N);
    return comm_ranks_of(plan, comm).ranks > 1 ? comm : COMM_SHARD;
}

static void random_launch(struct random_case *c, uint64_t *state)
{
    static const uint8_t kinds[] = {TASK_COPY_IN, TASK_ALL_GATHER,     TASK_COPY_OUT,
                                    TASK_FORWARD, TASK_REDUCE_SCATTER, TASK_BACKWARD};
    const enum stream stream = tap_below(state, 5) < 2 ? STREAM_C : tap_below(state, STREAM_N);
    const enum task_kind kind = kinds[tap_below(state, sizeof kinds)];
    const int64_t task_ns = tap_below(state, 8) ? (int64_t)tap_below(state, 40) : 0;

    struct task *task = rig_launch(&c->rig, stream, kind, 0, task_ns);
    if (task->comm != COMM_NONE)
        task->comm = random_comm(&c->rig.plan, state);
    task->kernels = (uint32_t)tap_below(state, 4);
    c->rig.last_ns[c->rig.program.n_task - 1] = (int64_t)tap_below(state, 6);
}

/* An event to wait for: one that was recorded, or where wild any, even one that never is. */
static uint32_t random_event(const struct random_case *c, bool wild, uint64_t *state)
{
    return (uint32_t)tap_below(state, c->rig.program.n_event + (wild ? 3 : 0));
}

static void random_section(struct random_case *c, enum section_id section, uint64_t *state)
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
            build_wait(&c->rig.build, stream, random_event(c, c->wild, state));
        else if (program->n_event > 0 && what < 97)
            rig_host_wait(&c->rig, random_event(c, false, state));
        if (tap_below(state, 40) == 0 && placed->n_op < MAX_DRAINS && n > 1)
            placed->ops[placed->n_op++] = (struct placed_op){
                .op = {.act = tap_below(state, 3) ? SEGMENT_RELEASE : SEGMENT_RESERVE},
                .instr = program->n_instr};
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
    c->wild = wild;
    rig_init(&c->rig, launch_ns, all_gather_ns, contentions[tap_below(state, 6)]);
    c->rig.prices.host_retry_ns = tap_below(state, 2) ? 1 + (int64_t)tap_below(state, 60) : 0;
    random_comms(&c->rig.plan, state);
    for (uint32_t s = 0; s < SECTION_N; s++)
        random_section(c, (enum section_id)s, state);
    c->rig.program.n_event += 3; /* those that are never recorded */
    c->placement.n_step = 2;
    c->placement.period = 1;
    c->steps = 1 + (uint32_t)tap_below(state, 4);
}

/* All that the host will call, in a row. */
static void slow_init(struct slow_engine *slow, const struct random_case *c)
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
                const bool drain = placed->ops[d].op.act == SEGMENT_RELEASE;
                if (placed->ops[d].instr == i)
                    slow->calls[slow->n_call++] =
                        (struct call){.op = INSTR_N, .drain = drain, .takes = !drain};
            }
            slow->calls[slow->n_call++] = (struct call){
                .op = instr->op, .id = instr->id, .step = step, .stream = instr->stream};
        }
    }
}

static uint32_t count_launches(const struct slow_engine *slow)
{
    uint32_t n = 0;

    for (int i = 0; i < slow->n_call; i++)
        n += slow->calls[i].op == INSTR_LAUNCH;
    return n;
}

static bool same_spans(const struct slow_engine *slow, const struct engine *engine)
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
                     (long long)span->start_ns, (long long)span->end_ns, (long long)call->start_ns,
                     (long long)call->end_ns);
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

/* Did any collective, or any other task, work longer than its price says for one alone? */
static bool is_slowed(const struct slow_engine *slow, bool collective)
{
    for (int i = 0; i < slow->n_call; i++) {
        const struct call *call = &slow->calls[i];
        if (call->op == INSTR_LAUNCH && slow_engine_is_collective(slow, i) == collective &&
            call->worked_ns - call->start_ns > slow->rig->prices.task_ns[call->id])
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

/* Points of streams, and what was said of them while the host was still issuing. */
enum { MAX_POINTS = 4096, MAX_ANSWERS = 4096 };

struct asker {
    struct engine *engine;
    const struct program *program;
    uint64_t *state;
    uint32_t points[MAX_POINTS];
    struct answer {
        uint32_t point;
        int64_t ns;
        bool reached;
    } answers[MAX_ANSWERS];
    uint32_t n_point, n_answer;
};

/* Of any points, when the host has made so many launches of a task of this kind. */
static void ask(struct asker *asker, enum task_kind kind, uint32_t kernels)
{
    const int64_t ns = engine_host_ns(asker->engine, kind, kernels);

    while (asker->n_point < MAX_POINTS && tap_below(asker->state, 3) == 0)
        asker->points[asker->n_point++] =
            engine_point(asker->engine, (enum stream)tap_below(asker->state, STREAM_N));
    while (asker->n_point > 0 && asker->n_answer < MAX_ANSWERS && tap_below(asker->state, 2)) {
        struct answer *answer = &asker->answers[asker->n_answer++];
        answer->point = asker->points[tap_below(asker->state, asker->n_point)];
        answer->ns = ns;
        answer->reached = engine_reached(asker->engine, answer->point, ns);
    }
}

/* A task of C may be asked within, since others that depend on it start no sooner than it ends. */
static enum status asker_launch(void *self, const struct launch *launch, struct err *err)
{
    struct asker *asker = self;
    const struct task *task = &asker->program->tasks[launch->task];
    const bool within = task->stream == STREAM_C && task->comm == COMM_NONE;
    const uint32_t most = within || task->kernels == 0 ? task->kernels : 1;

    for (uint32_t kernels = 0; kernels <= most; kernels++)
        ask(asker, (enum task_kind)task->kind, kernels);
    return engine_backend.launch(asker->engine, launch, err);
}

static enum status asker_open(void *self, const struct program *program,
                              const struct placement *placement, struct err *err)
{
    return engine_backend.open(((struct asker *)self)->engine, program, placement, err);
}

static enum status asker_segment(void *self, const struct segment_op *op, struct err *err)
{
    ask(self, TASK_FORWARD, 0);
    return engine_backend.segment(((struct asker *)self)->engine, op, err);
}

static enum status asker_record(void *self, uint32_t event, enum stream stream, struct err *err)
{
    ask(self, TASK_FORWARD, 0);
    return engine_backend.record(((struct asker *)self)->engine, event, stream, err);
}

static enum status asker_wait(void *self, uint32_t event, enum stream stream, struct err *err)
{
    ask(self, TASK_FORWARD, 0);
    return engine_backend.wait(((struct asker *)self)->engine, event, stream, err);
}

static enum status asker_host_wait(void *self, uint32_t event, struct err *err)
{
    ask(self, TASK_FORWARD, 0);
    return engine_backend.host_wait(((struct asker *)self)->engine, event, err);
}

static enum status asker_step_end(void *self, uint32_t step, struct err *err)
{
    return engine_backend.step_end(((struct asker *)self)->engine, step, err);
}

static enum status asker_finish(void *self, struct err *err)
{
    return engine_backend.finish(((struct asker *)self)->engine, err);
}

static void asker_close(void *self)
{
    engine_backend.close(((struct asker *)self)->engine);
}

static const struct backend_ops asker_backend = {
    .name = "asker",
    .open = asker_open,
    .segment = asker_segment,
    .launch = asker_launch,
    .record = asker_record,
    .wait = asker_wait,
    .host_wait = asker_host_wait,
    .step_end = asker_step_end,
    .finish = asker_finish,
    .close = asker_close,
};

/* What was said early is what the whole run says of the same point and time. */
static bool answers_hold(const struct asker *asker)
{
    for (uint32_t i = 0; i < asker->n_answer; i++) {
        const struct answer *answer = &asker->answers[i];
        if (engine_reached(asker->engine, answer->point, answer->ns) != answer->reached) {
            tap_note("point %u at %lld ns: early %d", answer->point, (long long)answer->ns,
                     (int)answer->reached);
            return false;
        }
    }
    return true;
}

/* The same program, and someone who asks on the way: equal spans, or the same deadlock. */
static bool same_when_asked(const struct random_case *c, enum status status, struct asker *asker,
                            uint64_t *state)
{
    struct arena arena;
    struct err err = {0};
    uint32_t n, m;

    arena_init(&arena);
    asker->engine = engine_new(&c->rig.prices, &arena);
    asker->program = &c->rig.program;
    asker->state = state;
    asker->n_point = asker->n_answer = 0;
    const enum status asked = exec_program(&c->rig.program, EXEC_UNIT, &c->placement, c->steps,
                                           &asker_backend, asker, &err);
    const struct span *spans = engine_spans(c->rig.engine, &n);
    const struct span *others = engine_spans(asker->engine, &m);
    bool same = asked == status;
    if (same && status == STATUS_OK)
        same = n == m && (n == 0 || !memcmp(spans, others, n * sizeof *spans)) &&
               (c->wild || answers_hold(asker));
    arena_release(&arena);
    return same;
}

int main(void)
{
    uint64_t state = tap_seed(20240611);
    uint32_t equal = 0, blocked = 0, contended = 0, shared = 0, repeated = 0, explained = 0;
    uint32_t asked = 0, n_answer = 0;
    static struct random_case c;
    static struct slow_engine slow;
    static struct asker asker;

    for (uint32_t i = 0; i < N_CASES; i++) {
        struct err err = {0};
        random_case_init(&c, &state);
        slow_init(&slow, &c);
        slow_engine_run(&slow);
        const enum status status = rig_run(&c.rig, c.steps, &c.placement, &err);
        const bool same = slow.deadlock ? status == STATUS_RUN && !strncmp(err.text, "deadlock", 8)
                                        : status == STATUS_OK && same_spans(&slow, c.rig.engine);
        if (!same)
            tap_note("case %u differs: status %d, %s", i, status, err.text);
        equal += same;
        blocked += slow.deadlock;
        contended += !slow.deadlock && is_slowed(&slow, false);
        shared += !slow.deadlock && is_slowed(&slow, true);
        explained += slow.deadlock || is_explained(&c);
        asked += same_when_asked(&c, status, &asker, &state);
        n_answer += asker.n_answer;
        repeated += same_again(&c);
        rig_release(&c.rig);
    }
    is_int(equal, N_CASES, "the engine is as the slow simulator in all random programs");
    is_int(explained, N_CASES, "critical path and stalls sum to the step and to its idle time");
    is_int(repeated, N_CASES, "a second run gives the same spans");
    is_int(asked, N_CASES, "who asks how far streams are changes nothing, and is told the truth");
    ok(n_answer > 20 * N_CASES, "which is asked often");
    tap_note("%u blocked, %u with contention, %u with a shared wire", blocked, contended, shared);
    ok(blocked > N_CASES / 30 && blocked < N_CASES / 3, "some of the programs block for ever");
    ok(contended > N_CASES / 4, "many have contention");
    ok(shared > N_CASES / 5, "in many, collectives share a wire");
    return tap_done();
}
