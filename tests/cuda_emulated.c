/*
 * One rank of the CUDA device stands for all of a plan: call by call and as graphs it leaves the bytes
 * that the host's emulation leaves, in any order that waits allow, and NCCL is not asked for anything.
 */
#include <string.h>

#include "tests/fake_cuda.h"
#include "tests/outcome_rig.h"
#include "tests/tap.h"

enum { STEPS = 6, SEEDS = 3 };

static struct outcome run(struct outcome_case *of, const struct device_ops *device, bool graph,
                          uint64_t seed)
{
    int64_t *no_ns = arena_array(&of->made.arena, int64_t, of->made.program.n_task);
    struct run_job job = outcome_job(of, device);
    struct outcome outcome;

    job.ranks = 1;
    job.steps = STEPS;
    job.emulated_ns = no_ns;
    job.graph = graph;
    fake_cuda_init(&(struct fake_setup){
        .n_device = 1, .driver = 13000, .defers = true, .seed = seed, .of = "nccl", .fail_at = 1});
    outcome_run(of, &job, &outcome);
    return outcome;
}

static void check(enum small small, const char *words, uint64_t *state)
{
    struct outcome_case of;
    uint32_t n_same = 0;

    outcome_case_init(&of, small, words);
    const struct outcome host = run(&of, &host_device_ops, false, 0);
    for (int i = 0; i < 2 * SEEDS; i++) {
        const struct outcome cuda = run(&of, &cuda_device_ops, i % 2, tap_random(state));
        n_same += memcmp(&host, &cuda, sizeof host) == 0;
    }
    ok(n_same == 2 * SEEDS && host.shards[0] != 0, "%s %s: %u of %d runs leave the host's bytes",
       small_name(small), words, n_same, 2 * SEEDS);
    outcome_case_release(&of);
}

int main(void)
{
    uint64_t state = tap_seed(1);

    check(SMALL_LLAMA, "--gpus 4 --param-dtype bf16", &state);
    check(SMALL_KDA, "--gpus 2 --replicas 2 --separate-reduce-comm yes", &state);
    return tap_done();
}
