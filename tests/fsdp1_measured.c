/*
 * FSDP1 against FSDP2 as measured: pytorch/torchtitan#165 (March 2024), llama2-7b on 8 H100, batch 8
 * of 2048 tokens, full checkpointing. FSDP1 33.82 % of 95.04 GiB reserved and 24.81 % active, 6100 to
 * 6200 tokens/s; FSDP2 32.64 %, 23.92 %, 6100 to 6300. So FSDP2 reserved 3.5 % less, had 0.85 GiB
 * less active and was 0.8 % faster.
 *
 * That FSDP2 packed gradients on the reduce stream (pytorch#129721 came in June) and did not reshard
 * the last block. The whole difference is to be met within 2 points, and record_stream is to be the
 * cause of at least half of it. Selective checkpointing, also measured, is not modelled here.
 */
#include "sim/simulate.h"
#include "tests/make.h"
#include "tests/tap.h"

struct figures {
    double reserved, active; /* bytes */
    double step_s;
};

static const double GIB = 1024.0 * 1024 * 1024;

static struct plan_options options_165(enum system system)
{
    struct plan_options options = plan_options_default();
    options.system = system;
    options.units = "block";
    options.seq = 2048;
    options.batch = 8;
    options.ac = AC_FULL;
    return options;
}

static struct figures figures_of(const struct plan_options *options, const char *name)
{
    const struct alloc_config config = alloc_config_default();
    struct placement placement;
    struct cluster cluster;
    struct prices prices;
    struct step_time time;
    struct made made;
    struct err err = {0};

    make_init(&made, "llama2-7b", 0, options);
    if (cluster_open("h100-sxm", &made.arena, &cluster, &err) ||
        cost_price(&cluster, SPREAD_MID, &made.program, &made.arena, &prices, &err) ||
        simulate_timed(&made.program, &prices, &config, &made.arena, &time, &placement, NULL, NULL,
                       &err))
        tap_bail(err.text);
    const struct alloc_stats *stats = &placement.steps[2].stats;
    const struct figures figures = {.reserved = (double)stats->peak_reserved,
                                    .active = (double)stats->peak_active,
                                    .step_s = (double)time.step_ns * 1e-9};
    tap_note("%-28s reserved %.2f GiB, active %.2f GiB, step %.4f s", name, figures.reserved / GIB,
             figures.active / GIB, figures.step_s);
    make_release(&made);
    return figures;
}

int main(void)
{
    struct plan_options options = options_165(SYSTEM_FSDP2);
    figures_of(&options, "FSDP2 of today");
    options.reshard = RESHARD_ALL_BUT_LAST;
    options.pack_on_reduce = true;
    const struct figures fsdp2 = figures_of(&options, "FSDP2 of March 2024");
    options = options_165(SYSTEM_FSDP1);
    const struct figures fsdp1 = figures_of(&options, "FSDP1");
    options.fsdp1.record_stream = false;
    const struct figures waits = figures_of(&options, "FSDP1 without record_stream");

    const double less = 100 * (fsdp1.reserved - fsdp2.reserved) / fsdp1.reserved;
    const double faster = 100 * (fsdp1.step_s - fsdp2.step_s) / fsdp1.step_s;
    const double cause = (fsdp1.reserved - waits.reserved) / (fsdp1.reserved - fsdp2.reserved);
    tap_note("FSDP2 reserves %.1f %% less (3.5 measured) and is %.1f %% faster (0.8 measured)", less,
             faster);
    tap_note("%.0f %% of the difference is record_stream", 100 * cause);
    ok(less > 3.5 - 2 && less < 3.5 + 2, "reserved differs as measured, within 2 points");
    ok(faster > 0.8 - 2 && faster < 0.8 + 2, "so does the step");
    ok(cause > 0.5, "record_stream is the cause of at least half");
    const double active = (fsdp1.active - fsdp2.active) / GIB;
    ok(active > 0.85 - 0.25 && active < 0.85 + 0.25, "active differs by %.2f GiB (0.85 measured)",
       active);
    return tap_done();
}
