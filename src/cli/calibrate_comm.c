/*
 * Collectives of the host over shared memory, on ranks forked here; see calibrate.h.
 *
 * Of each kind a small and a large message, again and again; the median on rank 0 of what its stream
 * measures. A row is the straight line through both: start, and bytes in a second. Where there are
 * more ranks than cores they wait for one another, as they do in a run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/device.h"
#include "src/cli/calibrate.h"

enum { KIND_N = 3, SIZE_N = 2, REPEATS = 15, MOST_RANKS = 8, FIRST_RANKS = 2 };
#define TIMEOUT_NS INT64_C(20000000000)

static const uint8_t kinds[KIND_N] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
/* Elements of FP32 of a whole message. */
static const uint64_t sizes[SIZE_N] = {1 << 10, 1 << 19};

struct times {
    int64_t ns[KIND_N][SIZE_N];
};

struct one_rank {
    uint32_t rank, ranks;
    void *device;
    char *send, *recv; /* a whole message each */
};

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum status time_collective(const struct one_rank *of, uint8_t kind, uint64_t elements,
                                   int64_t *median_ns, struct err *err)
{
    const uint64_t slice = kind == TASK_ALL_REDUCE ? elements : elements / of->ranks;
    const struct work work = {.kind = WORK_COLLECTIVE,
                              .is.collective = {.kind = kind,
                                                .comm = COMM_SHARD,
                                                .dtype = DTYPE_FP32,
                                                .reduction = REDUCE_SUM,
                                                .elements = slice,
                                                .send = of->send,
                                                .recv = of->recv}};
    struct stamp stamps[REPEATS] = {0};
    int64_t times_ns[REPEATS];
    enum status status = STATUS_OK;

    for (int i = 0; i < REPEATS && status == STATUS_OK; i++) {
        const struct submission submission = {
            .work = &work, .parts = STAMP_START | STAMP_END, .stamp = &stamps[i]};
        status = host_device_ops.submit(of->device, STREAM_AG, &submission, err);
    }
    if (status == STATUS_OK)
        status = host_device_ops.drain(of->device, err);
    for (int i = 0; i < REPEATS; i++)
        times_ns[i] = stamps[i].end_ns - stamps[i].start_ns;
    qsort(times_ns, REPEATS, sizeof *times_ns, compare_ns);
    *median_ns = times_ns[REPEATS / 2];
    return status;
}

static enum status time_all(const struct one_rank *of, struct times *out, struct err *err)
{
    enum status status = STATUS_OK;

    for (int kind = 0; kind < KIND_N; kind++)
        for (int size = 0; size < SIZE_N && status == STATUS_OK; size++) {
            int64_t ns = 0;
            status = time_collective(of, kinds[kind], sizes[size], &ns, err);
            if (of->rank == 0)
                out->ns[kind][size] = ns;
        }
    return status;
}

static enum status open_device(const struct one_rank *of, const struct comm_group *all,
                               struct shm_transport *transport, struct err *err)
{
    struct transport_setup between = {
        .rank = of->rank, .ranks = of->ranks, .timeout_ns = TIMEOUT_NS};
    struct device_setup setup = {.rank = of->rank,
                                 .ranks = of->ranks,
                                 .timeout_ns = TIMEOUT_NS,
                                 .transport = &shm_transport_ops,
                                 .transport_self = transport};

    between.groups[COMM_SHARD] = between.groups[GROUP_CONTROL] = setup.groups[COMM_SHARD] = *all;
    const enum status status = shm_transport_ops.open(transport, &between, err);
    return status == STATUS_OK ? host_device_ops.open(of->device, &setup, err) : status;
}

/* The whole life of a rank. */
static void be_rank(uint32_t rank, uint32_t ranks, struct shm_region *region, struct times *out)
{
    const size_t bytes = sizes[SIZE_N - 1] * sizeof(float);
    struct one_rank self = {.rank = rank,
                            .ranks = ranks,
                            .device = host_device_ops.make(),
                            .send = calloc(1, bytes),
                            .recv = calloc(1, bytes)};
    struct shm_transport *transport = shm_transport_new(region);
    uint32_t numbers[MOST_RANKS];
    struct err err;

    if (!self.send || !self.recv)
        err_out_of_memory(bytes);
    for (uint32_t r = 0; r < ranks; r++)
        numbers[r] = r;
    const struct comm_group all = {.n = ranks, .me = rank, .ranks = numbers};
    enum status status = open_device(&self, &all, transport, &err);
    if (status == STATUS_OK)
        status = time_all(&self, out, &err);
    _exit(status);
}

static enum status wait_ranks(uint32_t n, struct shm_region *region, const pid_t *pids,
                              struct err *err)
{
    enum status status = STATUS_OK;

    for (uint32_t r = 0; r < n; r++) {
        int how = 0;
        if (waitpid(pids[r], &how, 0) == pids[r] && how == 0)
            continue;
        shm_region_abort(region, r);
        status = err_set(err, STATUS_RUN, "rank %u of %u did not do its collectives", r, n);
    }
    return status;
}

static enum status time_ranks(uint32_t ranks, struct times *shared, struct err *err)
{
    struct shm_region *region;
    pid_t pids[MOST_RANKS];
    uint32_t n = 0;
    enum status status = shm_region_new(ranks, &region, err);

    if (status != STATUS_OK)
        return status;
    for (; n < ranks && status == STATUS_OK; n++) {
        pids[n] = fork();
        if (pids[n] == 0)
            be_rank(n, ranks, region, shared);
        if (pids[n] < 0)
            break;
    }
    if (n < ranks) {
        err_set(err, STATUS_RUN, "rank %u could not be started: %s", n, strerror(errno));
        shm_region_abort(region, n);
        wait_ranks(n, region, pids, NULL);
        status = STATUS_RUN;
    } else {
        status = wait_ranks(n, region, pids, err);
    }
    shm_region_free(region);
    return status;
}

static struct collective_row row_of(int kind, uint32_t ranks, const struct times *times)
{
    const double per_message = (ranks - 1.0) / ranks * sizeof(float); /* that is sent, an element */
    const double less_s = (double)times->ns[kind][0] * 1e-9;
    const double more_s = (double)times->ns[kind][1] * 1e-9;
    const double less_bytes = (double)sizes[0] * per_message;
    const double more_bytes = (double)sizes[1] * per_message;
    const double rate = more_s > less_s ? (more_bytes - less_bytes) / (more_s - less_s) : 1e12;
    const double start_s = less_s - less_bytes / rate;

    return (struct collective_row){.kind = kinds[kind],
                                   .ranks = ranks,
                                   .a_s = start_s > 0 ? start_s : 0,
                                   .bytes_per_s = rate,
                                   .source = "measured: shared memory, 4 KiB and 2 MiB"};
}

enum status calibrate_comm(uint32_t most, struct cluster *out, struct arena *arena, struct err *err)
{
    struct times *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct collective_row *rows =
        arena_array(arena, struct collective_row, (size_t)KIND_N * MOST_RANKS);
    enum status status = STATUS_OK;
    uint32_t n = 0;

    if (shared == MAP_FAILED)
        return err_set(err, STATUS_RUN, "no memory for times: %s", strerror(errno));
    for (uint32_t ranks = FIRST_RANKS; ranks <= most && ranks <= MOST_RANKS && status == STATUS_OK;
         ranks *= 2) {
        status = time_ranks(ranks, shared, err);
        for (int kind = 0; kind < KIND_N && status == STATUS_OK; kind++)
            rows[n++] = row_of(kind, ranks, shared);
    }
    munmap(shared, sizeof *shared);
    out->collectives = rows;
    out->n_collective = n;
    return status;
}
