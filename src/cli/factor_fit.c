/*
 * Where it stands is asked of the function, and where to go of its slopes there: of those alone the
 * minimum is found by weights that are made anew (a row counts for less the further off it is). A
 * step that makes things worse is halved, one that leaves a factor's bounds ends there.
 */
#include "src/cli/factor_fit.h"

#include <math.h>
#include <string.h>

enum { MAX_STEPS = 6, MAX_HALVINGS = 4, MAX_WEIGHINGS = 50 };
/* Of what a factor may well be off by. */
static const double DIFFERENCE = 0.1;
static const double CONVERGED = 2e-3;

/* Where it stands: residuals and their derivatives, row by row. */
struct state {
    const struct factor_fit *fit;
    double *residuals, *moved;
    double *slopes; /* of row r by factor f: slopes[r * n_factor + f] */
};

static enum status residuals_at(const struct factor_fit *fit, const double *x, double *out,
                                struct err *err)
{
    const enum status status = fit->predict(fit->self, x, out, err);

    for (uint32_t r = 0; r < fit->n_row && status == STATUS_OK; r++)
        out[r] = log(out[r] / fit->measured_s[r]);
    return status;
}

static struct state state_new(const struct factor_fit *fit, struct arena *arena)
{
    return (struct state){
        .fit = fit,
        .residuals = arena_array(arena, double, fit->n_row),
        .moved = arena_array(arena, double, fit->n_row),
        .slopes = arena_array(arena, double, (size_t)fit->n_row * fit->n_factor),
    };
}

/* Residuals with one factor moved, to s->moved. */
static enum status move(struct state *s, const double *x, uint32_t factor, double by,
                        struct err *err)
{
    double moved[FIT_MAX_FACTOR];

    memcpy(moved, x, s->fit->n_factor * sizeof *moved);
    moved[factor] += by;
    return residuals_at(s->fit, moved, s->moved, err);
}

/* Residuals have to be those at x. Differences go inwards where x is at its upper bound. */
static enum status slopes_at(struct state *s, const double *x, struct err *err)
{
    const struct factor_fit *fit = s->fit;
    enum status status = STATUS_OK;

    for (uint32_t f = 0; f < fit->n_factor && status == STATUS_OK; f++) {
        const double step = DIFFERENCE * fit->sd[f];
        const double by = x[f] + step > fit->most[f] ? -step : step;
        if (step == 0)
            continue;
        status = move(s, x, f, by, err);
        for (uint32_t r = 0; r < fit->n_row; r++)
            s->slopes[r * fit->n_factor + f] = (s->moved[r] - s->residuals[r]) / by;
    }
    return status;
}

/* k of factor_fit.h; INFINITY: a row pulls the harder the further off it is. */
static double pull(const struct factor_fit *fit, uint32_t row, double residual, double outlier)
{
    const double off = residual / FIT_NOISE / outlier;
    return fit->weights[row] / (1 + off * off) / (FIT_NOISE * FIT_NOISE);
}

static double objective(const struct factor_fit *fit, const double *x, const double *residuals)
{
    const double k2 = FIT_OUTLIER * FIT_OUTLIER;
    double sum = 0;

    for (uint32_t r = 0; r < fit->n_row; r++) {
        const double off = residuals[r] / FIT_NOISE;
        sum += fit->weights[r] * k2 * log1p(off * off / k2);
    }
    for (uint32_t f = 0; f < fit->n_factor; f++)
        sum += fit->sd[f] > 0 ? x[f] * x[f] / (fit->sd[f] * fit->sd[f]) : 0;
    return sum;
}

/* Both ways: a network that nothing waits for says nothing until it is slower. */
static enum status worth_of(struct state *s, uint32_t factor, double *worth, struct err *err)
{
    static const double start[FIT_MAX_FACTOR];
    const struct factor_fit *fit = s->fit;

    for (int sign = -1; sign <= 1; sign += 2) {
        const enum status status = move(s, start, factor, sign * fit->sd[factor], err);
        double sum = 0;
        if (status != STATUS_OK)
            return status;
        for (uint32_t r = 0; r < fit->n_row; r++) {
            const double said = (s->moved[r] - s->residuals[r]) / FIT_NOISE;
            sum += fit->weights[r] * said * said;
        }
        *worth = fmax(*worth, sum);
    }
    return STATUS_OK;
}

enum status factor_fit_worth(const struct factor_fit *fit, struct arena *arena, double *worth,
                             struct err *err)
{
    static const double start[FIT_MAX_FACTOR];
    struct state s = state_new(fit, arena);
    enum status status = residuals_at(fit, start, s.residuals, err);

    memset(worth, 0, fit->n_factor * sizeof *worth);
    for (uint32_t f = 0; f < fit->n_factor && status == STATUS_OK; f++)
        if (fit->sd[f] > 0)
            status = worth_of(&s, f, &worth[f], err);
    return status;
}

/* s->moved: what the slopes say of residuals at y. */
static void foresee(const struct state *s, const double *x, const double *y)
{
    const uint32_t n = s->fit->n_factor;

    for (uint32_t r = 0; r < s->fit->n_row; r++) {
        s->moved[r] = s->residuals[r];
        for (uint32_t f = 0; f < n; f++)
            s->moved[r] += s->slopes[r * n + f] * (y[f] - x[f]);
    }
}

/*
 * From y, whose residuals are s->moved, the step d of (J'WJ + D) d = -(J'Wr + D y). A factor that
 * stays has 1 on its diagonal.
 */
static void equations(const struct state *s, const double *y, double outlier,
                      double a[][FIT_MAX_FACTOR], double *b)
{
    const struct factor_fit *fit = s->fit;

    for (uint32_t f = 0; f < fit->n_factor; f++) {
        const double held = fit->sd[f] > 0 ? 1 / (fit->sd[f] * fit->sd[f]) : 1;
        memset(a[f], 0, sizeof a[f]);
        a[f][f] = held;
        b[f] = -held * y[f];
    }
    for (uint32_t r = 0; r < fit->n_row; r++) {
        const double *slope = &s->slopes[r * fit->n_factor];
        const double weight = pull(fit, r, s->moved[r], outlier);
        for (uint32_t f = 0; f < fit->n_factor; f++) {
            b[f] -= weight * slope[f] * s->moved[r];
            for (uint32_t g = 0; g < fit->n_factor; g++)
                a[f][g] += weight * slope[f] * slope[g];
        }
    }
}

/* a is symmetric and positive, so that no pivot is needed. The answer is in b. */
static void solve(uint32_t n, double a[][FIT_MAX_FACTOR], double *b)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = k + 1; i < n; i++) {
            const double times = a[i][k] / a[k][k];
            for (uint32_t j = k; j < n; j++)
                a[i][j] -= times * a[k][j];
            b[i] -= times * b[k];
        }
    for (uint32_t k = n; k-- > 0;) {
        for (uint32_t j = k + 1; j < n; j++)
            b[k] -= a[k][j] * b[j];
        b[k] /= a[k][k];
    }
}

/* By the slopes at x, from y to the minimum that lies downhill. */
static void descend(const struct state *s, const double *x, double outlier, double *y)
{
    const uint32_t n = s->fit->n_factor;
    double a[FIT_MAX_FACTOR][FIT_MAX_FACTOR], step[FIT_MAX_FACTOR], moved = INFINITY;

    for (int i = 0; i < MAX_WEIGHINGS && moved > CONVERGED / 10; i++) {
        foresee(s, x, y);
        equations(s, y, outlier, a, step);
        solve(n, a, step);
        moved = 0;
        for (uint32_t f = 0; f < n; f++) {
            y[f] += step[f];
            moved = fmax(moved, fabs(step[f]));
        }
    }
    foresee(s, x, y);
}

/* The lower one of two minima: from x, and from where an answer without outliers would be. */
static void aim(const struct state *s, const double *x, double *step)
{
    const struct factor_fit *fit = s->fit;
    double near[FIT_MAX_FACTOR], far[FIT_MAX_FACTOR];

    memcpy(near, x, fit->n_factor * sizeof *near);
    memcpy(far, x, fit->n_factor * sizeof *far);
    descend(s, x, INFINITY, far);
    descend(s, x, FIT_OUTLIER, far);
    const double far_height = objective(fit, far, s->moved);
    descend(s, x, FIT_OUTLIER, near);
    const double *best = objective(fit, near, s->moved) <= far_height ? near : far;
    for (uint32_t f = 0; f < fit->n_factor; f++)
        step[f] = best[f] - x[f];
}

/* Along the step as far as it helps; *moved is how far. The residuals are those of the new x. */
static enum status take(struct state *s, const double *step, double *x, double *moved,
                        struct err *err)
{
    const struct factor_fit *fit = s->fit;
    const double before = objective(fit, x, s->residuals);
    double scale = 1, next[FIT_MAX_FACTOR];

    *moved = 0;
    for (int i = 0; i < MAX_HALVINGS; i++, scale /= 2) {
        for (uint32_t f = 0; f < fit->n_factor; f++)
            next[f] = fmin(fmax(x[f] + scale * step[f], fit->least[f]), fit->most[f]);
        const enum status status = residuals_at(fit, next, s->moved, err);
        if (status != STATUS_OK)
            return status;
        if (!(objective(fit, next, s->moved) < before))
            continue;
        for (uint32_t f = 0; f < fit->n_factor; f++)
            *moved = fmax(*moved, fabs(next[f] - x[f]));
        memcpy(x, next, fit->n_factor * sizeof *x);
        memcpy(s->residuals, s->moved, fit->n_row * sizeof *s->residuals);
        break;
    }
    return STATUS_OK;
}

enum status factor_fit_solve(const struct factor_fit *fit, struct arena *arena, double *x,
                             struct err *err)
{
    struct state s = state_new(fit, arena);
    double step[FIT_MAX_FACTOR], moved = INFINITY;

    memset(x, 0, fit->n_factor * sizeof *x);
    enum status status = residuals_at(fit, x, s.residuals, err);
    for (int i = 0; i < MAX_STEPS && moved > CONVERGED && status == STATUS_OK; i++) {
        if ((status = slopes_at(&s, x, err)) != STATUS_OK)
            break;
        aim(&s, x, step);
        status = take(&s, step, x, &moved, err);
    }
    return status;
}
