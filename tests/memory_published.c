/*
 * Memory at the peak against published runs of torchtitan: llama2-7b on 8 GPUs, 8 sequences of 2048
 * tokens, units of one block, of which the last and the root stay gathered (its pull request 165 of
 * March 2024; what it is made of: spec MEMORY 8).
 *
 * One thing differs, and is taken off: that torchtitan cast the logits in the model, and kept both
 * that copy and the loss's own, 16 bytes a token and word. Here the cast is the loss's, 12 bytes.
 */
#include <math.h>

#include "src/place.h"
#include "tests/body_make.h"
#include "tests/make.h"
#include "tests/tap.h"

static const double GIB = (double)(1 << 30);

/* In GiB, as printed: to two decimals. */
struct published {
    enum checkpointing ac;
    double activation, sum;
};

static bool is_printed_as(uint64_t bytes, double gib)
{
    return fabs((double)bytes / GIB - gib) < 0.006;
}

static struct plan_options options_of(const struct published *run)
{
    struct plan_options options = plan_options_default();
    options.batch = 8;
    options.seq = 2048;
    options.units = "block";
    options.reshard = RESHARD_ALL_BUT_LAST;
    options.norm = NORM_COMPOSITE;
    options.ac = run->ac;
    return options;
}

static void test_peak(const struct published *run)
{
    const double logits = 7.81, logits_here = logits * 12 / 16;
    const double in_gib[CLASS_N] = {
        [CLASS_SHARDED_PARAM] = 3.14 + 0.04, [CLASS_OPTIMIZER] = 6.28,
        [CLASS_UNSHARDED_PARAM] = 0.87,      [CLASS_ACTIVATION] = run->activation,
        [CLASS_LOGITS] = logits_here,        [CLASS_WORKSPACE] = 0.06};
    const struct plan_options options = options_of(run);
    const struct alloc_config config = alloc_config_default();
    struct placement placement;
    struct made made;
    make_init(&made, "llama2-7b", 32, &options);
    place_program(&made.program, &config, &made.arena, &placement);
    const struct alloc_stats *stats = &placement_step(&placement, 3)->stats;
    for (int c = 0; c < CLASS_N; c++)
        ok(is_printed_as(stats->peak_by_class[c], in_gib[c]), "%s: %s of %.2f GiB",
           ac_names[run->ac], memory_class_name((enum memory_class)c), in_gib[c]);
    ok(is_printed_as(stats->peak_allocated, run->sum - logits + logits_here), "%s: %.2f GiB in all",
       ac_names[run->ac], run->sum);
    make_release(&made);
}

int main(void)
{
    static const struct published runs[] = {{AC_OP, 31.32, 49.52}, {AC_FULL, 4.50, 22.70}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        test_peak(&runs[i]);
    return tap_done();
}
