/*
 * A batch of points over threads; see judge_pool.h. They take points in turn from a counter; where no
 * thread can be had those that are there do it all.
 */
#include "sim/judge_pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "sim/milp_judge.h"
#include "src/plan_check.h"

struct judge_pool {
    const struct space *space;
    struct arena arena;
    struct judge *judges[JUDGE_POOL_MAX];
    uint32_t n_judge;

    /* The batch that runs: what is asked of each point, and where the answers go. */
    void (*ask)(const struct judge_pool *pool, struct judge *judge, uint32_t i);
    const uint8_t *const *points;
    enum objective objective;
    const struct alloc_config *config;
    struct judged *judged;
    struct placed *placed;
    uint32_t n;
    atomic_uint next;
};

const char *objective_name(enum objective objective)
{
    static const char *const names[OBJECTIVE_N] = {
#define X(id, name) name,
        OBJECTIVES(X)
#undef X
    };
    return names[objective];
}

struct judge_pool *judge_pool_new(const struct space *space, const struct cluster *cluster,
                                  const struct body_table *bodies, uint32_t jobs)
{
    struct arena arena;

    arena_init(&arena);
    struct judge_pool *pool = arena_array(&arena, struct judge_pool, 1);
    pool->space = space;
    pool->arena = arena;
    pool->n_judge = jobs;
    for (uint32_t i = 0; i < jobs; i++)
        pool->judges[i] = judge_new(cluster, bodies);
    return pool;
}

void judge_pool_free(struct judge_pool *pool)
{
    if (!pool)
        return;
    struct arena arena = pool->arena; /* the pool is in it */
    for (uint32_t i = 0; i < pool->n_judge; i++)
        judge_free(pool->judges[i]);
    arena_release(&arena);
}

static void judge_point(const struct judge_pool *pool, struct judge *judge, uint32_t i)
{
    enum status (*const judges[OBJECTIVE_N])(struct judge *, const struct plan *, struct judged *,
                                             struct err *) = {
        [OBJECTIVE_EVENTS] = judge_plan, [OBJECTIVE_MILP] = milp_judge_plan};
    struct arena *arena = judge_arena(judge);
    struct plan plan;

    arena_reset(arena);
    space_plan(pool->space, pool->points[i], arena, &plan);
    if (plan_check_units(&plan, arena, NULL) != STATUS_OK ||
        judges[pool->objective](judge, &plan, &pool->judged[i], NULL) != STATUS_OK)
        pool->judged[i] = JUDGED_REFUSED;
}

static void place_point(const struct judge_pool *pool, struct judge *judge, uint32_t i)
{
    struct arena *arena = judge_arena(judge);
    struct plan plan;

    arena_reset(arena);
    space_plan(pool->space, pool->points[i], arena, &plan);
    if (plan_check_units(&plan, arena, NULL) != STATUS_OK ||
        judge_place(judge, &plan, pool->config, &pool->placed[i], NULL) != STATUS_OK)
        pool->placed[i] = (struct placed){.reserved_bytes = UINT64_MAX};
}

struct worker {
    struct judge_pool *pool;
    struct judge *judge;
};

static void *work(void *self)
{
    const struct worker *worker = self;
    struct judge_pool *pool = worker->pool;
    uint32_t i;

    while ((i = atomic_fetch_add(&pool->next, 1)) < pool->n)
        pool->ask(pool, worker->judge, i);
    return NULL;
}

static void run_batch(struct judge_pool *pool, uint32_t n)
{
    struct worker workers[JUDGE_POOL_MAX];
    pthread_t threads[JUDGE_POOL_MAX];
    uint32_t n_thread = 0;

    pool->n = n;
    atomic_store(&pool->next, 0);
    for (uint32_t i = 0; i < pool->n_judge && i < n; i++)
        workers[i] = (struct worker){pool, pool->judges[i]};
    while (n_thread + 1 < pool->n_judge && n_thread + 1 < n &&
           pthread_create(&threads[n_thread], NULL, work, &workers[n_thread + 1]) == 0)
        n_thread++;
    if (n > 0)
        work(&workers[0]);
    while (n_thread > 0)
        pthread_join(threads[--n_thread], NULL);
}

void judge_pool_run(struct judge_pool *pool, enum objective objective, const uint8_t *const *points,
                    uint32_t n, struct judged *out)
{
    pool->ask = judge_point;
    pool->objective = objective;
    pool->points = points;
    pool->judged = out;
    run_batch(pool, n);
}

void judge_pool_place(struct judge_pool *pool, const uint8_t *const *points, uint32_t n,
                      const struct alloc_config *config, struct placed *out)
{
    pool->ask = place_point;
    pool->points = points;
    pool->config = config;
    pool->placed = out;
    run_batch(pool, n);
}
