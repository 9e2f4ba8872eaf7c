/*
 * Real runs in FP32 compute what the reference computes in double, to 1e-5 of each tensor's norm:
 * models, numbers of ranks, optimizers, and whatever changes which numbers there are.
 *
 * But for gradients of the second step, which begins from parameters that are an FP32 rounding away
 * from the reference's: these are held to twice that. And those of kda to five times: at the first
 * places of a sequence the delta rule yields nearly nothing, and that is divided by its own norm, so
 * that what an update has moved by a rounding comes back some hundred times as large.
 */
#include <stdio.h>

#include "tests/real_judge.h"
#include "tests/tap.h"

static const struct number_bound strict[] = {{"grad 1 of *", 2e-5}, {"*", 1e-5}};
static const struct number_bound of_kda[] = {
    {"grad 1 of *", 5e-5}, {"norm 1", 5e-5}, {"d_input", 5e-5}, {"*", 1e-5}};

static void check(const struct real_case *of)
{
    const bool is_kda = of->small >= SMALL_KDA; /* and its variants behind it */
    real_case_check(of, is_kda ? of_kda : strict);
}

/* Every family on 1 to 4 ranks with both optimizers. */
static void check_models(void)
{
    static const enum small smalls[] = {SMALL_LLAMA, SMALL_GPT2, SMALL_KDA};
    char words[64];

    for (size_t i = 0; i < sizeof smalls / sizeof *smalls; i++)
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int adamw = 0; adamw < 2; adamw++) {
                snprintf(words, sizeof words, "--gpus %d --optimizer %s", ranks,
                         adamw ? "adamw-fused" : "sgd");
                check(&(struct real_case){smalls[i], .words = words});
            }
}

static const struct real_case cases[] = {
    {SMALL_TIED, .words = "--gpus 3"},
    {SMALL_FLAT, .words = "--gpus 4"}, /* one head, so that three ranks have nothing of A_log */
    {SMALL_BLOCKS, .words = "--gpus 3"},
    {SMALL_LLAMA, .words = "--batch 3 --gpus 2"},
    {SMALL_GPT2, .words = "--batch 3 --gpus 2"},
    {SMALL_KDA, .words = "--batch 3 --gpus 2"},
    /* a sequence of one token: what only weighs places has no gradient */
    {SMALL_LLAMA, .words = "--seq 1 --gpus 2 --optimizer adamw-fused"},
    {SMALL_GPT2, .words = "--seq 1 --gpus 2 --optimizer adamw-fused"},
    {SMALL_KDA, .words = "--seq 1 --gpus 2 --optimizer adamw-fused"},
    /* microbatches */
    {SMALL_LLAMA, .words = "--accum 2"},
    {SMALL_LLAMA, .words = "--accum 3", .averages = true},
    {SMALL_LLAMA, .words = "--accum 3 --sync last --gpus 3"},
    {SMALL_KDA, .words = "--accum 2 --sync last"},
    {SMALL_GPT2, .words = "--accum 2 --sync last --gpus 1"},
    {SMALL_KDA, .words = "--accum 2 --last-backward last --reshard-backward last --gpus 2"},
    /* replicas */
    {SMALL_KDA, .words = "--replicas 2"},
    {SMALL_LLAMA, .words = "--replicas 4"},
    {SMALL_LLAMA, .words = "--replicas 2 --accum 3 --all-reduce last"},
    {SMALL_GPT2, .words = "--replicas 2 --accum 2 --sync last"},
    /* parameters without gradient */
    {SMALL_LLAMA, .words = "--freeze *embed*,*q_proj*,*layers.1.mlp*"},
    {SMALL_LLAMA, .words = "--freeze *self_attn*,*norm*"},
    {SMALL_GPT2, .words = "--freeze *wte*,*c_attn*,*ln_1*"},
    {SMALL_KDA, .words = "--freeze *A_log,*k_proj*,*v_conv1d*,*o_norm*"},
    {SMALL_KDA, .words = "--freeze *self_attn*"},
    {SMALL_LLAMA, .words = "--ignore *norm*,*layers.0.mlp*"},
    {SMALL_KDA, .words = "--ignore *dt_bias,*conv1d* --gpus 3"},
    {SMALL_LLAMA, .words = "", .unused = "*layers.0.mlp.up_proj*"},
    {SMALL_LLAMA, .words = "--unused zero --optimizer adamw-fused",
     .unused = "*layers.1.self_attn*"},
    {SMALL_LLAMA, .words = "--unused zero --accum 2 --sync last --gpus 3",
     .unused = "*o_proj*,*up_proj*"},
    /* division */
    {SMALL_LLAMA, .words = "--divide-factor 7"},
    {SMALL_LLAMA, .words = "--divide-factor 4"},
    {SMALL_LLAMA, .words = "--divide-factor 2 --replicas 2"},
    {SMALL_LLAMA, .words = "--divide-factor 3 --replicas 2"},
    {SMALL_LLAMA, .words = "--divide-factor 6 --gpus 1"},
    {SMALL_LLAMA, .words = "--force-sum yes --gpus 3"},
    {SMALL_LLAMA, .words = "--force-sum yes --divide-factor 5 --replicas 2 --accum 2"},
    /* clipping */
    {SMALL_LLAMA, .words = "--clip 0.25", .max_norm = 0.25f},
    {SMALL_KDA, .words = "--clip 0.25 --gpus 1", .max_norm = 0.25f},
    {SMALL_LLAMA, .words = "--clip 100 --gpus 3", .max_norm = 100},
    {SMALL_LLAMA, .words = "--clip 0.5 --replicas 2", .max_norm = 0.5f},
    /* where parameters are cut */
    {SMALL_LLAMA, .words = "--shard-dim *=0,*proj*=1 --gpus 2"},
    {SMALL_KDA, .words = "--shard-dim *conv1d*=2"},
    {SMALL_LLAMA, .words = "--second-mesh *norm*,*up_proj*"},
};

int main(void)
{
    check_models();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
    return tap_done();
}
