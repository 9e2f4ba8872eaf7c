/*
 * Steps that are captured once and replayed (gpu/step_graph.h, gpu/cuda_graph.c) compute what steps
 * compute that are executed call by call: in any order that a graph's own edges allow. What is
 * launched is counted, and each call that can fail in it ends the run with its name.
 */
#include <string.h>

#include "gpu/step_graph.h"
#include "tests/fake_cuda.h"
#include "tests/outcome_rig.h"
#include "tests/tap.h"

enum { STEPS = 7, SEEDS = 3 };

/* ---- bits ---------------------------------------------------------------------------------- */

static struct outcome run(struct outcome_case *of, const struct device_ops *device,
                          struct fake_setup fake)
{
    struct run_job job = outcome_job(of, device);
    struct outcome outcome;

    job.steps = STEPS;
    job.graph = device->replay != NULL;
    fake_cuda_init(&fake);
    fake_nccl_share(job.ranks);
    outcome_run(of, &job, &outcome);
    fake_nccl_unshare();
    return outcome;
}

static void check_bits(enum small small, const char *words, uint64_t *seed)
{
    struct outcome_case of;
    struct err err = {0};
    uint32_t n_same = 0;

    outcome_case_init(&of, small, words);
    ok(step_graph_check(&of.made.program, &of.placement, &err) == STATUS_OK &&
           step_graph_last_bound(&of.placement) < STEPS,
       "%s %s: steps repeat %s", small_name(small), words, err.text);
    struct fake_setup fake = {.n_device = OUTCOME_MAX_RANKS, .driver = 13000, .defers = true};
    const struct outcome host = run(&of, &host_device_ops, fake);
    for (int i = 0; i < SEEDS; i++) {
        fake.seed = tap_random(seed);
        const struct outcome cuda = run(&of, &cuda_device_ops, fake);
        n_same += memcmp(&host, &cuda, sizeof host) == 0;
    }
    ok(n_same == SEEDS && host.shards[0] != 0, "%u of %d orders give the host's bits", n_same,
       SEEDS);
    outcome_case_release(&of);
}

/* ---- counts -------------------------------------------------------------------------------- */

/* In this process. */
static enum status run_here(struct outcome_case *of, uint32_t steps, uint64_t fail_at,
                            const char *calls, struct err *err)
{
    struct run_job job = outcome_job(of, &cuda_device_ops);
    struct run_log *log = NULL;

    job.steps = steps;
    job.graph = true;
    fake_cuda_init(
        &(struct fake_setup){.n_device = 1, .driver = 13000, .fail_at = fail_at, .of = calls});
    enum status status = run_log_new(1, steps, job.program->n_task, &log, err);
    if (status == STATUS_OK)
        status = run_rank(&job, 0, NULL, NULL, log, err);
    for (uint32_t i = 0; status == STATUS_OK && i < log->rank[0].n_check; i++)
        if (log->rank[0].checks[i].reserved_bytes != log->rank[0].checks[i].mapped_bytes)
            status = err_set(err, STATUS_RUN, "other memory is mapped than was reserved");
    run_log_free(log);
    return status;
}

static void check_counts(struct outcome_case *of)
{
    const uint32_t n_step = of->placement.n_step;
    struct err err = {0};

    ok(run_here(of, STEPS, 0, NULL, &err) == STATUS_OK, "one rank runs %s", err.text);
    const uint64_t launches = fake_cuda_launches(), products = fake_cuda_products();
    is_int(fake_cuda_graph_launches(), STEPS - n_step,
           "a graph for each step behind the bound ones");
    is_int(fake_cuda_live(), 0, "and nothing is left");
    ok(run_here(of, STEPS + 3, 0, NULL, &err) == STATUS_OK, "three steps more");
    is_int(fake_cuda_graph_launches(), STEPS + 3 - n_step, "are three graphs");
    is_int(fake_cuda_launches() - launches, 3, "and one kernel each, behind its end");
    is_int(fake_cuda_products() - products, 0, "and no product");
}

static bool fails_well(struct outcome_case *of, const char *calls, uint64_t at)
{
    struct err err = {0};
    const enum status status = run_here(of, STEPS, at, calls, &err);
    const char *call = fake_cuda_failed();
    const bool ends =
        call && (status == STATUS_OK || strstr(err.text, call)) && fake_cuda_live() == 0;

    if (!ends)
        tap_note("%s: '%s', %lld left", call ? call : "none", err.text,
                 (long long)fake_cuda_live());
    return ends;
}

/* All calls of these names. */
static void check_faults(struct outcome_case *of, const char *calls)
{
    struct err err = {0};
    uint32_t n_bad = 0;

    run_here(of, STEPS, UINT64_MAX, calls, &err);
    const uint64_t n = fake_cuda_calls();
    for (uint64_t at = 1; at <= n; at++)
        n_bad += !fails_well(of, calls, at);
    ok(n > 0 && n_bad == 0, "%llu calls of %s… fail one by one, each with its name",
       (unsigned long long)n, calls);
}

int main(void)
{
    static const char *const calls[] = {"cudaStreamBegin", "cudaStreamEnd", "cudaGraph",
                                        "cudaThread"};
    uint64_t seed = tap_seed(1);
    struct outcome_case of;

    check_bits(SMALL_LLAMA, "--gpus 1 --param-dtype bf16 --accum 2", &seed);
    check_bits(SMALL_KDA, "--gpus 2 --param-dtype bf16", &seed);
    check_bits(SMALL_GPT2, "--gpus 2 --prefetch 2 --clip 1 --optimizer adamw-fused", &seed);
    check_bits(SMALL_BLOCKS, "--replicas 2", &seed);
    outcome_case_init(&of, SMALL_LLAMA, "--gpus 1 --param-dtype bf16 --accum 2");
    check_counts(&of);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        check_faults(&of, calls[i]);
    outcome_case_release(&of);
    return tap_done();
}
