/*
 * Least squares of logarithms on functions whose factors are known: they are found again, kept where
 * rows say nothing, held by their bounds, and not bent by a row that nothing explains.
 */
#include <math.h>
#include <string.h>

#include "src/cli/factor_fit.h"
#include "tests/tap.h"

enum { ROWS = 12, FACTORS = 3 };

static struct arena arena;
static uint32_t n_call;

/* A row is a sum of parts, each as long as its factor says; of one part the rest waits. */
struct parts {
    double seconds[ROWS][FACTORS];
    bool hidden; /* the last part shows only where it is longer than the others together */
};

static enum status predict(void *self, const double *x, double *seconds, struct err *err)
{
    const struct parts *parts = self;

    (void)err;
    n_call++;
    for (int r = 0; r < ROWS; r++) {
        const double *part = parts->seconds[r];
        const double sum = part[0] * exp(x[0]) + part[1] * exp(x[1]);
        const double last = part[2] * exp(x[2]);
        seconds[r] = parts->hidden ? fmax(sum, last) : sum + last;
    }
    return STATUS_OK;
}

static struct parts parts_new(uint64_t *state)
{
    struct parts parts = {.hidden = false};

    for (int r = 0; r < ROWS; r++)
        for (int f = 0; f < FACTORS; f++)
            parts.seconds[r][f] = 1 + (double)tap_below(state, 100) / 10;
    return parts;
}

static struct factor_fit fit_new(struct parts *parts, double *measured_s, const double *truth)
{
    static double weights[ROWS];
    struct factor_fit fit = {.predict = predict,
                             .self = parts,
                             .n_row = ROWS,
                             .n_factor = FACTORS,
                             .measured_s = measured_s,
                             .weights = weights};

    predict(parts, truth, measured_s, NULL);
    for (int r = 0; r < ROWS; r++)
        weights[r] = 1;
    for (int f = 0; f < FACTORS; f++) {
        fit.sd[f] = 0.5;
        fit.least[f] = -INFINITY;
        fit.most[f] = INFINITY;
    }
    return fit;
}

static void solve(const struct factor_fit *fit, double *x)
{
    n_call = 0;
    is_int(factor_fit_solve(fit, &arena, x, NULL), STATUS_OK, "a fit");
    ok(n_call < 60, "which asks for predictions a few times (%u)", n_call);
}

static void test_found(uint64_t *state)
{
    struct parts parts = parts_new(state);
    const double truth[FACTORS] = {0.3, -0.2, 0.1};
    double measured_s[ROWS], x[FACTORS], again[FACTORS];
    struct factor_fit fit = fit_new(&parts, measured_s, truth);

    solve(&fit, x);
    for (int f = 0; f < FACTORS; f++)
        ok(fabs(x[f] - truth[f]) < 0.02, "factor %d is found: %.3f for %.3f", f, x[f], truth[f]);
    solve(&fit, again);
    ok(memcmp(x, again, sizeof x) == 0, "the same again, bit by bit");

    measured_s[3] *= 1.6;
    solve(&fit, again);
    for (int f = 0; f < FACTORS; f++)
        ok(fabs(again[f] - x[f]) < 0.03, "a row 60 %% off does not move factor %d: %.3f", f,
           again[f]);
}

static void test_held(uint64_t *state)
{
    struct parts parts = parts_new(state);
    const double truth[FACTORS] = {0.3, -0.2, 0.5};
    double measured_s[ROWS], x[FACTORS];
    struct factor_fit fit = fit_new(&parts, measured_s, truth);

    fit.sd[1] = 0;
    fit.most[2] = 0.25;
    solve(&fit, x);
    ok(x[1] == 0, "a factor that may not move stays");
    ok(x[2] == 0.25, "one at its bound ends there (%.3f)", x[2]);
    for (int r = 0; r < ROWS; r++)
        parts.seconds[r][2] = 0;
    predict(&parts, truth, measured_s, NULL);
    solve(&fit, x);
    ok(x[2] == 0, "what no row depends on stays too (%.3g)", x[2]);
}

/* From 1 on the last part says nothing: the first two hide it. */
static void test_hidden(uint64_t *state)
{
    struct parts parts = parts_new(state);
    const double truth[FACTORS] = {0, 0, 0.6}, start[FACTORS] = {0};
    double measured_s[ROWS], x[FACTORS], worth[FACTORS], seconds[ROWS];
    int longer = 0;

    parts.hidden = true;
    for (int r = 0; r < ROWS; r++)
        parts.seconds[r][2] = (parts.seconds[r][0] + parts.seconds[r][1]) * (r % 2 ? 0.97 : 0.2);
    struct factor_fit fit = fit_new(&parts, measured_s, truth);
    predict(&parts, start, seconds, NULL);
    for (int r = 0; r < ROWS; r++)
        longer += measured_s[r] > 1.5 * seconds[r];
    is_int(longer, ROWS / 2, "half of the rows are what only a longer last part explains");
    is_int(factor_fit_worth(&fit, &arena, worth, NULL), STATUS_OK, "what rows say of each");
    ok(worth[2] > 100, "which is seen from where it is hidden (%.0f)", worth[2]);
    solve(&fit, x);
    ok(fabs(x[2] - truth[2]) < 0.03, "and is found: %.3f for %.3f", x[2], truth[2]);
}

int main(void)
{
    uint64_t state = tap_seed(20261130);

    arena_init(&arena);
    for (int i = 0; i < 5; i++) {
        test_found(&state);
        test_held(&state);
        test_hidden(&state);
    }
    arena_release(&arena);
    return tap_done();
}
