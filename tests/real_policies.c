/*
 * Real runs that compute, reduce or store in BF16 and FP16 against the reference that rounds in the
 * same places; and what rounding itself costs, against the exact one.
 *
 * The bounds of each tensor come from both references: real_case.h. A share of 1/8 is for BF16. In
 * FP16 numbers lie eight times as near to a tie, and one that falls otherwise in an early layer
 * moves bits in all that is computed from it: 1/2.
 */
#include <math.h>
#include <stdio.h>

#include "tests/real_judge.h"
#include "tests/tap.h"

static const double OF_BF16 = 0.125, OF_FP16 = 0.5;

/* FP32 masters, computed in BF16: every family on 1 to 4 ranks with both optimizers. */
static void check_models(void)
{
    static const enum small smalls[] = {SMALL_LLAMA, SMALL_GPT2, SMALL_KDA};
    char words[64];

    for (size_t i = 0; i < sizeof smalls / sizeof *smalls; i++)
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int adamw = 0; adamw < 2; adamw++) {
                snprintf(words, sizeof words, "--param-dtype bf16 --gpus %d --optimizer %s", ranks,
                         adamw ? "adamw-fused" : "sgd");
                real_case_check_rounded(&(struct real_case){smalls[i], .words = words}, OF_BF16);
            }
}

static const struct real_case in_bf16[] = {
    {SMALL_TIED, .words = "--param-dtype bf16"},
    {SMALL_FLAT, .words = "--param-dtype bf16"},
    {SMALL_BLOCKS, .words = "--param-dtype bf16 --gpus 3"},
    /* microbatches, averaged or summed, together or one by one */
    {SMALL_LLAMA, .words = "--param-dtype bf16 --accum 3 --sync last", .averages = true},
    {SMALL_KDA, .words = "--param-dtype bf16 --accum 2 --gpus 2"},
    {SMALL_KDA, .words = "--param-dtype bf16 --accum 2 --sync last --gpus 3"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --behavior torch-2.15 --accum 2"},
    /* reduced in BF16: each sum over ranks, microbatches and replicas is rounded */
    {SMALL_LLAMA, .words = "--param-dtype bf16 --reduce-dtype bf16"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --reduce-dtype bf16 --gpus 3 --accum 2"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --reduce-dtype bf16 --gpus 3 --accum 2 --sync last"},
    {SMALL_LLAMA,
     .words = "--param-dtype bf16 --reduce-dtype bf16 --replicas 2 --accum 2 --all-reduce last"},
    {SMALL_KDA, .words = "--param-dtype bf16 --reduce-dtype bf16"},
    {SMALL_LLAMA, .words = "--reduce-dtype bf16"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --reduce-dtype bf16 --divide-factor 8"},
    /* no masters */
    {SMALL_LLAMA, .words = "--param-dtype bf16 --storage-dtype bf16"},
    /* some parameters in FP32, frozen or left alone */
    {SMALL_LLAMA, .words = "--param-dtype bf16 --keep-fp32 *norm*"},
    {SMALL_GPT2, .words = "--param-dtype bf16 --keep-fp32 *bias,*ln_*"},
    {SMALL_KDA, .words = "--param-dtype bf16 --keep-fp32 *A_log"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --freeze *self_attn*"},
    {SMALL_KDA, .words = "--param-dtype bf16 --freeze *q_proj*,*k_conv1d*,*dt_bias --gpus 3"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --ignore *norm*"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --unused zero", .unused = "*o_proj*"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --clip 0.25", .max_norm = 0.25f},
    /* accumulated in a dtype that has the size of the other */
    {SMALL_LLAMA, .words = "--param-dtype bf16 --reduce-dtype fp16 --accum 2 --sync last"},
};

static const struct real_case in_fp16[] = {
    {SMALL_LLAMA, .words = "--param-dtype fp16 --gpus 1"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype bf16 --accum 2 --sync last"},
    /* sums are divided before and after: by 2 and 1, 2 and 3/2, 2 and 2 */
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype fp16 --gpus 2"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype fp16 --gpus 3"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype fp16 --replicas 2"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype fp16 --divide-factor 16"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype fp16 --scaler yes",
     .loss_scale = 128},
    {SMALL_KDA, .words = "--param-dtype fp16 --scaler yes --gpus 3", .loss_scale = 1024},
    {SMALL_GPT2, .words = "--param-dtype fp16 --scaler yes --clip 0.25 --gpus 1", .max_norm = 0.25f,
     .loss_scale = 64},
};

/*
 * What units give out is rounded to BF16 between them, which the reference knows nothing of. Four
 * borders each way round by 2^-9 of what passes, and the second step starts from what they moved.
 */
static void check_borders(void)
{
    static const struct number_bound bounds[] = {{"losses *", 0x1p-8}, {"*", 8 * 0x1p-9}};
    real_case_check(&(struct real_case){SMALL_LLAMA, .words = "--output-dtype bf16"}, bounds);
}

/* ---- what rounding costs ------------------------------------------------------------------------ */

/* Of all gradients of the first step together. */
static double total_error(const struct judge *exact, const struct real_numbers *got)
{
    double apart = 0, size = 0;

    for (uint32_t i = 0; i < exact->n; i++) {
        const struct judged *judged = &exact->list[i];
        for (uint64_t k = 0; judged->kind == JUDGED_GRAD && judged->step == 0 && k < judged->n;
             k++) {
            const double difference = (double)got->grads[0][judged->param][k] - judged->at[k];
            apart += difference * difference;
            size += judged->at[k] * judged->at[k];
        }
    }
    return sqrt(apart / size);
}

static double error_of(const char *words)
{
    const struct real_case of = {SMALL_TINY, .words = words};
    struct real_numbers got;
    struct judge exact;
    struct made made;
    double error = INFINITY;

    real_case_make(&of, &made);
    judge_init(&exact, &of, &made, true);
    if (real_case_run(&of, &made, &got))
        error = total_error(&exact, &got);
    real_release(&got);
    judge_release(&exact);
    make_release(&made);
    return error;
}

/* The README has these numbers. */
static void check_reduce_dtypes(void)
{
    const double wide = error_of("--reduce-dtype fp32");
    const double sums = error_of("--reduce-dtype bf16");
    const double compute = error_of("--param-dtype bf16 --reduce-dtype fp32");
    const double both = error_of("--param-dtype bf16 --reduce-dtype bf16");

    tap_note("gradients of kda-tiny on 4 ranks against the double reference, norm-wise:");
    tap_note("  computed in FP32, reduced in FP32 %.2e, in BF16 %.2e", wide, sums);
    tap_note("  computed in BF16, reduced in FP32 %.2e, in BF16 %.2e", compute, both);
    ok(wide < 1e-5, "FP32 throughout is exact to 1e-5 of all gradients");
    /* two roundings, before and after the sum, of at most 2^-9 each and 2^-9 / sqrt(3) on average */
    ok(sums > 1e-3 && sums < 0x1p-8, "reducing in BF16 costs about a rounding");
    ok(fabs(both - compute) < sums, "and moves no more than that where it is computed in BF16");
}

int main(void)
{
    check_models();
    for (size_t i = 0; i < sizeof in_bf16 / sizeof *in_bf16; i++)
        real_case_check_rounded(&in_bf16[i], OF_BF16);
    for (size_t i = 0; i < sizeof in_fp16 / sizeof *in_fp16; i++)
        real_case_check_rounded(&in_fp16[i], OF_FP16);
    check_borders();
    check_reduce_dtypes();
    return tap_done();
}
