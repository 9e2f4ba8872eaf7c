/*
 * Bytes between ranks by MPI: for several machines, and for launchers that start the ranks.
 *
 * Messages of a group carry its number as their tag, so that groups need no communicators of their
 * own. Waiting asks MPI again and again, because MPI's own wait has no end. Not here: reductions;
 * this is the only file that knows MPI.
 *
 * Invariant: after a failure MPI is asked for nothing that waits, not even to finish: it would wait
 * for the rank that is late. The launcher ends the others when this rank does.
 */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/bell.h"
#include "gpu/transport.h"

/* MPI counts in int: larger messages go in parts, each a request. */
enum { PART_BYTES = 1 << 30, POLLS_BEFORE_NAP = 64, NAP_NS = 20000 };

/* For the last words of others, once the transport has failed. */
static const int64_t LAST_PATIENCE_NS = 2000000000;

struct mpi_exchange {
    struct comm_group of;
    MPI_Request *requests;
    int *peers; /* of each request, a rank of the world */
    int n, cap;
};

struct mpi_transport {
    int64_t timeout_ns;
    _Atomic bool has_failed;
    struct mpi_exchange exchanges[GROUP_N];
};

static enum status failed(struct mpi_transport *transport, const char *call, int code,
                          struct err *err)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    transport->has_failed = true;
    MPI_Error_string(code, text, &length);
    return err_set(err, STATUS_RUN, "%s failed: %.*s", call, length, text);
}

static enum status has_failed_before(struct err *err)
{
    return err_set(err, STATUS_RUN, "the exchange with another rank failed before");
}

static void grow(struct mpi_exchange *ex)
{
    if (ex->n < ex->cap)
        return;
    ex->cap = ex->cap ? 2 * ex->cap : 16;
    ex->requests = realloc(ex->requests, (size_t)ex->cap * sizeof(*ex->requests));
    ex->peers = realloc(ex->peers, (size_t)ex->cap * sizeof(*ex->peers));
    if (!ex->requests || !ex->peers)
        err_out_of_memory((size_t)ex->cap * sizeof(*ex->requests));
}

/* All parts of what goes to and comes from one rank. */
static int start(struct mpi_exchange *ex, int tag, int peer, const char *send, char *recv,
                 uint64_t bytes)
{
    int code = MPI_SUCCESS;

    for (uint64_t at = 0; at < bytes && code == MPI_SUCCESS; at += PART_BYTES) {
        const int part = (int)(bytes - at < PART_BYTES ? bytes - at : PART_BYTES);
        grow(ex);
        ex->peers[ex->n] = peer;
        code =
            MPI_Irecv(recv + at, part, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &ex->requests[ex->n++]);
        if (code != MPI_SUCCESS)
            break;
        grow(ex);
        ex->peers[ex->n] = peer;
        code =
            MPI_Isend(send + at, part, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &ex->requests[ex->n++]);
    }
    return code;
}

static enum status mpi_exchange(void *self, uint32_t group, const void *const *send,
                                void *const *recv, uint64_t bytes, struct err *err)
{
    struct mpi_transport *transport = self;
    struct mpi_exchange *ex = &transport->exchanges[group];

    if (transport->has_failed && group != GROUP_CONTROL)
        return has_failed_before(err);
    ex->n = 0;
    for (uint32_t i = 0; i < ex->of.n; i++) {
        if (i == ex->of.me)
            continue;
        const int code = start(ex, (int)group, (int)ex->of.ranks[i], send[i], recv[i], bytes);
        if (code != MPI_SUCCESS)
            return failed(transport, "sending to a rank", code, err);
    }
    return STATUS_OK;
}

/* How many requests are done, which become null. */
static int test_all(struct mpi_exchange *ex, int *n_done)
{
    *n_done = 0;
    for (int i = 0, done = 0; i < ex->n; i++) {
        const int code = MPI_Test(&ex->requests[i], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return code;
        *n_done += done;
    }
    return MPI_SUCCESS;
}

static enum status late(struct mpi_transport *transport, const struct mpi_exchange *ex,
                        int64_t patience_ns, struct err *err)
{
    int i = 0;

    transport->has_failed = true;
    while (i < ex->n - 1 && ex->requests[i] == MPI_REQUEST_NULL)
        i++;
    return err_set(err, STATUS_RUN, "rank %d is late: waited %g s for it", ex->peers[i],
                   (double)patience_ns / 1e9);
}

static enum status mpi_wait(void *self, uint32_t group, struct err *err)
{
    struct mpi_transport *transport = self;
    struct mpi_exchange *ex = &transport->exchanges[group];
    const bool is_last = group == GROUP_CONTROL && transport->has_failed;
    const int64_t patience_ns = is_last ? LAST_PATIENCE_NS : transport->timeout_ns;
    int64_t until_ns = bell_after(patience_ns);

    for (int polls = 0, before = 0, n_done; is_last || !transport->has_failed;
         polls++, before = n_done) {
        const int code = test_all(ex, &n_done);
        if (code != MPI_SUCCESS)
            return failed(transport, "waiting for a rank", code, err);
        if (n_done == ex->n)
            return STATUS_OK;
        if (n_done > before)
            until_ns = bell_after(patience_ns);
        else if (bell_now_ns() >= until_ns)
            return late(transport, ex, patience_ns, err);
        if (polls > POLLS_BEFORE_NAP)
            nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    return has_failed_before(err);
}

static enum status mpi_open(void *self, const struct transport_setup *setup, struct err *err)
{
    struct mpi_transport *transport = self;
    (void)err;
    transport->timeout_ns = setup->timeout_ns;
    for (uint32_t i = 0; i < GROUP_N; i++)
        transport->exchanges[i].of = setup->groups[i];
    return STATUS_OK;
}

static void mpi_close(void *self)
{
    struct mpi_transport *transport = self;
    for (uint32_t i = 0; i < GROUP_N; i++) {
        free(transport->exchanges[i].requests);
        free(transport->exchanges[i].peers);
        transport->exchanges[i] = (struct mpi_exchange){0};
    }
}

const struct transport_ops mpi_transport_ops = {
    .name = "mpi",
    .open = mpi_open,
    .exchange = mpi_exchange,
    .wait = mpi_wait,
    .close = mpi_close,
};

enum status mpi_transport_new(uint32_t *rank, uint32_t *ranks, struct mpi_transport **out,
                              struct err *err)
{
    int level = 0, number = 0, n = 0;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
        return err_set(err, STATUS_RUN, "MPI does not start");
    if (level < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return err_set(err, STATUS_RUN, "this MPI does not take calls from several threads");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Comm_size(MPI_COMM_WORLD, &n);

    struct mpi_transport *transport = calloc(1, sizeof(*transport));
    if (!transport)
        err_out_of_memory(sizeof(*transport));
    *rank = (uint32_t)number;
    *ranks = (uint32_t)n;
    *out = transport;
    return STATUS_OK;
}

void mpi_transport_free(struct mpi_transport *transport, bool together)
{
    if (transport && together && !transport->has_failed)
        MPI_Finalize();
    free(transport);
}
