/*
 * A set of times as disjoint intervals in order: unions, sums and what two sets share.
 *
 * Built from intervals in order of their begin, which is how streams and communicators yield them.
 * Invariant: each interval ends before the next begins; none is empty.
 */
#ifndef SIM_INTERVAL_SET_H
#define SIM_INTERVAL_SET_H

#include <stdint.h>

#include "src/arena.h"

struct interval {
    int64_t begin_ns, end_ns;
};

struct interval_set {
    struct interval *at;
    uint32_t n, cap;
};

/* Unite with [begin, end), unless that is empty. begin: not before any begin added so far. */
void interval_set_add(struct interval_set *set, struct arena *arena, int64_t begin_ns,
                      int64_t end_ns);
/* All of another set too. */
void interval_set_unite(struct interval_set *set, struct arena *arena,
                        const struct interval_set *other);
int64_t interval_set_ns(const struct interval_set *set);
int64_t interval_set_common_ns(const struct interval_set *a, const struct interval_set *b);

#endif
