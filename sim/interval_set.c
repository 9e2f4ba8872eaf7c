/*
 * Intervals of time; see interval_set.h. All of it is one pass, since everything is in order.
 */
#include "sim/interval_set.h"

#include <assert.h>
#include <stdbool.h>

void interval_set_add(struct interval_set *set, struct arena *arena, int64_t begin_ns,
                      int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return;
    if (set->n > 0) {
        struct interval *last = &set->at[set->n - 1];
        assert(begin_ns >= last->begin_ns);
        if (begin_ns <= last->end_ns) {
            last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
            return;
        }
    }
    set->at = arena_grow(arena, set->at, &set->cap, set->n + 1, sizeof *set->at);
    set->at[set->n++] = (struct interval){.begin_ns = begin_ns, .end_ns = end_ns};
}

void interval_set_unite(struct interval_set *set, struct arena *arena,
                        const struct interval_set *other)
{
    const struct interval_set own = *set;

    *set = (struct interval_set){0};
    for (uint32_t i = 0, j = 0; i < own.n || j < other->n;) {
        const bool own_next =
            j == other->n || (i < own.n && own.at[i].begin_ns <= other->at[j].begin_ns);
        const struct interval *next = own_next ? &own.at[i++] : &other->at[j++];
        interval_set_add(set, arena, next->begin_ns, next->end_ns);
    }
}

int64_t interval_set_ns(const struct interval_set *set)
{
    int64_t sum_ns = 0;

    for (uint32_t i = 0; i < set->n; i++)
        sum_ns += set->at[i].end_ns - set->at[i].begin_ns;
    return sum_ns;
}

int64_t interval_set_common_ns(const struct interval_set *a, const struct interval_set *b)
{
    int64_t sum_ns = 0;

    for (uint32_t i = 0, j = 0; i < a->n && j < b->n;) {
        const struct interval *x = &a->at[i], *y = &b->at[j];
        const int64_t begin_ns = x->begin_ns > y->begin_ns ? x->begin_ns : y->begin_ns;
        const int64_t end_ns = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
        if (end_ns > begin_ns)
            sum_ns += end_ns - begin_ns;
        if (x->end_ns < y->end_ns)
            i++;
        else
            j++;
    }
    return sum_ns;
}
