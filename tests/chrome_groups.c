/*
 * The process groups of a trace: those of two replicas by hand, those of random worlds by what all
 * groups have to be.
 */
#include "traces/chrome_groups.h"

#include <string.h>

#include "tests/tap.h"

enum { ROUNDS = 200 };

static struct arena arena;

/* Sixteen ranks, cut over eight; kept over four, with a second mesh and reduce-scatters apart. */
static void by_hand(void)
{
    static const struct {
        uint64_t rank;
        enum comm comm;
        const char *name, *description, *shown;
    } cases[] = {
        {0, COMM_REPLICATE, "1", "mesh_replicate", "[0, 8]"},
        {13, COMM_REPLICATE, "6", "mesh_replicate", "[5, 13]"},
        {0, COMM_SHARD, "9", "mesh_shard", "[0, 1, 2, 3, 4, 5, 6, 7]"},
        {13, COMM_SHARD, "10", "mesh_shard", "[8, 9, 10, 11, 12, 13, 14, 15]"},
        {0, COMM_KEPT, "15", "mesh_dim_1", "[0, 1, 2, 3]"},
        {13, COMM_KEPT, "18", "mesh_dim_1", "[12, 13, 14, 15]"},
        {13, COMM_SECOND, "20", "mesh_second", "[8, 9, 10, 11, 12, 13, 14, 15]"},
        {13, COMM_REDUCE, "22", "fsdp_reduce_scatter", "[8, 9, 10, 11, 12, 13, 14, 15]"},
    };
    static const struct run run = {.world = 16,
                                   .comm_ranks = {[COMM_SHARD] = 8,
                                                  [COMM_REDUCE] = 8,
                                                  [COMM_REPLICATE] = 2,
                                                  [COMM_KEPT] = 4,
                                                  [COMM_SECOND] = 8}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chrome_groups groups;
        chrome_groups(&run, cases[i].rank, &arena, &groups);
        const struct chrome_group *group = &groups.of[cases[i].comm];
        is_str(group->name, cases[i].name, "rank %d, %s: the number of its group",
               (int)cases[i].rank, comm_name(cases[i].comm));
        is_str(group->description, cases[i].description, "what it is");
        is_str(group->shown, cases[i].shown, "and its ranks");
    }
}

static void of_all_ranks(void)
{
    static const struct run run = {
        .world = 64, .comm_ranks = {[COMM_SHARD] = 64, [COMM_REDUCE] = 64, [COMM_SECOND] = 64}};
    struct chrome_groups groups;
    chrome_groups(&run, 7, &arena, &groups);
    is_str(groups.of[COMM_SHARD].description, "default_pg", "all ranks are the default group");
    is_str(groups.of[COMM_SHARD].name, "0", "which is the first");
    is_str(groups.of[COMM_REDUCE].description, "fsdp_reduce_scatter",
           "but reduce-scatters apart have one of their own");
    is_str(groups.of[COMM_SECOND].description, "mesh_second", "and so has a second mesh");
    is_int((long long)groups.of[COMM_KEPT].ranks, 0, "what the run does not use is not there");
    is_str(strrchr(groups.world.shown, '.'), "., 63]", "a long list is shortened");
}

static struct run random_run(uint64_t *random)
{
    const uint64_t kept = 1 + tap_below(random, 5), shards = kept * (1 + tap_below(random, 5));
    const uint64_t replicas = 1 + tap_below(random, 5);
    return (struct run){.world = shards * replicas,
                        .comm_ranks = {[COMM_SHARD] = shards,
                                       [COMM_REDUCE] = tap_below(random, 2) ? shards : 0,
                                       [COMM_SECOND] = tap_below(random, 2) ? shards : 0,
                                       [COMM_REPLICATE] = replicas > 1 ? replicas : 0,
                                       [COMM_KEPT] = tap_below(random, 2) ? kept : 0}};
}

static bool has(const struct chrome_group *group, uint64_t rank)
{
    return rank >= group->first && (rank - group->first) % group->stride == 0 &&
           (rank - group->first) / group->stride < group->ranks;
}

static bool overlap(const struct run *run, const struct chrome_group *a,
                    const struct chrome_group *b)
{
    for (uint64_t rank = 0; rank < run->world; rank++) {
        if (has(a, rank) && has(b, rank))
            return true;
    }
    return false;
}

/* Of one communicator: two ranks have one group, or two that have no rank and no name in common. */
static bool holds(const struct run *run, enum comm comm, const struct chrome_groups *ranks)
{
    for (uint64_t i = 0; i < run->world; i++) {
        const struct chrome_group *a = &ranks[i].of[comm];
        if (a->ranks != run->comm_ranks[comm] || (a->ranks > 0 && !has(a, i)))
            return false;
        for (uint64_t k = 0; k < i && a->ranks > 0; k++) {
            const struct chrome_group *b = &ranks[k].of[comm];
            const bool same = !strcmp(a->name, b->name);
            if (same != overlap(run, a, b) || same != (a->first == b->first))
                return false;
        }
    }
    return true;
}

static void of_random_worlds(void)
{
    uint64_t random = tap_seed(20261129);
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const struct run run = random_run(&random);
        struct chrome_groups *ranks = arena_array(&arena, struct chrome_groups, run.world);
        for (uint64_t rank = 0; rank < run.world; rank++)
            chrome_groups(&run, rank, &arena, &ranks[rank]);
        for (int comm = 0; comm < COMM_N; comm++)
            wrong += !holds(&run, (enum comm)comm, ranks);
        arena_reset(&arena);
    }
    is_int(wrong, 0, "in %d random worlds each rank is in one group of each kind", ROUNDS);
}

int main(void)
{
    arena_init(&arena);
    by_hand();
    of_all_ranks();
    of_random_worlds();
    arena_release(&arena);
    return tap_done();
}
