/*
 * Attention on random operands against the double reference: around the border of a block, heads
 * that share keys, one head, one token, several sequences, rotated and not, three tensors and one.
 */
#include "tests/op_trial.h"

#include "tests/tap.h"

static const struct op_case apart = {
    "attention",    reference_attention,         {"TQ", "TK", "TK"},
    {"TQ", ".TN"},  .forward = "I0 I1 I2 O0 O1", .dgrad = "I0 I1 I2 O0 O1 D g0 g1 g2",
    .kind = OP_SDPA};
static const struct op_case packed = {
    "packed attention", reference_packed,          {"TW"},
    {"TQ", ".TN"},      .forward = "I0 - - O0 O1", .dgrad = "I0 - - O0 O1 D g0 - -",
    .kind = OP_SDPA};
static const struct op_case sharp = {
    "attention with large scores",
    reference_attention,
    {"^TQ", "^TK", "TK"},
    {"TQ", ".TN"},
    .forward = "I0 I1 I2 O0 O1",
    .dgrad = "I0 I1 I2 O0 O1 D g0 g1 g2",
    .kind = OP_SDPA,
    .bound = 1e-4 /* scores of 80 are known to 5e-6; small gradients are what is left of them */};

static const struct op_sizes all_sizes[] = {
    {.batch = 1, .seq = 1, .heads = 1, .kv_heads = 1, .head_dim = 4, .rope_base = 10000},
    {.batch = 2, .seq = 17, .heads = 4, .kv_heads = 2, .head_dim = 8, .rope_base = 10000},
    {.batch = 1, .seq = 63, .heads = 2, .kv_heads = 1, .head_dim = 6},
    {.batch = 1, .seq = 64, .heads = 2, .kv_heads = 2, .head_dim = 4, .rope_base = 500},
    {.batch = 2, .seq = 65, .heads = 1, .kv_heads = 1, .head_dim = 10},
    {.batch = 1, .seq = 150, .heads = 3, .kv_heads = 1, .head_dim = 16, .rope_base = 10000},
};

int main(void)
{
    uint64_t seed = tap_seed(1);
    for (uint32_t s = 0; s < sizeof all_sizes / sizeof *all_sizes; s++) {
        struct op_sizes sizes = all_sizes[s];
        sizes.vocab = 1;
        op_trial_dtypes(&apart, &sizes, 20, &seed);
        op_trial_dtypes(&packed, &sizes, 20, &seed);
        op_trial(&sharp, &sizes, DTYPE_FP32, 20, &seed);
    }
    return tap_done();
}
