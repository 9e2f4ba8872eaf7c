/*
 * The process groups of a run as one rank sees them, named, described and listed as PyTorch does it:
 * its device mesh has a dimension for the ranks that parameters are cut over, and with replicas one
 * for those; a group of all ranks is the default one.
 */
#ifndef TRACES_CHROME_GROUPS_H
#define TRACES_CHROME_GROUPS_H

#include "src/run.h"

struct chrome_group {
    const char *name, *description;
    uint64_t ranks, first, stride; /* how many, the lowest, and how far apart they are */
    const char *shown;             /* the list of them, as events have it */
};

/* of[comm].ranks is 0 where the run does not use it. */
struct chrome_groups {
    struct chrome_group world, of[COMM_N];
};

/* A reason why these cannot be the groups of a run, in words; NULL: they can. */
const char *chrome_groups_fault(const struct run *run);
void chrome_groups(const struct run *run, uint64_t rank, struct arena *arena,
                   struct chrome_groups *out);

/* "[0, 1, 2]"; shown: how many at most, the rest shortened as PyTorch does it. */
const char *chrome_group_list(const struct chrome_group *group, uint64_t shown,
                              struct arena *arena);

#endif
