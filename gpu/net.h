/*
 * Sockets of TCP with deadlines: listen, connect, and whole messages; for ranks on one or several
 * machines. Not here: who connects to whom.
 *
 * Sockets do not block and are not inherited; until_ns is of bell_now_ns(). Addresses are IPv4.
 *
 * Invariant: no call waits beyond its deadline.
 */
#ifndef GPU_NET_H
#define GPU_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/err.h"

enum { NET_ADDRESSES = 8 };

/* Where a process listens: one of its machine's addresses, of which others may reach not all. */
struct net_place {
    uint32_t n;
    uint32_t port;
    uint32_t addresses[NET_ADDRESSES]; /* as in the packet; the machine's own to itself is last */
};

/* STATUS_RUN where this machine has no address or no socket is to be had. */
enum status net_listen(int *fd, struct net_place *out, struct err *err);

/* -1: nobody came, or nobody is there, until then. */
int net_accept(int listener, int64_t until_ns);
int net_connect(uint32_t address, uint32_t port, int64_t until_ns);

/* All the bytes, or false: the other end is gone, or time is over. */
bool net_send(int fd, const void *bytes, size_t n, int64_t until_ns);
bool net_receive(int fd, void *bytes, size_t n, int64_t until_ns);

/* The milliseconds until then as poll() takes them, cut to at_most. */
int net_patience_ms(int64_t until_ns, int at_most);

#endif
