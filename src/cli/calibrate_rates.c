/*
 * From what was measured on a device to the rates of a cluster; see calibrate.h. Measures nothing.
 *
 * Mid is what all cases of a class reach together, low and high the fastest and the slowest of them.
 */
#include <math.h>

#include "src/cli/calibrate.h"

/* What a file's number of products can be at the least; the rest is efficiency. */
static const double NOMINAL_FLOPS = 1e11;

static struct rate share(struct calibrate_speed speed, double of, const char *source)
{
    return calibrate_rate(speed.fast / of, speed.all / of, speed.slow / of, source);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- operators ------------------------------------------------------------------------------------ */

static void set_products(const struct calibrate_sizes *sizes, const struct calibrate_speed *speeds,
                         struct cluster *out, struct arena *arena)
{
    const struct calibrate_speed products = speeds[CLASS_GEMM];
    const double narrow = (double)sizes->narrow;

    out->gemm_flops = calibrate_value(fmax(NOMINAL_FLOPS, products.fast),
                                      "nominal: what efficiency is a share of");
    out->gemm_efficiency = share(
        products, out->gemm_flops.at[SPREAD_MID],
        arena_printf(arena,
                     "measured: products of forward and backward, %llu tokens, %llu to %llu wide",
                     (unsigned long long)sizes->g_t, (unsigned long long)sizes->g_h,
                     (unsigned long long)sizes->g_f));
    calibrate_valid(&out->gemm_efficiency, QUANTITY_GEMM_DIM, sizes->small,
                    2 * greater(sizes->g_t, sizes->g_f), arena);
    out->gemm_start_s = calibrate_value(
        speeds[CLASS_START].seconds,
        arena_printf(arena, "measured: a product %llu wide", (unsigned long long)sizes->small));
    const double narrow_s = 2 * narrow * narrow * narrow / speeds[CLASS_NARROW].all;
    const double start_s = out->gemm_start_s.at[SPREAD_MID];
    const double k = (narrow_s - start_s) * products.all / (2 * narrow * narrow);
    out->gemm_k0 = calibrate_value(
        fmax(0, k - narrow), arena_printf(arena, "measured: products %llu wide against wide ones",
                                          (unsigned long long)sizes->narrow));
    out->gemm_derate = calibrate_value(1, "in what was measured");
}

/* 1/r = (1 + s0 / s) / E, through a long and a short sequence. */
static void set_attention(const struct calibrate_sizes *sizes, const struct calibrate_speed *speeds,
                          struct cluster *out, struct arena *arena)
{
    const struct calibrate_speed whole = speeds[CLASS_LONG];
    const double seq = (double)sizes->t, short_seq = (double)sizes->short_t;
    const double per_long = 1 / whole.all, per_short = 1 / speeds[CLASS_SHORT].all;
    const double slope = fmax(0, (per_short - per_long) / (1 / short_seq - 1 / seq));
    const double best = fmax(per_long - slope / seq, per_long / 2);
    const double ramp = 1 / (best * whole.all);
    const struct calibrate_speed limit = {
        .fast = whole.fast * ramp, .all = 1 / best, .slow = whole.slow * ramp};

    out->attention_efficiency =
        share(limit, out->gemm_flops.at[SPREAD_MID],
              arena_printf(arena, "measured: forward and backward of %llu heads of %llu",
                           (unsigned long long)sizes->nh, (unsigned long long)sizes->d));
    calibrate_valid(&out->attention_efficiency, QUANTITY_HEAD_DIM, sizes->d / 4, sizes->d * 4,
                    arena);
    out->attention_s0 =
        calibrate_value(slope / best, arena_printf(arena, "measured: %llu against %llu tokens",
                                                   (unsigned long long)sizes->t,
                                                   (unsigned long long)sizes->short_t));
    calibrate_valid(&out->attention_s0, QUANTITY_SEQ, sizes->short_t, 4 * sizes->t, arena);
    out->attention_head64 = calibrate_value(1, "in what was measured");
    out->attention_derate = calibrate_value(1, "in what was measured");
    out->delta_rule =
        share(speeds[CLASS_DELTA], 1 / best,
              arena_printf(arena, "measured: forward and backward of %llu heads of %llu",
                           (unsigned long long)sizes->nh, (unsigned long long)sizes->d));
}

/* ---- memory, and what is copied ------------------------------------------------------------------- */

/* What shares are of: nothing may be faster. On the host that is what stays in caches. */
static double fastest(const struct calibrate_numbers *numbers)
{
    double most = fmax(numbers->copy_bytes_per_s, numbers->update_bytes_per_s);

    for (int i = 0; i < PACKING_N; i++)
        most = fmax(most, numbers->pack_bytes_per_s[i]);
    return most;
}

/* Operators of bodies have a rate of their own, as a factor on that of plain kernels. */
static void set_memory(const struct calibrate_numbers *numbers, struct cluster *out)
{
    const struct calibrate_speed ops = numbers->speeds[CLASS_OTHER];
    const double plain = numbers->update_bytes_per_s;

    out->memory_bytes_per_s = calibrate_value(
        fastest(numbers), "measured: the fastest of the device's own copy, packing and AdamW");
    out->memory_efficiency = calibrate_value(plain / fastest(numbers), "measured: AdamW");
    out->memory_slowdown =
        calibrate_rate(plain / ops.fast, plain / ops.all, plain / ops.slow,
                       "measured: norms, activations, convolutions, the loss, against AdamW; forward "
                       "and backward");
}

static void set_copies(const struct calibrate_sizes *sizes, const struct calibrate_numbers *numbers,
                       struct cluster *out, struct arena *arena)
{
    const char *source = arena_printf(arena, "measured: 16 tensors of %llu KiB of FP32 in all",
                                      (unsigned long long)sizes->pack_bytes >> 10);
    const double memory = fastest(numbers);
    double time = 0, fast = 0, slow = INFINITY;

#define X(member, from, to) \
    out->member = calibrate_value(numbers->pack_bytes_per_s[PACKING_##member] / memory, source);
    CALIBRATE_PACKINGS(X)
#undef X
    for (int i = 0; i < PACKING_N; i++) {
        fast = fmax(fast, numbers->pack_bytes_per_s[i]);
        slow = fmin(slow, numbers->pack_bytes_per_s[i]);
        time += 1 / numbers->pack_bytes_per_s[i];
    }
    out->own_kernels =
        calibrate_rate(fast / memory, PACKING_N / time / memory, slow / memory, source);
    out->mixed_slowdown = calibrate_value(1, "each tile is of one type");
}

static void set_host(const struct calibrate_numbers *numbers, struct cluster *out)
{
    out->host_launch_s = calibrate_value(numbers->issue_s, "measured: work handed to a stream");
    out->host_all_gather_s =
        calibrate_value(8 * numbers->issue_s, "as its copies, waits and records");
    out->copy_launch_s =
        calibrate_value(numbers->launch_s, "measured: a table of one small tensor");
}

void calibrate_rates(const struct calibrate_target *target, const struct calibrate_numbers *numbers,
                     struct cluster *out, struct arena *arena)
{
    set_products(&target->sizes, numbers->speeds, out, arena);
    set_attention(&target->sizes, numbers->speeds, out, arena);
    set_memory(numbers, out);
    set_copies(&target->sizes, numbers, out, arena);
    set_host(numbers, out);
}
