/*
 * The block that ranks share; see run_log.h.
 */
#include "gpu/run_log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Cut pieces of a block whose size is counted first: at NULL it counts only. */
struct cutter {
    char *at;
    size_t used;
};

static void *cut(struct cutter *from, size_t n, size_t bytes)
{
    void *piece = from->at ? from->at + from->used : NULL;
    from->used += (n * bytes + 63) / 64 * 64;
    return piece;
}

static struct run_log *lay_out(struct cutter *from, uint32_t ranks, uint32_t steps, uint32_t n_task)
{
    struct run_log *log = cut(from, 1, sizeof *log);
    struct rank_log *rank = cut(from, ranks, sizeof *rank);
    const size_t n_step = (size_t)steps + 1, head_bytes = from->used;

    for (uint32_t r = 0; r < ranks; r++) {
        struct task_time *times = cut(from, n_step * n_task, sizeof *times);
        struct step_result *results = cut(from, n_step, sizeof *results);
        struct stamp *ends = cut(from, n_step, sizeof *ends);
        if (log) {
            rank[r].times = times;
            rank[r].results = results;
            rank[r].ends = ends;
        }
    }
    if (log)
        *log = (struct run_log){.ranks = ranks,
                                .steps = steps,
                                .n_task = n_task,
                                .rank_bytes = (from->used - head_bytes) / ranks,
                                .rank = rank};
    return log;
}

enum status run_log_new(uint32_t ranks, uint32_t steps, uint32_t n_task, struct run_log **out,
                        struct err *err)
{
    struct cutter cutter = {.at = NULL};

    lay_out(&cutter, ranks, steps, n_task);
    const size_t bytes = cutter.used;
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        return err_set(err, STATUS_RUN,
                       "no %zu bytes for the times of %u steps on %u ranks; ask for fewer steps",
                       bytes, steps, ranks);
    cutter = (struct cutter){.at = block};
    *out = lay_out(&cutter, ranks, steps, n_task);
    (*out)->bytes = bytes;
    return STATUS_OK;
}

void run_log_free(struct run_log *log)
{
    if (log)
        munmap(log, log->bytes);
}

/* ---- ranks that share no memory ---------------------------------------------------------------- */

struct gathering {
    struct run_log *log;
    uint32_t rank;
    const struct transport_ops *transport;
    void *transport_self;
    const void **send; /* by rank */
    void **recv;
};

/* Each rank's part of array, a part for each rank, to all. */
static enum status exchange(const struct gathering *gathering, void *array, size_t bytes,
                            struct err *err)
{
    for (uint32_t r = 0; r < gathering->log->ranks; r++) {
        gathering->send[r] = (char *)array + gathering->rank * bytes;
        gathering->recv[r] = (char *)array + r * bytes;
    }
    const enum status status = gathering->transport->exchange(
        gathering->transport_self, GROUP_CONTROL, gathering->send, gathering->recv, bytes, err);
    return status == STATUS_OK
               ? gathering->transport->wait(gathering->transport_self, GROUP_CONTROL, err)
               : status;
}

/* What a rank noted beside its arrays; where those are is this process' own. */
static void take(struct rank_log *to, const struct rank_log *from)
{
    struct rank_log taken = *from;

    taken.times = to->times;
    taken.results = to->results;
    taken.ends = to->ends;
    *to = taken;
}

enum status run_log_gather(struct run_log *log, uint32_t rank,
                           const struct transport_ops *transport, void *transport_self,
                           struct err *err)
{
    struct rank_log *all = calloc(log->ranks, sizeof *all);
    struct gathering gathering = {.log = log,
                                  .rank = rank,
                                  .transport = transport,
                                  .transport_self = transport_self,
                                  .send = calloc(log->ranks, sizeof *gathering.send),
                                  .recv = calloc(log->ranks, sizeof *gathering.recv)};
    bool agreed = true;

    if (!all || !gathering.send || !gathering.recv)
        err_out_of_memory(log->ranks * sizeof *all);
    all[rank] = log->rank[rank];
    enum status status = exchange(&gathering, all, sizeof *all, err);
    for (uint32_t r = 0; r < log->ranks; r++) {
        agreed &= all[r].agreed;
        if (all[r].ended)
            take(&log->rank[r], &all[r]);
    }
    if (status == STATUS_OK && agreed)
        status = exchange(&gathering, log->rank[0].times, log->rank_bytes, err);
    log->is_whole = status == STATUS_OK;
    free(all);
    free(gathering.send);
    free(gathering.recv);
    return status;
}
