/*
 * How ranks that were started one by one find one another: a file that all of them see.
 *
 * Rank 0 writes where it listens, all others connect to it, and when all have come each is told where
 * each listens. The file holds the number of this run, by which one that an earlier run has left is
 * known: nobody answers to it. It is there only while ranks meet, and for one run at a time. Not here:
 * what ranks say to one another afterwards (gpu/tcp_transport.c).
 *
 * Invariant: after a meeting every rank has the same places; where it fails, every rank that came to
 * rank 0 says why. None waits for rank 0 longer than its own time, and none that rank 0 has heard
 * longer than rank 0 does.
 */
#ifndef GPU_RENDEZVOUS_H
#define GPU_RENDEZVOUS_H

#include "gpu/net.h"

struct meeting {
    uint64_t run; /* a number that only its ranks know */
    uint32_t rank, ranks;
    int listener;             /* of this rank */
    struct net_place *places; /* [ranks] */
};

/* STATUS_RUN with who did not come, who is not of this run, or what the file lacks; STATUS_INPUT
   where it cannot be written. */
enum status rendezvous_meet(const char *file, uint32_t rank, uint32_t ranks, int64_t timeout_ns,
                            struct meeting *out, struct err *err);
void meeting_release(struct meeting *meeting);

#endif
