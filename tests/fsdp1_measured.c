/*
 * FSDP1 against FSDP2 as measured: pytorch/torchtitan#165 (March 2024), llama2-7b on 8 H100, batch 8
 * of 2048 tokens. Of 95.04 GiB, and in tokens/s:
 *                 full checkpointing            selective by operator
 *                 reserved  active  tokens/s    reserved
 *   FSDP1         33.82 %   24.81   6100-6200   67.2 %
 *   FSDP2         32.64 %   23.92   6100-6300   62.5 %
 * So FSDP2 reserved 3.5 % and 7.0 % less, and was 0.8 % faster.
 *
 * That FSDP2 packed gradients on the reduce stream (pytorch#129721 came in June) and did not reshard
 * the last block. The whole difference is to be met within 2 points. With full checkpointing
 * record_stream is to be the cause of at least half of it. With selective it is of less than a third
 * here: Adam's moments of a flat parameter are born after the first step in blocks that activations
 * left behind, and are so large that the second step reserves new ones for its activations. What it
 * was there nobody measured.
 */
#include "sim/simulate.h"
#include "tests/make.h"
#include "tests/tap.h"

struct figures {
    double reserved, active; /* bytes */
    double step_s;
};

static const double GIB = 1024.0 * 1024 * 1024;

static struct plan_options options_165(enum system system, enum checkpointing ac)
{
    struct plan_options options = plan_options_default();
    options.system = system;
    options.units = "block";
    options.seq = 2048;
    options.batch = 8;
    options.ac = ac;
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

static double percent_less(double a, double than)
{
    return 100 * (than - a) / than;
}

struct pair {
    struct figures fsdp1, fsdp2;
};

static struct pair compare(enum checkpointing ac, double less_reserved)
{
    struct plan_options options = options_165(SYSTEM_FSDP2, ac);
    struct pair pair;

    figures_of(&options, "FSDP2 of today");
    options.reshard = RESHARD_ALL_BUT_LAST;
    options.pack_on_reduce = true;
    pair.fsdp2 = figures_of(&options, "FSDP2 of March 2024");
    options = options_165(SYSTEM_FSDP1, ac);
    pair.fsdp1 = figures_of(&options, "FSDP1");

    const double less = percent_less(pair.fsdp2.reserved, pair.fsdp1.reserved);
    const double faster = percent_less(pair.fsdp2.step_s, pair.fsdp1.step_s);
    tap_note("FSDP2 reserves %.1f %% less (%.1f measured), is %.1f %% faster (0.8 measured)", less,
             less_reserved, faster);
    ok(less > less_reserved - 2 && less < less_reserved + 2, "reserved differs as measured");
    ok(faster > 0.8 - 2 && faster < 0.8 + 2, "so does the step");
    return pair;
}

/* The part of the difference that goes where streams wait for one another in its place. */
static double part_of_record_stream(enum checkpointing ac, const struct pair *pair)
{
    struct plan_options options = options_165(SYSTEM_FSDP1, ac);
    options.fsdp1.record_stream = false;
    const struct figures waits = figures_of(&options, "FSDP1 without record_stream");
    const double part =
        (pair->fsdp1.reserved - waits.reserved) / (pair->fsdp1.reserved - pair->fsdp2.reserved);

    tap_note("%.0f %% of the difference is record_stream", 100 * part);
    return part;
}

int main(void)
{
    tap_note("full checkpointing");
    const struct pair full = compare(AC_FULL, 3.5);
    ok(part_of_record_stream(AC_FULL, &full) > 0.5, "record_stream is the cause of at least half");
    const double active = (full.fsdp1.active - full.fsdp2.active) / GIB;
    ok(active > 0.85 - 0.25 && active < 0.85 + 0.25, "active differs by %.2f GiB (0.85 measured)",
       active);
    tap_note("selective checkpointing");
    const struct pair selective = compare(AC_OP, 7.0);
    ok(part_of_record_stream(AC_OP, &selective) > 0, "record_stream is a cause");
    return tap_done();
}
