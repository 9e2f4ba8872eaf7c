/*
 * Collectives between forked ranks on the host device: every kind, dtype, reduction and size,
 * against sums made element by element; several communicators at a time; ranks that are lost.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/bell.h"
#include "tests/device_rig.h"
#include "tests/ranks_rig.h"
#include "tests/slow_cast.h"
#include "tests/tap.h"

static const int64_t SECOND_NS = 1000000000;

enum { MAX_ELEMENTS = 150000, LISTED = 12 };

/* A rank's device over the transport. */
struct rank_rig {
    struct device_rig device;
    struct shm_transport *transport;
};

static enum status no_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)what, (void)err;
    return STATUS_OK;
}

static void rank_open(struct rank_rig *rig, struct shm_region *region, uint32_t rank,
                      uint32_t ranks, int64_t timeout_ns, uint64_t jitter_seed)
{
    struct transport_setup setup;
    struct err err = {0};

    rig_setup(rank, ranks, timeout_ns, &setup);
    setup.groups[COMM_REDUCE] = setup.groups[COMM_SHARD];
    rig->transport = shm_transport_new(region);
    if (shm_transport_ops.open(rig->transport, &setup, &err) != STATUS_OK)
        tap_bail(err.text);
    device_rig_init(&rig->device, no_call, NULL);
    rig->device.setup.rank = rank;
    rig->device.setup.ranks = ranks;
    memcpy(rig->device.setup.groups, setup.groups, sizeof(rig->device.setup.groups));
    rig->device.setup.transport = &shm_transport_ops;
    rig->device.setup.transport_self = rig->transport;
    rig->device.setup.timeout_ns = timeout_ns;
    rig->device.setup.debug.jitter_seed = jitter_seed;
    device_rig_open(&rig->device);
}

static void rank_close(struct rank_rig *rig)
{
    device_rig_release(&rig->device);
    shm_transport_ops.close(rig->transport);
    shm_transport_free(rig->transport);
}

/* One collective of a group, the same on all its ranks. */
struct asked {
    enum task_kind kind;
    enum dtype dtype;
    enum reduction reduction;
    double divisor;
    uint64_t elements, seed;
    bool in_place;
};

static void pick(uint64_t *state, uint32_t n, struct asked *out)
{
    static const enum task_kind kinds[] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
    static const uint64_t corners[] = {0, 1, 2, 65536, 131072, MAX_ELEMENTS};
    const uint64_t size = tap_below(state, 18);

    out->kind = kinds[tap_below(state, 3)];
    out->dtype = (enum dtype)tap_below(state, out->kind == TASK_ALL_GATHER ? DTYPE_N : DTYPE_U8);
    out->reduction =
        out->kind == TASK_ALL_GATHER ? REDUCE_NONE : (enum reduction)(1 + tap_below(state, 3));
    out->divisor = 1 + (double)tap_below(state, 300);
    out->elements = size < 6 ? corners[size] : tap_below(state, size < 12 ? 20 : MAX_ELEMENTS);
    if (out->kind == TASK_REDUCE_SCATTER)
        out->elements /= n;
    out->seed = tap_random(state);
    out->in_place = tap_below(state, 2);
}

/* Numbers of -4 to 4 in each dtype, made once. */
enum { NUMBERS = 4096 };
static char numbers[DTYPE_N][NUMBERS][4];

static void make_numbers(void)
{
    for (int i = 0; i < NUMBERS; i++) {
        for (int dtype = 0; dtype < DTYPE_N; dtype++) {
            if (dtype == DTYPE_U8)
                numbers[dtype][i][0] = (char)i;
            else
                slow_write((enum dtype)dtype, i / 512.0 - 4, numbers[dtype][i]);
        }
    }
}

/* Element i of what a rank puts in. */
static void element_of(const struct asked *asked, uint32_t rank, uint64_t i, void *out)
{
    uint64_t state = asked->seed + rank * 0x51ed270bu + i * 0x2545f491u;
    memcpy(out, numbers[asked->dtype][tap_random(&state) % NUMBERS], dtype_bytes(asked->dtype));
}

/* tests/oracle/README.md, "How reductions are made". */
static void reduced_of(const struct asked *asked, const struct comm_group *group, uint64_t i,
                       void *out)
{
    const double factor = asked->reduction == REDUCE_PREMUL ? slow_fp32(1 / asked->divisor) : 1;
    double sum = 0;

    for (uint32_t rank = 0; rank < group->n; rank++) {
        char bytes[4];
        element_of(asked, group->ranks[rank], i, bytes);
        const double part = slow_fp32(slow_read(asked->dtype, bytes) * factor);
        sum = rank == 0 ? part : slow_fp32(sum + part);
    }
    if (asked->reduction == REDUCE_AVG)
        sum = slow_fp32(sum / group->n);
    slow_write(asked->dtype, sum, out);
}

/* Buffers of one collective; put and got by element. */
struct buffers {
    char *send, *recv;
    uint64_t n_send, n_recv;
};

static struct buffers buffers_of(const struct asked *asked, const struct comm_group *group)
{
    const uint64_t el_bytes = dtype_bytes(asked->dtype), n = asked->elements;
    struct buffers out = {.n_send = n, .n_recv = n};

    if (asked->kind == TASK_ALL_GATHER)
        out.n_recv *= group->n;
    if (asked->kind == TASK_REDUCE_SCATTER)
        out.n_send *= group->n;
    out.send = calloc(out.n_send + 1, el_bytes);
    out.recv = calloc(out.n_recv + 1, el_bytes);
    for (uint64_t i = 0; i < out.n_send; i++)
        element_of(asked, group->ranks[group->me], i, out.send + i * el_bytes);
    return out;
}

/* Where in place: an all-gather sends from its slice, a reduce-scatter receives in its own. */
static struct work_collective collective_of(const struct asked *asked, enum comm comm,
                                            const struct comm_group *group,
                                            const struct buffers *buffers)
{
    const uint64_t slice = group->me * asked->elements * dtype_bytes(asked->dtype);
    struct work_collective out = {
        .kind = (uint8_t)asked->kind,
        .comm = (uint8_t)comm,
        .dtype = (uint8_t)asked->dtype,
        .reduction = (uint8_t)asked->reduction,
        .divisor = asked->divisor,
        .elements = asked->elements,
        .send = buffers->send,
        .recv = buffers->recv,
    };
    if (!asked->in_place)
        return out;
    if (asked->kind == TASK_ALL_GATHER)
        out.send = memcpy(buffers->recv + slice, buffers->send,
                          asked->elements * dtype_bytes(asked->dtype));
    else
        out.recv = buffers->send + (asked->kind == TASK_REDUCE_SCATTER ? slice : 0);
    return out;
}

/* Elements that are not what they have to be; of many a sample, the first and the last among it. */
static uint64_t count_bad(const struct asked *asked, const struct comm_group *group,
                          const struct work_collective *collective, uint64_t n)
{
    enum { SAMPLES = 600 };
    const uint64_t el_bytes = dtype_bytes(asked->dtype);
    const uint64_t shift = asked->kind == TASK_REDUCE_SCATTER ? group->me * asked->elements : 0;
    uint64_t bad = 0;

    for (uint64_t k = 0; n > 0 && k <= SAMPLES; k++) {
        const uint64_t i = k * (n - 1) / SAMPLES;
        char want[4];
        if (asked->kind == TASK_ALL_GATHER)
            element_of(asked, group->ranks[i / asked->elements], i % asked->elements, want);
        else
            reduced_of(asked, group, i + shift, want);
        bad += memcmp(want, (const char *)collective->recv + i * el_bytes, el_bytes) != 0;
    }
    return bad;
}

/* What the ranks of a world do. */
struct world {
    struct shm_region *region;
    uint32_t ranks;
    uint64_t seed, jitter_seed;
    struct told *told;        /* by rank, shared */
    _Atomic uint32_t *n_told; /* shared */
    bool exits;
};

struct listed {
    struct asked asked;
    struct buffers buffers;
    struct work *work;
    const struct comm_group *group;
};

/* Streams in turn, communicators in turn: several collectives are on their way at a time. */
static void submit_all(struct rank_rig *rig, uint64_t *state, struct listed list[LISTED])
{
    static const enum comm comms[] = {COMM_SHARD, COMM_REDUCE, COMM_REPLICATE};
    static const enum stream streams[] = {STREAM_AG, STREAM_RS, STREAM_AR, STREAM_C};
    struct err err = {0};

    for (uint32_t i = 0; i < LISTED; i++) {
        const enum comm comm = comms[i % 3];
        struct listed *at = &list[i];
        at->group = &rig->device.setup.groups[comm];
        pick(state, rig->device.setup.ranks, &at->asked);
        at->buffers = buffers_of(&at->asked, at->group);
        at->work = rig_work(&rig->device, WORK_COLLECTIVE);
        at->work->is.collective = collective_of(&at->asked, comm, at->group, &at->buffers);
        if (rig_try(&rig->device, streams[i % 4], at->work, i, NULL, &err) != STATUS_OK)
            tap_bail(err.text);
    }
}

static int check_all(const struct listed list[LISTED])
{
    int n_bad = 0;
    for (uint32_t i = 0; i < LISTED; i++) {
        const struct listed *at = &list[i];
        const uint64_t bad =
            count_bad(&at->asked, at->group, &at->work->is.collective, at->buffers.n_recv);
        if (bad > 0)
            tap_note("rank %u of %u: %s of %llu %s, %s%s: %llu wrong", at->group->me, at->group->n,
                     task_kind_name(at->asked.kind), (unsigned long long)at->asked.elements,
                     dtype_name(at->asked.dtype), reduction_name(at->asked.reduction),
                     at->asked.in_place ? ", in place" : "", (unsigned long long)bad);
        n_bad += bad > 0;
        free(at->buffers.send);
        free(at->buffers.recv);
    }
    return n_bad;
}

static int collect_body(uint32_t rank, void *context)
{
    const struct world *world = context;
    struct listed list[LISTED];
    struct rank_rig rig;
    uint64_t state = world->seed;

    rank_open(&rig, world->region, rank, world->ranks, 20 * SECOND_NS,
              world->jitter_seed ? world->jitter_seed + rank : 0);
    submit_all(&rig, &state, list);
    rig_drain(&rig.device);
    const int n_bad = check_all(list);
    rank_close(&rig);
    return n_bad > 0;
}

static struct shm_region *region_new(uint32_t ranks)
{
    struct shm_region *region = NULL;
    struct err err = {0};
    if (shm_region_new(ranks, &region, &err) != STATUS_OK)
        tap_bail(err.text);
    return region;
}

static void test_random(uint64_t seed, uint32_t ranks, int rounds, bool jitter)
{
    struct world world = {.region = region_new(ranks), .ranks = ranks};
    uint32_t n_bad = 0;
    for (int i = 0; i < rounds; i++) {
        world.seed = seed * 1000 + ranks * 100 + (uint64_t)i;
        world.jitter_seed = jitter ? world.seed : 0;
        n_bad += ranks_run(ranks, world.region, collect_body, &world, NULL);
    }
    is_int(n_bad, 0, "%u ranks: %d collectives of three communicators%s", ranks, rounds * LISTED,
           jitter ? ", delayed at random" : "");
    shm_region_free(world.region);
}

struct told {
    struct err err;
    int64_t after_ns;
};

/* Rank 1 does two of a hundred collectives, then is gone or stands still. */
static int loss_body(uint32_t rank, void *context)
{
    const struct world *world = context;
    struct rank_rig rig;
    static float room[RIG_MAX_RANKS * 1000];
    struct told *told = &world->told[rank];

    rank_open(&rig, world->region, rank, world->ranks, (world->exits ? 50 : 2) * SECOND_NS, 0);
    for (int i = 0; i < (rank == 1 ? 2 : 100); i++)
        rig_gather(&rig.device, STREAM_AG, COMM_SHARD, room, 1000, NULL);
    const int64_t start_ns = bell_now_ns();
    if (rank == 1) {
        rig_drain(&rig.device);
        if (!world->exits)
            ranks_await(world->n_told, world->ranks - 1);
        _exit(world->exits);
    }
    rig.device.ops->drain(rig.device.device, &told->err);
    ++*world->n_told;
    rank_close(&rig);
    told->after_ns = bell_now_ns() - start_ns;
    return 0;
}

static void test_loss(bool exits, const char *want)
{
    struct world world = {.region = region_new(3), .ranks = 3, .exits = exits};

    world.told = ranks_memory(3 * sizeof(*world.told));
    world.n_told = ranks_memory(sizeof(*world.n_told));
    is_int(ranks_run(3, world.region, loss_body, &world, NULL), exits,
           exits ? "a rank ends" : "a rank stands still");
    for (uint32_t rank = 0; rank < 3; rank += 2) {
        is_str(world.told[rank].err.text, want, "rank %u is told, and closes", rank);
        ok(world.told[rank].after_ns < 20 * SECOND_NS, "in time (%lld ms)",
           (long long)world.told[rank].after_ns / 1000000);
    }
    shm_region_free(world.region);
}

int main(void)
{
    const uint64_t seed = tap_seed(81);
    make_numbers();
    for (uint32_t ranks = 1; ranks <= 5; ranks++)
        test_random(seed, ranks, 6, false);
    test_random(seed + 1, 3, 20, true);
    test_loss(true, "stream 'AG': rank 1 is gone");
    test_loss(false, "stream 'AG': rank 1 is late: the others waited for 2 s");
    return tap_done();
}
