/*
 * One rank of a run: agree with the others, execute, say how it ended. See ranks.h.
 */
#include <signal.h>
#include <unistd.h>

#include "gpu/ranks.h"
#include "src/exec.h"
#include "src/hash.h"

enum { FATAL_STEP = 3 };

/* What ranks hold against each other; names for the message. X(field, name) */
#define AGREED(X)                     \
    X(program, "another program")     \
    X(placement, "another placement") \
    X(settings, "other settings of the run")

struct agreed {
#define X(field, name) uint64_t field;
    AGREED(X)
#undef X
};

struct rank_run {
    const struct run_job *job;
    uint32_t rank;
    const struct transport_ops *transport;
    void *transport_self;
    struct run_log *log;
    struct arena arena;
};

/* ---- agreement ----------------------------------------------------------------------------- */

static const char *first_difference(const struct agreed *a, const struct agreed *b)
{
#define X(field, name)        \
    if (a->field != b->field) \
        return name;
    AGREED(X)
#undef X
    return NULL;
}

static enum status exchange_agreed(struct rank_run *run, const struct agreed *mine,
                                   struct agreed *all, struct err *err)
{
    const uint32_t ranks = run->job->ranks;
    const void **send = (const void **)arena_array(&run->arena, void *, ranks);
    void **recv = arena_array(&run->arena, void *, ranks);
    enum status status;

    for (uint32_t r = 0; r < ranks; r++) {
        send[r] = mine;
        recv[r] = &all[r];
    }
    status =
        run->transport->exchange(run->transport_self, GROUP_CONTROL, send, recv, sizeof *mine, err);
    if (status == STATUS_OK)
        status = run->transport->wait(run->transport_self, GROUP_CONTROL, err);
    all[run->rank] = *mine;
    return status;
}

/* The rank that differs first from rank 0, and in what; 0: none does. */
static uint32_t find_difference(const struct agreed *all, uint32_t ranks, const char **what)
{
    for (uint32_t r = 1; r < ranks; r++) {
        *what = first_difference(&all[0], &all[r]);
        if (*what)
            return r;
    }
    return 0;
}

/*
 * Every rank finds the same difference. A rank that leaves ends the others' waits, so that none does
 * before all have what the others said: that is what the second exchange is for, whatever comes of
 * it.
 */
static enum status agree(struct rank_run *run, struct err *err)
{
    const struct run_job *job = run->job;
    const struct agreed mine = {.program = program_hash(job->program),
                                .placement = placement_hash(job->placement),
                                .settings = job->settings_hash};
    struct agreed *all = arena_array(&run->arena, struct agreed, job->ranks);
    const enum status status = exchange_agreed(run, &mine, all, err);
    const char *what;

    if (status != STATUS_OK)
        return status;
    const uint32_t differs = find_difference(all, job->ranks, &what);
    run->log->rank[run->rank].agreed = differs == 0;
    if (differs == 0)
        return STATUS_OK;
    exchange_agreed(run, &mine, all, NULL);
    return err_set(err, STATUS_RUN,
                   "rank %u has %s than rank 0: start all with the same options and the same "
                   "version",
                   differs, what);
}

static void set_transport_groups(struct rank_run *run, struct transport_setup *setup)
{
    uint32_t *all = arena_array(&run->arena, uint32_t, run->job->ranks);

    bind_groups(run->job->program, run->rank, &run->arena, setup->groups);
    for (uint32_t r = 0; r < run->job->ranks; r++)
        all[r] = r;
    setup->groups[GROUP_CONTROL] =
        (struct comm_group){.n = run->job->ranks, .me = run->rank, .ranks = all};
}

static enum status open_transport(struct rank_run *run, struct err *err)
{
    struct transport_setup setup = {
        .rank = run->rank, .ranks = run->job->ranks, .timeout_ns = run->job->timeout_ns};

    set_transport_groups(run, &setup);
    return run->transport->open(run->transport_self, &setup, err);
}

/* ---- execution ----------------------------------------------------------------------------- */

/* For tests of how a run ends when a rank does not go on. */
static void fail_on_purpose(void *context, const struct submission *submission)
{
    const struct rank_run *run = context;
    const struct run_job *job = run->job;

    if (submission->step == FATAL_STEP && job->die_rank == (int64_t)run->rank)
        raise(SIGKILL);
    while (submission->step == FATAL_STEP && job->hang_rank == (int64_t)run->rank)
        pause();
    if (job->observe)
        job->observe(job->context, submission);
}

static enum status end_rank(void *context, struct executor *executor, struct err *err)
{
    struct rank_run *run = context;
    return run->job->at_end(run->job->context, run->rank, executor, err);
}

static bool is_observed(const struct run_job *job)
{
    return job->observe || job->die_rank >= 0 || job->hang_rank >= 0;
}

static enum status execute(struct rank_run *run, void *device, const struct values *values,
                           struct err *err)
{
    const struct run_job *job = run->job;
    const struct execute_setup setup = {
        .program = job->program,
        .placement = job->placement,
        .rank = run->rank,
        .device = job->device,
        .device_self = device,
        .device_setup = {.rank = run->rank,
                         .ranks = job->ranks,
                         .debug = job->debug,
                         .timeout_ns = job->timeout_ns,
                         .transport = run->transport,
                         .transport_self = run->transport_self,
                         .observe = is_observed(job) ? fail_on_purpose : NULL,
                         .observe_context = run},
        .values = values,
        .optimizer = job->optimizer,
        .max_norm = job->max_norm,
        .sums_microbatches = job->sums_microbatches,
        .emulated_ns = job->emulated_ns,
        .pace_ns = job->pace_ns,
        .bare_from = job->bare_from,
        .graph = job->graph,
        .alloc_bias_bytes = job->alloc_bias_bytes,
        .log = run->log,
        .at_end = job->at_end ? end_rank : NULL,
        .at_end_context = run};
    struct executor *executor = executor_new(&setup);
    const enum status status = exec_program(job->program, EXEC_EXPANDED, job->placement, job->steps,
                                            &execute_backend, executor, err);

    executor_free(executor);
    return status;
}

static enum status run_all(struct rank_run *run, struct err *err)
{
    void *device = run->job->device->make();
    struct values values;
    enum status status = STATUS_OK;

    if (run->transport)
        status = open_transport(run, err);
    if (run->transport && status == STATUS_OK)
        status = agree(run, err);
    if (status == STATUS_OK)
        status = run->job->values(run->job->context, run->rank, &values, err);
    if (status == STATUS_OK)
        status = execute(run, device, &values, err);
    run->job->device->free(device);
    return status;
}

/* Notes how it ended; the transport stays open. */
static enum status run_and_note(struct rank_run *run, struct err *err)
{
    struct rank_log *mine = &run->log->rank[run->rank];
    struct err why = {0};

    arena_init(&run->arena);
    const enum status status = run_all(run, &why);
    mine->status = status;
    mine->err = why;
    mine->ended = true;
    return status == STATUS_OK ? status : err_set(err, status, "%s", why.text);
}

static void end(struct rank_run *run)
{
    if (run->transport)
        run->transport->close(run->transport_self);
    arena_release(&run->arena);
}

enum status run_rank(const struct run_job *job, uint32_t rank,
                     const struct transport_ops *transport, void *transport_self,
                     struct run_log *log, struct err *err)
{
    struct rank_run run = {.job = job,
                           .rank = rank,
                           .transport = transport,
                           .transport_self = transport_self,
                           .log = log};
    const enum status status = run_and_note(&run, err);

    end(&run);
    return status;
}

/* What the first rank that failed says; which of them was the cause nobody knows. */
static enum status judge(const struct run_log *log, struct err *err)
{
    for (uint32_t r = 0; r < log->ranks; r++)
        if (log->rank[r].status != STATUS_OK)
            return err_set(err, log->rank[r].status, "rank %u: %s", r, log->rank[r].err.text);
    return STATUS_OK;
}

enum status run_launched(const struct run_job *job, uint32_t rank,
                         const struct transport_ops *transport, void *transport_self,
                         struct run_log *log, struct err *err)
{
    struct rank_run run = {.job = job,
                           .rank = rank,
                           .transport = transport,
                           .transport_self = transport_self,
                           .log = log};

    run_and_note(&run, NULL);
    const enum status gathered = run_log_gather(log, rank, transport, transport_self, err);
    const enum status status = judge(log, err);
    end(&run);
    return status == STATUS_OK ? gathered : status;
}
