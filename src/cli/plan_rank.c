/*
 * Order, ties and front of plans; see plan_rank.h. Every order is
 * total, so that the C library's sort cannot change it.
 */
#include "src/cli/plan_rank.h"

#include <stdlib.h>

static int sign_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

bool plan_rows_tie(const struct plan_row *a, const struct plan_row *b)
{
    return paired_tie(a->step_ns, &a->shift, b->step_ns, &b->shift);
}

/* 0: fits, 1: does not, 2: refused */
static int class_of(const struct plan_row *row)
{
    return row->refused ? 2 : row->fits ? 0 : 1;
}

/* rank holds the place in which the row was asked for. */
static int compare_rows(const void *a, const void *b)
{
    const struct plan_row *x = a, *y = b;
    int order = class_of(x) - class_of(y);
    if (order == 0 && x->fits)
        order = sign_of(x->step_ns[SPREAD_MID], y->step_ns[SPREAD_MID]);
    if (order == 0)
        order = order_u64(x->total_bytes, y->total_bytes);
    if (order == 0)
        order = sign_of(x->step_ns[SPREAD_MID], y->step_ns[SPREAD_MID]);
    if (order == 0)
        order = order_u64(x->n_unit, y->n_unit);
    return order ? order : order_u64(x->rank, y->rank);
}

static bool beats(const struct plan_row *a, const struct plan_row *b)
{
    int time = sign_of(a->step_ns[SPREAD_MID], b->step_ns[SPREAD_MID]);
    int memory = order_u64(a->total_bytes, b->total_bytes);
    return time <= 0 && memory <= 0 && (time < 0 || memory < 0 || a->rank < b->rank);
}

static void mark_front(struct plan_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        rows[i].on_front = true;
        for (uint32_t j = 0; j < n && rows[i].on_front; j++)
            rows[i].on_front = !beats(&rows[j], &rows[i]);
    }
}

void plan_rows_rank(struct plan_row *rows, uint32_t n)
{
    uint32_t n_built = 0, n_fit = 0;
    for (uint32_t i = 0; i < n; i++)
        rows[i].rank = i;
    qsort(rows, n, sizeof *rows, compare_rows);
    for (uint32_t i = 0; i < n; i++) {
        n_built += !rows[i].refused;
        n_fit += class_of(&rows[i]) == 0;
        rows[i].rank = rows[i].refused ? PLAN_NO_RANK : i + 1;
        rows[i].on_front = false;
        rows[i].tied = i > 0 && i < n_fit && plan_rows_tie(&rows[0], &rows[i]);
    }
    mark_front(rows, n_fit ? n_fit : n_built);
}

const struct plan_row *plan_rows_best(const struct plan_row *rows, uint32_t n)
{
    const struct plan_row *best = n > 0 && class_of(&rows[0]) == 0 ? &rows[0] : NULL;
    for (uint32_t i = 1; i < n && best; i++) {
        if (rows[i].tied && rows[i].on_front && rows[i].n_unit < best->n_unit)
            best = &rows[i];
    }
    return best;
}

const struct plan_row *plan_rows_smallest(const struct plan_row *rows, uint32_t n)
{
    const struct plan_row *smallest = NULL;
    for (uint32_t i = 0; i < n && !rows[i].refused; i++) {
        if (!smallest || rows[i].total_bytes < smallest->total_bytes)
            smallest = &rows[i];
    }
    return smallest;
}
