/*
 * One unit for a column or an axis: numbers that are compared by eye carry no unit of their own.
 */
#ifndef SRC_CLI_PLAN_SCALE_H
#define SRC_CLI_PLAN_SCALE_H

#include <stdint.h>

struct plan_scale {
    const char *unit;
    double size; /* of one unit, in ns, bytes or tokens per second */
    int decimals;
};

/* In which the least number is at least 1, unless the most would get too long. */
struct plan_scale plan_scale_ns(uint64_t least, uint64_t most);
struct plan_scale plan_scale_bytes(uint64_t least, uint64_t most);

/* For rates up to this one. */
struct plan_scale plan_scale_tokens(double most_per_s);

#endif
