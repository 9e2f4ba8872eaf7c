/*
 * A few factors fitted to measured times: least squares of logarithms, held near 1.
 *
 * Knows no cluster and no program, only a function from the logarithms of factors to seconds of each
 * row. Minimised is sum w * k^2 * ln(1 + (r / k)^2) + sum (x / sd)^2, r = ln(predicted / measured) in
 * units of FIT_NOISE, k FIT_OUTLIER, by Gauss and Newton with differences. The second sum (ridge)
 * keeps a factor at 1 unless rows say otherwise; the further a row is past k, the less it pulls, so
 * that what no factor explains bends none. Such a sum may have several minima: of two that are near,
 * the lower one is taken. Same input, same answer.
 */
#ifndef SRC_CLI_FACTOR_FIT_H
#define SRC_CLI_FACTOR_FIT_H

#include <stdint.h>

#include "src/arena.h"
#include "src/err.h"

enum { FIT_MAX_FACTOR = 16 };

/* What near-identical runs differ by (spec COST 7), and how many of it a row is taken at its word. */
#define FIT_NOISE 0.02
#define FIT_OUTLIER 2.5

struct factor_fit {
    enum status (*predict)(void *self, const double *x, double *seconds, struct err *err);
    void *self;
    uint32_t n_row, n_factor;
    const double *measured_s, *weights; /* by row */
    /* By factor, of its logarithm: how far it may well be from 0 (0: it stays there), its bounds. */
    double sd[FIT_MAX_FACTOR], least[FIT_MAX_FACTOR], most[FIT_MAX_FACTOR];
};

/* By factor: how much rows say of it, in units of what is known without them. */
enum status factor_fit_worth(const struct factor_fit *fit, struct arena *arena, double *worth,
                             struct err *err);

/* The factors' logarithms to x. */
enum status factor_fit_solve(const struct factor_fit *fit, struct arena *arena, double *x,
                             struct err *err);

#endif
