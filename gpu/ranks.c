/*
 * Ranks; see ranks.h. What one rank does is in rank.c; here they are forked and watched.
 */
#include "gpu/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/bell.h"
#include "gpu/stop_signal.h"

enum { POLL_NS = 2000000, GRACE_NS = 2000000000 };

struct family {
    const struct run_job *job;
    struct run_log *log;
    struct shm_region *region;
    pid_t *pids; /* 0: it has ended */
    int *ends;   /* as waitpid() says */
    uint32_t alive;
    int64_t first; /* the rank that failed first, or -1 */
    uint64_t progress;
    int64_t progress_ns; /* when it was seen to change last */
    bool hung;
    int stopped_by; /* the signal that this process had to end them for, or 0 */
};

/* The whole life of a forked rank. */
static void be_rank(const struct run_job *job, uint32_t rank, struct shm_region *region,
                    struct run_log *log)
{
    struct shm_transport *transport = job->ranks > 1 ? shm_transport_new(region) : NULL;
    struct err err = {0};
    const enum status status =
        run_rank(job, rank, transport ? &shm_transport_ops : NULL, transport, log, &err);

    shm_transport_free(transport);
    _exit(status);
}

static enum status fork_all(struct family *family, struct err *err)
{
    const struct run_job *job = family->job;
    const pid_t me = getpid();

    fflush(NULL);
    for (uint32_t r = 0; r < job->ranks; r++) {
        const pid_t pid = fork();
        if (pid == 0) {
            stop_signal_leave_to(me);
            be_rank(job, r, family->region, family->log);
        }
        if (pid < 0)
            return err_set(err, STATUS_RUN, "rank %u could not be started: %s", r, strerror(errno));
        family->pids[r] = pid;
        family->alive++;
    }
    return STATUS_OK;
}

static void kill_all(const struct family *family)
{
    for (uint32_t r = 0; r < family->job->ranks; r++)
        if (family->pids[r] > 0)
            kill(family->pids[r], SIGKILL);
}

static void note_end(struct family *family, pid_t pid, int how)
{
    for (uint32_t r = 0; r < family->job->ranks; r++) {
        if (family->pids[r] != pid)
            continue;
        family->pids[r] = 0;
        family->ends[r] = how;
        family->alive--;
        if (how != 0 && family->first < 0)
            family->first = r;
        if (how != 0 && family->region)
            shm_region_abort(family->region, r);
    }
}

/* Anything that any rank does changes this. */
static uint64_t progress_of(const struct family *family)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < family->job->ranks; r++) {
        struct rank_log *rank = &family->log->rank[r];
        sum = sum * 31 + rank->step;
        for (int s = 0; s < STREAM_N; s++)
            sum = sum * 31 + rank->last_task[s];
    }
    return sum;
}

/* Ranks end by themselves when a peer is late. One that does not is stuck where nobody waits for
   another, and so is every rank once nothing moves. */
static void watch_progress(struct family *family)
{
    const uint64_t progress = progress_of(family);
    const int64_t late_ns = family->job->timeout_ns + GRACE_NS;

    if (progress != family->progress) {
        family->progress = progress;
        family->progress_ns = bell_now_ns();
    } else if (bell_now_ns() - family->progress_ns > late_ns) {
        family->hung = family->hung || family->first < 0;
        kill_all(family);
    }
}

static void watch_signals(struct family *family)
{
    if (family->stopped_by > 0 || !stop_signal_came())
        return;
    family->stopped_by = stop_signal_came();
    kill_all(family);
}

static void wait_all(struct family *family)
{
    family->progress_ns = bell_now_ns();
    while (family->alive > 0) {
        int how;
        const pid_t pid = waitpid(-1, &how, WNOHANG);
        if (pid > 0) {
            note_end(family, pid, how);
        } else {
            nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
            watch_progress(family);
        }
        watch_signals(family);
    }
}

/* Why the run failed: what the rank said that did so first, or how it died. */
static enum status judge(const struct family *family, struct err *err)
{
    if (family->stopped_by > 0)
        return err_set(err, STATUS_RUN, "stopped by signal %d (%s)", family->stopped_by,
                       strsignal(family->stopped_by));
    if (family->hung)
        return err_set(err, STATUS_RUN, "no rank did anything for %" PRId64 " s; see --timeout",
                       (family->job->timeout_ns + GRACE_NS) / 1000000000);
    if (family->first < 0)
        return STATUS_OK;
    const struct rank_log *rank = &family->log->rank[family->first];
    const uint32_t step = rank->step > family->job->steps ? family->job->steps : rank->step;
    const int how = family->ends[family->first];
    if (WIFSIGNALED(how))
        return err_set(err, STATUS_RUN,
                       "rank %" PRId64 " was ended by signal %d (%s) while it issued step %u",
                       family->first, WTERMSIG(how), strsignal(WTERMSIG(how)), step);
    if (!rank->ended)
        return err_set(err, STATUS_RUN,
                       "rank %" PRId64 " left with exit code %d while it issued step %u",
                       family->first, WEXITSTATUS(how), step);
    return err_set(err, rank->status, "rank %" PRId64 ": %s", family->first, rank->err.text);
}

enum status run_forked(const struct run_job *job, struct run_log *log, struct err *err)
{
    struct family family = {.job = job, .log = log, .first = -1};
    enum status status = STATUS_OK;

    family.pids = calloc(job->ranks, sizeof *family.pids);
    family.ends = calloc(job->ranks, sizeof *family.ends);
    if (!family.pids || !family.ends)
        err_out_of_memory(job->ranks * sizeof *family.pids);
    if (job->ranks > 1)
        status = shm_region_new(job->ranks, &family.region, err);
    if (status != STATUS_OK)
        goto out;
    status = fork_all(&family, err);
    if (status != STATUS_OK)
        kill_all(&family);
    wait_all(&family);
    if (status == STATUS_OK)
        status = judge(&family, err);
out:
    shm_region_free(family.region);
    free(family.pids);
    free(family.ends);
    return status;
}
