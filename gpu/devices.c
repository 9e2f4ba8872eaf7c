/*
 * What was built in, and how this process was started; see devices.h.
 */
#include "gpu/devices.h"

#include <time.h>

#include "gpu/bell.h"
#include "gpu/launcher.h"
#include "gpu/rendezvous.h"

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
        return err_set(
            err, STATUS_DEVICE,
            "this build has no device cuda; take --device host, or configure --with-cuda");
    *out = devices[device];
    return STATUS_OK;
}

/* ---- by MPI -------------------------------------------------------------------------------- */

#ifdef HAVE_MPI

static const bool has_mpi = true;

static enum status join_mpi(uint32_t ranks, struct world *out, struct err *err)
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
    return err_set(
        err, STATUS_DEVICE,
        "the launcher started %u processes, and MPI knows of %u: is it another MPI's? Without "
        "MPI they meet with --rendezvous FILE",
        ranks, n);
}

static void leave_mpi(struct world *world, bool together)
{
    if (!together && world->rank > 0)
        nanosleep(&(struct timespec){.tv_sec = world->timeout_ns / 1000000000 + GRACE_S}, NULL);
    mpi_transport_free(world->transport_self, together);
}

#else

static const bool has_mpi = false;

static enum status join_mpi(uint32_t ranks, struct world *out, struct err *err)
{
    (void)out;
    return err_set(err, STATUS_DEVICE, "no MPI for %u ranks: configure --with-mpi", ranks);
}

static void leave_mpi(struct world *world, bool together)
{
    (void)world;
    (void)together;
}

#endif

/* ---- by a file ----------------------------------------------------------------------------- */

static enum status join_tcp(const struct world_plan *plan, int64_t timeout_ns, struct world *out,
                            struct err *err)
{
    struct meeting meeting;
    const enum status status =
        rendezvous_meet(plan->rendezvous, plan->rank, plan->ranks, timeout_ns, &meeting, err);

    if (status == STATUS_OK)
        *out = (struct world){.is_launched = true,
                              .rank = plan->rank,
                              .ranks = plan->ranks,
                              .transport = &tcp_transport_ops,
                              .transport_self = tcp_transport_new(&meeting)};
    return status;
}

static void leave_tcp(struct world *world, bool together)
{
    if (!together)
        tcp_transport_last_words(world->transport_self,
                                 bell_after(world->timeout_ns + GRACE_S * INT64_C(1000000000)));
    tcp_transport_free(world->transport_self);
}

static enum status plan_tcp(enum transport asked, const char *rendezvous, struct world_plan *out,
                            struct err *err)
{
    struct world_plan plan = {.rendezvous = rendezvous};

    if (!rendezvous)
        return err_set(err, STATUS_USAGE,
                       "--transport tcp: say where ranks meet, with --rendezvous FILE");
    if (asked != TRANSPORT_AUTO && asked != TRANSPORT_TCP)
        return err_set(err, STATUS_USAGE,
                       "--rendezvous is where ranks meet over tcp; leave out --transport, or leave "
                       "out the file");
    const enum status status = launcher_self(&plan.rank, &plan.ranks, err);
    if (status == STATUS_OK)
        *out = plan;
    return status;
}

/* ---- either -------------------------------------------------------------------------------- */

enum status world_plan(enum transport asked, const char *rendezvous, struct world_plan *out,
                       struct err *err)
{
    const uint32_t launched = launcher_ranks();
    const bool by_mpi = asked == TRANSPORT_MPI || (asked == TRANSPORT_AUTO && launched > 1);

    if (rendezvous || asked == TRANSPORT_TCP)
        return plan_tcp(asked, rendezvous, out, err);
    if (by_mpi && !has_mpi && launched > 1)
        return err_set(err, STATUS_DEVICE,
                       "a launcher started %u processes, and this build has no MPI: let them meet "
                       "with --rendezvous FILE, configure --with-mpi, or start one with --ranks %u",
                       launched, launched);
    if (by_mpi && !has_mpi)
        return err_set(err, STATUS_DEVICE, "this build has no MPI: configure --with-mpi");
    *out = (struct world_plan){.ranks = !by_mpi ? 0 : launched > 0 ? launched : 1};
    return STATUS_OK;
}

enum status world_join(const struct world_plan *plan, int64_t timeout_ns, struct world *out,
                       struct err *err)
{
    *out = (struct world){.is_launched = false};
    if (plan->ranks == 0)
        return STATUS_OK;
    const enum status status =
        plan->rendezvous ? join_tcp(plan, timeout_ns, out, err) : join_mpi(plan->ranks, out, err);
    out->timeout_ns = timeout_ns;
    return status;
}

void world_leave(struct world *world, bool together)
{
    if (!world->is_launched)
        return;
    if (world->transport == &tcp_transport_ops)
        leave_tcp(world, together);
    else
        leave_mpi(world, together);
    *world = (struct world){.is_launched = false};
}
