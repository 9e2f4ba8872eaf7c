/*
 * Operators of llama and gpt on random operands, in FP32, BF16 and FP16, against the double
 * reference: sizes that are no multiples of any block, one token, several sequences.
 */
#include "tests/op_trial.h"

#include <math.h>

#include "tests/tap.h"

static const struct op_case cases[] = {
    {"embedding",
     reference_embedding,
     {"VH"},
     {"TH"},
     .forward = "L I0 O0",
     .wgrad = "L D G0",
     .kind = OP_EMBEDDING},
    {"positions",
     reference_positions,
     {"PH"},
     {"TH"},
     .forward = "I0 A0",
     .wgrad = "D G0",
     .kind = OP_POSITIONS},
    {"linear",
     reference_linear,
     {"TH", "FH", "F"},
     {"TF"},
     .forward = "I0 I1 I2 O0",
     .dgrad = "D I1 G0",
     .wgrad = "D I0 G1",
     .bias_wgrad = "D G2",
     .kind = OP_MM},
    {"linear without bias",
     reference_linear,
     {"TH", "FH"},
     {"TF"},
     .forward = "I0 I1 - O0",
     .dgrad = "D I1 G0",
     .wgrad = "D I0 G1",
     .kind = OP_MM},
    {"linear, inputs first",
     reference_linear_first,
     {"TH", "HF", "F"},
     {"TF"},
     .forward = "I0 I1 I2 O0",
     .dgrad = "D I1 G0",
     .wgrad = "D I0 G1",
     .bias_wgrad = "D G2",
     .kind = OP_MM,
     .weight_in_first = true},
    {"rms",
     reference_rms,
     {"TH", "H"},
     {"TH", ".T"},
     .forward = "I0 I1 O0 O1",
     .dgrad = "I0 I1 O1 D G0",
     .wgrad = "I0 O1 D G1",
     .kind = OP_RMS},
    {"layer norm",
     reference_layer_norm,
     {"TH", "H", "H"},
     {"TH", ".T", ".T"},
     .forward = "I0 I1 I2 O0 O1 O2",
     .dgrad = "I0 I1 O1 O2 D G0",
     .wgrad = "I0 O1 O2 D G1 G2",
     .kind = OP_LAYER_NORM},
    {"layer norm without bias",
     reference_layer_norm,
     {"TH", "H"},
     {"TH", ".T", ".T"},
     .forward = "I0 I1 - O0 O1 O2",
     .dgrad = "I0 I1 O1 O2 D G0",
     .wgrad = "I0 O1 O2 D G1 -",
     .kind = OP_LAYER_NORM},
    {"swiglu",
     reference_swiglu,
     {"TF", "TF"},
     {"TF"},
     .forward = "I0 I1 O0",
     .dgrad = "I0 I1 D g0 g1",
     .kind = OP_SWIGLU},
    {"gelu",
     reference_gelu,
     {"TF"},
     {"TF"},
     .forward = "I0 O0",
     .dgrad = "I0 D g0",
     .kind = OP_GELU},
    {"add",
     reference_add,
     {"TH", "TH"},
     {"TH"},
     .forward = "I0 I1 O0",
     .dgrad = "D G1",
     .kind = OP_ADD},
    {"cast", reference_copy, {".TH"}, {"TH"}, .forward = "I0 O0", .dgrad = "D g0", .kind = OP_TO},
    {"cross entropy",
     reference_cross_entropy,
     {"^TV"},
     {".T", ".1"},
     .forward = "I0 L O0 O1",
     .dgrad = "I0 L O0 g0",
     .kind = OP_CROSS_ENTROPY,
     .counts = 1},
    {"mean", reference_mean, {"TH"}, {".1"}, .forward = "I0 O0", .dgrad = "g0", .kind = OP_MEAN},
};

static const struct op_sizes all_sizes[] = {
    {.batch = 3, .seq = 7, .hidden = 22, .inner = 37, .vocab = 19, .positions = 9, .head_dim = 1},
    {.batch = 1, .seq = 1, .hidden = 9, .inner = 1, .vocab = 11, .positions = 1, .head_dim = 1},
    {.batch = 2,
     .seq = 70,
     .hidden = 9,
     .inner = 15,
     .vocab = 1500,
     .positions = 70,
     .head_dim = 1},
};

/* Logits of ten thousand: exp alone would be infinite, and lse is known to 1e-3 only. */
static void check_large_logits(void)
{
    enum { VOCAB = 1500, TOKENS = 2 };
    static float logits[TOKENS * VOCAB], d_logits[TOKENS * VOCAB];
    const int64_t labels[TOKENS] = {3, 1400};
    float lse[TOKENS], loss;
    double want = 0, error = 0, size = 0;
    for (int i = 0; i < TOKENS * VOCAB; i++)
        logits[i] = (i < VOCAB ? 1e4f : -1e4f) + (float)(i % 7);
    struct op_shape shape = {.batch = 1, .seq = TOKENS, .vocab = VOCAB};
    struct step_state state = {.grad_scale = TOKENS};
    struct op_call call = {.kind = OP_CROSS_ENTROPY,
                           .pass = PASS_FORWARD,
                           .shape = &shape,
                           .state = &state,
                           .tensors = {{.at = logits, .n = TOKENS * VOCAB},
                                       {.at = (void *)labels, .n = TOKENS},
                                       {.at = lse, .n = TOKENS, .mode = OP_WRITE},
                                       {.at = &loss, .n = 1, .mode = OP_WRITE}}};
    op_trial_find(OP_CROSS_ENTROPY, PASS_FORWARD)(&call);
    call.tensors[3] = (struct op_tensor){.at = d_logits, .n = TOKENS * VOCAB, .mode = OP_WRITE};
    call.pass = PASS_DGRAD;
    op_trial_find(OP_CROSS_ENTROPY, PASS_DGRAD)(&call);
    for (int t = 0; t < TOKENS; t++) {
        const float *row = logits + t * VOCAB;
        double sum = 0;
        for (int i = 0; i < VOCAB; i++)
            sum += exp((double)row[i] - (double)row[labels[t]]);
        want += log(sum) / TOKENS;
        for (int i = 0; i < VOCAB; i++) {
            const double d = exp((double)row[i] - (double)row[labels[t]]) / sum - (i == labels[t]);
            error += pow((double)d_logits[t * VOCAB + i] - d, 2);
            size += d * d;
        }
    }
    is_near((double)loss, want, 1e-6, "the loss of large logits is as exact as of small ones");
    ok(sqrt(error / size) < 1e-3, "their gradient is as exact as lse, error %.1e",
       sqrt(error / size));
}

int main(void)
{
    uint64_t seed = tap_seed(1);
    for (uint32_t s = 0; s < sizeof all_sizes / sizeof *all_sizes; s++)
        for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++)
            op_trial_dtypes(&cases[c], &all_sizes[s], 60, &seed);
    check_large_logits();
    return tap_done();
}
