/*
 * Going through a space of plans; see search.h.
 *
 * The beam is always first: its best point is what bounds are held against when a small space is then
 * gone through whole. Where nothing is within the limit the beam goes on for the smallest plan.
 */
#include "sim/search.h"

#include <stdlib.h>
#include <string.h>

#include "sim/point_set.h"

enum { BEAM = 12, BATCH = 512 };

struct beam_place {
    uint32_t found; /* index */
    bool widened;   /* its neighbours were looked at */
};

struct search {
    const struct space *space;
    const struct search_options *options;
    struct arena *arena;
    struct arena scratch; /* points on their way */
    struct judge_pool *pool;
    struct judge *of_bounds;
    struct bounds *bounds;
    struct point_set seen;

    struct found *found; /* in the order of coming */
    uint32_t n, cap;
    struct beam_place beam[BEAM]; /* the best first */
    uint32_t n_beam;

    const uint8_t *batch[BATCH];
    uint32_t n_batch;
    struct search_progress progress;
    bool stopped;
};

struct search_options search_options_default(void)
{
    return (struct search_options){.limit_bytes = UINT64_MAX,
                                   .exact_points = 200000,
                                   .most_points = 20000,
                                   .bounds = BOUNDS_ALL,
                                   .jobs = 1};
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Below 0 where a is better. */
static int compare(const struct found *a, const struct found *b, uint64_t limit_bytes)
{
    const bool a_fits = a->judged.peak_bytes <= limit_bytes,
               b_fits = b->judged.peak_bytes <= limit_bytes;
    int order = b_fits - a_fits;

    if (order == 0 && !a_fits)
        order = ORDER(a->judged.peak_bytes, b->judged.peak_bytes);
    order = order ? order : ORDER(a->judged.step_ns, b->judged.step_ns);
    return order ? order : ORDER(a->n_unit, b->n_unit);
}

static const struct found *best_of(const struct search *s)
{
    return s->n_beam > 0 ? &s->found[s->beam[0].found] : NULL;
}

static bool fits(const struct search *s, const struct found *found)
{
    return found && found->judged.peak_bytes <= s->options->limit_bytes;
}

/* ---- what a batch brings -------------------------------------------------------------------------- */

/* Those that came first stay before their equals. */
static void enter_beam(struct search *s, uint32_t found)
{
    const uint64_t limit_bytes = s->options->limit_bytes;
    uint32_t at = s->n_beam;

    while (at > 0 && compare(&s->found[found], &s->found[s->beam[at - 1].found], limit_bytes) < 0)
        at--;
    if (at == BEAM)
        return;
    if (s->n_beam < BEAM)
        s->n_beam++;
    memmove(&s->beam[at + 1], &s->beam[at], (s->n_beam - 1 - at) * sizeof *s->beam);
    s->beam[at] = (struct beam_place){.found = found};
}

static void judge_batch(struct search *s)
{
    struct judged judged[BATCH];

    judge_pool_run(s->pool, s->options->objective, s->batch, s->n_batch, judged);
    for (uint32_t i = 0; i < s->n_batch; i++) {
        if (judged[i].step_ns == INT64_MAX)
            continue;
        s->found = arena_grow(s->arena, s->found, &s->cap, s->n + 1, sizeof *s->found);
        s->found[s->n] = (struct found){.point = s->batch[i],
                                        .judged = judged[i],
                                        .n_unit = space_units(s->space, s->batch[i])};
        enter_beam(s, s->n++);
    }
    s->progress.judged += s->n_batch;
    s->n_batch = 0;
    s->progress.best_ns = fits(s, best_of(s)) ? best_of(s)->judged.step_ns : 0;
    if (s->options->go_on && !s->options->go_on(s->options->self, &s->progress))
        s->stopped = true;
}

/* What is at least as slow as this cannot get better than what is there. */
static bool is_excluded(struct search *s, const uint8_t *point, const struct found *than)
{
    if (s->options->max_units > 0 && space_units(s->space, point) > s->options->max_units)
        return true;
    const struct judged least = bounds_of(s->bounds, point);
    if (!fits(s, than)) /* still on the way to what fits: nothing larger is of use */
        return than && least.peak_bytes > than->judged.peak_bytes;
    return least.peak_bytes > s->options->limit_bytes || least.step_ns > than->judged.step_ns;
}

/* Take a point that was not met before, unless bounds say that it is worse than this one. */
static void offer(struct search *s, const uint8_t *point, const struct found *than)
{
    if (point_set_has(&s->seen, point))
        return;
    if (is_excluded(s, point, than)) {
        s->progress.passed_over++;
        return;
    }
    point_set_add(&s->seen, point);
    s->batch[s->n_batch++] = s->seen.points[s->seen.n - 1];
    if (s->n_batch == BATCH)
        judge_batch(s);
}

/* ---- the beam ------------------------------------------------------------------------------------- */

static bool is_spent(const struct search *s)
{
    return s->stopped || s->progress.judged >= s->options->most_points;
}

static void offer_seeds(struct search *s)
{
    uint8_t *points;

    arena_reset(&s->scratch);
    const uint32_t n = space_seeds(s->space, &s->scratch, &points);
    for (uint32_t i = 0; i < n && !is_spent(s); i++)
        offer(s, points + (size_t)i * s->space->point_bytes, NULL);
    judge_batch(s);
}

/* What cannot enter the beam need not be judged. */
static const struct found *last_of_beam(const struct search *s)
{
    return s->n_beam == BEAM ? &s->found[s->beam[BEAM - 1].found] : NULL;
}

static void widen(struct search *s, struct beam_place *place)
{
    uint8_t *points;

    place->widened = true;
    arena_reset(&s->scratch);
    const uint32_t n =
        space_neighbours(s->space, s->found[place->found].point, &s->scratch, &points);
    for (uint32_t i = 0; i < n && !is_spent(s); i++)
        offer(s, points + (size_t)i * s->space->point_bytes, last_of_beam(s));
    judge_batch(s);
}

static struct beam_place *next_to_widen(struct search *s)
{
    for (uint32_t i = 0; i < s->n_beam; i++)
        if (!s->beam[i].widened)
            return &s->beam[i];
    return NULL;
}

static void search_beam(struct search *s)
{
    struct beam_place *place;

    offer_seeds(s);
    while (!is_spent(s) && (place = next_to_widen(s)))
        widen(s, place);
}

/* ---- the whole space ------------------------------------------------------------------------------ */

/* False where it was not gone through to its end. */
static bool search_whole(struct search *s)
{
    uint8_t *point = arena_array(s->arena, uint8_t, s->space->point_bytes);

    s->progress.passed_over = 0; /* what the beam left out is looked at again */
    space_first(s->space, point);
    do
        offer(s, point, best_of(s));
    while (!s->stopped && space_next(s->space, point));
    judge_batch(s);
    return !s->stopped;
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* Those that came first stay before their equals, which no sort of the library promises. */
static void merge_sort(struct found *found, struct found *spare, uint32_t n, uint64_t limit_bytes)
{
    const uint32_t half = n / 2;
    uint32_t a = 0, b = half;

    if (n < 2)
        return;
    merge_sort(found, spare, half, limit_bytes);
    merge_sort(found + half, spare, n - half, limit_bytes);
    for (uint32_t i = 0; i < n; i++) {
        const bool first = b == n || (a < half && compare(&found[a], &found[b], limit_bytes) <= 0);
        spare[i] = found[first ? a++ : b++];
    }
    memcpy(found, spare, n * sizeof *found);
}

/* The fine plan stands for all: what is wrong with it is wrong with every one. */
static enum status check_fine(const struct search *s, struct err *err)
{
    struct judged judged;
    arena_reset(judge_arena(s->of_bounds));
    return judge_plan(s->of_bounds, s->space->source.fine, &judged, err);
}

static void run(struct search *s, struct search_result *out)
{
    const double size = space_size(s->space);

    s->progress.expected =
        size < (double)s->options->exact_points ? (uint64_t)size : s->options->most_points;
    search_beam(s);
    const bool whole = !s->stopped && size <= (double)s->options->exact_points && search_whole(s);
    merge_sort(s->found, arena_take(s->arena, (s->n + 1) * sizeof *s->found), s->n,
               s->options->limit_bytes);
    *out = (struct search_result){.found = s->found,
                                  .n = s->n,
                                  .progress = s->progress,
                                  .least = bounds_of_space(s->bounds),
                                  .space_size = size,
                                  .whole = whole,
                                  .stopped = s->stopped};
}

static unsigned bounds_that_hold(const struct search_options *options)
{
    return options->objective == OBJECTIVE_EVENTS ? options->bounds : 0;
}

enum status search_run(const struct space *space, const struct cluster *cluster,
                       const struct body_table *bodies, const struct search_options *options,
                       struct arena *arena, struct search_result *out, struct err *err)
{
    struct search s = {.space = space, .options = options, .arena = arena};

    arena_init(&s.scratch);
    s.of_bounds = judge_new(cluster, bodies);
    const enum status status = check_fine(&s, err);
    if (status == STATUS_OK) {
        s.pool = judge_pool_new(space, cluster, bodies, options->jobs);
        s.bounds = bounds_new(space, s.of_bounds, bounds_that_hold(options), arena);
        point_set_init(&s.seen, space->point_bytes, arena);
        run(&s, out);
    }
    judge_pool_free(s.pool);
    judge_free(s.of_bounds);
    arena_release(&s.scratch);
    return status;
}

uint32_t search_front(const struct search_result *result, uint64_t limit_bytes, struct arena *arena,
                      uint32_t **out)
{
    uint32_t *front = arena_array(arena, uint32_t, result->n + 1), n = 0;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < result->n; i++) {
        const uint64_t bytes = result->found[i].judged.peak_bytes;
        if (bytes > limit_bytes || bytes >= least)
            continue;
        least = bytes;
        front[n++] = i;
    }
    *out = front;
    return n;
}
