/*
 * What `unshard calibrate --device cuda` measures, over a CUDA of the host's (tests/fake_cuda.h): every
 * number is there and finite, of one GPU and of two, and a call that fails is an error with its name.
 * The numbers mean nothing here; the sizes are small.
 */
#include <math.h>
#include <string.h>

#include "src/cli/calibrate.h"
#include "tests/fake_cuda.h"
#include "tests/tap.h"

static const struct calibrate_sizes sizes = {.t = 32,
                                             .short_t = 16,
                                             .h = 32,
                                             .f = 64,
                                             .v = 64,
                                             .nh = 2,
                                             .d = 16,
                                             .g_t = 32,
                                             .g_h = 32,
                                             .g_f = 64,
                                             .narrow = 16,
                                             .small = 8,
                                             .copy_bytes = 1 << 16,
                                             .pack_bytes = 1 << 16,
                                             .updated = 1 << 10,
                                             .message_bytes = 1 << 14};

static struct calibrate_target target_of(uint32_t most_ranks)
{
    return (struct calibrate_target){
        .ops = &cuda_device_ops, .sizes = sizes, .ranks = 1, .most_ranks = most_ranks};
}

static bool is_rate(double value)
{
    return isfinite(value) && value > 0;
}

static void test_numbers(void)
{
    struct calibrate_target target = target_of(1);
    struct calibrate_numbers numbers;
    struct err err = {0};
    bool speeds = true, packings = true;

    fake_cuda_init(&(struct fake_setup){.n_device = 1, .driver = 13000});
    ok(calibrate_measure(&target, &numbers, &err) == STATUS_OK, "a GPU is measured %s", err.text);
    for (int i = 0; i < CLASS_OP_N; i++)
        speeds &= is_rate(numbers.speeds[i].fast) && is_rate(numbers.speeds[i].all) &&
                  numbers.speeds[i].fast >= numbers.speeds[i].slow;
    for (int i = 0; i < PACKING_N; i++)
        packings &= is_rate(numbers.pack_bytes_per_s[i]);
    ok(speeds, "each class of operators has speeds");
    ok(packings && is_rate(numbers.copy_bytes_per_s) && is_rate(numbers.update_bytes_per_s),
       "copies, packing and the optimizer too");
    ok(is_rate(numbers.launch_s) && is_rate(numbers.issue_s), "and launches");
    is_str(target.facts.name, "fake GPU", "it says what it is");
    is_int(target.facts.memory_bytes, (int64_t)80 << 30, "how large");
    ok(strstr(target.facts.software, "NCCL 2.28.9"), "and with what: %s", target.facts.software);
    is_int(target.facts.devices, 1, "and that it is alone");
}

static void test_ranks(void)
{
    const struct calibrate_target target = target_of(2);
    struct cluster cluster = {.name = "cuda"};
    struct arena arena;
    struct err err = {0};
    bool rows = true;

    arena_init(&arena);
    fake_nccl_share(2);
    fake_cuda_init(&(struct fake_setup){.n_device = 2, .driver = 13000});
    ok(calibrate_comm(&target, &cluster, &arena, &err) == STATUS_OK, "two GPUs are measured %s",
       err.text);
    is_int(cluster.n_collective, 3, "a row of each collective");
    for (uint32_t i = 0; i < cluster.n_collective; i++)
        rows &= cluster.collectives[i].ranks == 2 && is_rate(cluster.collectives[i].bytes_per_s) &&
                cluster.collectives[i].a_s >= 0;
    ok(rows, "with a rate and a start");
    ok(cluster.contention.at[SPREAD_MID] >= 0 && cluster.contention.source,
       "and what collectives take from products");
    fake_nccl_unshare();
    arena_release(&arena);
}

/* One GPU has no links: what the preset says of them stays. */
static void test_alone(void)
{
    const struct calibrate_target target = target_of(1);
    struct cluster preset, cluster;
    struct arena arena;
    struct err err = {0};

    arena_init(&arena);
    if (cluster_open("h100-sxm", &arena, &preset, &err) != STATUS_OK)
        tap_bail(err.text);
    cluster = preset;
    ok(calibrate_comm(&target, &cluster, &arena, &err) == STATUS_OK, "one GPU has no collectives");
    is_int(cluster.n_collective, preset.n_collective, "their rows are the preset's");
    ok(cluster.contention.source == preset.contention.source, "and so is contention");
    arena_release(&arena);
}

static void test_failures(void)
{
    static const char *const calls[] = {"cudaMalloc", "cudaMemcpyAsync", "cudaMemsetAsync",
                                        "cublasLtMatmul", "cudaGetDeviceProperties"};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct calibrate_target target = target_of(1);
        struct calibrate_numbers numbers;
        struct err err = {0};
        fake_cuda_init(
            &(struct fake_setup){.n_device = 1, .driver = 13000, .fail_at = 1, .of = calls[i]});
        const enum status status = calibrate_measure(&target, &numbers, &err);
        ok(status == STATUS_RUN && strstr(err.text, calls[i]), "a call that fails: %s", err.text);
    }
}

int main(void)
{
    test_numbers();
    test_ranks();
    test_alone();
    test_failures();
    return tap_done();
}
