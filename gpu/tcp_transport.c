/*
 * Bytes between ranks by TCP: for ranks that were started one by one, and know where each listens.
 *
 * A group has a connection between any two of its ranks, which the higher one opens, so that groups
 * do not wait for one another. Messages need no heads: both ends know what comes next. Not here: how
 * ranks find one another (gpu/rendezvous.h), what bytes mean.
 *
 * Invariant: a connection on which an exchange did not end carries nothing any more, because what
 * came next on it would be taken for something else.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/bell.h"
#include "gpu/rendezvous.h"
#include "gpu/transport.h"

/* How often a wait looks whether another group has failed; for the last words of others; for one of
   several addresses. */
enum { LOOK_MS = 100 };
static const int64_t LAST_PATIENCE_NS = 2000000000, TRY_NS = 2000000000;

/* To one rank of a group. */
struct link {
    int fd; /* -1: there is none, to the rank itself or to one that is lost */
    uint64_t sent, received;
};

struct tcp_exchange {
    struct comm_group of;
    struct link *links;
    struct pollfd *polls;
    const void *const *send;
    void *const *recv;
    uint64_t bytes; /* each */
};

struct tcp_transport {
    struct meeting meeting;
    int64_t timeout_ns;
    _Atomic bool has_failed;
    struct tcp_exchange exchanges[GROUP_N];
};

/* The first thing on a connection; the answer is the number of the run. */
struct call {
    uint64_t run;
    uint32_t group, rank;
};

/* ---- connections --------------------------------------------------------------------------- */

static int try_call(const struct tcp_transport *transport, const struct net_place *place,
                    uint32_t i, const struct call *call, int64_t until_ns)
{
    const int fd = net_connect(place->addresses[i], place->port, bell_after(TRY_NS));
    uint64_t run;

    if (fd >= 0 && net_send(fd, call, sizeof *call, until_ns) &&
        net_receive(fd, &run, sizeof run, until_ns) && run == transport->meeting.run)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* By any address of the rank; whoever else is there does not know the run. */
static enum status call_rank(struct tcp_transport *transport, uint32_t group, uint32_t rank,
                             int64_t until_ns, int *out, struct err *err)
{
    const struct call call = {transport->meeting.run, group, transport->meeting.rank};
    const struct net_place *place = &transport->meeting.places[rank];

    *out = -1;
    for (uint32_t i = 0; i < place->n && *out < 0; i++)
        *out = try_call(transport, place, i, &call, until_ns);
    if (*out >= 0)
        return STATUS_OK;
    return err_set(err, STATUS_RUN,
                   "rank %u cannot be reached: it is gone, or no address of its "
                   "machine is of use here",
                   rank);
}

static struct link *link_to(struct tcp_exchange *ex, uint32_t rank)
{
    for (uint32_t i = 0; i < ex->of.n; i++)
        if (ex->of.ranks[i] == rank)
            return &ex->links[i];
    return NULL;
}

/* A call of any group, of a rank above; false: time is over. Others are not answered. */
static bool take_call(struct tcp_transport *transport, int64_t until_ns, bool *taken)
{
    const struct meeting *meeting = &transport->meeting;
    const int fd = net_accept(meeting->listener, until_ns);
    struct link *link = NULL;
    struct call call;

    *taken = false;
    if (fd < 0)
        return false;
    if (net_receive(fd, &call, sizeof call, bell_after(TRY_NS)) && call.run == meeting->run &&
        call.group < GROUP_N)
        link = link_to(&transport->exchanges[call.group], call.rank);
    if (link && link->fd < 0 && net_send(fd, &call.run, sizeof call.run, until_ns)) {
        link->fd = fd;
        *taken = true;
    } else {
        close(fd);
    }
    return true;
}

static enum status call_lower(struct tcp_transport *transport, uint32_t group, int64_t until_ns,
                              struct err *err)
{
    struct tcp_exchange *ex = &transport->exchanges[group];
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < ex->of.me && status == STATUS_OK; i++)
        status = call_rank(transport, group, ex->of.ranks[i], until_ns, &ex->links[i].fd, err);
    return status;
}

/* A rank above that has not called. */
static uint32_t missing_rank(const struct tcp_transport *transport)
{
    for (uint32_t g = 0; g < GROUP_N; g++) {
        const struct tcp_exchange *ex = &transport->exchanges[g];
        for (uint32_t i = ex->of.me + 1; i < ex->of.n; i++)
            if (ex->links[i].fd < 0)
                return ex->of.ranks[i];
    }
    return transport->meeting.rank;
}

static enum status await_higher(struct tcp_transport *transport, uint32_t n_left, int64_t until_ns,
                                struct err *err)
{
    while (n_left > 0) {
        bool taken;
        if (!take_call(transport, until_ns, &taken))
            return err_set(err, STATUS_RUN, "rank %u is late: waited %g s for it",
                           missing_rank(transport), (double)transport->timeout_ns / 1e9);
        n_left -= taken;
    }
    return STATUS_OK;
}

static void init_exchange(struct tcp_exchange *ex, const struct comm_group *group)
{
    *ex = (struct tcp_exchange){.of = *group,
                                .links = malloc((group->n + 1) * sizeof *ex->links),
                                .polls = calloc(group->n + 1, sizeof *ex->polls)};
    if (!ex->links || !ex->polls)
        err_out_of_memory((group->n + 1) * sizeof *ex->links);
    for (uint32_t i = 0; i < group->n; i++)
        ex->links[i] = (struct link){.fd = -1};
}

/* All call those below before they take calls, so that rank 0 takes the first and nobody waits in a
   circle. */
static enum status tcp_open(void *self, const struct transport_setup *setup, struct err *err)
{
    struct tcp_transport *transport = self;
    const int64_t until_ns = bell_after(setup->timeout_ns);
    enum status status = STATUS_OK;
    uint32_t n_higher = 0;

    transport->timeout_ns = setup->timeout_ns;
    for (uint32_t g = 0; g < GROUP_N; g++) {
        init_exchange(&transport->exchanges[g], &setup->groups[g]);
        n_higher += setup->groups[g].n > 0 ? setup->groups[g].n - 1 - setup->groups[g].me : 0;
    }
    for (uint32_t g = 0; g < GROUP_N && status == STATUS_OK; g++)
        status = call_lower(transport, g, until_ns, err);
    if (status == STATUS_OK)
        status = await_higher(transport, n_higher, until_ns, err);
    transport->has_failed |= status != STATUS_OK;
    return status;
}

/* ---- exchanges ----------------------------------------------------------------------------- */

static void lose(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

/* Bytes moved; 0: not now. The other end is gone: the link is lost. */
static uint64_t moved(struct link *link, ssize_t n)
{
    if (n > 0)
        return (uint64_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        lose(link);
    return 0;
}

static bool is_done(const struct tcp_exchange *ex, uint32_t i)
{
    const struct link *link = &ex->links[i];
    return i == ex->of.me || (link->sent == ex->bytes && link->received == ex->bytes);
}

static bool advance_link(const struct tcp_exchange *ex, uint32_t i)
{
    struct link *link = &ex->links[i];
    const uint64_t before = link->sent + link->received;

    if (link->fd >= 0 && link->sent < ex->bytes)
        link->sent += moved(link, send(link->fd, (const char *)ex->send[i] + link->sent,
                                       ex->bytes - link->sent, MSG_NOSIGNAL));
    if (link->fd >= 0 && link->received < ex->bytes)
        link->received += moved(link, recv(link->fd, (char *)ex->recv[i] + link->received,
                                           ex->bytes - link->received, 0));
    return link->sent + link->received > before;
}

/* Whether anything moved. */
static bool advance(const struct tcp_exchange *ex)
{
    bool any = false;

    for (uint32_t k = 1; k < ex->of.n; k++) {
        const uint32_t i = (ex->of.me + k) % ex->of.n; /* not all at the same one */
        if (!is_done(ex, i))
            any |= advance_link(ex, i);
    }
    return any;
}

/* How many ranks are still to be heard of, and the first that never will be, or ex->of.n. */
static uint32_t count_open(const struct tcp_exchange *ex, uint32_t *lost)
{
    uint32_t n = 0;

    *lost = ex->of.n;
    for (uint32_t i = ex->of.n; i-- > 0;) {
        if (is_done(ex, i))
            continue;
        n += ex->links[i].fd >= 0;
        if (ex->links[i].fd < 0)
            *lost = i;
    }
    return n;
}

static void sleep_for(const struct tcp_exchange *ex, int64_t until_ns)
{
    nfds_t n = 0;

    for (uint32_t i = 0; i < ex->of.n; i++) {
        const struct link *link = &ex->links[i];
        const int events =
            (link->sent < ex->bytes ? POLLOUT : 0) | (link->received < ex->bytes ? POLLIN : 0);
        if (!is_done(ex, i) && link->fd >= 0)
            ex->polls[n++] = (struct pollfd){.fd = link->fd, .events = (short)events};
    }
    poll(ex->polls, n, net_patience_ms(until_ns, LOOK_MS));
}

/* The first that did not end the exchange. */
static uint32_t first_open(const struct tcp_exchange *ex)
{
    uint32_t i = 0;
    while (i + 1 < ex->of.n && is_done(ex, i))
        i++;
    return i;
}

/* lost: a rank of the group, or of.n where one is late. */
static enum status fail(struct tcp_transport *transport, struct tcp_exchange *ex, uint32_t lost,
                        int64_t patience_ns, struct err *err)
{
    const uint32_t late = first_open(ex);

    transport->has_failed = true;
    for (uint32_t i = 0; i < ex->of.n; i++)
        if (!is_done(ex, i))
            lose(&ex->links[i]);
    if (lost < ex->of.n)
        return err_set(err, STATUS_RUN, "rank %u is gone", ex->of.ranks[lost]);
    return err_set(err, STATUS_RUN, "rank %u is late: waited %g s for it", ex->of.ranks[late],
                   (double)patience_ns / 1e9);
}

static enum status has_failed_before(struct err *err)
{
    return err_set(err, STATUS_RUN, "the exchange with another rank failed before");
}

static enum status tcp_exchange(void *self, uint32_t group, const void *const *send,
                                void *const *recv, uint64_t bytes, struct err *err)
{
    struct tcp_transport *transport = self;
    struct tcp_exchange *ex = &transport->exchanges[group];

    if (transport->has_failed && group != GROUP_CONTROL)
        return has_failed_before(err);
    ex->send = send;
    ex->recv = recv;
    ex->bytes = bytes;
    for (uint32_t i = 0; i < ex->of.n; i++)
        ex->links[i].sent = ex->links[i].received = 0;
    advance(ex);
    return STATUS_OK;
}

/* In the control group those who are there are heard to the end. */
static enum status tcp_wait(void *self, uint32_t group, struct err *err)
{
    struct tcp_transport *transport = self;
    struct tcp_exchange *ex = &transport->exchanges[group];
    const bool is_control = group == GROUP_CONTROL, is_last = is_control && transport->has_failed;
    const int64_t patience_ns = is_last ? LAST_PATIENCE_NS : transport->timeout_ns;
    int64_t until_ns = bell_after(patience_ns);
    uint32_t lost;

    while (count_open(ex, &lost) > 0 && (lost == ex->of.n || is_control)) {
        if (transport->has_failed && !is_control)
            return has_failed_before(err);
        if (advance(ex))
            until_ns = bell_after(patience_ns);
        else if (bell_now_ns() >= until_ns)
            break;
        else
            sleep_for(ex, until_ns);
    }
    if (count_open(ex, &lost) == 0 && lost == ex->of.n)
        return STATUS_OK;
    return fail(transport, ex, lost, patience_ns, err);
}

/* The control group goes with the transport. */
static void tcp_close(void *self)
{
    struct tcp_transport *transport = self;

    for (uint32_t g = 0; g < GROUP_CONTROL; g++) {
        struct tcp_exchange *ex = &transport->exchanges[g];
        for (uint32_t i = 0; ex->links && i < ex->of.n; i++)
            lose(&ex->links[i]);
    }
}

const struct transport_ops tcp_transport_ops = {
    .name = "tcp",
    .open = tcp_open,
    .exchange = tcp_exchange,
    .wait = tcp_wait,
    .close = tcp_close,
};

/* ---- the transport ------------------------------------------------------------------------- */

struct tcp_transport *tcp_transport_new(const struct meeting *meeting)
{
    struct tcp_transport *transport = calloc(1, sizeof *transport);

    if (!transport)
        err_out_of_memory(sizeof *transport);
    transport->meeting = *meeting;
    return transport;
}

void tcp_transport_last_words(struct tcp_transport *transport, int64_t until_ns)
{
    const struct tcp_exchange *ex = &transport->exchanges[GROUP_CONTROL];
    char nothing;

    if (transport->meeting.rank > 0 && ex->of.n > 0 && ex->links[0].fd >= 0)
        net_receive(ex->links[0].fd, &nothing, sizeof nothing, until_ns);
}

void tcp_transport_free(struct tcp_transport *transport)
{
    if (!transport)
        return;
    for (uint32_t g = 0; g < GROUP_N; g++) {
        struct tcp_exchange *ex = &transport->exchanges[g];
        for (uint32_t i = 0; ex->links && i < ex->of.n; i++)
            lose(&ex->links[i]);
        free(ex->links);
        free(ex->polls);
    }
    meeting_release(&transport->meeting);
    free(transport);
}
