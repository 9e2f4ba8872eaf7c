/*
 * Blocks of parameters alone: what they hold by dtype of compute, and bodies that launch nothing.
 */
#include <string.h>

#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

static const struct body_options options = {1,          2048,         DTYPE_BF16, OPS_TORCH_EAGER,
                                            NORM_FUSED, .ac = AC_FULL};

static struct model open_or_bail(const char *name)
{
    struct model model;
    struct err err = {0};
    if (model_open(name, 0, &arena, &model, &err))
        tap_bail(err.text);
    return model;
}

static uint64_t elements(const struct model *model, bool fp32)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < model->n_param; i++)
        sum += model->params[i].keep_fp32 == fp32 ? model->params[i].numel : 0;
    return sum;
}

static void test_model(const char *name, uint32_t n_param, uint64_t bf16, uint64_t fp32)
{
    const struct model model = open_or_bail(name);
    const struct body_table table =
        bodies_with(&model, default_policy(&model, &arena), &options, &arena);
    const struct body_pair *block = pair_of(&table, BODY_PARAMETERS);
    is_int(model.n_param, n_param, "%s has %u parameters", name, n_param);
    is_int(model.n_piece, 1, "in one block");
    is_int(elements(&model, false), bf16, "of which these compute in BF16");
    is_int(elements(&model, true), fp32, "and these in FP32");
    is_int(table.n_op, 0, "nothing is launched");
    is_int(table.bodies[block->forward].net_bytes, 2, "forward leaves a number");
    is_int(table.bodies[block->backward].net_bytes, 2 * bf16 + 4 * fp32 - 2,
           "backward leaves the gradients in its place");
    ok(pair_is_sound(&table, block, false) && !block->has_d_in && block->has_d_out,
       "each born once, and none of what the model is given");
}

/* The second block passes a gradient on to the first; frozen, it does so still. */
static void test_two_blocks(void)
{
    struct dims dims = open_or_bail("pack-50m").dims;
    dims.layers = 2;
    const struct model model = model_of(&arch_pack, &dims, &arena);
    struct param_policy *policy = arena_array(&arena, struct param_policy, model.n_param);
    memcpy(policy, default_policy(&model, &arena), model.n_param * sizeof *policy);
    for (uint32_t i = model.n_param / 2; i < model.n_param; i++)
        policy[i].has_grad = false;
    const struct body_table table = bodies_with(&model, policy, &options, &arena);
    const struct body_pair *second = &table.pairs[table.of_piece[1]];
    const struct body_pair *loss = &table.pairs[table.of_loss];
    ok(second->has_d_in && pair_is_sound(&table, second, false), "a frozen block passes on");
    is_int(table.bodies[second->backward].net_bytes, 0, "and has no gradients of its own");
    ok(second->in_dies_in_forward && loss->in_dies_in_forward && loss->has_d_in,
       "numbers between blocks end where they are read");
}

int main(void)
{
    arena_init(&arena);
    test_model("pack-50m", 10, 50331648, 6160);
    test_model("copyin-500", 500, 490 * 2048 * 1024, 10 * 1024);
    test_two_blocks();
    arena_release(&arena);
    return tap_done();
}
