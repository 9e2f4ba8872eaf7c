/*
 * Collectives between ranks, and what they take from compute beside them; see calibrate.h.
 *
 * Of each kind a small and a large message, again and again: the median of what lies between two works
 * of the stream that computes, of which the second waits for the collective and the collective for the
 * first. So the start of a row is what a step waits for, and what it costs to wake a stream is in it. A
 * row is the straight line through both messages. Where there are more ranks than cores they wait for
 * one another, as they do in a run.
 */
#include <math.h>
#include <stdlib.h>

#include "src/cli/calibrate.h"

enum { REPEATS = 21, BESIDE = 12, TRIES = 7, MOST_PRODUCTS = 64, SMALL_BYTES = 4096 };
enum { COMPUTED, COPIED, COLLECTED }; /* events */

static const uint8_t kinds[CALIBRATE_KINDS] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER,
                                               TASK_ALL_REDUCE};
static const uint8_t streams[CALIBRATE_KINDS] = {STREAM_AG, STREAM_RS, STREAM_AR};
static const struct work nothing = {.kind = WORK_NOTHING};

/* What a rank has to measure with. */
struct bench {
    struct timed_device *timed;
    uint32_t ranks;
    void *send, *recv; /* a whole message each */
};

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median_s(int64_t *times_ns, int n)
{
    qsort(times_ns, (size_t)n, sizeof *times_ns, compare_ns);
    return (double)times_ns[n / 2] * 1e-9;
}

static uint64_t message_bytes(const struct calibrate_sizes *sizes, int message)
{
    return message == 0 ? SMALL_BYTES : sizes->message_bytes;
}

/* Of FP32; bytes: of the whole message. */
static struct work collective(const struct bench *bench, uint8_t kind, uint64_t bytes)
{
    const uint64_t elements = bytes / sizeof(float);

    return (struct work){
        .kind = WORK_COLLECTIVE,
        .is.collective = {.kind = kind,
                          .comm = COMM_SHARD,
                          .dtype = DTYPE_FP32,
                          .reduction = REDUCE_SUM,
                          .elements = kind == TASK_ALL_REDUCE ? elements : elements / bench->ranks,
                          .send = bench->send,
                          .recv = bench->recv}};
}

static enum status submit(const struct bench *bench, enum stream stream, const struct work *work,
                          struct stamp *stamp, struct err *err)
{
    const struct submission submission = {
        .work = work, .parts = stamp ? STAMP_START | STAMP_END : 0, .stamp = stamp};
    return bench->timed->ops->submit(bench->timed->self, stream, &submission, err);
}

static enum status chain(const struct bench *bench, uint32_t event, enum stream from,
                         enum stream to, struct err *err)
{
    const struct device_ops *ops = bench->timed->ops;
    const enum status status = ops->record(bench->timed->self, event, from, err);
    return status == STATUS_OK ? ops->wait(bench->timed->self, event, to, err) : status;
}

/* From the stream that computes, by way of the copies where it is an all-gather, and back. */
static enum status submit_round(const struct bench *bench, const struct work *work,
                                enum stream stream, struct stamp *after, struct err *err)
{
    const bool copies = stream == STREAM_AG;
    const enum stream first = copies ? STREAM_AGI : stream;
    enum status status = chain(bench, COMPUTED, STREAM_C, first, err);

    if (status == STATUS_OK && copies)
        status = submit(bench, STREAM_AGI, &nothing, NULL, err);
    if (status == STATUS_OK && copies)
        status = chain(bench, COPIED, STREAM_AGI, stream, err);
    if (status == STATUS_OK)
        status = submit(bench, stream, work, NULL, err);
    if (status == STATUS_OK)
        status = chain(bench, COLLECTED, stream, STREAM_C, err);
    return status == STATUS_OK ? submit(bench, STREAM_C, &nothing, after, err) : status;
}

static enum status time_collective(const struct bench *bench, int kind, uint64_t bytes,
                                   double *seconds, struct err *err)
{
    const struct work work = collective(bench, kinds[kind], bytes);
    struct stamp stamps[REPEATS + 1] = {0};
    int64_t times_ns[REPEATS];
    enum status status = submit(bench, STREAM_C, &nothing, &stamps[0], err);

    for (int i = 0; i < REPEATS && status == STATUS_OK; i++)
        status = submit_round(bench, &work, (enum stream)streams[kind], &stamps[i + 1], err);
    if (status == STATUS_OK)
        status = bench->timed->ops->drain(bench->timed->self, err);
    for (int i = 0; i < REPEATS; i++)
        times_ns[i] = stamps[i + 1].start_ns - stamps[i].end_ns;
    *seconds = median_s(times_ns, REPEATS);
    return status;
}

/* ---- compute beside them -------------------------------------------------------------------------- */

/* The products' time alone is what they did while collectives ran, which slowed them, and what they
   did when these had ended. */
static double slowdown_of(double alone_s, const struct stamp *products, const struct stamp *comm)
{
    const double products_s = (double)(products->end_ns - products->start_ns) * 1e-9;
    const double beside_s = fmin(products_s, (double)(comm->end_ns - products->start_ns) * 1e-9);
    const double done_s = alone_s - (products_s - beside_s); /* of their time alone, beside */

    return beside_s > 0 && done_s > 0 ? fmax(1, beside_s / done_s) : 1;
}

static enum status run_beside(const struct bench *bench, const struct work *product, uint32_t n,
                              const struct work *comm, struct stamp stamps[2], struct err *err)
{
    enum status status = STATUS_OK;

    for (int i = 0; i < BESIDE && status == STATUS_OK; i++) {
        const unsigned parts = (i == 0 ? STAMP_START : 0u) | (i + 1 == BESIDE ? STAMP_END : 0u);
        const struct submission submission = {
            .work = comm, .parts = (uint8_t)parts, .stamp = &stamps[1]};
        status = bench->timed->ops->submit(bench->timed->self, STREAM_AG, &submission, err);
    }
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
        const unsigned parts = (i == 0 ? STAMP_START : 0u) | (i + 1 == n ? STAMP_END : 0u);
        const struct submission submission = {
            .work = product, .parts = (uint8_t)parts, .stamp = &stamps[0]};
        status = bench->timed->ops->submit(bench->timed->self, STREAM_C, &submission, err);
    }
    return status == STATUS_OK ? bench->timed->ops->drain(bench->timed->self, err) : status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* About as many products as collectives take; of these all ranks do equally many. */
static enum status time_beside(const struct bench *bench, const struct work *product,
                               const struct calibrate_sizes *sizes, struct calibrate_comm *out,
                               struct err *err)
{
    const struct work comm = collective(bench, TASK_ALL_GATHER, sizes->message_bytes);
    double alone_s = 0, slowdowns[TRIES];
    enum status status = timed_run(bench->timed, product, 1, &alone_s, err);

    if (status != STATUS_OK)
        return status;
    const double wanted = ceil(BESIDE * out->seconds[0][1] / alone_s);
    const uint32_t n = (uint32_t)fmin(fmax(1, wanted), MOST_PRODUCTS);
    for (int i = 0; i < TRIES && status == STATUS_OK; i++) {
        struct stamp stamps[2] = {0};
        status = run_beside(bench, product, n, &comm, stamps, err);
        slowdowns[i] = slowdown_of(n * alone_s, &stamps[0], &stamps[1]);
    }
    qsort(slowdowns, TRIES, sizeof *slowdowns, compare_doubles);
    out->slowdown = slowdowns[TRIES / 2];
    return status;
}

enum status calibrate_collectives(struct timed_device *timed, uint32_t ranks,
                                  const struct calibrate_sizes *sizes, struct calibrate_comm *out,
                                  struct err *err)
{
    struct bench bench = {.timed = timed, .ranks = ranks};
    struct work product;
    enum status status = calibrate_product(timed, sizes, &product, err);

    if (status == STATUS_OK)
        status = timed_take(timed, sizes->message_bytes, &bench.send, err);
    if (status == STATUS_OK)
        status = timed_take(timed, sizes->message_bytes, &bench.recv, err);
    const struct work fill = {.kind = WORK_FILL,
                              .is.fill = {.to = bench.send, .bytes = sizes->message_bytes}};
    if (status == STATUS_OK)
        status = timed_do(timed, &fill, err);
    for (int kind = 0; kind < CALIBRATE_KINDS; kind++)
        for (int m = 0; m < CALIBRATE_MESSAGES && status == STATUS_OK; m++)
            status =
                time_collective(&bench, kind, message_bytes(sizes, m), &out->seconds[kind][m], err);
    return status == STATUS_OK ? time_beside(&bench, &product, sizes, out, err) : status;
}

/* ---- rows ----------------------------------------------------------------------------------------- */

static struct collective_row row_of(const struct calibrate_target *target, int kind, uint32_t ranks,
                                    const double seconds[CALIBRATE_MESSAGES], struct arena *arena)
{
    const double sent = (ranks - 1.0) / ranks; /* of a message */
    const double less_bytes = sent * (double)message_bytes(&target->sizes, 0);
    const double more_bytes = sent * (double)message_bytes(&target->sizes, 1);
    const double more_s = seconds[1] - seconds[0];
    const double rate = more_s > 0 ? (more_bytes - less_bytes) / more_s : 1e12;

    return (struct collective_row){
        .kind = kinds[kind],
        .ranks = ranks,
        .a_s = fmax(0, seconds[0] - less_bytes / rate),
        .bytes_per_s = rate,
        .source = arena_printf(arena, "measured: 4 KiB and %llu KiB between two works of compute",
                               (unsigned long long)target->sizes.message_bytes >> 10)};
}

enum status calibrate_comm(const struct calibrate_target *target, struct cluster *out,
                           struct arena *arena, struct err *err)
{
    struct collective_row *rows = arena_array(arena, struct collective_row, 64);
    double least = INFINITY, most = 0, first = 0;
    enum status status = STATUS_OK;
    uint32_t n = 0;

    for (uint32_t ranks = 2; ranks <= target->most_ranks && status == STATUS_OK; ranks *= 2) {
        struct calibrate_comm comm;
        status = calibrate_measure_comm(target, ranks, &comm, err);
        if (status != STATUS_OK)
            return status;
        for (int kind = 0; kind < CALIBRATE_KINDS; kind++)
            rows[n++] = row_of(target, kind, ranks, comm.seconds[kind], arena);
        first = ranks == 2 ? comm.slowdown : first;
        least = fmin(least, comm.slowdown);
        most = fmax(most, comm.slowdown);
    }
    if (n == 0)
        return STATUS_OK;
    out->collectives = rows;
    out->n_collective = n;
    out->contention = calibrate_rate(least - 1, first - 1, most - 1,
                                     "measured: products beside all-gathers, 2 ranks; low and high "
                                     "of all numbers of ranks");
    return STATUS_OK;
}
