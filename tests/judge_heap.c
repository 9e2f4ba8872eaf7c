/*
 * Nothing is taken from the heap where plans are judged by the thousand: calls of malloc and its like
 * are counted (the linker puts the counters in their place), once as many plans were judged as a
 * search begins with.
 */
#include <stdlib.h>

#include "sim/judge_pool.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { WARM = 200, COUNTED = 1000 };

static unsigned n_call;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    n_call++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    n_call++;
    return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    n_call++;
    return __real_realloc(old, bytes);
}

/* Plans one step away from the usual one, as often as it takes. */
static const uint8_t **points_of(struct made *made, const struct space *space)
{
    const uint8_t **points = arena_array(&made->arena, const uint8_t *, COUNTED);
    uint8_t *all;
    const uint32_t n = space_neighbours(space, space->start, &made->arena, &all);

    for (uint32_t i = 0; i < COUNTED; i++)
        points[i] = all + (size_t)(i % n) * space->point_bytes;
    return points;
}

static void test_model(const char *model, uint64_t gpus, enum checkpointing ac)
{
    static struct judged judged[COUNTED];
    struct plan_options options = plan_options_default();
    struct cluster cluster;
    struct space space;
    struct made made;
    struct err err = {0};

    options.units = "piece";
    options.gpus = gpus;
    options.ac = ac;
    make_init(&made, model, 0, &options);
    if (cluster_open("h100-sxm", &made.arena, &cluster, &err) != STATUS_OK ||
        space_init(&made.plan, &made.plan, AXES_ALL, &made.arena, &space, &err) != STATUS_OK)
        tap_bail(err.text);
    const uint8_t **points = points_of(&made, &space);
    struct judge_pool *pool = judge_pool_new(&space, &cluster, &made.bodies, 1);
    judge_pool_run(pool, OBJECTIVE_EVENTS, points, WARM, judged);
    const unsigned before = n_call;
    judge_pool_run(pool, OBJECTIVE_EVENTS, points, COUNTED, judged);
    is_int(n_call - before, 0, "%s: 1,000 plans, not one call", model);
    ok(before > 0, "%s: calls are counted", model);
    judge_pool_free(pool);
    make_release(&made);
}

int main(void)
{
    test_model("llama3-8b", 8, AC_NONE);
    test_model("llama3-70b", 64, AC_FULL);
    test_model("gpt2", 8, AC_NONE);
    return tap_done();
}
