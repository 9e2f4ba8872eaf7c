/*
 * A GPU of this machine as a cluster; see calibrate.h. What one machine, or one GPU, cannot show stays
 * the preset's, with the preset's source.
 *
 * Operators are this program's own, which a real run has: those that are no products are simple kernels
 * (doc/gpu.md), far slower than PyTorch's.
 */
#include "src/cli/calibrate.h"

enum { MOST_RANKS = 8 };

static const struct calibrate_sizes sizes = {.t = 2048,
                                             .short_t = 128,
                                             .h = 4096,
                                             .f = 14336,
                                             .v = 32000,
                                             .nh = 32,
                                             .d = 128,
                                             .g_t = 4096,
                                             .g_h = 4096,
                                             .g_f = 14336,
                                             .narrow = 512,
                                             .small = 64,
                                             .copy_bytes = (uint64_t)1 << 30,
                                             .pack_bytes = (uint64_t)192 << 20,
                                             .updated = (uint64_t)64 << 20,
                                             .message_bytes = (uint64_t)128 << 20};

static void set_sizes(const struct calibrate_target *target,
                      const struct calibrate_numbers *numbers, struct cluster *out,
                      struct arena *arena)
{
    out->memory_bytes = target->facts.memory_bytes;
    out->memory_bytes_source = arena_strdup(arena, target->facts.name);
    out->context_bytes = numbers->context_bytes;
    out->context_bytes_source = "measured: what is taken when the device is opened";
}

enum status calibrate_cuda(const struct device_ops *ops, const struct cluster *preset,
                           struct cluster *out, struct arena *arena, struct err *err)
{
    struct calibrate_target target = {.ops = ops, .sizes = sizes, .ranks = 1};
    struct calibrate_numbers numbers;

    if (preset->has_prices)
        return err_set(err, STATUS_USAGE, "cluster '%s' has no rates to start from; take another",
                       preset->name);
    const enum status status = calibrate_measure(&target, &numbers, err);
    if (status != STATUS_OK)
        return status;
    *out = *preset;
    out->name = "cuda";
    out->description = arena_printf(arena, "%s, %s; what is not measured is that of %s",
                                    target.facts.name, target.facts.software, preset->name);
    target.most_ranks = target.facts.devices < MOST_RANKS ? target.facts.devices : MOST_RANKS;
    set_sizes(&target, &numbers, out, arena);
    calibrate_rates(&target, &numbers, out, arena);
    if (target.most_ranks > 1)
        out->collective_floor_s = calibrate_value(0, "in the rows");
    return calibrate_comm(&target, out, arena, err);
}
