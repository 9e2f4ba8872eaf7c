/*
 * `unshard bench sim`: how fast the simulator is.
 *
 * Each stage of a simulation is run alone, its arena reset in between, as a search over many plans
 * would do it.
 */
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cli/bench.h"
#include "src/exec.h"
#include "src/schedule/system.h"
#include "src/summary.h"
#include "src/verify.h"

extern char **environ;

struct bench {
    struct prepared prepared;
    struct prices prices;
    struct arena scratch;  /* reset before each run */
    struct engine *engine; /* kept between runs, as a search keeps it */
    uint32_t walked_steps; /* by placement; steps beyond are copies */
};

static void reset_scratch(void *self)
{
    struct bench *bench = self;
    arena_reset(&bench->scratch);
}

static enum status run_plan(void *self, struct err *err)
{
    struct bench *bench = self;
    struct plan plan;
    return plan_resolve(&bench->prepared.model, &bench->prepared.plan.options, &bench->scratch,
                        &plan, err);
}

static enum status run_bodies(void *self, struct err *err)
{
    struct bench *bench = self;
    struct body_table bodies;
    return body_table_build(&bench->prepared.model, bench->prepared.plan.policy,
                            &bench->prepared.bodies.options, &bench->scratch, &bodies, err);
}

static enum status run_build(void *self, struct err *err)
{
    struct bench *bench = self;
    struct layout layout;
    struct program program;
    enum status status = layout_build(&bench->prepared.plan, &bench->scratch, &layout, err);
    if (status == STATUS_OK)
        schedule_program(&bench->prepared.plan, &layout, &bench->prepared.bodies, &bench->scratch,
                         &program);
    return status;
}

static enum status run_verify(void *self, struct err *err)
{
    struct bench *bench = self;
    struct fault fault;
    return verify_program(&bench->prepared.program, &bench->scratch, &fault, err);
}

static enum status run_summary(void *self, struct err *err)
{
    struct bench *bench = self;
    struct summary summary;
    (void)err;
    summary_of(&bench->prepared.program, &summary);
    return STATUS_OK;
}

static enum status run_price(void *self, struct err *err)
{
    struct bench *bench = self;
    struct prices prices;
    return cost_price(&bench->prepared.cluster, SPREAD_MID, &bench->prepared.program,
                      &bench->scratch, &prices, err);
}

static enum status run_engine(void *self, struct err *err)
{
    struct bench *bench = self;
    return exec_program(&bench->prepared.program, EXEC_UNIT, NULL, SIMULATED_STEPS, &engine_backend,
                        bench->engine, err);
}

static enum status run_place(void *self, struct err *err)
{
    struct bench *bench = self;
    struct alloc_config config = alloc_config_default();
    struct placement *placement = arena_alloc(&bench->scratch, sizeof *placement);
    (void)err;
    place_program(&bench->prepared.program, &config, &bench->scratch, placement);
    bench->walked_steps = placement->n_walked;
    return STATUS_OK;
}

/* A whole run of the program in a process of its own; STATUS_DEVICE where that cannot be done. */
static enum status run_cold(void *self, struct err *err)
{
    char *const argv[] = {(char[]){"unshard"}, (char[]){"sim"}, (char[]){"llama3-8b"},
                          (char[]){"--no-db"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int how;
    (void)self;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed || waitpid(child, &how, 0) != child || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
        return err_set(err, STATUS_DEVICE, "this system does not let a program start itself");
    return STATUS_OK;
}

enum { WARM_UP_RUNS = 3 };

/* X(ENUM, key, runs (odd), run, what it covers) */
#define STAGES(X)                                                                         \
    X(BODIES, "bodies_us", 101, run_bodies, "tapes of all bodies; once per model")        \
    X(PLAN, "plan_us", 101, run_plan, "names to units; once per plan")                    \
    X(BUILD, "build_us", 101, run_build, "resolved plan to layout and unit program")      \
    X(VERIFY, "verify_us", 101, run_verify, "init, first and two steady steps")           \
    X(SUMMARY, "summary_us", 101, run_summary, "requested bytes, from body summaries")    \
    X(PRICE, "price_us", 101, run_price, "every task, at one of low, mid and high")       \
    X(ENGINE_RUN, "engine_run_us", 101, run_engine, "init and three steps on the engine") \
    X(PLACE_RUN, "place_run_us", 11, run_place, "init and steps until addresses repeat")  \
    X(COLD, "cold_start_us", 11, run_cold, "a process: unshard sim llama3-8b --no-db")

enum stage_id {
#define X(id, key, runs, run, covers) STAGE_##id,
    STAGES(X)
#undef X
        STAGE_N
};

static const struct {
    const char *key;
    struct bench_stage stage;
    const char *covers;
} stages[STAGE_N] = {
#define X(id, key, runs, run, covers) {key, {WARM_UP_RUNS, runs, reset_scratch, run}, covers},
    STAGES(X)
#undef X
};

enum { LINE_N = STAGE_N + 3 };

/* In stage order; a cold start that cannot be measured here is left out, not an error. */
static enum status measure_all(struct bench *bench, double us[STAGE_N], struct err *err)
{
    for (unsigned i = 0; i < STAGE_N; i++) {
        struct bench_time time = {0};
        enum status status = bench_measure(&stages[i].stage, bench, &time, err);
        us[i] = time.wall_s * 1e6;
        if (status == STATUS_DEVICE && i == STAGE_COLD)
            us[i] = NAN;
        else if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Stages, and what follows from them. */
static void fill_lines(const struct bench *bench, const double us[STAGE_N],
                       struct bench_line lines[LINE_N])
{
    unsigned n = 0;
    double engine_us = us[STAGE_ENGINE_RUN] / SIMULATED_STEPS;
    double place_us = us[STAGE_PLACE_RUN] / bench->walked_steps;
    double candidate_us = us[STAGE_BUILD] + us[STAGE_SUMMARY] + engine_us;
    for (unsigned i = 0; i < STAGE_N; i++)
        lines[n++] = (struct bench_line){stages[i].key, BENCH_US, us[i], 0, stages[i].covers};
    lines[STAGE_VERIFY].goal = 100;
    lines[STAGE_COLD].goal = 20000;
    lines[n++] =
        (struct bench_line){"engine_us", BENCH_US, engine_us, 0, "engine_run_us / 3: one step"};
    lines[n++] = (struct bench_line){"place_us", BENCH_US, place_us, 1000,
                                     "place_run_us / steps walked: one expanded step"};
    lines[n++] = (struct bench_line){"candidate_us", BENCH_US, candidate_us, 100,
                                     "build_us + summary_us + engine_us"};
}

static void print(const struct bench *bench, const struct bench_line lines[LINE_N],
                  const struct options *options, struct output *out)
{
    const struct bench_fact facts[] = {
        {"instructions", "instructions", bench->prepared.program.n_instr},
        {"placed_steps", "steps placed", bench->walked_steps},
    };
    const struct bench_report report = {
        .benchmark = "sim",
        .prepared = &bench->prepared,
        .facts = facts,
        .lines = lines,
        .n_fact = sizeof facts / sizeof *facts,
        .n_line = LINE_N,
    };
    bench_print(&report, options, out);
}

static enum status prepare_bench(struct bench *bench, struct err *err)
{
    struct options options;
    enum status status = bench_prepare(&options, &bench->prepared, err);
    if (status == STATUS_OK)
        status = cost_price(&bench->prepared.cluster, SPREAD_MID, &bench->prepared.program,
                            &bench->prepared.arena, &bench->prices, err);
    if (status == STATUS_OK)
        bench->engine = engine_new(&bench->prices, &bench->prepared.arena);
    return status;
}

enum status bench_sim(const struct options *options, struct output *out, struct err *err)
{
    struct bench bench = {0};
    double us[STAGE_N];
    struct bench_line lines[LINE_N];
    arena_init(&bench.scratch);
    enum status status = prepare_bench(&bench, err);
    if (status == STATUS_OK)
        status = measure_all(&bench, us, err);
    if (status == STATUS_OK) {
        fill_lines(&bench, us, lines);
        print(&bench, lines, options, out);
    }
    arena_release(&bench.scratch);
    prepared_release(&bench.prepared);
    return status;
}
