/*
 * Which of two simulated runs is faster for sure; see compare.h.
 *
 * The history keeps times and not what moves them, so both are simulated again. That holds for the
 * runs only where this version still finds their times.
 */
#include <inttypes.h>

#include "src/cli/compare.h"
#include "src/cli/evaluate.h"

/* What a run's options are filled into. */
static const struct command sim = {.name = "sim", .bit = COMMAND_SIM, .operand = "model"};

struct again {
    int64_t step_ns[SPREAD_N];
    struct paired_shift shift;
};

static enum status simulate_again(const struct stored_run *stored, struct options *options,
                                  struct prepared *prepared, struct again *out, struct err *err)
{
    struct sim_report report;
    enum status status = evaluate(options, prepared, &report, err);

    if (status == STATUS_OK &&
        (report.time[SPREAD_MID].step_ns != stored->run.metrics[RUN_METRIC_STEP] ||
         !stored_run_same_cluster(stored, prepared)))
        status = err_set(err, STATUS_NO, "run %" PRId64 " takes another time today", stored->id);
    if (status == STATUS_OK)
        status = paired_simulate(&prepared->program, report.prices,
                                 report.timed ? NULL : &report.placement, &out->shift, err);
    for (unsigned spread = 0; spread < SPREAD_N && status == STATUS_OK; spread++)
        out->step_ns[spread] = report.time[spread].step_ns;
    return status;
}

static enum status open_again(const struct stored_run *stored, struct arena *arena,
                              struct again *out, struct err *err)
{
    char *argv[] = {(char[]){"sim"}, arena_strdup(arena, stored->run.model)};
    struct prepared prepared = {0};
    struct options options;
    enum status status = options_parse(&sim, sizeof argv / sizeof *argv, argv, &options, err);

    if (status == STATUS_OK)
        status = stored_run_open(stored, &options, arena, &prepared, err);
    if (status == STATUS_OK)
        status = simulate_again(stored, &options, &prepared, out, err);
    prepared_release(&prepared);
    return status;
}

static bool is_simulated(const struct run *run)
{
    return run->kind == RUN_SIM || run->kind == RUN_PLAN;
}

void compare_paired(struct comparison *comparison, struct arena *arena)
{
    struct compare_paired *paired = arena_array(arena, struct compare_paired, 1);
    const struct stored_run *runs = comparison->runs;
    struct again again[COMPARE_RUNS];
    struct err err = {0};

    if (!is_simulated(&runs[0].run) || !is_simulated(&runs[1].run) || !comparison->same_cluster ||
        comparison->same_program)
        return;
    comparison->paired = paired;
    for (int i = 0; i < COMPARE_RUNS; i++)
        if (open_again(&runs[i], arena, &again[i], &err) != STATUS_OK) {
            paired->unknown = arena_strdup(arena, err.text);
            return;
        }
    paired->apart_ns = again[0].step_ns[SPREAD_MID] - again[1].step_ns[SPREAD_MID];
    paired->uncertainty_ns = paired_uncertainty_ns(&again[0].shift, &again[1].shift);
    paired->tie = paired_tie(again[0].step_ns, &again[0].shift, again[1].step_ns, &again[1].shift);
}
