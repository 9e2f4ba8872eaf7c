/*
 * Normal equations over every subset of three unknowns; see nonnegative_fit.h.
 */
#include "src/cli/nonnegative_fit.h"

#include <stdbool.h>
#include <string.h>

void fit_add(struct fit *fit, const double factors[FIT_UNKNOWNS], double target)
{
    for (int i = 0; i < FIT_UNKNOWNS; i++) {
        fit->targets[i] += factors[i] * target;
        for (int j = 0; j < FIT_UNKNOWNS; j++)
            fit->products[i][j] += factors[i] * factors[j];
    }
}

/* What cannot be told from the unknowns before it has no pivot left. */
static const double LEAST_PIVOT = 1e-12;

/* The unknowns in the mask, by elimination; the others are 0. False where they cannot be told apart. */
static bool solve_some(const struct fit *fit, unsigned mask, double x[FIT_UNKNOWNS])
{
    double a[FIT_UNKNOWNS][FIT_UNKNOWNS];

    memcpy(a, fit->products, sizeof a);
    memcpy(x, fit->targets, sizeof fit->targets);
    for (int i = 0; i < FIT_UNKNOWNS; i++)
        if (!(mask >> i & 1))
            x[i] = 0;
    for (int i = 0; i < FIT_UNKNOWNS; i++) {
        if (!(mask >> i & 1))
            continue;
        if (a[i][i] <= LEAST_PIVOT * fit->products[i][i])
            return false;
        for (int k = 0; k < FIT_UNKNOWNS; k++) {
            if (k == i || !(mask >> k & 1))
                continue;
            const double factor = a[k][i] / a[i][i];
            for (int j = 0; j < FIT_UNKNOWNS; j++)
                a[k][j] -= factor * a[i][j];
            x[k] -= factor * x[i];
        }
    }
    for (int i = 0; i < FIT_UNKNOWNS; i++)
        if (mask >> i & 1)
            x[i] /= a[i][i];
    return true;
}

/* Sum of squares, less what is the same for all. */
static double cost_of(const struct fit *fit, const double x[FIT_UNKNOWNS])
{
    double cost = 0;

    for (int i = 0; i < FIT_UNKNOWNS; i++) {
        cost -= 2 * x[i] * fit->targets[i];
        for (int j = 0; j < FIT_UNKNOWNS; j++)
            cost += x[i] * fit->products[i][j] * x[j];
    }
    return cost;
}

void fit_solve(const struct fit *fit, double unknowns[FIT_UNKNOWNS])
{
    double best[FIT_UNKNOWNS] = {0}, x[FIT_UNKNOWNS];

    for (unsigned mask = 1; mask < 1u << FIT_UNKNOWNS; mask++) {
        bool allowed = solve_some(fit, mask, x);
        for (int i = 0; i < FIT_UNKNOWNS && allowed; i++)
            allowed = x[i] >= 0;
        if (allowed && cost_of(fit, x) < cost_of(fit, best))
            memcpy(best, x, sizeof best);
    }
    memcpy(unknowns, best, sizeof best);
}
