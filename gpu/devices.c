/*
 * What was built in, and how this process was started; see devices.h.
 */
#include "gpu/devices.h"

#include <stdlib.h>
#include <time.h>

enum { GRACE_S = 5 };

static const struct device_ops *const devices[DEVICE_N] = {
    [DEVICE_HOST] = &host_device_ops,
#ifdef HAVE_CUDA
    [DEVICE_CUDA] = &cuda_device_ops,
#endif
};

enum status device_find(enum device device, const struct device_ops **out, struct err *err)
{
    if (!devices[device])
        return err_set(err, STATUS_DEVICE,
                       "this build has no device cuda; take --device host, or configure --with-cuda");
    *out = devices[device];
    return STATUS_OK;
}

/* Of what launchers tell their processes: Open MPI, MPICH's kin, a job step of SLURM. */
uint32_t launcher_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        const long ranks = value ? strtol(value, NULL, 10) : 0;
        if (ranks > 0 && ranks <= INT32_MAX)
            return (uint32_t)ranks;
    }
    return 0;
}

#ifdef HAVE_MPI

static const bool has_mpi = true;

static enum status join(uint32_t ranks, struct world *out, struct err *err)
{
    struct mpi_transport *transport;
    uint32_t rank, n;
    const enum status status = mpi_transport_new(&rank, &n, &transport, err);

    if (status != STATUS_OK)
        return status;
    *out = (struct world){.is_launched = true,
                          .rank = rank,
                          .ranks = n,
                          .transport = &mpi_transport_ops,
                          .transport_self = transport};
    if (n == ranks)
        return STATUS_OK;
    return err_set(err, STATUS_DEVICE,
                   "the launcher started %u processes, and MPI knows of %u: is it another MPI's?",
                   ranks, n);
}

static void leave(struct world *world, bool together)
{
    mpi_transport_free(world->transport_self, together);
}

#else

static const bool has_mpi = false;

static enum status join(uint32_t ranks, struct world *out, struct err *err)
{
    (void)out;
    return err_set(err, STATUS_DEVICE, "no MPI for %u ranks: configure --with-mpi", ranks);
}

static void leave(struct world *world, bool together)
{
    (void)world;
    (void)together;
}

#endif

enum status world_plan(enum transport asked, uint32_t *ranks, struct err *err)
{
    const uint32_t launched = launcher_ranks();
    const bool by_mpi = asked == TRANSPORT_MPI || (asked == TRANSPORT_AUTO && launched > 1);

    if (by_mpi && !has_mpi && launched > 1)
        return err_set(err, STATUS_DEVICE,
                       "a launcher started %u processes, and this build has no MPI: configure "
                       "--with-mpi, or start one with --ranks %u",
                       launched, launched);
    if (by_mpi && !has_mpi)
        return err_set(err, STATUS_DEVICE, "this build has no MPI: configure --with-mpi");
    *ranks = !by_mpi ? 0 : launched > 0 ? launched : 1;
    return STATUS_OK;
}

enum status world_join(uint32_t ranks, int64_t timeout_ns, struct world *out, struct err *err)
{
    *out = (struct world){.is_launched = false};
    if (ranks == 0)
        return STATUS_OK;
    const enum status status = join(ranks, out, err);
    out->timeout_ns = timeout_ns;
    return status;
}

void world_leave(struct world *world, bool together)
{
    if (!world->is_launched)
        return;
    if (!together && world->rank > 0)
        nanosleep(&(struct timespec){.tv_sec = world->timeout_ns / 1000000000 + GRACE_S}, NULL);
    leave(world, together);
    *world = (struct world){.is_launched = false};
}
