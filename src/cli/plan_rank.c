/*
 * Order, ties and front of plans; see plan_rank.h. Every order is
 * total, so that the C library's sort cannot change it.
 */
#include "src/cli/plan_rank.h"

#include <stdlib.h>

/* Of other tokens: what is this much slower is no tie, however uncertain both are. They share little. */
static const double MOST_TIED = 0.1;

typedef unsigned __int128 u128;

int plan_token_order(int64_t a_ns, uint64_t a_tokens, int64_t b_ns, uint64_t b_tokens)
{
    const u128 a = (u128)(uint64_t)a_ns * b_tokens, b = (u128)(uint64_t)b_ns * a_tokens;
    return (a > b) - (a < b);
}

/* What takes ns with so many tokens, with others. */
static int64_t at_tokens(int64_t ns, uint64_t tokens, uint64_t others)
{
    return tokens == others ? ns : (int64_t)((double)ns * (double)others / (double)tokens);
}

/* By the time of a token. */
static int order_time(const struct plan_row *a, const struct plan_row *b, enum spread spread)
{
    return plan_token_order(a->step_ns[spread], a->tokens, b->step_ns[spread], b->tokens);
}

int64_t plan_row_step_ns(const struct plan_row *row, enum spread spread, uint64_t tokens)
{
    return at_tokens(row->step_ns[spread], row->tokens, tokens);
}

static struct paired_shift shift_at(const struct plan_row *row, uint64_t tokens)
{
    struct paired_shift shift = row->shift;

    for (unsigned group = 0; group < PAIRED_GROUP_N; group++)
        for (unsigned end = 0; end < PAIRED_END_N; end++)
            shift.ns[group][end] = at_tokens(shift.ns[group][end], row->tokens, tokens);
    return shift;
}

int64_t plan_rows_uncertainty_ns(const struct plan_row *a, const struct plan_row *b,
                                 uint64_t tokens)
{
    const struct paired_shift x = shift_at(a, tokens), y = shift_at(b, tokens);
    return paired_uncertainty_ns(&x, &y);
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

bool plan_rows_tie(const struct plan_row *a, const struct plan_row *b)
{
    const struct paired_shift a_shift = shift_at(a, a->tokens), b_shift = shift_at(b, a->tokens);
    int64_t b_ns[SPREAD_N];

    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        b_ns[spread] = plan_row_step_ns(b, (enum spread)spread, a->tokens);
    if (a->tokens != b->tokens &&
        (double)b_ns[SPREAD_MID] > (1 + MOST_TIED) * (double)a->step_ns[SPREAD_MID])
        return false;
    return paired_tie(a->step_ns, &a_shift, b_ns, &b_shift);
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
        order = order_time(x, y, SPREAD_MID);
    if (order == 0)
        order = order_u64(x->total_bytes, y->total_bytes);
    if (order == 0)
        order = order_time(x, y, SPREAD_MID);
    if (order == 0)
        order = order_u64(x->n_unit, y->n_unit);
    return order ? order : order_u64(x->rank, y->rank);
}

static bool beats(const struct plan_row *a, const struct plan_row *b)
{
    int time = order_time(a, b, SPREAD_MID);
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
        if (rows[i].tied && rows[i].on_front && rows[i].tokens == best->tokens &&
            rows[i].n_unit < best->n_unit)
            best = &rows[i];
    }
    return best;
}

const struct plan_row *plan_rows_runner_up(const struct plan_row *rows, uint32_t n,
                                           const struct plan_row *best)
{
    for (uint32_t i = 0; i < n && class_of(&rows[i]) == 0 && best; i++)
        if (&rows[i] != best)
            return &rows[i];
    return NULL;
}

double plan_row_tokens_per_s(const struct plan_row *row)
{
    const int64_t step_ns = row->step_ns[SPREAD_MID];
    return step_ns > 0 ? 1e9 * (double)row->tokens / (double)step_ns : 0;
}

double plan_rows_slower(const struct plan_row *a, const struct plan_row *b)
{
    return (double)a->step_ns[SPREAD_MID] * (double)b->tokens /
               ((double)b->step_ns[SPREAD_MID] * (double)a->tokens) -
           1;
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
