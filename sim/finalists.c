/*
 * Placing what may be the answer; see finalists.h.
 */
#include "sim/finalists.h"

#include <stdlib.h>
#include <string.h>

#include "sim/judge_pool.h"

enum {
    FASTEST = 48,
    EVEN_RUNS = 8,  /* degrees of evenness that are looked at */
    EACH_EVEN = 16, /* plans of each */
    MOST_FRONT = 48,
    /* where none of those fits: so many at a time, and in all */
    NEXT = 64,
    MOST_NEXT = 1024
};

struct choice {
    const struct space *space;
    const struct search_result *result;
    bool *chosen; /* by found */
    uint32_t *at, n;
};

static void choose(struct choice *c, uint32_t found)
{
    if (c->chosen[found])
        return;
    c->chosen[found] = true;
    c->at[c->n++] = found;
}

/* The fastest of all, and of each degree of evenness. */
static void choose_fastest(struct choice *c)
{
    uint32_t n_even[EVEN_RUNS + 1] = {0};

    for (uint32_t i = 0; i < c->result->n; i++) {
        const uint32_t runs = space_runs(c->space, c->result->found[i].point);
        if (i < FASTEST || (runs <= EVEN_RUNS && n_even[runs]++ < EACH_EVEN))
            choose(c, i);
    }
}

static void choose_front(struct choice *c, struct arena *arena)
{
    uint32_t *front;
    const uint32_t n = search_front(c->result, UINT64_MAX, arena, &front);
    const uint32_t most = n < MOST_FRONT ? n : MOST_FRONT;

    for (uint32_t i = 0; i < most; i++)
        choose(c, front[most > 1 ? (uint64_t)i * (n - 1) / (most - 1) : 0]);
}

/* Whether a stands before b: as search.h orders, but by what is reserved. */
static bool is_before(const struct search_result *result, const struct finalist *a,
                      const struct finalist *b)
{
    if (a->placed.fits != b->placed.fits)
        return a->placed.fits;
    if (a->placed.retries != b->placed.retries)
        return b->placed.retries;
    if (!a->placed.fits && a->placed.reserved_bytes != b->placed.reserved_bytes)
        return a->placed.reserved_bytes < b->placed.reserved_bytes;
    const struct found *x = &result->found[a->found], *y = &result->found[b->found];
    if (x->judged.step_ns != y->judged.step_ns)
        return x->judged.step_ns < y->judged.step_ns;
    return x->n_unit != y->n_unit ? x->n_unit < y->n_unit : a->found < b->found;
}

/* A few hundred, where one of those fits. */
static void insert(struct finalists *all, const struct search_result *result,
                   struct finalist finalist)
{
    uint32_t at = all->n++;

    for (; at > 0 && is_before(result, &finalist, &all->at[at - 1]); at--)
        all->at[at] = all->at[at - 1];
    all->at[at] = finalist;
    all->n_fit += finalist.placed.fits;
}

static void mark_front(struct finalists *all)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < all->n_fit; i++) {
        const uint64_t bytes = all->at[i].placed.reserved_bytes;
        all->at[i].on_front = bytes < least;
        least = bytes < least ? bytes : least;
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct found *x = *(const struct found *const *)a, *y = *(const struct found *const *)b;

    if (x->judged.peak_bytes != y->judged.peak_bytes)
        return x->judged.peak_bytes < y->judged.peak_bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* All that were found, the smallest first. */
static const struct found **sort_by_bytes(const struct search_result *result, struct arena *arena)
{
    const struct found **sorted = arena_array(arena, const struct found *, result->n + 1);

    for (uint32_t i = 0; i < result->n; i++)
        sorted[i] = &result->found[i];
    qsort(sorted, result->n, sizeof *sorted, by_bytes);
    return sorted;
}

/* The fastest that were not chosen yet and whose requested bytes have room, and the smallest. */
static void choose_next(struct choice *c, const struct found *const *by_size, uint64_t limit_bytes)
{
    const uint32_t half = c->n + NEXT / 2, end = c->n + NEXT;

    for (uint32_t i = 0; i < c->result->n && c->n < half; i++)
        if (c->result->found[i].judged.peak_bytes <= limit_bytes)
            choose(c, i);
    for (uint32_t i = 0; i < c->result->n && c->n < end; i++)
        if (by_size[i]->judged.peak_bytes <= limit_bytes)
            choose(c, (uint32_t)(by_size[i] - c->result->found));
}

/* Those chosen from this one on. */
static void place_chosen(const struct choice *c, uint32_t from, struct judge_pool *pool,
                         const struct alloc_config *config, struct arena *arena,
                         struct finalists *all)
{
    const uint32_t n = c->n - from;
    const uint8_t **points = arena_array(arena, const uint8_t *, n + 1);
    struct placed *placed = arena_array(arena, struct placed, n + 1);

    for (uint32_t i = 0; i < n; i++)
        points[i] = c->result->found[c->at[from + i]].point;
    judge_pool_place(pool, points, n, config, placed);
    for (uint32_t i = 0; i < n; i++)
        if (placed[i].reserved_bytes < UINT64_MAX)
            insert(all, c->result,
                   (struct finalist){.found = c->at[from + i], .placed = placed[i]});
}

void finalists_place(const struct space *space, const struct cluster *cluster,
                     const struct body_table *bodies, const struct search_result *result,
                     const struct alloc_config *config, uint32_t jobs, struct arena *arena,
                     struct finalists *out)
{
    struct choice c = {.space = space,
                       .result = result,
                       .chosen = arena_array(arena, bool, result->n + 1),
                       .at = arena_array(arena, uint32_t, result->n + 1)};
    struct judge_pool *pool = judge_pool_new(space, cluster, bodies, jobs);
    struct finalists all = {0};

    all.at = arena_array(arena, struct finalist, result->n + 1);
    choose_fastest(&c);
    choose_front(&c, arena);
    place_chosen(&c, 0, pool, config, arena, &all);
    const struct found **by_size = all.n_fit == 0 ? sort_by_bytes(result, arena) : NULL;
    for (uint32_t from = 0; all.n_fit == 0 && from < c.n && c.n < MOST_NEXT;) {
        from = c.n;
        choose_next(&c, by_size, config->capacity_bytes);
        place_chosen(&c, from, pool, config, arena, &all);
    }
    mark_front(&all);
    judge_pool_free(pool);
    *out = all;
}
