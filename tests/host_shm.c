/*
 * The transport through shared memory: bytes, several groups at a time, ranks that die or hang.
 */
#include <time.h>
#include <unistd.h>

#include "gpu/bell.h"
#include "tests/ranks_rig.h"
#include "tests/tap.h"

static const int64_t SECOND_NS = 1000000000;

struct case_of {
    struct shm_region *region;
    uint32_t ranks, bad_rank;
    uint64_t seed;
    bool exits;
    struct told {
        struct err err;
        int64_t after_ns;
    } * told;                 /* by rank, shared */
    _Atomic uint32_t *n_told; /* shared */
};

static struct shm_region *region_new(uint32_t ranks)
{
    struct shm_region *region = NULL;
    struct err err = {0};
    if (shm_region_new(ranks, &region, &err) != STATUS_OK)
        tap_bail(err.text);
    return region;
}

static int exchange_body(uint32_t rank, void *context)
{
    const struct case_of *of = context;
    struct shm_transport *transport = shm_transport_new(of->region);
    struct transport_setup setup;
    struct err err = {0};

    rig_setup(rank, of->ranks, 20 * SECOND_NS, &setup);
    int n_bad = shm_transport_ops.open(transport, &setup, &err) != STATUS_OK;
    n_bad += rig_check_exchanges(&shm_transport_ops, transport, &setup, of->seed);
    shm_transport_ops.close(transport);
    shm_transport_free(transport);
    return n_bad > 0;
}

static void test_bytes(void)
{
    const uint64_t seed = tap_seed(41);
    for (uint32_t ranks = 1; ranks <= 5; ranks++) {
        struct case_of of = {.region = region_new(ranks), .ranks = ranks, .seed = seed + ranks};
        is_int(ranks_run(ranks, of.region, exchange_body, &of, NULL), 0,
               "%u ranks get each other's bytes in several groups at a time", ranks);
        shm_region_free(of.region);
    }
}

/* Exchange in SHARD until it fails, which is what has to be told. */
static int good_body(uint32_t rank, const struct case_of *of, uint32_t group)
{
    struct shm_transport *transport = shm_transport_new(of->region);
    struct transport_setup setup;
    struct err err = {0};
    static char room[2][RIG_MAX_RANKS][200000];
    const void *send[RIG_MAX_RANKS];
    void *recv[RIG_MAX_RANKS];

    for (uint32_t i = 0; i < RIG_MAX_RANKS; i++) {
        send[i] = room[0][i];
        recv[i] = room[1][i];
    }
    rig_setup(rank, of->ranks, of->exits ? 50 * SECOND_NS : 2 * SECOND_NS, &setup);
    enum status status = shm_transport_ops.open(transport, &setup, &err);
    const int64_t start_ns = bell_now_ns();
    while (status == STATUS_OK) {
        status = shm_transport_ops.exchange(transport, group, send, recv, sizeof(room[0][0]), &err);
        if (status == STATUS_OK)
            status = shm_transport_ops.wait(transport, group, &err);
    }
    of->told[rank].after_ns = bell_now_ns() - start_ns;
    of->told[rank].err = err;
    ++*of->n_told;
    if (shm_transport_ops.exchange(transport, group, send, recv, 1, &err) == STATUS_OK)
        err_set(&of->told[rank].err, STATUS_OK, "goes on after a failure");
    shm_transport_ops.close(transport);
    shm_transport_free(transport);
    return 0;
}

static int bad_body(const struct case_of *of)
{
    if (!of->exits)
        ranks_await(of->n_told, of->ranks - 1);
    return of->exits;
}

static int loss_body(uint32_t rank, void *context)
{
    const struct case_of *of = context;
    return rank == of->bad_rank ? bad_body(of) : good_body(rank, of, COMM_SHARD);
}

/* Rank 3 hangs; 1 waits for 3, 0 for 1, in groups of two. */
static int chain_body(uint32_t rank, void *context)
{
    const struct case_of *of = context;
    static const uint32_t groups[] = {COMM_REPLICATE, COMM_KEPT, COMM_REPLICATE};
    if (rank == of->bad_rank)
        return bad_body(of);
    if (rank == 0) /* its time would be over first */
        return good_body(rank, of, groups[rank]);
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    return good_body(rank, of, groups[rank]);
}

static void check_told(const struct case_of *of, const char *want, const char *what)
{
    *of->n_told = 0;
    for (uint32_t i = 0; i < of->ranks; i++) {
        if (i == of->bad_rank)
            continue;
        is_str(of->told[i].err.text, want, "%s: rank %u says so", what, i);
        ok(of->told[i].after_ns < 20 * SECOND_NS, "%s: rank %u within time (%lld ms)", what, i,
           (long long)of->told[i].after_ns / 1000000);
    }
}

static void test_losses(void)
{
    struct case_of of = {.ranks = 4, .bad_rank = 2, .exits = true};

    of.told = ranks_memory(sizeof(*of.told) * RIG_MAX_RANKS);
    of.n_told = ranks_memory(sizeof(*of.n_told));
    of.region = region_new(of.ranks);
    is_int(ranks_run(of.ranks, of.region, loss_body, &of, NULL), 1, "one rank of four exits");
    check_told(&of, "rank 2 is gone", "a rank exits");
    shm_region_free(of.region);

    of.exits = false;
    of.region = region_new(of.ranks);
    is_int(ranks_run(of.ranks, of.region, loss_body, &of, NULL), 0, "one rank of four hangs");
    check_told(&of, "rank 2 is late: the others waited for 2 s", "a rank hangs");
    shm_region_free(of.region);

    of.bad_rank = 3;
    of.region = region_new(of.ranks);
    is_int(ranks_run(of.ranks, of.region, chain_body, &of, NULL), 0, "ranks wait in a chain");
    check_told(&of, "rank 3 is late: the others waited for 2 s", "a chain");
    shm_region_free(of.region);
}

int main(void)
{
    test_bytes();
    test_losses();
    return tap_done();
}
