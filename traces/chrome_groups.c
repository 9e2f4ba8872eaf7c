/*
 * Groups of one kind are disjoint and cover all ranks: neighbours, but for replicas, which are as
 * far apart as a set of shards is long.
 *
 * Every rank numbers all groups in the order in which they are made, so that two groups never share
 * a name. Source of order and descriptions: device_mesh.py, _fsdp_init.py and _fsdp_param_group.py
 * of PyTorch.
 */
#include "traces/chrome_groups.h"

#include <inttypes.h>
#include <stdbool.h>

#include "src/text.h"

enum { RANKS_SHOWN = 30 };

/* KEPT: dimension 1 of a mesh without names. REDUCE is no mesh's, and never the default group. */
static const struct {
    enum comm comm;
    bool of_mesh;
    const char *description;
} kinds[] = {
    {COMM_REPLICATE, true, "mesh_replicate"},
    {COMM_SHARD, true, "mesh_shard"},
    {COMM_KEPT, true, "mesh_dim_1"},
    {COMM_SECOND, false, "mesh_second"},
    {COMM_REDUCE, false, "fsdp_reduce_scatter"},
    {COMM_WORLD, true, "default_pg"}, /* as large as the default group, and so it */
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == COMM_N, "a kind for each communicator");

const char *chrome_group_list(const struct chrome_group *group, uint64_t shown, struct arena *arena)
{
    struct text text;
    text_init(&text);
    text_add(&text, "[");
    for (uint64_t i = 0; i < group->ranks; i++) {
        if (group->ranks > shown && i == shown - 1) {
            text_add(&text, ", ...");
            i = group->ranks - 1;
        }
        text_add(&text, "%s%" PRIu64, i ? ", " : "", group->first + i * group->stride);
    }
    text_add(&text, "]");
    const char *copy = arena_strdup(arena, text.at);
    text_release(&text);
    return copy;
}

const char *chrome_groups_fault(const struct run *run)
{
    for (int i = 0; i < COMM_N; i++) {
        if (run->comm_ranks[i] > 0 && run->world % run->comm_ranks[i] != 0)
            return "its ranks cannot be divided into groups of equal size";
    }
    return NULL;
}

/* made: how many groups there were before; those of this kind are counted in. */
static struct chrome_group group_of(enum comm comm, const struct run *run, uint64_t rank,
                                    struct arena *arena, uint64_t *made)
{
    const uint64_t ranks = run->comm_ranks[comm], n = run->world / ranks;
    const bool apart = comm == COMM_REPLICATE;
    const uint64_t index = apart ? rank % n : rank / ranks;
    if (comm == COMM_KEPT)
        *made += ranks; /* dimension 0 of its mesh, which nothing uses */
    const struct chrome_group group = {
        .name = arena_printf(arena, "%" PRIu64, *made + index),
        .ranks = ranks,
        .first = apart ? index : index * ranks,
        .stride = apart ? n : 1,
    };
    *made += n;
    return group;
}

void chrome_groups(const struct run *run, uint64_t rank, struct arena *arena,
                   struct chrome_groups *out)
{
    struct chrome_groups groups = {
        .world = {.name = "0", .description = "default_pg", .ranks = run->world, .stride = 1}};
    uint64_t made = 1;
    groups.world.shown = chrome_group_list(&groups.world, RANKS_SHOWN, arena);
    for (int i = 0; i < COMM_N; i++) {
        const enum comm comm = kinds[i].comm;
        struct chrome_group *group = &groups.of[comm];
        if (run->comm_ranks[comm] == 0)
            continue;
        if (kinds[i].of_mesh && run->comm_ranks[comm] == run->world) {
            *group = groups.world;
            continue;
        }
        *group = group_of(comm, run, rank, arena, &made);
        group->description = kinds[i].description;
        group->shown = chrome_group_list(group, RANKS_SHOWN, arena);
    }
    *out = groups;
}
