/*
 * Bytes between ranks of one machine: memory that all share, made before they were forked.
 *
 * Each group has a channel from each rank to each other one: two chunks, which the sender writes and
 * the receiver takes out in turn. A rank sleeps on one bell for each group, which the others ring
 * whenever they wrote or took something. Not here: what the bytes mean.
 *
 * Invariants: read <= written <= read + CHUNKS, and a chunk is written only when it was read; the
 * first rank that is gone or late is noted in the region, and from then on no wait is long. Where
 * a rank is late because it waits itself, the one that is waited for in the end is the late one.
 */
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/bell.h"
#include "gpu/transport.h"

enum { CHUNK_BYTES = 64 * 1024, CHUNKS = 2 };
enum { NOBODY = 0, IS_LATE = 1u << 31 };

struct channel {
    alignas(64) _Atomic uint64_t written; /* chunks ever */
    alignas(64) _Atomic uint64_t read;
    alignas(64) char chunks[CHUNKS][CHUNK_BYTES];
};

/* A rank in a group, asleep or not. */
struct post {
    alignas(64) struct bell bell;
    _Atomic uint32_t waits_for; /* 1 + rank of the world */
};

struct shm_region {
    uint64_t bytes;
    uint32_t ranks;
    _Atomic uint32_t gone;           /* 1 + rank, with IS_LATE; or NOBODY */
    alignas(64) struct post posts[]; /* [GROUP_N][ranks], then channels [GROUP_N][ranks][ranks] */
};

struct peer {
    uint64_t sent, received;
};

/* What a group exchanges at this moment. */
struct shm_exchange {
    struct shm_region *region;
    uint32_t group;
    struct comm_group of;
    const void *const *send;
    void *const *recv;
    uint64_t bytes, left; /* each; of all that is to be sent or received */
    struct peer *peers;
};

struct shm_transport {
    struct shm_region *region;
    int64_t timeout_ns;
    struct shm_exchange exchanges[GROUP_N];
};

static struct post *post_of(struct shm_region *region, uint32_t group, uint32_t rank)
{
    return &region->posts[(uint64_t)group * region->ranks + rank];
}

static struct channel *channel_of(struct shm_region *region, uint32_t group, uint32_t from,
                                  uint32_t to)
{
    const uint64_t ranks = region->ranks;
    struct channel *channels = (struct channel *)(void *)&region->posts[GROUP_N * ranks];
    return &channels[(group * ranks + from) * ranks + to];
}

enum status shm_region_new(uint32_t ranks, struct shm_region **out, struct err *err)
{
    uint64_t posts = (uint64_t)GROUP_N * ranks, bytes;

    if (__builtin_mul_overflow(posts * ranks, sizeof(struct channel), &bytes) ||
        __builtin_add_overflow(bytes, posts * sizeof(struct post) + sizeof(struct shm_region),
                               &bytes))
        return err_set(err, STATUS_RUN, "too many ranks for one machine: %u", ranks);
    struct shm_region *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        return err_set(err, STATUS_RUN, "cannot share memory between %u ranks: %s", ranks,
                       strerror(errno));
    region->bytes = bytes;
    region->ranks = ranks;
    *out = region;
    return STATUS_OK;
}

void shm_region_free(struct shm_region *region)
{
    if (region)
        munmap(region, region->bytes);
}

/* The first one stays. */
static void note_gone(struct shm_region *region, uint32_t gone)
{
    uint32_t nobody = NOBODY;

    if (!atomic_compare_exchange_strong(&region->gone, &nobody, gone))
        return;
    for (uint32_t i = 0; i < GROUP_N * region->ranks; i++)
        bell_ring(&region->posts[i].bell);
}

void shm_region_abort(struct shm_region *region, uint32_t rank)
{
    note_gone(region, 1 + rank);
}

static bool send_some(struct shm_exchange *ex, uint32_t to)
{
    struct peer *peer = &ex->peers[to];
    struct channel *channel =
        channel_of(ex->region, ex->group, ex->of.ranks[ex->of.me], ex->of.ranks[to]);
    const uint64_t before = peer->sent;

    for (uint64_t at; peer->sent < ex->bytes; channel->written = at + 1) {
        at = channel->written;
        if (at - channel->read == CHUNKS)
            break;
        const uint64_t rest = ex->bytes - peer->sent;
        const uint64_t bytes = rest < CHUNK_BYTES ? rest : CHUNK_BYTES;
        memcpy(channel->chunks[at % CHUNKS], (const char *)ex->send[to] + peer->sent, bytes);
        peer->sent += bytes;
    }
    ex->left -= peer->sent - before;
    return peer->sent > before;
}

static bool receive_some(struct shm_exchange *ex, uint32_t from)
{
    struct peer *peer = &ex->peers[from];
    struct channel *channel =
        channel_of(ex->region, ex->group, ex->of.ranks[from], ex->of.ranks[ex->of.me]);
    const uint64_t before = peer->received;

    for (uint64_t at; peer->received < ex->bytes; channel->read = at + 1) {
        at = channel->read;
        if (at == channel->written)
            break;
        const uint64_t rest = ex->bytes - peer->received;
        const uint64_t bytes = rest < CHUNK_BYTES ? rest : CHUNK_BYTES;
        memcpy((char *)ex->recv[from] + peer->received, channel->chunks[at % CHUNKS], bytes);
        peer->received += bytes;
    }
    ex->left -= peer->received - before;
    return peer->received > before;
}

/* Whether there is a reason to look up: all is done, something moved, or a rank is gone. */
static bool advance(void *context)
{
    struct shm_exchange *ex = context;
    bool any = false;

    for (uint32_t k = 1; k < ex->of.n; k++) {
        const uint32_t i = (ex->of.me + k) % ex->of.n; /* not all at the same one */
        const bool sent = send_some(ex, i);
        const bool received = receive_some(ex, i);
        if (sent || received)
            bell_ring(&post_of(ex->region, ex->group, ex->of.ranks[i])->bell);
        any |= sent || received;
    }
    return any || ex->left == 0 || ex->region->gone != NOBODY;
}

/* The rank of the world that this one waits for; itself: for nobody. */
static uint32_t waited_for(const struct shm_exchange *ex)
{
    for (uint32_t i = 0; i < ex->of.n; i++) {
        if (i != ex->of.me && ex->peers[i].received < ex->bytes)
            return ex->of.ranks[i];
    }
    for (uint32_t i = 0; i < ex->of.n; i++) {
        if (i != ex->of.me && ex->peers[i].sent < ex->bytes)
            return ex->of.ranks[i];
    }
    return ex->of.ranks[ex->of.me];
}

/* The end of the chain of those that wait for one another, from a rank that is waited for. */
static uint32_t last_in_chain(struct shm_region *region, uint32_t rank)
{
    for (uint32_t step = 0; step < region->ranks; step++) {
        uint32_t next = 0;
        for (uint32_t group = 0; group < GROUP_N && next == 0; group++)
            next = post_of(region, group, rank)->waits_for;
        if (next == 0)
            break;
        rank = next - 1;
    }
    return rank;
}

static enum status report_gone(const struct shm_transport *transport, struct err *err)
{
    const uint32_t gone = transport->region->gone;
    const uint32_t rank = (gone & ~(uint32_t)IS_LATE) - 1;

    if (gone & IS_LATE)
        return err_set(err, STATUS_RUN, "rank %u is late: the others waited for %g s", rank,
                       (double)transport->timeout_ns / 1e9);
    return err_set(err, STATUS_RUN, "rank %u is gone", rank);
}

static enum status open_groups(void *self, const struct transport_setup *setup, struct err *err)
{
    struct shm_transport *transport = self;

    transport->timeout_ns = setup->timeout_ns;
    for (uint32_t i = 0; i < GROUP_N; i++) {
        struct shm_exchange *ex = &transport->exchanges[i];
        *ex = (struct shm_exchange){transport->region, i, setup->groups[i], NULL, NULL, 0, 0, NULL};
        ex->peers = calloc(ex->of.n + 1, sizeof(*ex->peers));
        if (!ex->peers)
            return err_set(err, STATUS_RUN, "out of memory for a group of %u ranks", ex->of.n);
    }
    return STATUS_OK;
}

static enum status start_exchange(void *self, uint32_t group, const void *const *send,
                                  void *const *recv, uint64_t bytes, struct err *err)
{
    struct shm_transport *transport = self;
    struct shm_exchange *ex = &transport->exchanges[group];

    if (transport->region->gone != NOBODY)
        return report_gone(transport, err);
    memset(ex->peers, 0, ex->of.n * sizeof(*ex->peers));
    ex->send = send;
    ex->recv = recv;
    ex->bytes = bytes;
    ex->left = 2 * bytes * (ex->of.n - 1);
    advance(ex);
    return STATUS_OK;
}

static enum status end_exchange(void *self, uint32_t group, struct err *err)
{
    struct shm_transport *transport = self;
    struct shm_exchange *ex = &transport->exchanges[group];
    struct post *post = post_of(ex->region, group, ex->of.ranks[ex->of.me]);

    while (ex->left > 0 && ex->region->gone == NOBODY) {
        const uint32_t late = waited_for(ex);
        post->waits_for = 1 + late;
        if (!bell_wait(&post->bell, advance, ex, bell_after(transport->timeout_ns)))
            note_gone(ex->region, (1 + last_in_chain(ex->region, late)) | IS_LATE);
    }
    post->waits_for = 0;
    return ex->left > 0 ? report_gone(transport, err) : STATUS_OK;
}

static void close_groups(void *self)
{
    struct shm_transport *transport = self;
    for (uint32_t i = 0; i < GROUP_N; i++) {
        free(transport->exchanges[i].peers);
        transport->exchanges[i].peers = NULL;
    }
}

const struct transport_ops shm_transport_ops = {
    .name = "shm",
    .open = open_groups,
    .exchange = start_exchange,
    .wait = end_exchange,
    .close = close_groups,
};

struct shm_transport *shm_transport_new(struct shm_region *region)
{
    struct shm_transport *transport = calloc(1, sizeof(*transport));
    if (!transport)
        err_out_of_memory(sizeof(*transport));
    transport->region = region;
    return transport;
}

void shm_transport_free(struct shm_transport *transport)
{
    free(transport);
}
