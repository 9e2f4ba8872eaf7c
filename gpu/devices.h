/*
 * What this build can execute on, and how its ranks reach one another.
 *
 * The only place that knows what was built in, so that whoever asks has one answer for all builds.
 * A rank is forked by this program (gpu/ranks.h), or a launcher has started it: then this process is
 * one of many, which MPI knows.
 */
#ifndef GPU_DEVICES_H
#define GPU_DEVICES_H

#include "gpu/device.h"

/* X(ENUM, name) */
#define DEVICES(X)  \
    X(HOST, "host") \
    X(CUDA, "cuda")

enum device {
#define X(id, name) DEVICE_##id,
    DEVICES(X)
#undef X
        DEVICE_N
};

/* Which are chosen by what was built and by how the process was started. X(ENUM, name) */
#define TRANSPORTS(X) \
    X(AUTO, "auto")   \
    X(SHM, "shm")     \
    X(MPI, "mpi")

enum transport {
#define X(id, name) TRANSPORT_##id,
    TRANSPORTS(X)
#undef X
        TRANSPORT_N
};

/* STATUS_DEVICE where it was not built in; whether the machine has one shows when it is opened. */
enum status device_find(enum device device, const struct device_ops **out, struct err *err);

/* How many processes a launcher (mpirun, srun) started this one among; 0: none did. From the
   environment alone. */
uint32_t launcher_ranks(void);

/* This process among those of a run. */
struct world {
    bool is_launched;     /* else all ranks are forked here */
    uint32_t rank, ranks; /* of a launched one */
    const struct transport_ops *transport;
    void *transport_self;
    int64_t timeout_ns;
};

/*
 * Whether ranks are launched, and how many, before anything is started: ranks is 0 where they are
 * not. auto: by MPI where a launcher started several. STATUS_DEVICE where this build has no MPI.
 */
enum status world_plan(enum transport asked, uint32_t *ranks, struct err *err);

/* Starts MPI where ranks are launched; ranks as planned. To be left once, whatever was done in it. */
enum status world_join(uint32_t ranks, int64_t timeout_ns, struct world *out, struct err *err);

/*
 * together: all ranks come here, however their run ended. Else the launcher has to end those that do
 * not, which it does once this process is gone; all but rank 0 give that one time to say why.
 */
void world_leave(struct world *world, bool together);

#endif
