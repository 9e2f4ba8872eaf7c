/*
 * The environment of launched ranks; see launcher.h.
 */
#include "gpu/launcher.h"

#include <stdlib.h>

#include "src/text.h"

/* Names of variables; local NULL: the launcher does not say. */
struct launcher {
    const char *rank, *ranks, *local;
};

static const struct launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", NULL},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/* The last one is there in a batch script, too, which is one process: it holds where it is asked for. */
enum { N_LAUNCHER = sizeof launchers / sizeof *launchers, N_SURE = N_LAUNCHER - 1 };

/* Whether the variable is there; a number that makes no sense is UINT64_MAX. */
static bool read_number(const char *name, uint64_t *out)
{
    const char *text = name ? getenv(name) : NULL;

    if (!text || !*text)
        return false;
    if (!text_to_u64(text, out) || *out > INT32_MAX)
        *out = UINT64_MAX;
    return true;
}

uint32_t launcher_ranks(void)
{
    uint64_t rank, ranks;

    for (int i = 0; i < N_SURE; i++)
        if (read_number(launchers[i].rank, &rank) && read_number(launchers[i].ranks, &ranks) &&
            ranks <= INT32_MAX)
            return (uint32_t)ranks;
    return 0;
}

enum status launcher_self(uint32_t *rank, uint32_t *ranks, struct err *err)
{
    uint64_t mine, all;

    for (int i = 0; i < N_LAUNCHER; i++) {
        const struct launcher *by = &launchers[i];
        if (!read_number(by->rank, &mine) || !read_number(by->ranks, &all))
            continue;
        if (mine >= all || all > INT32_MAX)
            return err_set(err, STATUS_USAGE,
                           "%s is '%s' and %s '%s': ranks count from 0 to one less than all",
                           by->rank, getenv(by->rank), by->ranks, getenv(by->ranks));
        *rank = (uint32_t)mine;
        *ranks = (uint32_t)all;
        return STATUS_OK;
    }
    return err_set(err, STATUS_USAGE,
                   "--rendezvous, but no launcher says which rank this is: start it by torchrun or "
                   "srun, or set RANK and WORLD_SIZE");
}

uint32_t launcher_local_rank(uint32_t rank)
{
    uint64_t local;

    for (int i = 0; i < N_LAUNCHER; i++)
        if (read_number(launchers[i].local, &local) && local <= INT32_MAX)
            return (uint32_t)local;
    return rank;
}
