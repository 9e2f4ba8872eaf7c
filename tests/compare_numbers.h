#ifndef TESTS_COMPARE_NUMBERS_H
#define TESTS_COMPARE_NUMBERS_H
/*
 * Tensors against tensors, norm-wise: |got - want| / |want|, with a bound for each tensor.
 *
 * One check for a group of tensors, whose line names the one that is nearest to its bound, or
 * furthest past it, with its error and bound; each that is past it has a line of its own.
 */
#include <stdbool.h>
#include <stdint.h>

/* n numbers of one type; the other pointer is NULL. */
struct numbers {
    const float *floats;
    const double *doubles;
    uint64_t n;
};
struct numbers numbers_floats(const float *at, uint64_t n);
struct numbers numbers_doubles(const double *at, uint64_t n);

/* 0 where both are zero; infinite where only want is, where lengths differ, and for a NaN. */
double numbers_error(struct numbers got, struct numbers want);

/* The first pattern that matches a tensor's name counts; the last of a table is "*". */
struct number_bound {
    const char *pattern;
    double bound;
};

struct comparison {
    const struct number_bound *bounds;
    uint32_t n, n_past;
    const char *worst; /* of all added: names are to outlive the comparison */
    double worst_error, worst_bound;
};

struct comparison comparison_of(const struct number_bound *bounds);
void comparison_add(struct comparison *comparison, const char *tensor, struct numbers got,
                    struct numbers want);
/* With a bound of its own, whatever the table says. */
void comparison_add_bound(struct comparison *comparison, const char *tensor, struct numbers got,
                          struct numbers want, double bound);
/* Fails where nothing was added. The format says of what these are the tensors. */
bool comparison_end(const struct comparison *comparison, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
