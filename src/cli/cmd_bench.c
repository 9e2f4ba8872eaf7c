/*
 * `unshard bench`: how fast the simulator is, on one core of this machine.
 *
 * Each stage of a simulation is run alone, again and again on the same inputs, with its arena reset
 * in between, as a search over many plans would do it. Medians, since a busy machine only ever
 * adds.
 */
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/simulate.h"
#include "src/cli/command.h"
#include "src/cli/prepare.h"
#include "src/exec.h"
#include "src/place.h"
#include "src/schedule/fsdp2.h"
#include "src/summary.h"
#include "src/verify.h"

extern char **environ;

enum { WARM_UP_RUNS = 3, MAX_RUNS = 101 };

struct bench {
    struct prepared prepared;
    struct prices prices;
    struct arena scratch;  /* reset before each run */
    struct engine *engine; /* kept between runs, as a search keeps it */
    uint32_t walked_steps; /* by placement; steps beyond are copies */
};

static enum status run_plan(struct bench *bench, struct err *err)
{
    struct plan plan;
    return plan_resolve(&bench->prepared.model, &bench->prepared.plan.options, &bench->scratch,
                        &plan, err);
}

static enum status run_bodies(struct bench *bench, struct err *err)
{
    struct body_table bodies;
    return body_table_build(&bench->prepared.model, &bench->prepared.bodies.options,
                            &bench->scratch, &bodies, err);
}

static enum status run_build(struct bench *bench, struct err *err)
{
    struct layout layout;
    struct program program;
    enum status status = layout_build(&bench->prepared.plan, &bench->scratch, &layout, err);
    if (status == STATUS_OK)
        schedule_fsdp2(&bench->prepared.plan, &layout, &bench->prepared.bodies, &bench->scratch,
                       &program);
    return status;
}

static enum status run_verify(struct bench *bench, struct err *err)
{
    struct fault fault;
    return verify_program(&bench->prepared.program, &bench->scratch, &fault, err);
}

static enum status run_summary(struct bench *bench, struct err *err)
{
    struct summary summary;
    (void)err;
    summary_of(&bench->prepared.program, &summary);
    return STATUS_OK;
}

static enum status run_price(struct bench *bench, struct err *err)
{
    struct prices prices;
    return cost_price(&bench->prepared.cluster, SPREAD_MID, &bench->prepared.program,
                      &bench->scratch, &prices, err);
}

static enum status run_engine(struct bench *bench, struct err *err)
{
    return exec_program(&bench->prepared.program, EXEC_UNIT, NULL, SIMULATED_STEPS, &engine_backend,
                        bench->engine, err);
}

static enum status run_place(struct bench *bench, struct err *err)
{
    struct alloc_config config = alloc_config_default();
    struct placement *placement = arena_alloc(&bench->scratch, sizeof *placement);
    (void)err;
    place_program(&bench->prepared.program, &config, &bench->scratch, placement);
    bench->walked_steps = placement->n_walked;
    return STATUS_OK;
}

/* A whole run of the program in a process of its own; STATUS_DEVICE where that cannot be done. */
static enum status run_cold(struct bench *bench, struct err *err)
{
    char *const argv[] = {(char[]){"unshard"}, (char[]){"sim"}, (char[]){"llama3-8b"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int how;
    (void)bench;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed || waitpid(child, &how, 0) != child || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
        return err_set(err, STATUS_DEVICE, "this system does not let a program start itself");
    return STATUS_OK;
}

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
    X(COLD, "cold_start_us", 11, run_cold, "a process: unshard sim llama3-8b")

enum stage_id {
#define X(id, key, runs, run, covers) STAGE_##id,
    STAGES(X)
#undef X
        STAGE_N
};

static const struct stage {
    const char *key;
    unsigned runs;
    enum status (*run)(struct bench *bench, struct err *err);
    const char *covers;
} stages[STAGE_N] = {
#define X(id, key, runs, run, covers) {key, runs, run, covers},
    STAGES(X)
#undef X
};

/* What is shown: stages, and what follows from them. */
struct line {
    const char *key;
    double us, goal_us; /* NAN: not measurable here; a goal of 0: none */
    const char *covers;
};
enum { LINE_N = STAGE_N + 3 };

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum status measure(struct bench *bench, const struct stage *stage, double *out,
                           struct err *err)
{
    int64_t times[MAX_RUNS];
    for (unsigned run = 0; run < WARM_UP_RUNS + stage->runs; run++) {
        arena_reset(&bench->scratch);
        int64_t start = now_ns();
        enum status status = stage->run(bench, err);
        if (status != STATUS_OK)
            return status;
        if (run >= WARM_UP_RUNS)
            times[run - WARM_UP_RUNS] = now_ns() - start;
    }
    qsort(times, stage->runs, sizeof *times, compare_ns);
    *out = (double)times[stage->runs / 2] * 1e-3;
    return STATUS_OK;
}

/* In stage order; a cold start that cannot be measured here is left out, not an error. */
static enum status measure_all(struct bench *bench, double us[STAGE_N], struct err *err)
{
    for (unsigned i = 0; i < STAGE_N; i++) {
        enum status status = measure(bench, &stages[i], &us[i], err);
        if (status == STATUS_DEVICE && i == STAGE_COLD)
            us[i] = NAN;
        else if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static void fill_lines(const struct bench *bench, const double us[STAGE_N],
                       struct line lines[LINE_N])
{
    unsigned n = 0;
    double engine_us = us[STAGE_ENGINE_RUN] / SIMULATED_STEPS;
    for (unsigned i = 0; i < STAGE_N; i++)
        lines[n++] = (struct line){stages[i].key, us[i], 0, stages[i].covers};
    lines[STAGE_VERIFY].goal_us = 100;
    lines[STAGE_COLD].goal_us = 20000;
    lines[n++] = (struct line){"engine_us", engine_us, 0, "engine_run_us / 3: one step"};
    lines[n++] = (struct line){"place_us", us[STAGE_PLACE_RUN] / bench->walked_steps, 1000,
                               "place_run_us / the steps it walks: one expanded step"};
    lines[n++] = (struct line){"candidate_us", us[STAGE_BUILD] + us[STAGE_SUMMARY] + engine_us, 100,
                               "build_us + summary_us + engine_us"};
}

static void print_text(const struct bench *bench, const struct line lines[LINE_N],
                       const struct term *term, struct text *out)
{
    const struct prepared *prepared = &bench->prepared;
    text_add(out, "%s%s%s on %llu GPUs: %u units, %u instructions, %u steps placed; medians\n\n",
             term->strong, prepared->model.name, term->plain,
             (unsigned long long)prepared->plan.world, prepared->plan.n_unit,
             prepared->program.n_instr, bench->walked_steps);
    text_add(out, "%-16s%12s%12s  %s\n", "", "us", "goal", "what it covers");
    for (unsigned i = 0; i < LINE_N; i++) {
        char goal[32] = "";
        if (!isfinite(lines[i].us))
            continue;
        if (lines[i].goal_us > 0)
            snprintf(goal, sizeof goal, "< %.0f", lines[i].goal_us);
        text_add(out, "%-16s%12.1f%12s  %s\n", lines[i].key, lines[i].us, goal, lines[i].covers);
    }
}

static void print_json(const struct bench *bench, const struct line lines[LINE_N], struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.bench/1");
    json_add_string(root, "benchmark", "sim");
    json_add_string(root, "model", bench->prepared.model.name);
    json_add_u64(root, "gpus", bench->prepared.plan.world);
    json_add_u64(root, "units", bench->prepared.plan.n_unit);
    json_add_u64(root, "instructions", bench->prepared.program.n_instr);
    json_add_u64(root, "placed_steps", bench->walked_steps);
    for (unsigned i = 0; i < LINE_N; i++) {
        if (isfinite(lines[i].us))
            json_add_decimal(root, lines[i].key, lines[i].us, 3);
    }
    json_print(root, out);
    json_free(root);
}

/* The plan that all is measured on; whatever else it needs are the defaults of `sim`. */
static enum status prepare_bench(struct bench *bench, struct err *err)
{
    char *argv[] = {(char[]){"sim"}, (char[]){"llama3-405b"}, (char[]){"--gpus"}, (char[]){"512"},
                    NULL};
    struct options options;
    enum status status = options_parse(command_find("sim"), 4, argv, &options, err);
    if (status == STATUS_OK)
        status = prepare(&options, &bench->prepared, err);
    if (status == STATUS_OK)
        status = cost_price(&bench->prepared.cluster, SPREAD_MID, &bench->prepared.program,
                            &bench->prepared.arena, &bench->prices, err);
    if (status == STATUS_OK)
        bench->engine = engine_new(&bench->prices, &bench->prepared.arena);
    return status;
}

enum status cmd_bench(struct options *options, struct output *out, struct err *err)
{
    struct bench bench = {0};
    double us[STAGE_N];
    struct line lines[LINE_N];
    arena_init(&bench.scratch);
    arena_init(&bench.prepared.arena);
    enum status status = prepare_bench(&bench, err);
    if (status == STATUS_OK)
        status = measure_all(&bench, us, err);
    if (status != STATUS_OK)
        goto out;
    fill_lines(&bench, us, lines);
    if (option_given(options, OPTION_JSON))
        print_json(&bench, lines, &out->result);
    else
        print_text(&bench, lines, &out->term, &out->result);
out:
    arena_release(&bench.scratch);
    prepared_release(&bench.prepared);
    return status;
}
