/*
 * Ranks that measure: forked here, each with a device of its own, as a run has them; see calibrate.h.
 *
 * What rank 0 finds comes back by memory that all share. A device is opened in a rank and nowhere else,
 * since CUDA does not live through a fork.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cli/calibrate.h"

enum { MOST_RANKS = 8 };
#define TIMEOUT_NS INT64_C(60000000000)

/* Of all ranks. */
struct board {
    struct device_facts facts;
    struct calibrate_numbers numbers;
    struct calibrate_comm comm;
    struct err errs[MOST_RANKS];
};

struct party {
    const struct calibrate_target *target;
    uint32_t ranks;
    struct shm_region *region; /* NULL: they do not speak to one another */
    struct board *board;
};

/* Operators, and whatever else has to lie beside it. */
static uint64_t needed_bytes(const struct calibrate_sizes *s)
{
    const uint64_t products = 2 * (s->g_t * s->g_h + s->g_h * s->g_f + s->g_t * s->g_f);
    const uint64_t q = s->nh * s->d, chunks = s->short_t / DELTA_CHUNK + 1;
    const uint64_t others = 4 * s->t * (s->v + 5 * s->f + 9 * q + 4 * s->h) +
                            4 * (16 * s->short_t * q + chunks * q * s->d);
    const uint64_t copies =
        2 * (s->copy_bytes > s->pack_bytes ? s->copy_bytes : s->pack_bytes) + 20 * s->updated;
    const uint64_t slack = 64 << 10;

    return products + others + copies + 2 * s->message_bytes + slack;
}

/* ---- one rank ------------------------------------------------------------------------------------- */

static enum status measure_alone(struct timed_device *timed, const struct party *party,
                                 uint32_t rank, struct err *err)
{
    const struct calibrate_sizes *sizes = &party->target->sizes;
    struct calibrate_numbers numbers = {.launch_s = 0};
    struct device_outside outside;
    enum status status = calibrate_ops(timed, sizes, numbers.speeds, err);

    if (status == STATUS_OK)
        status = calibrate_copies(timed, sizes, &numbers, err);
    if (status == STATUS_OK && rank == 0) {
        timed->ops->outside(timed->self, &outside);
        numbers.context_bytes = outside.context_bytes;
        party->board->numbers = numbers;
        status = timed->ops->describe(timed->self, &party->board->facts, err);
    }
    return status;
}

static enum status measure_together(struct timed_device *timed, const struct party *party,
                                    uint32_t rank, struct err *err)
{
    struct calibrate_comm comm;
    const enum status status =
        calibrate_collectives(timed, party->ranks, &party->target->sizes, &comm, err);

    if (status == STATUS_OK && rank == 0)
        party->board->comm = comm;
    return status;
}

static enum status join(const struct party *party, uint32_t rank, struct device_setup *setup,
                        struct shm_transport **transport, struct err *err)
{
    static uint32_t numbers[MOST_RANKS];
    const struct comm_group all = {.n = party->ranks, .me = rank, .ranks = numbers};
    struct transport_setup between = {
        .rank = rank, .ranks = party->ranks, .timeout_ns = TIMEOUT_NS};

    for (uint32_t r = 0; r < party->ranks; r++)
        numbers[r] = r;
    *transport = shm_transport_new(party->region);
    between.groups[COMM_SHARD] = between.groups[GROUP_CONTROL] = setup->groups[COMM_SHARD] = all;
    setup->ranks = party->ranks;
    setup->transport = &shm_transport_ops;
    setup->transport_self = *transport;
    return shm_transport_ops.open(*transport, &between, err);
}

static enum status live(const struct party *party, uint32_t rank, struct err *err)
{
    struct device_setup setup = {
        .rank = rank, .ranks = 1, .n_event = CALIBRATE_EVENTS, .timeout_ns = TIMEOUT_NS};
    struct shm_transport *transport = NULL;
    struct timed_device timed = {.ops = NULL};
    enum status status = STATUS_OK;

    if (party->region)
        status = join(party, rank, &setup, &transport, err);
    if (status == STATUS_OK) {
        status = timed_open(party->target->ops, &setup, needed_bytes(&party->target->sizes), &timed,
                            err);
        if (status == STATUS_OK)
            status = party->region ? measure_together(&timed, party, rank, err)
                                   : measure_alone(&timed, party, rank, err);
        timed_close(&timed);
    }
    if (transport)
        shm_transport_ops.close(transport);
    shm_transport_free(transport);
    return status;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static void be_rank(const struct party *party, uint32_t rank)
{
    struct err err = {0};

    err.status = live(party, rank, &err);
    party->board->errs[rank] = err;
    _exit(err.status);
}

/* The first that failed says why; one that died could not. */
static enum status wait_ranks(const struct party *party, uint32_t n, const pid_t *pids,
                              struct err *err)
{
    enum status status = STATUS_OK;

    for (uint32_t r = 0; r < n; r++) {
        const struct err *why = &party->board->errs[r];
        int how = 0;
        if (waitpid(pids[r], &how, 0) == pids[r] && how == 0)
            continue;
        if (party->region)
            shm_region_abort(party->region, r);
        if (status != STATUS_OK)
            continue;
        status = *why->text ? err_set(err, why->status, "rank %u of %u: %s", r, n, why->text)
                            : err_set(err, STATUS_RUN, "rank %u of %u died", r, n);
    }
    return status;
}

static enum status fork_ranks(const struct party *party, struct err *err)
{
    pid_t pids[MOST_RANKS];
    uint32_t n = 0;

    for (; n < party->ranks; n++) {
        pids[n] = fork();
        if (pids[n] == 0)
            be_rank(party, n);
        if (pids[n] < 0)
            break;
    }
    if (n == party->ranks)
        return wait_ranks(party, n, pids, err);
    err_set(err, STATUS_RUN, "rank %u could not be started: %s", n, strerror(errno));
    if (party->region)
        shm_region_abort(party->region, n);
    wait_ranks(party, n, pids, NULL);
    return STATUS_RUN;
}

static enum status measure(struct party *party, struct board *out, struct err *err)
{
    party->board =
        mmap(NULL, sizeof *party->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (party->board == MAP_FAILED)
        return err_set(err, STATUS_RUN, "no memory for what ranks find: %s", strerror(errno));
    const enum status status = fork_ranks(party, err);
    *out = *party->board;
    munmap(party->board, sizeof *party->board);
    return status;
}

enum status calibrate_measure(struct calibrate_target *target, struct calibrate_numbers *out,
                              struct err *err)
{
    struct party party = {.target = target, .ranks = target->ranks};
    struct board board;
    const enum status status = measure(&party, &board, err);

    if (status != STATUS_OK)
        return status;
    target->facts = board.facts;
    *out = board.numbers;
    return STATUS_OK;
}

enum status calibrate_measure_comm(const struct calibrate_target *target, uint32_t ranks,
                                   struct calibrate_comm *out, struct err *err)
{
    struct party party = {.target = target, .ranks = ranks};
    struct board board;
    enum status status = shm_region_new(ranks, &party.region, err);

    if (status != STATUS_OK)
        return status;
    status = measure(&party, &board, err);
    shm_region_free(party.region);
    if (status == STATUS_OK)
        *out = board.comm;
    return status;
}
