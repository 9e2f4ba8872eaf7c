/*
 * FSDP1 against FSDP2 as measured: pytorch/torchtitan#165 (March 2024), llama2-7b on 8 H100 of 96 GB,
 * batch 8 of 2048 tokens. Of 95.04 GiB, and in tokens/s:
 *                 full checkpointing            selective by operator
 *                 reserved  active  tokens/s    reserved
 *   FSDP1         33.82 %   24.81   6100-6200   67.2 %
 *   FSDP2         32.64 %   23.92   6100-6300   62.5 %
 * So FSDP2 reserved 3.5 % and 7.0 % less, and was 0.8 % faster.
 *
 * torchtitan's train.py of that month cast the logits in the model and kept them, had an RMSNorm of
 * its own and AdamW over lists; its FSDP1 kept original parameters. That FSDP2 packed gradients on the
 * reduce stream (pytorch#129721 came in June) and did not reshard the last block. With all of that
 * known each of the four has to come out by itself, and the differences within 2 points.
 *
 * record_stream is the cause of all of the difference with full checkpointing. With selective it is of
 * a quarter: what it holds back is four flat parameters at most, 1.1 of the 4.5 GiB that were measured.
 * The rest is what flat parameters leave of the segments: FSDP1's constructor makes each beside its
 * parameters, and the activations of the second step need segments of their own. What it was there
 * nobody measured.
 */
#include <math.h>

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
    options.norm = NORM_COMPOSITE;
    options.loss = LOSS_EAGER_MODEL;
    options.optimizer = OPTIMIZER_ADAMW_FOREACH;
    options.ac = ac;
    options.fsdp1.use_orig_params = system == SYSTEM_FSDP1;
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
    if (cluster_open("h100-96g-500w", &made.arena, &cluster, &err) ||
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

static const double GPU_GIB = 95.04;

/* Of the GPU's memory, in percent. */
struct measured {
    enum checkpointing ac;
    double fsdp1_reserved_pct, fsdp2_reserved_pct;
};

static void test_absolute(const char *what, double bytes, double pct, double most_pct)
{
    const double error_pct = 100 * (bytes / GIB / (pct / 100 * GPU_GIB) - 1);
    ok(fabs(error_pct) < most_pct, "%s %.2f GiB, %.1f %% from what was measured", what, bytes / GIB,
       error_pct);
}

static struct pair compare(const struct measured *measured)
{
    struct plan_options options = options_165(SYSTEM_FSDP2, measured->ac);
    struct pair pair;

    figures_of(&options, "FSDP2 of today");
    options.reshard = RESHARD_ALL_BUT_LAST;
    options.pack_on_reduce = true;
    pair.fsdp2 = figures_of(&options, "FSDP2 of March 2024");
    options = options_165(SYSTEM_FSDP1, measured->ac);
    pair.fsdp1 = figures_of(&options, "FSDP1");
    test_absolute("FSDP1 reserves", pair.fsdp1.reserved, measured->fsdp1_reserved_pct, 2);
    test_absolute("FSDP2 reserves", pair.fsdp2.reserved, measured->fsdp2_reserved_pct, 2);

    const double less = percent_less(pair.fsdp2.reserved, pair.fsdp1.reserved);
    const double want = percent_less(measured->fsdp2_reserved_pct, measured->fsdp1_reserved_pct);
    const double faster = percent_less(pair.fsdp2.step_s, pair.fsdp1.step_s);
    tap_note("FSDP2 reserves %.1f %% less (%.1f measured), is %.1f %% faster (0.8 measured)", less,
             want, faster);
    ok(less > want - 2 && less < want + 2, "reserved differs as measured");
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
    static const struct measured full_ac = {AC_FULL, 33.82, 32.64}, op_ac = {AC_OP, 67.2, 62.5};

    tap_note("full checkpointing");
    const struct pair full = compare(&full_ac);
    ok(part_of_record_stream(AC_FULL, &full) > 0.5, "record_stream is the cause of at least half");
    test_absolute("FSDP1 has active", full.fsdp1.active, 24.81, 1);
    test_absolute("FSDP2 has active", full.fsdp2.active, 23.92, 1);
    const double active = (full.fsdp1.active - full.fsdp2.active) / GIB;
    ok(active > 0.85 - 0.25 && active < 0.85 + 0.25, "active differs by %.2f GiB (0.85 measured)",
       active);
    tap_note("selective checkpointing");
    const struct pair selective = compare(&op_ac);
    ok(part_of_record_stream(AC_OP, &selective) > 0, "record_stream is a cause");
    return tap_done();
}
