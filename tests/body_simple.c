/*
 * Bodies of simple-llm: a projection that is computed and has no gradient, gate and up in one.
 */
#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

static const struct dims dims = {.layers = 2,
                                 .hidden = 256,
                                 .intermediate = 682,
                                 .heads = 4,
                                 .kv_heads = 4,
                                 .head_dim = 64,
                                 .vocab = 1000};
enum { T = 64, H = 256, F = 682 };

static struct body_table bodies(enum checkpointing ac)
{
    const struct body_options options = {2, 32, DTYPE_BF16, OPS_TORCH_EAGER, NORM_FUSED, .ac = ac};
    return default_bodies(&arch_simple_llm, &dims, &options, &arena);
}

static void test_unused_projection(void)
{
    const struct body_table table = bodies(AC_NONE);
    const struct body *forward = body_of(&table, BODY_ATTENTION, false);
    const struct body *backward = body_of(&table, BODY_ATTENTION, true);
    is_int(forward->flops, 2 * T * 4 * H * H, "queries, keys and values are computed");
    is_int(backward->flops, 2 * 2 * T * H * H, "and have no backward");
    is_int(slot_of(&table, BODY_ATTENTION, SLOT_GRAD)->bytes, 0, "nor has their weight a gradient");
    is_int(forward->net_bytes, 2 * T * H + 2 * T * H + 8 * T,
           "of attention the norm's result and statistics are saved");
    is_int(forward->rise_bytes - forward->net_bytes, 2 * T * 3 * H,
           "what nobody uses is held beside the branch, and gone after");
}

/* Views of one matrix share its storage, and its gradient is made of two. */
static void test_gate_and_up(void)
{
    const struct body_table table = bodies(AC_NONE);
    const struct body *forward = body_of(&table, BODY_MLP, false);
    const struct body *backward = body_of(&table, BODY_MLP, true);
    is_int(forward->net_bytes, 2 * T * H + 2 * T * H + 8 * T + 2 * T * 4 * F,
           "of the MLP both halves, the active one and the product are saved");
    is_int(backward->flops, 2 * forward->flops, "each linear has two products in backward");
    is_int(forward->kernels, 1 + 2 + 2 + 1, "norm, linears, SiLU and product, residual");
    is_int(backward->kernels, 4 + 2 + 1 + 1 + 2 + 1,
           "backward: linears, products, SiLU, concatenation, norm, residual");
}

static void test_sound(void)
{
    int unsound = 0;
    for (int ac = 0; ac < AC_N; ac++) {
        const struct body_table table = bodies((enum checkpointing)ac);
        for (uint32_t p = 0; p < table.n_pair; p++)
            unsound += !pair_is_sound(&table, &table.pairs[p], false);
    }
    is_int(unsound, 0, "each slot is born and dies once");
}

int main(void)
{
    arena_init(&arena);
    test_unused_projection();
    test_gate_and_up();
    test_sound();
    arena_release(&arena);
    return tap_done();
}
