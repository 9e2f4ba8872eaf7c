/*
 * The block that ranks share; see run_log.h.
 */
#include "gpu/run_log.h"

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
    const size_t n_step = (size_t)steps + 1;

    for (uint32_t r = 0; r < ranks; r++) {
        struct task_time *times = cut(from, n_step * n_task, sizeof *times);
        struct step_result *results = cut(from, n_step, sizeof *results);
        if (log) {
            rank[r].times = times;
            rank[r].results = results;
        }
    }
    if (log)
        *log = (struct run_log){.ranks = ranks, .steps = steps, .n_task = n_task, .rank = rank};
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
