/*
 * How much each term of the cost model matters: measured runs without it, held against the order
 * that was published for a study of the same model (spec COST 8, on H100).
 *
 * There the other constants were fitted again. What one factor on all times can make up for is
 * taken out here for the same reason: it is what a derate of products would be fitted to.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/without.h"
#include "src/cli/command.h"
#include "src/cli/evaluate.h"
#include "src/cli/validate.h"
#include "tests/tap.h"

/* Percent. Two terms whose published errors are this far apart have to come in the same order. */
static const double APART = 0.5;
/* A term may not help by more than this where it is left out: what published errors are rounded to. */
static const double EQUAL = 0.1;

enum { NOTHING = WITHOUT_N };

/* published: mean error of runs that the fit had not seen. */
static const struct {
    int term;
    double published;
} terms[] = {
    {NOTHING, 2.1},
    {WITHOUT_ATTENTION_KERNEL, 11.7},
    {WITHOUT_ELEMENTWISE, 4.3},
    {WITHOUT_COMM, 3.6},
    {WITHOUT_CONTENTION, 3.1},
    {WITHOUT_PACKING, 2.8},
    {WITHOUT_RING, 2.5},
    {WITHOUT_EARLY_STOP, 2.4},
    {WITHOUT_OPTIMIZER, 2.4},
    {WITHOUT_LOSS, 2.2},
    {WITHOUT_GEMM_RAMP, 2.2},
    {WITHOUT_STRAGGLERS, 2.2},
    {WITHOUT_ATTENTION_RAMP, 2.1},
};
enum { N_TERM = sizeof terms / sizeof *terms };

static const struct command sim = {.name = "sim", .bit = COMMAND_SIM, .operand = "model"};

static struct arena arena;

static double mean_error(const double *ratios, uint32_t n, double factor)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += fabs(factor * ratios[i] - 1);
    return 100 * sum / n;
}

/* With the factor that is best; it makes one of the runs come out. */
static double least_error(const double *ratios, uint32_t n)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < n; i++)
        least = fmin(least, mean_error(ratios, n, 1 / ratios[i]));
    return least;
}

/* Predicted over measured times, a row of N_TERM for each run. */
struct sample {
    double (*ratios)[N_TERM];
    uint32_t n;
};

/* The program and its addresses are the same whatever is left out. */
static void add_terms(struct prepared *prepared, const struct sim_report *report, double step_s,
                      double ratios[N_TERM])
{
    struct step_time time;
    struct prices prices;
    struct err err = {0};

    for (int i = 0; i < N_TERM; i++) {
        prepared->cluster.without = terms[i].term == NOTHING ? 0 : UINT64_C(1) << terms[i].term;
        if (cost_price(&prepared->cluster, SPREAD_MID, &prepared->program, &prepared->arena,
                       &prices, &err) ||
            simulate(&prepared->program, &prices, report->timed ? NULL : &report->placement,
                     &prepared->arena, &time, NULL, &err))
            tap_bail(err.text);
        ratios[i] = (double)time.step_ns * 1e-9 / step_s;
    }
}

/* What cannot be expressed is left out, as `validate` does. */
static void add_run(const struct measured_run *run, struct sample *sample)
{
    struct prepared prepared = {0};
    struct row_command command;
    struct options options;
    struct sim_report report;
    struct err err = {0};

    if (strcmp(run->gpu, "h100-sxm") != 0 || !strcmp(run->trust, "low") ||
        validate_command(run, NULL, NULL, &arena, &command, &err) ||
        options_parse(&sim, command.argc, command.argv, &options, &err))
        return;
    if (!prepare(&options, &prepared, &err) && !evaluate(&options, &prepared, &report, &err))
        add_terms(&prepared, &report, run->step_s, sample->ratios[sample->n++]);
    prepared_release(&prepared);
}

static double least_error_without(const struct sample *sample, int term)
{
    double *ratios = arena_array(&arena, double, sample->n);

    for (uint32_t i = 0; i < sample->n; i++)
        ratios[i] = sample->ratios[i][term];
    return least_error(ratios, sample->n);
}

static const char *name_of(int i)
{
    static const char *const names[] = {
#define X(id, name, words) name,
        WITHOUTS(X)
#undef X
            "nothing"};
    return names[terms[i].term];
}

static void test_order(const struct sample *sample)
{
    double errors[N_TERM];
    uint32_t n_pair = 0;

    for (int i = 0; i < N_TERM; i++) {
        errors[i] = least_error_without(sample, i);
        tap_note("without %s: %.2f %%, published %.1f", name_of(i), errors[i], terms[i].published);
    }
    for (int i = 0; i < N_TERM; i++)
        for (int j = 0; j < N_TERM; j++) {
            if (terms[i].published - terms[j].published < APART)
                continue;
            n_pair++;
            ok(errors[i] > errors[j], "%s matters more than %s", name_of(i), name_of(j));
        }
    ok(n_pair > 30, "these were %u pairs", n_pair);
    for (int i = 1; i < N_TERM; i++)
        ok(errors[i] > errors[0] - EQUAL, "no prediction gets better without %s", name_of(i));
}

int main(void)
{
    const char *path = tap_shared("data/measured.csv");
    struct measured measured;
    struct sample sample = {.n = 0};
    struct err err = {0};

    if (!path)
        return tap_skip_all("no shared data here (UNSHARD_SHARED)");
    arena_init(&arena);
    if (measured_read(path, &arena, &measured, &err))
        tap_bail(err.text);
    sample.ratios = arena_alloc(&arena, sizeof *sample.ratios * measured.n);
    for (uint32_t i = 0; i < measured.n; i++)
        add_run(&measured.runs[i], &sample);
    if (sample.n == 0)
        tap_bail("no run is predicted");
    test_order(&sample);
    arena_release(&arena);
    return tap_done();
}
