/*
 * What a launcher tells each process that it starts: which rank it is, among how many.
 *
 * From the environment alone: torchrun's RANK, WORLD_SIZE and LOCAL_RANK, which also a script can set;
 * Open MPI's, MPICH's and SLURM's own. Not here: how such ranks reach one another.
 */
#ifndef GPU_LAUNCHER_H
#define GPU_LAUNCHER_H

#include <stdint.h>

#include "src/err.h"

/* How many processes a launcher started this one among; 0: none did. */
uint32_t launcher_ranks(void);

/* Which of them this one is, for whoever was told that there are others. STATUS_USAGE where nothing
   says so, or what does makes no sense. */
enum status launcher_self(uint32_t *rank, uint32_t *ranks, struct err *err);

/* The rank's number among those of its machine; without a launcher all are on it. */
uint32_t launcher_local_rank(uint32_t rank);

#endif
