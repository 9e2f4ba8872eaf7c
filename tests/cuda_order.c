/*
 * Streams of the CUDA device that run late, and in any order that the program's waits allow, compute
 * what the host computes: nothing is looked at on the way, so that only the waits keep order
 * (tests/fake_cuda.h). Losses and the bits of all shards after the last step, under several seeds.
 */
#include <string.h>

#include "tests/fake_cuda.h"
#include "tests/outcome_rig.h"
#include "tests/tap.h"

enum { SEEDS = 4 };

static struct outcome run(struct outcome_case *of, const struct device_ops *device,
                          const struct fake_setup *fake)
{
    const struct run_job job = outcome_job(of, device);
    struct outcome outcome;

    fake_cuda_init(fake);
    fake_nccl_share(job.ranks);
    outcome_run(of, &job, &outcome);
    fake_nccl_unshare();
    return outcome;
}

static void check(enum small small, const char *words, uint64_t *seed)
{
    struct outcome_case of;
    uint32_t n_same = 0;

    outcome_case_init(&of, small, words);
    struct fake_setup fake = {.n_device = OUTCOME_MAX_RANKS, .driver = 13000, .defers = true};
    const struct outcome host = run(&of, &host_device_ops, &fake);
    for (int i = 0; i < SEEDS; i++) {
        fake.seed = tap_random(seed);
        const struct outcome cuda = run(&of, &cuda_device_ops, &fake);
        n_same += memcmp(&host, &cuda, sizeof host) == 0;
    }
    ok(n_same == SEEDS && host.losses[0][0] > 0, "%s %s: %u of %d orders give the host's bits",
       small_name(small), words, n_same, SEEDS);
    outcome_case_release(&of);
}

int main(void)
{
    uint64_t seed = tap_seed(1);

    check(SMALL_LLAMA, "--gpus 1 --param-dtype bf16 --accum 2", &seed);
    check(SMALL_KDA, "--gpus 2 --param-dtype bf16", &seed);
    check(SMALL_GPT2, "--gpus 2 --prefetch 2", &seed);
    return tap_done();
}
