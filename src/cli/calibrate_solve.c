/*
 * One machine's constants from its rows; see calibrate_runs.h. Programs are built once and priced
 * anew for each guess.
 */
#include <math.h>
#include <string.h>

#include "sim/simulate.h"
#include "src/cli/calibrate_runs.h"
#include "src/cli/factor_fit.h"
#include "src/cli/prepare.h"

static const double NEAR_LIMIT_WEIGHT = 0.25;
/* Before it has said anything a platform's runs may miss by this, as sure as if so many had. */
static const double UNSEEN_ERROR = 0.05, UNSEEN_RUNS = 2;
/* Of normal errors a tenth lies outside. */
static const double NINE_IN_TEN = 1.645;
/* Of what rows say against what is known without them: less, and a constant stays the preset's. */
static const double LEAST_WORTH = 0.3;

/* A row as a program, which points into itself. */
struct model_row {
    struct options options;
    struct prepared prepared;
    double retries_s; /* of the allocator: what they add to a step by the presets */
};

struct model_rows {
    struct model_row *rows;
    uint32_t n;
    struct arena scratch;
};

static enum status row_open(const struct validated_row *of, struct arena *arena,
                            struct model_row *out, struct err *err)
{
    struct row_command command;
    enum status status = validate_command(of->run, NULL, NULL, arena, &command, err);

    if (status == STATUS_OK)
        status = validate_options(&command, &out->options, err);
    if (status == STATUS_OK)
        status = prepare(&out->options, &out->prepared, err);
    if (status == STATUS_OK && out->prepared.cluster.has_prices)
        status = err_set(err, STATUS_INPUT, "row '%.80s': cluster '%s' has prices, no rates to fit",
                         of->run->id, out->prepared.cluster.name);
    return status;
}

static enum status row_predict(const struct model_row *row, const double *x, struct arena *scratch,
                               double *seconds, struct err *err)
{
    struct cluster cluster = row->prepared.cluster;
    const struct program *program = &row->prepared.program;
    struct prices prices;
    struct step_time time;

    fit_move(&cluster, x);
    enum status status = cost_price(&cluster, SPREAD_MID, program, scratch, &prices, err);
    if (status == STATUS_OK)
        status = simulate(program, &prices, NULL, scratch, &time, NULL, err);
    if (status == STATUS_OK)
        *seconds = (double)time.step_ns * 1e-9 + row->retries_s;
    arena_reset(scratch);
    return status;
}

/*
 * The prediction by the presets has them, a step that is simulated without memory has not: the
 * difference is theirs. Under FSDP1 how many there are depends on times, which constants do change:
 * that is left out.
 */
static enum status row_find_retries(const struct validated_row *of, struct arena *scratch,
                                    struct model_row *row, struct err *err)
{
    static const double presets[FIT_CONSTANT_N] = {0};
    double seconds = 0;
    const enum status status = row_predict(row, presets, scratch, &seconds, err);

    row->retries_s = of->predicted_s - seconds;
    return status;
}

static enum status predict(void *self, const double *x, double *seconds, struct err *err)
{
    struct model_rows *model = self;
    enum status status = STATUS_OK;

    for (uint32_t r = 0; r < model->n && status == STATUS_OK; r++)
        status = row_predict(&model->rows[r], x, &model->scratch, &seconds[r], err);
    return status;
}

static void rows_release(struct model_rows *model)
{
    for (uint32_t r = 0; r < model->n; r++)
        prepared_release(&model->rows[r].prepared);
    arena_release(&model->scratch);
}

/* To be released on every path. */
static enum status rows_open(struct machine_fit *fit, struct arena *arena, struct model_rows *model,
                             struct err *err)
{
    enum status status = STATUS_OK;

    *model = (struct model_rows){.rows = arena_array(arena, struct model_row, fit->n)};
    arena_init(&model->scratch);
    while (model->n < fit->n && status == STATUS_OK) {
        struct model_row *row = &model->rows[model->n];
        status = row_open(fit->rows[model->n], arena, row, err);
        row->retries_s = 0;
        if (status == STATUS_OK)
            status = row_find_retries(fit->rows[model->n], &model->scratch, row, err);
        model->n++;
        fit->attention[option_number(&row->options, OPTION_ATTENTION)] = true;
    }
    return status;
}

/* ---- which constants move ------------------------------------------------------------------------ */

static void set_limits(const struct model_rows *model, struct factor_fit *problem)
{
    for (uint32_t c = 0; c < FIT_CONSTANT_N; c++) {
        problem->sd[c] = fit_constant_sd((enum fit_constant)c);
        problem->least[c] = -INFINITY;
        problem->most[c] = INFINITY;
    }
    for (uint32_t r = 0; r < model->n; r++)
        fit_bounds(&model->rows[r].prepared.cluster, problem->least, problem->most);
}

/* The one that rows say most of and that does not move yet; FIT_CONSTANT_N: none. */
static uint32_t next_best(const double *worth, const bool *moves)
{
    uint32_t best = FIT_CONSTANT_N;

    for (uint32_t c = 0; c < FIT_FP8; c++)
        if (!moves[c] && worth[c] >= LEAST_WORTH &&
            (best == FIT_CONSTANT_N || worth[c] > worth[best]))
            best = c;
    return best;
}

/* Products first, and never more constants than runs: a single one says how fast products are. */
static enum status choose(struct machine_fit *out, struct factor_fit *problem, struct arena *arena,
                          struct err *err)
{
    double worth[FIT_CONSTANT_N];
    const enum status status = factor_fit_worth(problem, arena, worth, err);
    const uint32_t most = out->n < FIT_MOST_CONSTANTS ? out->n : FIT_MOST_CONSTANTS;

    if (status != STATUS_OK)
        return status;
    out->moves[FIT_GEMM] = true;
    for (uint32_t n = 1, c; n < most && (c = next_best(worth, out->moves)) < FIT_CONSTANT_N; n++)
        out->moves[c] = true;
    out->moves[FIT_FP8] = out->n > 1 && worth[FIT_FP8] >= LEAST_WORTH;
    for (uint32_t c = 0; c < FIT_CONSTANT_N; c++)
        problem->sd[c] = out->moves[c] ? problem->sd[c] : 0;
    return STATUS_OK;
}

/* ---- how far runs lie from it -------------------------------------------------------------------- */

/* Of rows that have memory to spare, as of a normal error; one outlier counts as no more than that. */
static double spread_of(const struct factor_fit *problem, const struct machine_fit *fit)
{
    double sum = UNSEEN_RUNS * UNSEEN_ERROR * UNSEEN_ERROR, n = UNSEEN_RUNS;

    for (uint32_t r = 0; r < problem->n_row; r++) {
        const double error = fabs(log(fit->seconds[r] / problem->measured_s[r]));
        const double counted = fmin(error, 2 * UNSEEN_ERROR);
        if (fit->rows[r]->near_memory_limit)
            continue;
        sum += counted * counted;
        n++;
    }
    return NINE_IN_TEN * sqrt(sum / n);
}

static enum status solve(struct machine_fit *out, struct factor_fit *problem, struct arena *arena,
                         struct err *err)
{
    enum status status;

    out->seconds = arena_array(arena, double, problem->n_row);
    if ((status = choose(out, problem, arena, err)) ||
        (status = factor_fit_solve(problem, arena, out->x, err)) ||
        (status = predict(problem->self, out->x, out->seconds, err)))
        return status;
    out->spread = spread_of(problem, out);
    return STATUS_OK;
}

enum status machine_fit_solve(struct machine_fit *fit, struct arena *arena, struct err *err)
{
    double *measured_s = arena_array(arena, double, fit->n);
    double *weights = arena_array(arena, double, fit->n);
    struct model_rows model;
    struct factor_fit problem = {.predict = predict,
                                 .self = &model,
                                 .n_row = fit->n,
                                 .n_factor = FIT_CONSTANT_N,
                                 .measured_s = measured_s,
                                 .weights = weights};

    for (uint32_t r = 0; r < fit->n; r++) {
        const struct validated_row *row = fit->rows[r];
        measured_s[r] = row->run->step_s;
        weights[r] = row->near_memory_limit ? NEAR_LIMIT_WEIGHT : 1;
        fit->n_near_limit += row->near_memory_limit;
    }
    enum status status = rows_open(fit, arena, &model, err);
    if (status == STATUS_OK) {
        set_limits(&model, &problem);
        status = solve(fit, &problem, arena, err);
    }
    rows_release(&model);
    return status;
}
