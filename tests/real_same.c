/*
 * What changes only when or where something is issued, moved or kept changes no bit: outputs,
 * losses, gradients and parameters of two steps equal those of the group's base.
 *
 * Groups differ in model and dtypes, since not every option goes with each. Gradients that are cast
 * are rounded once, by whomever: a unit of two dtypes, units by dtype, and gradients cast before they
 * are packed have the same bits. What adds in another order, or rounds elsewhere, has not: --sync,
 * --replicas, numbers of ranks, --reduce-dtype, and clipping under other --units, whose order is
 * that of the squares. These are held against the reference, in real_numbers.c and real_policies.c;
 * that they differ here shows that a difference would be seen.
 */
#include <stdio.h>

#include "tests/real_case.h"
#include "tests/tap.h"

enum { MAX_VARIANTS = 24 };

struct group {
    enum small small;
    const char *base; /* as one types it */
    float max_norm;
    const char *variants[MAX_VARIANTS]; /* with the base before them; NULL: no more */
};

static const struct group groups[] = {
    {SMALL_KDA,
     "--param-dtype bf16 --accum 2",
     0,
     {"--reshard yes",
      "--reshard no",
      "--reshard all-but-last",
      "--reshard 2",
      "--no-reshard *layers.1",
      "--reshard-backward last",
      "--last-backward last",
      "--reshard-backward last --reshard no",
      "--no-unshard-backward *embed*",
      "--reduce-inputs 2",
      "--reduce-inputs 3",
      "--pack-stream rs",
      "--separate-reduce-comm yes",
      "--second-mesh *A_log,*proj*",
      "--host-sync *layers.0",
      "--log-loss yes",
      "--output-dtype fp32 --units torchtitan",
      "--ac full",
      "--ac op",
      "--ac every:2",
      "--ac full --early-stop no",
      "--arrange precast",
      "--arrange by-dtype"}},
    {SMALL_KDA,
     "--param-dtype bf16 --accum 2 --gpus 3",
     0,
     {"--prefetch 1", "--prefetch 2", "--prefetch 3", "--prefetch-backward 1",
      "--prefetch-backward 2", "--prefetch-backward 3", "--prefetch 3 --prefetch-backward 3",
      "--prefetch 2 --reshard no", "--units whole", "--units block*2", "--units attn+mlp",
      "--units torchtitan", "--units torchtitan --prefetch 2 --prefetch-backward 2 --ac full"}},
    /* both dtypes into one of reduction: one rounding of A_log's gradient, wherever it is made */
    {SMALL_KDA,
     "--param-dtype bf16 --reduce-dtype bf16 --sync last --accum 2",
     0,
     {"--arrange precast", "--arrange by-dtype", "--ac full", "--reduce-inputs 2"}},
    {SMALL_FLAT,
     "--param-dtype bf16 --gpus 3",
     0,
     {"--arrange precast", "--ac full", "--ac op", "--ac op --early-stop no", "--reshard no",
      "--units attn+mlp"}},
    {SMALL_LLAMA,
     "--param-dtype bf16 --sync last --accum 2",
     0,
     {"--behavior torch-2.11", "--behavior torch-2.15", "--behavior torch-2.15.0",
      "--behavior torch-pr196626", "--shard-dim *down_proj*=0", "--ac full", "--ac every:2",
      "--ac op", "--ac op --early-stop no", "--cast-inputs no",
      "--shard-dim *norm*=0 --pack-stream rs --reduce-inputs 2"}},
    {SMALL_LLAMA,
     "--gpus 2 --param-dtype bf16 --optimizer adamw-fused",
     0,
     {"--shard-dim *proj*=1", "--second-mesh *norm*", "--reshard no", "--ac full",
      "--unused zero"}},
    {SMALL_GPT2,
     "--replicas 2 --accum 3 --all-reduce last --reduce-dtype bf16 --param-dtype bf16",
     0,
     {"--reduce-inputs 2", "--separate-reduce-comm yes", "--reshard no", "--ac full",
      "--ac full --early-stop no", "--prefetch 2 --prefetch-backward 2", "--pack-stream rs"}},
    {SMALL_TIED, "--gpus 1 --param-dtype bf16", 0, {"--reshard no", "--ac full", "--prefetch 2"}},
    /* the sum of squares is made in FP64 and in the order of units */
    {SMALL_LLAMA,
     "--clip 0.25 --param-dtype bf16",
     0.25f,
     {"--ac full", "--reshard no", "--reduce-inputs 2", "--log-loss yes"}},
};

/* Other sums, or other roundings. */
static const struct group others[] = {
    {SMALL_LLAMA, "--accum 2", 0, {"--sync last", "--replicas 2", "--reduce-dtype bf16"}},
    {SMALL_KDA, "--param-dtype bf16", 0, {"--keep-fp32 *A_log", "--reduce-dtype bf16"}},
};

static void run(const struct group *group, const char *variant, struct real_numbers *out)
{
    char words[256];
    const struct real_case of = {
        .small = group->small, .words = words, .max_norm = group->max_norm};
    struct made made;

    snprintf(words, sizeof words, "%s %s", group->base, variant);
    real_case_make(&of, &made);
    real_case_run(&of, &made, out);
    make_release(&made);
}

static void check_group(const struct group *group, bool equal)
{
    struct real_numbers base;

    run(group, "", &base);
    for (int i = 0; i < MAX_VARIANTS && group->variants[i]; i++) {
        struct real_numbers got;
        run(group, group->variants[i], &got);
        ok(real_equal(&base, &got) == equal, "%s %s: %s bits with %s", small_name(group->small),
           group->base, equal ? "equal" : "other", group->variants[i]);
        real_release(&got);
    }
    real_release(&base);
}

int main(void)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        check_group(&groups[i], true);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check_group(&others[i], false);
    return tap_done();
}
