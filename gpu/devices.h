/*
 * What this build can execute on, and how its ranks reach one another.
 *
 * The only place that knows what was built in, so that whoever asks has one answer for all builds.
 * A rank is forked by this program (gpu/ranks.h), or a launcher has started it: then this process is
 * one of many, which MPI knows, or which meet by a file (gpu/rendezvous.h).
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
    X(MPI, "mpi")     \
    X(TCP, "tcp")

enum transport {
#define X(id, name) TRANSPORT_##id,
    TRANSPORTS(X)
#undef X
        TRANSPORT_N
};

/* STATUS_DEVICE where it was not built in; whether the machine has one shows when it is opened. */
enum status device_find(enum device device, const struct device_ops **out, struct err *err);

/* This process among those of a run. */
struct world {
    bool is_launched;     /* else all ranks are forked here */
    uint32_t rank, ranks; /* of a launched one */
    const struct transport_ops *transport;
    void *transport_self;
    int64_t timeout_ns;
};

/* How a run's ranks come about, before anything is started. */
struct world_plan {
    uint32_t ranks;         /* of launched ones, of which this one is rank; 0: they are forked */
    uint32_t rank;          /* where a file brings them together; MPI says its own */
    const char *rendezvous; /* the file, or NULL */
};

/*
 * auto: by the file where there is one, else by MPI where a launcher started several. STATUS_DEVICE
 * where this build has no MPI; STATUS_USAGE where the file does not go with what is asked.
 */
enum status world_plan(enum transport asked, const char *rendezvous, struct world_plan *out,
                       struct err *err);

/* Where ranks are launched: starts MPI, or waits for the others at the file. To be left once,
   whatever was done in it. */
enum status world_join(const struct world_plan *plan, int64_t timeout_ns, struct world *out,
                       struct err *err);

/*
 * together: all ranks come here, however their run ended. Else the launcher has to end those that do
 * not, which it does once this process is gone; all but rank 0 give that one time to say why.
 */
void world_leave(struct world *world, bool together);

#endif
