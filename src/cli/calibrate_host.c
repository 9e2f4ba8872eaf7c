/*
 * This machine as a cluster: its size, and the rates of its ranks; see calibrate.h. What one machine
 * cannot show it says, in the number's own source.
 *
 * Operators are measured as small as those of a model that a host trains in good time, on as many
 * ranks as `run` has by default, side by side: they share cores, caches and memory.
 */
#include "src/cli/calibrate.h"

enum { RANKS = 2, RANKS_PER_CORE = 2, MOST_RANKS = 8, MOST_LOCAL_RANKS = 256 };

static const struct calibrate_sizes sizes = {.t = 128,
                                             .short_t = 32,
                                             .h = 64,
                                             .f = 160,
                                             .v = 256,
                                             .nh = 4,
                                             .d = 16,
                                             .g_t = 256,
                                             .g_h = 256,
                                             .g_f = 512,
                                             .narrow = 64,
                                             .small = 16,
                                             .copy_bytes = (uint64_t)64 << 20,
                                             .pack_bytes = (uint64_t)256 << 10,
                                             .updated = 1 << 16,
                                             .message_bytes = (uint64_t)2 << 20};

static void set_sizes(const struct calibrate_target *target, struct cluster *out)
{
    static const char none[] = "the host has none";

    out->memory_bytes = target->facts.memory_bytes;
    out->memory_bytes_source = "of the machine; ranks share it";
    out->max_gpus_per_node = MOST_LOCAL_RANKS;
    out->max_gpus_per_node_source = "ranks are processes";
    out->workspace_bytes_source = out->context_bytes_source = out->communicator_bytes_source = none;
    out->headroom_bytes_source = none;
}

/* One machine has no network. */
static void set_rest(struct cluster *out)
{
    static const char none[] = "not measured: one machine has no network";
    static const char other[] = "a kernel of GPUs, which this device does not have";

    out->collective_floor_s = calibrate_value(0, "in the rows");
    out->nic_bytes_per_s = calibrate_value(1e9, none);
    out->nic_efficiency = calibrate_value(1, none);
    out->rank_latency_s = calibrate_value(0, none);
    out->node_decay = calibrate_value(1e9, none);
    out->straggler = calibrate_value(0, none);
    out->fp8_flops = calibrate_value(0, other);
    out->fp8_efficiency = calibrate_value(1, other);
    out->fp8_derate = calibrate_value(1, other);
    out->fp32_flops = calibrate_value(0, "not measured");
    out->tf32_flops = calibrate_value(0, other);
    out->fa3_derate = calibrate_value(0, other);
    out->fa4_derate = calibrate_value(0, other);
    out->triton_2023_derate = calibrate_value(0, other);
    out->host_retry_s = calibrate_value(0, "not measured");
}

static uint32_t most_ranks(uint32_t cores)
{
    const uint32_t ranks = RANKS_PER_CORE * (cores < MOST_RANKS ? cores : MOST_RANKS);
    return ranks < MOST_RANKS ? ranks : MOST_RANKS;
}

enum status calibrate_host(const struct device_ops *ops, const struct cluster *preset,
                           struct cluster *out, struct arena *arena, struct err *err)
{
    struct calibrate_target target = {.ops = ops, .sizes = sizes, .ranks = RANKS};
    struct calibrate_numbers numbers;
    const enum status status = calibrate_measure(&target, &numbers, err);

    (void)preset;
    if (status != STATUS_OK)
        return status;
    *out = (struct cluster){.name = "host",
                            .description = "this machine as a device: threads and memory, ranks "
                                           "over shared memory"};
    target.most_ranks = most_ranks(target.facts.processors);
    set_sizes(&target, out);
    set_rest(out);
    calibrate_rates(&target, &numbers, out, arena);
    /* More ranks than cores take turns. */
    calibrate_valid(&out->memory_efficiency, QUANTITY_GPUS, 1,
                    target.facts.processors > RANKS ? target.facts.processors : RANKS, arena);
    return calibrate_comm(&target, out, arena, err);
}
