/*
 * Norm-wise errors and their line of TAP; see compare_numbers.h.
 */
#include "tests/compare_numbers.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/text.h"
#include "tests/tap.h"

struct numbers numbers_floats(const float *at, uint64_t n)
{
    return (struct numbers){.floats = at, .n = n};
}

struct numbers numbers_doubles(const double *at, uint64_t n)
{
    return (struct numbers){.doubles = at, .n = n};
}

static double number(struct numbers of, uint64_t i)
{
    return of.floats ? (double)of.floats[i] : of.doubles[i];
}

double numbers_error(struct numbers got, struct numbers want)
{
    double apart = 0, size = 0;

    for (uint64_t i = 0; i < want.n && got.n == want.n; i++) {
        const double difference = number(got, i) - number(want, i);
        apart += difference * difference;
        size += number(want, i) * number(want, i);
    }
    if (got.n != want.n || isnan(apart))
        return INFINITY;
    return apart == 0 ? 0 : sqrt(apart / size);
}

static double bound_of(const struct number_bound *bounds, const char *tensor)
{
    while (!text_matches(bounds->pattern, tensor))
        bounds++;
    return bounds->bound;
}

struct comparison comparison_of(const struct number_bound *bounds)
{
    return (struct comparison){.bounds = bounds, .worst = "none", .worst_bound = INFINITY};
}

void comparison_add(struct comparison *comparison, const char *tensor, struct numbers got,
                    struct numbers want)
{
    comparison_add_bound(comparison, tensor, got, want, bound_of(comparison->bounds, tensor));
}

void comparison_add_bound(struct comparison *comparison, const char *tensor, struct numbers got,
                          struct numbers want, double bound)
{
    const double error = numbers_error(got, want);

    if (error > bound) {
        comparison->n_past++;
        tap_note("%s is wrong by %.2e, at most %.0e is allowed", tensor, error, bound);
    }
    if (comparison->n++ == 0 || error / bound > comparison->worst_error / comparison->worst_bound) {
        comparison->worst = tensor;
        comparison->worst_error = error;
        comparison->worst_bound = bound;
    }
}

bool comparison_end(const struct comparison *comparison, const char *fmt, ...)
{
    char of[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(of, sizeof of, fmt, args);
    va_end(args);
    return ok(comparison->n > 0 && comparison->n_past == 0,
              "%s: %u tensors; worst %s, error %.1e, at most %.0e", of, comparison->n,
              comparison->worst, comparison->worst_error, comparison->worst_bound);
}
