/*
 * This machine as a cluster: its size, and the rates of one rank and of several; see calibrate.h.
 * What one machine cannot show it says, in the number's own source.
 */
#include <unistd.h>

#include "src/cli/calibrate.h"

enum { RANKS_PER_CORE = 2, MOST_RANKS = 8, MOST_LOCAL_RANKS = 256 };

static uint64_t memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 1;
}

static void set_sizes(struct cluster *out)
{
    static const char none[] = "the host has none";

    out->memory_bytes = memory_bytes();
    out->memory_bytes_source = "of the machine; ranks share it";
    out->max_gpus_per_node = MOST_LOCAL_RANKS;
    out->max_gpus_per_node_source = "ranks are processes";
    out->workspace_bytes_source = out->context_bytes_source = out->communicator_bytes_source = none;
}

/* One machine has no network; nothing is known of what ranks take from one another. */
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
    out->contention = calibrate_rate(0, 0, 1,
                                     "not measured: low where each thread has a core of "
                                     "its own, high where two share one");
}

enum status calibrate_host(struct cluster *out, struct arena *arena, struct err *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t ranks = cores > MOST_RANKS ? MOST_RANKS : (uint32_t)(cores < 1 ? 1 : cores);
    const uint32_t most = RANKS_PER_CORE * ranks;

    *out = (struct cluster){.name = "host",
                            .description = "this machine as a device: threads and memory, ranks "
                                           "over shared memory"};
    set_sizes(out);
    set_rest(out);
    const enum status status = calibrate_device(out, arena, err);
    return status == STATUS_OK
               ? calibrate_comm(most < MOST_RANKS ? most : MOST_RANKS, out, arena, err)
               : status;
}
