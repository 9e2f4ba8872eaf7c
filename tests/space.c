/*
 * Points of a search are plans: as many as are counted, all different, each the point of its plan,
 * and what seeds and neighbours lead to are points as well.
 */
#include "sim/space.h"

#include <stdlib.h>
#include <string.h>

#include "src/schedule/system.h"
#include "tests/make.h"
#include "tests/tap.h"

static const struct space *compared;

static int compare_points(const void *a, const void *b)
{
    return memcmp(a, b, compared->point_bytes);
}

struct listed {
    uint8_t *points;
    uint32_t n;
};

/* All points, sorted. */
static struct listed list(const struct space *space, struct arena *arena)
{
    const uint32_t most = (uint32_t)space_size(space) + 1;
    struct listed all = {.points = arena_take(arena, (size_t)most * space->point_bytes)};
    uint8_t *point = arena_array(arena, uint8_t, space->point_bytes);

    space_first(space, point);
    do
        memcpy(all.points + (size_t)all.n++ * space->point_bytes, point, space->point_bytes);
    while (all.n < most && space_next(space, point));
    compared = space;
    qsort(all.points, all.n, space->point_bytes, compare_points);
    return all;
}

static bool is_listed(const struct space *space, struct listed all, const uint8_t *point)
{
    compared = space;
    return bsearch(point, all.points, all.n, space->point_bytes, compare_points);
}

static uint32_t count_twins(const struct space *space, struct listed all)
{
    uint32_t twins = 0;
    for (uint32_t i = 1; i < all.n; i++)
        twins += memcmp(all.points + (size_t)(i - 1) * space->point_bytes,
                        all.points + (size_t)i * space->point_bytes, space->point_bytes) == 0;
    return twins;
}

/* What is not in the space leads nowhere new: from the plan of a point back to the point. */
static uint32_t count_astray(const struct space *space, struct listed all)
{
    struct arena arena;
    uint8_t point[64];
    uint32_t astray = 0;

    arena_init(&arena);
    for (uint32_t i = 0; i < all.n; i++) {
        const uint8_t *from = all.points + (size_t)i * space->point_bytes;
        struct plan plan;
        arena_reset(&arena);
        space_plan(space, from, &arena, &plan);
        memset(point, 0, sizeof point);
        astray += !space_point(space, &plan, point) ||
                  memcmp(point, from, space->point_bytes) != 0 ||
                  space_units(space, from) != plan.n_unit;
    }
    arena_release(&arena);
    return astray;
}

static uint32_t count_unlisted(const struct space *space, struct listed all, const uint8_t *points,
                               uint32_t n)
{
    uint32_t unlisted = 0;
    for (uint32_t i = 0; i < n; i++)
        unlisted += !is_listed(space, all, points + (size_t)i * space->point_bytes);
    return unlisted;
}

/* Every point can be reached from the first seed by neighbours. */
static uint32_t count_reached(const struct space *space, struct listed all, struct arena *arena)
{
    bool *seen = arena_array(arena, bool, all.n);
    uint32_t *queue = arena_array(arena, uint32_t, all.n), n = 0;
    uint8_t *points;

    space_seeds(space, arena, &points);
    for (uint32_t next = 0, from = 1; from > 0; from = next < n) {
        uint32_t n_point = 1;
        if (n > 0)
            n_point = space_neighbours(
                space, all.points + (size_t)queue[next++] * space->point_bytes, arena, &points);
        for (uint32_t i = 0; i < n_point; i++) {
            const uint8_t *found = bsearch(points + (size_t)i * space->point_bytes, all.points,
                                           all.n, space->point_bytes, compare_points);
            const size_t at = found ? (size_t)(found - all.points) / space->point_bytes : 0;
            if (found && !seen[at]) {
                seen[at] = true;
                queue[n++] = (uint32_t)at;
            }
        }
    }
    return n;
}

static void test_space(const char *model, uint64_t layers, const char *fine, const char *start,
                       unsigned axes)
{
    struct plan_options options = plan_options_default();
    struct made made;
    struct space space;
    struct plan from;
    struct err err = {0};
    uint8_t *points;
    const char *what;

    options.units = fine;
    make_init(&made, model, layers, &options);
    options.units = start;
    if (plan_resolve(&made.model, &options, &made.arena, &from, &err) != STATUS_OK ||
        space_init(&made.plan, &from, axes, &made.arena, &space, &err) != STATUS_OK)
        tap_bail(err.text);
    what = arena_printf(&made.arena, "%s of %u blocks from %s, axes %x", model, (unsigned)layers,
                        start, axes);
    const struct listed all = list(&space, &made.arena);
    is_int(all.n, (uint32_t)space_size(&space), "%s: as many points as are counted", what);
    is_int(count_twins(&space, all), 0, "%s: no two are equal", what);
    is_int(count_astray(&space, all), 0, "%s: each is the point of its plan", what);
    uint32_t n = space_seeds(&space, &made.arena, &points);
    is_int(count_unlisted(&space, all, points, n), 0, "%s: %u seeds are points", what, n);
    n = space_neighbours(&space, all.points, &made.arena, &points);
    is_int(count_unlisted(&space, all, points, n), 0, "%s: %u neighbours are points", what, n);
    is_int(count_reached(&space, all, &made.arena), all.n, "%s: and lead everywhere", what);
    make_release(&made);
}

/* The plan of a scheme in words. */
static void test_words(const char *model, uint64_t layers, const char *fine, const char *units,
                       enum reshard reshard, const char *want)
{
    struct plan_options options = plan_options_default();
    struct made made;
    struct space space;
    struct plan plan;
    struct text text;

    options.units = fine;
    options.reshard = reshard;
    make_init(&made, model, layers, &options);
    options.units = units;
    uint8_t *point = arena_array(&made.arena, uint8_t, POINT_ATOMS + made.plan.n_unit);
    if (plan_resolve(&made.model, &options, &made.arena, &plan, NULL) != STATUS_OK ||
        space_init(&made.plan, &made.plan, AXES_ALL, &made.arena, &space, NULL) != STATUS_OK)
        tap_bail("a scheme is refused");
    text_init(&text);
    if (ok(space_point(&space, &plan, point), "%s is a point", units)) {
        space_text(&space, point, &text);
        is_str(text.at, want, "%s of %s in words", units, model);
    }
    text_release(&text);
    make_release(&made);
}

static void test_all_words(void)
{
    test_words("llama3-8b", 6, "piece", "torchtitan", RESHARD_AUTO, "emb 6x1 norm+head");
    test_words("llama3-8b", 7, "piece", "block*2", RESHARD_AUTO, "root(emb,norm,head) 3x2 1x1");
    test_words("llama3-8b", 7, "piece", "block*3", RESHARD_YES, "root(emb,norm,head)freed 2x3 1x1");
    test_words("llama3-8b", 2, "half", "attn+mlp", RESHARD_NO, "root(emb,norm,head) 4x0.5k");
    test_words("llama3-8b", 2, "piece", "whole", RESHARD_AUTO, "root(emb,block,block,norm,head)");
    test_words("gpt2", 2, "piece", "torchtitan", RESHARD_AUTO, "emb+norm+head 2x1");
    test_words("llama3-8b", 3, "piece",
               "[[\"model.embed_tokens\",\"model.layers.0\"],\"model.layers.1\","
               "[\"model.layers.2\",\"model.norm\",\"lm_head\"]]",
               RESHARD_ALL_BUT_LAST, "emb+1 1x1 1+norm+headk");
}

static void test_refused(void)
{
    struct plan_options options = plan_options_default();
    struct made made;
    struct space space;
    struct plan from;
    struct err err = {0};

    options.units = "piece";
    make_init(&made, "llama3-8b", 3, &options);
    options.units = "attn+mlp";
    if (plan_resolve(&made.model, &options, &made.arena, &from, &err) != STATUS_OK)
        tap_bail(err.text);
    ok(space_init(&made.plan, &from, AXES_ALL, &made.arena, &space, &err) == STATUS_USAGE &&
           strstr(err.text, "whole blocks"),
       "halves are not made of blocks");
    make_release(&made);
}

/* A depth that no point can say is nothing against a search that leaves it as it is. */
static void test_depths(void)
{
    static const struct {
        uint64_t forward, backward;
        bool taken; /* where they vary */
    } cases[] = {{255, 255, true}, {256, 0, false}, {0, 256, false}, {UINT64_MAX, 1, false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct made made;
        struct space space;
        struct plan plan;
        struct err err = {0};

        options.units = "piece";
        options.prefetch = cases[i].forward;
        options.prefetch_backward = cases[i].backward;
        make_init(&made, "llama3-8b", 3, &options);
        if (space_init(&made.plan, &made.plan, 1u << AXIS_GROUPING, &made.arena, &space, &err) !=
            STATUS_OK)
            tap_bail(err.text);
        space_plan(&space, space.start, &made.arena, &plan);
        ok(plan.options.prefetch == cases[i].forward &&
               plan.options.prefetch_backward == cases[i].backward,
           "depths %zu do not vary, and are the plan's", i);
        const bool taken =
            space_init(&made.plan, &made.plan, AXES_ALL, &made.arena, &space, &err) == STATUS_OK;
        ok(taken == cases[i].taken && (taken || strstr(err.text, "255 units ahead")),
           "depths %zu that vary are %s", i, cases[i].taken ? "taken" : "refused with the reason");
        make_release(&made);
    }
}

int main(void)
{
    const unsigned grouping = 1u << AXIS_GROUPING, tail = 1u << AXIS_TAIL,
                   reshard = 1u << AXIS_RESHARD, prefetch = 1u << AXIS_PREFETCH;
    static const char *const starts[] = {"torchtitan", "block", "whole", "piece"};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        test_space("llama3-8b", 6, "piece", starts[i], grouping);
        test_space("llama3-8b", 3, "piece", starts[i], tail | prefetch);
        test_space("llama3-8b", 3, "piece", starts[i], grouping | reshard);
        test_space("llama3-8b", 2, "half", starts[i], grouping | tail | reshard);
    }
    test_space("gpt2", 3, "piece", "torchtitan", AXES_ALL);
    test_space("llama3-8b", 2, "piece", "torchtitan", AXES_ALL);
    test_space("llama3-8b", 2, "piece", "torchtitan", 0);
    test_all_words();
    test_refused();
    test_depths();
    return tap_done();
}
