/*
 * Least squares with up to three unknowns, none of them below 0.
 *
 * Every choice of unknowns that are 0 is solved exactly and the best that is allowed is taken: there
 * are seven, and the answer does not depend on an order or on a start.
 */
#ifndef SRC_CLI_NONNEGATIVE_FIT_H
#define SRC_CLI_NONNEGATIVE_FIT_H

enum { FIT_UNKNOWNS = 3 };

struct fit {
    double products[FIT_UNKNOWNS][FIT_UNKNOWNS], targets[FIT_UNKNOWNS]; /* sums over equations */
};

/* One equation: factors times unknowns is to be the target. A factor that is always 0: no unknown. */
void fit_add(struct fit *fit, const double factors[FIT_UNKNOWNS], double target);

/* All are 0 where nothing was added. */
void fit_solve(const struct fit *fit, double unknowns[FIT_UNKNOWNS]);

#endif
