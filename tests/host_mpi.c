/*
 * One rank of tests/host_mpi.sh: exchanges bytes by MPI, then loses a rank if it is told so.
 *
 * Prints what is wrong; rank 0 prints "all bytes right", and with "late" each rank but the late one
 * what it is told.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/ranks_rig.h"
#include "tests/tap.h"

static const int64_t SECOND_NS = 1000000000;

/* Rank 1 does not take part; what the others are told. */
static void lose_a_rank(struct mpi_transport *transport, uint32_t rank, uint32_t ranks)
{
    char room[2][RIG_MAX_RANKS][8];
    const void *send[RIG_MAX_RANKS];
    void *recv[RIG_MAX_RANKS];
    struct err err = {0};

    for (uint32_t i = 0; i < ranks; i++) {
        send[i] = memset(room[0][i], 1, sizeof(room[0][i]));
        recv[i] = room[1][i];
    }
    if (rank == 1)
        nanosleep(&(struct timespec){3, 0}, NULL);
    else if (mpi_transport_ops.exchange(transport, COMM_SHARD, send, recv, 8, &err) == STATUS_OK)
        mpi_transport_ops.wait(transport, COMM_SHARD, &err);
    printf("rank %u is told: %s\n", rank, err.text);
    fflush(stdout);
    _exit(STATUS_RUN);
}

int main(int argc, char **argv)
{
    struct mpi_transport *transport = NULL;
    struct transport_setup setup;
    struct err err = {0};
    uint32_t rank, ranks;
    const bool loses = argc > 1 && strcmp(argv[1], "late") == 0;

    if (mpi_transport_new(&rank, &ranks, &transport, &err) != STATUS_OK)
        tap_bail(err.text);
    rig_setup(rank, ranks, loses ? SECOND_NS : 20 * SECOND_NS, &setup);
    int n_bad = mpi_transport_ops.open(transport, &setup, &err) != STATUS_OK;
    n_bad += rig_check_exchanges(&mpi_transport_ops, transport, &setup, 51);
    if (rank == 0)
        printf("%s\n", n_bad ? "wrong bytes" : "all bytes right");
    if (loses)
        lose_a_rank(transport, rank, ranks);
    mpi_transport_ops.close(transport);
    mpi_transport_free(transport, true);
    return n_bad != 0;
}
