/*
 * Operators of KDA on random operands against the double reference: sequences below, at and above a
 * chunk of the delta rule, one token, one head, several sequences.
 */
#include "tests/op_trial.h"

#include "tests/tap.h"

static const struct op_case cases[] = {
    {"short convolution",
     reference_short_conv,
     {"TQ", "Q4"},
     {"TQ"},
     .forward = "I0 I1 O0",
     .dgrad = "I0 I1 D g0",
     .wgrad = "I0 I1 D G1",
     .kind = OP_SHORT_CONV},
    {"l2 norm",
     reference_l2_norm,
     {"TQ"},
     {".TQ", ".TN"},
     .forward = "I0 O0 O1",
     .dgrad = "O0 O1 D g0",
     .kind = OP_L2_NORM},
    {"sigmoid",
     reference_sigmoid,
     {"TN"},
     {".TN"},
     .forward = "I0 O0",
     .dgrad = "O0 D g0",
     .kind = OP_SIGMOID},
    {"decay",
     reference_decay,
     {"TQ", ".N", ".Q"},
     {".TQ"},
     .forward = "I0 I1 I2 O0",
     .dgrad = "I0 I1 I2 D g0",
     .wgrad = "I0 I1 I2 D G1 G2",
     .kind = OP_DECAY},
    {"delta rule",
     reference_delta_rule,
     {".TQ", ".~TQ", "TQ", ".-TQ", ".+TN"},
     {".TQ", ".BCNDD"},
     .forward = "I0 I1 I2 I3 I4 O0 O1",
     .dgrad = "I0 I1 I2 I3 I4 O1 D g0 g1 g2 g3 g4",
     .kind = OP_DELTA_RULE},
    {"gated rms",
     reference_gated_rms,
     {".TQ", "D", "TQ"},
     {"TQ", ".TN"},
     .forward = "I0 I1 I2 O0 O1",
     .dgrad = "I0 I1 I2 O1 D g0 g2",
     .wgrad = "I0 I2 O1 D G1",
     .kind = OP_GATED_RMS},
};

static const struct op_sizes all_sizes[] = {
    {.batch = 20, .seq = 1, .heads = 1, .kv_heads = 1, .head_dim = 4, .vocab = 1},
    {.batch = 2, .seq = 3, .heads = 2, .kv_heads = 2, .head_dim = 9, .vocab = 1},
    {.batch = 2, .seq = 63, .heads = 1, .kv_heads = 1, .head_dim = 8, .vocab = 1},
    {.batch = 1, .seq = 64, .heads = 3, .kv_heads = 3, .head_dim = 4, .vocab = 1},
    {.batch = 2, .seq = 150, .heads = 2, .kv_heads = 2, .head_dim = 16, .vocab = 1},
};

int main(void)
{
    uint64_t seed = tap_seed(1);
    for (uint32_t s = 0; s < sizeof all_sizes / sizeof *all_sizes; s++)
        for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++)
            op_trial_dtypes(&cases[c], &all_sizes[s], 30, &seed);
    return tap_done();
}
