/*
 * Collectives of the host: a transport moves the bytes, the reduction is ours.
 *
 * A reduce-scatter takes every rank's part of the own slice, piece by piece, and adds them in the
 * order of ranks; an all-reduce is one over equal slices and an all-gather of them, and what does not
 * divide goes whole to every rank. So each sum is made in one order, and all ranks get equal bits.
 *
 * Invariants: scratch is a piece for each rank, whatever the size of the message; all ranks of the
 * group cut alike. Not here: when a collective starts (gpu/host_device.c), the sum itself
 * (gpu/reduce_ranks.c).
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host_inner.h"
#include "gpu/reduce_ranks.h"
#include "gpu/stand_in.h"

/* Of one rank's part: large enough that the exchange's overhead does not count. */
enum { PIECE_BYTES = 256 * 1024 };

#define LONGEST_NS 1e18

/* Pointers to what is sent to and comes from each rank, then room for the parts. */
uint64_t host_collective_scratch(const struct comm_group *group)
{
    return group->n * (2 * sizeof(void *) + PIECE_BYTES);
}

struct exchange {
    const struct host_queue *queue;
    const struct work_collective *collective;
    const struct comm_group *group;
    uint32_t number;   /* of the group */
    uint64_t el_bytes; /* of an element */
    const void **send; /* by rank of the group */
    void **recv;
    char *parts;
};

static struct exchange exchange_of(const struct host_queue *queue,
                                   const struct work_collective *collective)
{
    const uint32_t number = queue->number - QUEUE_COMM;
    const struct comm_group *group = &queue->device->setup.groups[number];
    const void **send = (const void **)(void *)queue->scratch;

    return (struct exchange){
        .queue = queue,
        .collective = collective,
        .group = group,
        .number = number,
        .el_bytes = dtype_bytes((enum dtype)collective->dtype),
        .send = send,
        .recv = (void **)(void *)(send + group->n),
        .parts = (char *)(send + 2 * group->n),
    };
}

/* Each rank's send goes out, its recv comes in; those of the rank itself are passed over. */
static enum status move(const struct exchange *ex, uint64_t bytes, struct err *err)
{
    const struct device_setup *setup = &ex->queue->device->setup;

    if (ex->group->n == 1 || bytes == 0)
        return STATUS_OK;
    const enum status status = setup->transport->exchange(setup->transport_self, ex->number,
                                                          ex->send, ex->recv, bytes, err);
    if (status != STATUS_OK)
        return status;
    return setup->transport->wait(setup->transport_self, ex->number, err);
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

static enum status all_gather(const struct exchange *ex, const void *own, char *all, uint64_t bytes,
                              struct err *err)
{
    for (uint32_t i = 0; i < ex->group->n; i++) {
        ex->send[i] = own;
        ex->recv[i] = all + i * bytes;
    }
    copy(all + ex->group->me * bytes, own, bytes);
    return move(ex, bytes, err);
}

/* n elements of every rank, of which this rank's lie at own, to their reduction. */
static enum status reduce_piece(const struct exchange *ex, const char *own, uint64_t n, char *out,
                                struct err *err)
{
    const struct work_collective *collective = ex->collective;

    for (uint32_t i = 0; i < ex->group->n; i++)
        ex->recv[i] = ex->parts + i * (uint64_t)PIECE_BYTES;
    const enum status status = move(ex, n * ex->el_bytes, err);
    if (status != STATUS_OK)
        return status;
    ex->recv[ex->group->me] = (void *)(uintptr_t)own;
    reduce_ranks((enum dtype)collective->dtype, (enum reduction)collective->reduction,
                 collective->divisor, (const void *const *)ex->recv, ex->group->n, n, out);
    return STATUS_OK;
}

/* n elements of each slice; slices lie one behind the other at all. */
static enum status reduce_scatter(const struct exchange *ex, const char *all, uint64_t n, char *out,
                                  struct err *err)
{
    const uint64_t piece = PIECE_BYTES / ex->el_bytes;
    enum status status = STATUS_OK;

    for (uint64_t at = 0; at < n && status == STATUS_OK; at += piece) {
        for (uint32_t i = 0; i < ex->group->n; i++)
            ex->send[i] = all + (i * n + at) * ex->el_bytes;
        status = reduce_piece(ex, ex->send[ex->group->me], n - at < piece ? n - at : piece,
                              out + at * ex->el_bytes, err);
    }
    return status;
}

static enum status all_reduce(const struct exchange *ex, const char *in, uint64_t n, char *out,
                              struct err *err)
{
    const uint64_t slice = n / ex->group->n, even = slice * ex->group->n;
    char *mine = out + ex->group->me * slice * ex->el_bytes;

    enum status status = reduce_scatter(ex, in, slice, mine, err);
    if (status == STATUS_OK)
        status = all_gather(ex, mine, out, slice * ex->el_bytes, err);
    if (status != STATUS_OK || even == n)
        return status;
    for (uint32_t i = 0; i < ex->group->n; i++)
        ex->send[i] = in + even * ex->el_bytes;
    return reduce_piece(ex, ex->send[0], n - even, out + even * ex->el_bytes, err);
}

static enum status run(const struct exchange *ex, struct err *err)
{
    const struct work_collective *collective = ex->collective;

    if (collective->elements == 0)
        return STATUS_OK;
    switch ((enum task_kind)collective->kind) {
    case TASK_ALL_GATHER:
        return all_gather(ex, collective->send, collective->recv,
                          collective->elements * ex->el_bytes, err);
    case TASK_REDUCE_SCATTER:
        return reduce_scatter(ex, collective->send, collective->elements, collective->recv, err);
    default:
        assert(collective->kind == TASK_ALL_REDUCE);
        return all_reduce(ex, collective->send, collective->elements, collective->recv, err);
    }
}

/* The whole message, as all ranks of the group see it. */
static double message_bytes(const struct exchange *ex)
{
    const bool is_whole = ex->collective->kind == TASK_ALL_REDUCE;
    return (double)ex->collective->elements * (double)ex->el_bytes * (is_whole ? 1 : ex->group->n);
}

static void emulate(struct host_queue *queue, const struct work_collective *collective)
{
    const struct stand_in in = stand_in_of(collective);
    const int64_t start_ns = bell_now_ns();

    for (uint32_t piece = 0; piece < STAND_IN_PIECES; piece++) {
        stand_in_move(&in, piece);
        const int64_t due_ns = start_ns + stand_in_due_ns(&in, piece);
        if (due_ns - bell_now_ns() > BELL_LATE_NS)
            host_sleep_until(queue, due_ns - BELL_LATE_NS);
        bell_stay_until(due_ns);
    }
}

enum status host_collective(struct host_queue *queue, const struct work_collective *collective,
                            struct err *err)
{
    if (collective->emulated_ranks > 0) {
        emulate(queue, collective);
        return STATUS_OK;
    }
    const struct device_debug *debug = &queue->device->setup.debug;
    const struct exchange ex = exchange_of(queue, collective);
    const int64_t start_ns = bell_now_ns();

    const enum status status = run(&ex, err);
    if (status == STATUS_OK && debug->slow_comm) {
        const double slow_ns = message_bytes(&ex) / debug->slow_bytes_per_s * 1e9;
        host_sleep_until(queue, start_ns + (int64_t)fmin(slow_ns, LONGEST_NS));
    }
    return status;
}
