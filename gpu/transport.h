/*
 * Bytes between ranks: what the host's collectives are made of. No arithmetic, no dtypes.
 *
 * A group is the ranks that a communicator of this rank joins. Each group is used by one thread at a
 * time, different groups by different threads; calls of a group come in the same order on all its
 * ranks. exchange starts, wait ends it; buffers belong to the transport in between. Every wait has a
 * deadline: a rank that is gone or late gives STATUS_RUN with its number, on all ranks, and no call
 * blocks for ever.
 */
#ifndef GPU_TRANSPORT_H
#define GPU_TRANSPORT_H

#include "src/err.h"
#include "src/program.h"

struct comm_group {
    uint32_t n, me;        /* ranks in it, and which of them this one is */
    const uint32_t *ranks; /* of the world, rising */
};

/* One more group for what is not the program's: all ranks. */
enum { GROUP_CONTROL = COMM_N, GROUP_N };

struct transport_setup {
    uint32_t rank, ranks;
    struct comm_group groups[GROUP_N];
    int64_t timeout_ns;
};

struct transport_ops {
    const char *name; /* "shm", "tcp", "mpi" */
    /* Put up; collective over all ranks. */
    enum status (*open)(void *self, const struct transport_setup *setup, struct err *err);
    /* send[i] goes to the group's rank i, recv[i] comes from it, bytes each; send and recv of the
       rank itself are passed over. The two arrays belong to the transport as long as the bytes. */
    enum status (*exchange)(void *self, uint32_t group, const void *const *send, void *const *recv,
                            uint64_t bytes, struct err *err);
    enum status (*wait)(void *self, uint32_t group, struct err *err);
    void (*close)(void *self); /* tear down; also after a failed open */
};

/* gpu/shm_transport.c: ranks forked from one process. The region is made before the fork and shared
   by all; it is freed by the process that made it. */
struct shm_region;
extern const struct transport_ops shm_transport_ops;
enum status shm_region_new(uint32_t ranks, struct shm_region **out, struct err *err);
void shm_region_free(struct shm_region *region);
/* A rank died: whoever waits for it stops now. Safe in any process that shares the region. */
void shm_region_abort(struct shm_region *region, uint32_t rank);
struct shm_transport;
struct shm_transport *shm_transport_new(struct shm_region *region); /* in the rank's own process */
void shm_transport_free(struct shm_transport *transport);

/* gpu/tcp_transport.c: ranks that a launcher started, on one machine or several, which have met
   (gpu/rendezvous.h). After a failure the control group alone still exchanges, with those who are
   there and with little patience, so that ranks can say how they ended. The meeting becomes the
   transport's. last_words: rank 0 tells of all, so that others leave when it has left. */
struct meeting;
struct tcp_transport;
extern const struct transport_ops tcp_transport_ops;
struct tcp_transport *tcp_transport_new(const struct meeting *meeting);
void tcp_transport_last_words(struct tcp_transport *transport, int64_t until_ns);
void tcp_transport_free(struct tcp_transport *transport);

/* gpu/mpi_transport.c, where the program is built with MPI. It starts and ends MPI, so that there is
   one in a process; rank and ranks are the launcher's. After a failure the control group alone still
   exchanges, with little patience, so that ranks can say how they ended. together: all ranks free
   theirs, so that MPI can be finished. */
struct mpi_transport;
extern const struct transport_ops mpi_transport_ops;
enum status mpi_transport_new(uint32_t *rank, uint32_t *ranks, struct mpi_transport **out,
                              struct err *err);
void mpi_transport_free(struct mpi_transport *transport, bool together);

#endif
