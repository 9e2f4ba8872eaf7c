/*
 * Streams of the CUDA device that run late, and in any order that the program's waits allow, compute
 * what the host computes: nothing is looked at on the way, so that only the waits keep order
 * (tests/fake_cuda.h). Losses and the bits of all shards after the last step, under several seeds.
 */
#include <string.h>
#include <sys/mman.h>

#include "gpu/ranks.h"
#include "src/hash.h"
#include "tests/fake_cuda.h"
#include "tests/real_case.h"
#include "tests/tap.h"

enum { MAX_RANKS = 4, STEPS = 3, SEEDS = 4 };

/* What a run came to; in memory that its ranks share. */
struct outcome {
    uint64_t shards[MAX_RANKS];
    double losses[MAX_RANKS][STEPS];
};

struct ordered {
    struct made made;
    struct placement placement;
    struct seeded_values seeded;
    struct outcome *outcome;
};

static enum status make_values(void *context, uint32_t rank, struct values *out, struct err *err)
{
    struct ordered *ordered = context;
    (void)err;
    ordered->seeded = (struct seeded_values){.plan = &ordered->made.plan, .rank = rank};
    *out = values_seeded(&ordered->seeded);
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
    struct ordered *ordered = context;
    const struct program *program = &ordered->made.program;
    enum status status = STATUS_OK;

    for (uint32_t b = 0; b < program->n_buffer; b++)
        for (uint32_t m = 0; m < program->buffers[b].n_member && status == STATUS_OK; m++)
            if (program->buffers[b].role == ROLE_SHARD)
                status = hash_member(executor, executor_member(executor, b, m),
                                     buffer_member_bytes(program, &program->buffers[b], m),
                                     &ordered->outcome->shards[rank], err);
    return status;
}

static struct outcome run(struct ordered *ordered, const struct device_ops *device,
                          const struct fake_setup *fake)
{
    const struct run_job job = {.program = &ordered->made.program,
                                .placement = &ordered->placement,
                                .device = device,
                                .ranks = (uint32_t)ordered->made.plan.world,
                                .steps = STEPS,
                                .optimizer = {.lr = 0.01},
                                .timeout_ns = 20000000000,
                                .die_rank = -1,
                                .hang_rank = -1,
                                .context = ordered,
                                .values = make_values,
                                .at_end = hash_shards};
    struct run_log *log = NULL;
    struct err err = {0};

    *ordered->outcome = (struct outcome){.shards = {0}};
    fake_cuda_init(fake);
    fake_nccl_share(job.ranks);
    if (run_log_new(job.ranks, STEPS, job.program->n_task, &log, &err) != STATUS_OK ||
        run_forked(&job, log, &err) != STATUS_OK)
        ok(false, "it runs: %s", err.text);
    for (uint32_t r = 0; r < job.ranks; r++)
        for (uint32_t s = 0; s < STEPS; s++)
            ordered->outcome->losses[r][s] = log->rank[r].results[s + 1].loss;
    run_log_free(log);
    fake_nccl_unshare();
    return *ordered->outcome;
}

static void check(enum small small, const char *words, uint64_t *seed)
{
    const struct real_case real = {.small = small, .words = words};
    const struct alloc_config config = alloc_config_default();
    struct ordered ordered;
    uint32_t n_same = 0;

    real_case_make(&real, &ordered.made);
    place_program(&ordered.made.program, &config, &ordered.made.arena, &ordered.placement);
    ordered.outcome = mmap(NULL, sizeof *ordered.outcome, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct fake_setup fake = {.n_device = MAX_RANKS, .driver = 13000, .defers = true};
    const struct outcome host = run(&ordered, &host_device_ops, &fake);
    for (int i = 0; i < SEEDS; i++) {
        fake.seed = tap_random(seed);
        const struct outcome cuda = run(&ordered, &cuda_device_ops, &fake);
        n_same += memcmp(&host, &cuda, sizeof host) == 0;
    }
    ok(n_same == SEEDS && host.losses[0][0] > 0, "%s %s: %u of %d orders give the host's bits",
       small_name(small), words, n_same, SEEDS);
    munmap(ordered.outcome, sizeof *ordered.outcome);
    make_release(&ordered.made);
}

int main(void)
{
    uint64_t seed = tap_seed(1);

    check(SMALL_LLAMA, "--gpus 1 --param-dtype bf16 --accum 2", &seed);
    check(SMALL_KDA, "--gpus 2 --param-dtype bf16", &seed);
    check(SMALL_GPT2, "--gpus 2 --prefetch 2", &seed);
    return tap_done();
}
