/*
 * Runs and what they came to; see outcome_rig.h.
 */
#include "tests/outcome_rig.h"

#include <sys/mman.h>

#include "src/hash.h"
#include "tests/tap.h"

void outcome_case_init(struct outcome_case *of, enum small small, const char *words)
{
    const struct real_case real = {.small = small, .words = words};
    const struct alloc_config config = alloc_config_default();

    real_case_make(&real, &of->made);
    place_program(&of->made.program, &config, &of->made.arena, &of->placement);
    of->outcome =
        mmap(NULL, sizeof *of->outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (of->outcome == MAP_FAILED)
        tap_bail("no memory to share");
}

void outcome_case_release(struct outcome_case *of)
{
    munmap(of->outcome, sizeof *of->outcome);
    make_release(&of->made);
}

static enum status make_values(void *context, uint32_t rank, struct values *out, struct err *err)
{
    struct outcome_case *of = context;
    (void)err;
    of->seeded = (struct seeded_values){.plan = &of->made.plan, .rank = rank};
    *out = values_seeded(&of->seeded);
    return STATUS_OK;
}

static enum status hash_member(struct executor *executor, const char *from, uint64_t bytes,
                               uint64_t *hash, struct err *err)
{
    enum status status = STATUS_OK;

    for (uint64_t at = 0; at < bytes && status == STATUS_OK; at += sizeof(uint16_t)) {
        uint16_t bits = 0;
        status = executor_read(executor, &bits, from + at, sizeof bits, err);
        *hash = hash_add(*hash, bits);
    }
    return status;
}

static enum status hash_shards(void *context, uint32_t rank, struct executor *executor,
                               struct err *err)
{
    struct outcome_case *of = context;
    const struct program *program = &of->made.program;
    enum status status = STATUS_OK;

    for (uint32_t b = 0; b < program->n_buffer; b++)
        for (uint32_t m = 0; m < program->buffers[b].n_member && status == STATUS_OK; m++)
            if (program->buffers[b].role == ROLE_SHARD)
                status = hash_member(executor, executor_member(executor, b, m),
                                     buffer_member_bytes(program, &program->buffers[b], m),
                                     &of->outcome->shards[rank], err);
    return status;
}

struct run_job outcome_job(struct outcome_case *of, const struct device_ops *device)
{
    return (struct run_job){.program = &of->made.program,
                            .placement = &of->placement,
                            .device = device,
                            .ranks = (uint32_t)of->made.plan.world,
                            .steps = 3,
                            .optimizer = {.lr = 0.01},
                            .timeout_ns = 20000000000,
                            .die_rank = -1,
                            .hang_rank = -1,
                            .context = of,
                            .values = make_values,
                            .at_end = hash_shards};
}

bool outcome_run(struct outcome_case *of, const struct run_job *job, struct outcome *out)
{
    struct run_log *log = NULL;
    struct err err = {0};

    *of->outcome = *out = (struct outcome){.shards = {0}};
    bool runs = run_log_new(job->ranks, job->steps, job->program->n_task, &log, &err) == STATUS_OK;
    runs = runs && run_forked(job, log, &err) == STATUS_OK;
    if (!runs)
        ok(false, "it runs: %s", err.text);
    *out = *of->outcome;
    for (uint32_t r = 0; log && r < job->ranks; r++)
        for (uint32_t s = 0; s < job->steps; s++)
            out->losses[r][s] = log->rank[r].results[s + 1].loss;
    run_log_free(log);
    return runs;
}
