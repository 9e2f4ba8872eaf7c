/*
 * Sockets with deadlines; see net.h.
 */
#include "gpu/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/bell.h"

enum { SLICE_MS = 1000 };

int net_patience_ms(int64_t until_ns, int at_most)
{
    const int64_t left_ns = until_ns - bell_now_ns();

    if (left_ns <= 0)
        return 0;
    return left_ns / 1000000 >= at_most ? at_most : (int)(left_ns / 1000000) + 1;
}

/* False: time is over. */
static bool await(int fd, short what, int64_t until_ns)
{
    struct pollfd poll_fd = {.fd = fd, .events = what};

    do {
        if (poll(&poll_fd, 1, net_patience_ms(until_ns, SLICE_MS)) > 0)
            return true;
    } while (bell_now_ns() < until_ns);
    return false;
}

static bool has_address(const struct ifaddrs *at, bool loops)
{
    return at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) &&
           loops == ((at->ifa_flags & IFF_LOOPBACK) != 0);
}

static void take_addresses(const struct ifaddrs *list, bool loops, struct net_place *out)
{
    const uint32_t most = loops ? NET_ADDRESSES : NET_ADDRESSES - 1;

    for (const struct ifaddrs *at = list; at && out->n < most; at = at->ifa_next)
        if (has_address(at, loops))
            out->addresses[out->n++] =
                ((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr.s_addr;
}

static enum status find_addresses(struct net_place *out, struct err *err)
{
    struct ifaddrs *list;

    if (getifaddrs(&list) != 0)
        return err_set(err, STATUS_RUN, "cannot list this machine's addresses: %s",
                       strerror(errno));
    take_addresses(list, false, out);
    take_addresses(list, true, out);
    freeifaddrs(list);
    return out->n > 0 ? STATUS_OK
                      : err_set(err, STATUS_RUN, "this machine has no IPv4 address that is up");
}

static bool listen_anywhere(int fd, struct net_place *out)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    socklen_t length = sizeof at;

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) != 0)
        return false;
    out->port = ntohs(at.sin_port);
    return true;
}

enum status net_listen(int *fd, struct net_place *out, struct err *err)
{
    struct net_place place = {.n = 0};
    const enum status status = find_addresses(&place, err);

    if (status != STATUS_OK)
        return status;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!listen_anywhere(listener, &place)) {
        const int reason = errno;
        if (listener >= 0)
            close(listener);
        return err_set(err, STATUS_RUN, "cannot listen for other ranks: %s", strerror(reason));
    }
    *fd = listener;
    *out = place;
    return STATUS_OK;
}

/* Small messages go at once. */
static void do_not_gather(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int net_accept(int listener, int64_t until_ns)
{
    while (await(listener, POLLIN, until_ns)) {
        const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            do_not_gather(fd);
            return fd;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return -1;
    }
    return -1;
}

static bool is_connected(int fd, int64_t until_ns)
{
    int error = 0;
    socklen_t length = sizeof error;

    return await(fd, POLLOUT, until_ns) &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

int net_connect(uint32_t address, uint32_t port, int64_t until_ns)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {address}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    const bool failed = connect(fd, (const struct sockaddr *)&at, sizeof at) != 0;
    if ((failed && errno != EINPROGRESS) || (failed && !is_connected(fd, until_ns))) {
        close(fd);
        return -1;
    }
    do_not_gather(fd);
    return fd;
}

static bool is_over(ssize_t moved)
{
    return moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR);
}

bool net_send(int fd, const void *bytes, size_t n, int64_t until_ns)
{
    size_t at = 0;

    while (at < n) {
        const ssize_t sent = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        if (is_over(sent) || (sent < 0 && !await(fd, POLLOUT, until_ns)))
            return false;
        at += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool net_receive(int fd, void *bytes, size_t n, int64_t until_ns)
{
    size_t at = 0;

    while (at < n) {
        const ssize_t received = recv(fd, (char *)bytes + at, n - at, 0);
        if (is_over(received) || (received < 0 && !await(fd, POLLIN, until_ns)))
            return false;
        at += received > 0 ? (size_t)received : 0;
    }
    return true;
}
