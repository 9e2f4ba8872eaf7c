/*
 * Bodies of layers with adapters: every set of layers of a llama's block against what autograd runs
 * and saves of y = W x + s B (A x), found from requires_grad tensor by tensor; then whole sequences
 * of operators, and families with other linear layers.
 */
#include <string.h>

#include "src/arch/arch.h"
#include "src/lora.h"
#include "src/text.h"
#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

static const struct dims small = {.layers = 1,
                                  .hidden = 64,
                                  .intermediate = 160,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 16,
                                  .vocab = 256};
enum { T = 128, H = 64, F = 160, Q = 64, KV = 32, R = 8 };
static const struct body_options plain = {
    1, T, DTYPE_BF16, OPS_TORCH_EAGER, NORM_FUSED, .ac = AC_NONE};

static struct model adapted(const struct arch *arch, const struct dims *dims, const char *targets)
{
    struct model model = model_of(arch, dims, &arena);
    struct err err = {0};
    if (lora_add(&model, arena_printf(&arena, "r=8,targets=%s", targets), &arena, &err))
        tap_bail(err.text);
    return model;
}

/* x: the embedding is trained beside the adapters, so that the block's input has a gradient. */
static struct body_table bodies(const struct model *model, bool x,
                                const struct body_options *options)
{
    struct param_policy *policy = arena_array(&arena, struct param_policy, model->n_param);
    memcpy(policy, default_policy(model, &arena), model->n_param * sizeof *policy);
    policy[0].has_grad = x;
    return bodies_with(model, policy, options, &arena);
}

/* ---- every set of layers ------------------------------------------------------------------ */

enum {
    Q_PROJ = 1,
    K_PROJ = 2,
    V_PROJ = 4,
    O_PROJ = 8,
    GATE_PROJ = 16,
    UP_PROJ = 32,
    DOWN_PROJ = 64
};
static const char *const layers[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                     "gate_proj", "up_proj", "down_proj"};

struct expected {
    uint32_t kernels; /* of backward */
    uint64_t saved;   /* bytes, without the input */
};

/* Of one layer: scale, gradients of B and of what it reads, gradient of A; and of x, with its sum. */
static uint32_t adapter(bool there, bool x)
{
    return there ? 4 + 2u * x : 0;
}

static struct expected expect_attention(bool x, unsigned set)
{
    const bool gq = set & Q_PROJ, gk = set & K_PROJ, gv = set & V_PROJ, go = set & O_PROJ;
    const bool q = x || gq, k = x || gk, v = x || gv, attends = q || k || v;
    const uint32_t adapters =
        adapter(gq, x) + adapter(gk, x) + adapter(gv, x) + adapter(go, attends);
    const uint32_t linears = attends + 3u * x, sums_and_norm = (2u + 2u) * x;
    const uint32_t between = 3u * attends + v + k + 3u * k + 3u * q;
    uint64_t saved = 2 * T * H * (gq || gk || gv) + 4 * T * x;
    saved += attends ? 2 * T * 4 * Q + 4 * T * 4 : 2 * T * Q * go;
    saved += 2 * T * R * ((uint64_t)gq + gk + gv + go);
    return (struct expected){linears + between + sums_and_norm + adapters, saved};
}

/* Whatever is adapted in attention gives the MLP's input a gradient. */
static struct expected expect_mlp(bool x, unsigned set)
{
    const bool gg = set & GATE_PROJ, gu = set & UP_PROJ, gd = set & DOWN_PROJ;
    const bool n = x || (set & (Q_PROJ | K_PROJ | V_PROJ | O_PROJ));
    const bool gate = n || gg, up = n || gu, product = gate || up;
    const uint32_t adapters = adapter(gg, n) + adapter(gu, n) + adapter(gd, product);
    const uint32_t linears = product + 2u * n, between = gate + up + gate, sum_and_norm = 3u * n;
    uint64_t saved = 2 * T * F * ((uint64_t)gate + up + gate + gd) + 2 * T * H * (gg || gu);
    saved += 4 * T * n + 2 * T * R * ((uint64_t)gg + gu + gd);
    return (struct expected){linears + between + sum_and_norm + adapters, saved};
}

static int64_t saved_bytes(const struct body_table *table, const struct body_pair *pair)
{
    const struct slot *slots = &table->slots[pair->slot];
    return table->bodies[pair->forward].net_bytes - (int64_t)slots[SLOT_OUT].bytes +
           (pair->in_dies_in_forward ? (int64_t)slots[SLOT_IN].bytes : 0);
}

static bool is_as_expected(const struct body_table *table, uint32_t piece, struct expected expected)
{
    const struct body_pair *pair = &table->pairs[table->of_piece[piece]];
    return table->bodies[pair->backward].kernels == expected.kernels &&
           saved_bytes(table, pair) == (int64_t)expected.saved && pair_is_sound(table, pair, false);
}

static const char *targets_of(unsigned set)
{
    const char *targets = "";
    for (unsigned i = 0; i < sizeof layers / sizeof *layers; i++)
        if (set >> i & 1)
            targets = arena_printf(&arena, "%s%s%s", targets, *targets ? ":" : "", layers[i]);
    return targets;
}

static void test_every_set(void)
{
    int wrong = 0, unsound = 0;
    for (unsigned set = 1; set < 128; set++)
        for (unsigned x = 0; x < 2; x++) {
            const struct model model = adapted(&arch_llama, &small, targets_of(set));
            const struct body_table table = bodies(&model, x, &plain);
            wrong += !is_as_expected(&table, 1, expect_attention(x, set)) +
                     !is_as_expected(&table, 2, expect_mlp(x, set));
            for (int ac = AC_FULL; ac < AC_N; ac++) {
                struct body_options region = plain;
                region.ac = (enum checkpointing)ac;
                const struct body_table again = bodies(&model, x, &region);
                for (uint32_t p = 0; p < again.n_pair; p++)
                    unsound += !pair_is_sound(&again, &again.pairs[p], false);
            }
            arena_reset(&arena);
        }
    is_int(wrong, 0, "127 sets of adapted layers run and save what requires_grad says");
    is_int(unsound, 0, "and checkpointed each slot is born and dies once");
}

/* ---- whole sequences ---------------------------------------------------------------------- */

static const char *operators(const struct body_table *table, uint32_t piece, bool backward)
{
    const struct body_pair *pair = &table->pairs[table->of_piece[piece]];
    const struct body *body = &table->bodies[backward ? pair->backward : pair->forward];
    const char *names = "";
    for (uint32_t i = 0; i < body->n_op; i++)
        names = arena_printf(&arena, "%s%s%s", names, *names ? " " : "",
                             op_kind_name((enum op_kind)table->ops[body->op + i].kind));
    return names;
}

static void test_sequence(void)
{
    const struct model model = adapted(&arch_llama, &small, "down_proj:gate_proj");
    const struct body_table table = bodies(&model, true, &plain);
    const struct body *forward = &table.bodies[table.pairs[table.of_piece[2]].forward];
    is_str(operators(&table, 2, false), "rms mm mm mm mul add silu mm mul mm mm mm mul add add",
           "forward: gate and down in five steps each, up in one");
    is_str(operators(&table, 2, true),
           "mul mm mm mm mm mm add mul mm silu mul mm mm mm mm add mm add rms add",
           "backward: down's adapter, down, up, gate's adapter, gate");
    is_int(forward->flops, 2 * T * (3 * H * F + 2 * R * (H + F)),
           "an adapter's products are those of its two matrices");
}

/* A mean of what is left: the products of forward and backward, each adapter's six. */
static void test_families(void)
{
    const struct dims dims = {.layers = 1,
                              .hidden = 64,
                              .intermediate = 256,
                              .heads = 4,
                              .kv_heads = 4,
                              .head_dim = 16,
                              .vocab = 256,
                              .positions = T,
                              .tied = true,
                              .bias = true};
    const struct arch *const families[] = {&arch_gpt2, &arch_mpt};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct model model = adapted(families[i], &dims, "*");
        const struct body_table table = bodies(&model, true, &plain);
        const struct body_pair *block = &table.pairs[table.of_block[1]];
        const uint64_t base = 2 * T * 12 * H * H, attention = 2 * 4 * T * T * 16;
        const uint64_t adapters = 2 * T * R * (H + 3 * H + H + H + 2 * (H + 4 * H));
        is_int(table.bodies[block->forward].flops, base + attention + adapters,
               "%s, all layers: flops of forward", families[i]->name);
        is_int(table.bodies[block->backward].flops, base + 5 * attention / 2 + 2 * adapters,
               "%s: of backward, without the weights' own", families[i]->name);
        ok(pair_is_sound(&table, block, true), "%s: each slot is born and dies once",
           families[i]->name);
    }
}

/* With biases only an adapter's products are of the kind that selective checkpointing keeps. */
static void test_selective(void)
{
    struct dims dims = small;
    dims.kv_heads = dims.heads;
    dims.tied = dims.bias = true;
    dims.positions = T;
    struct body_options op = plain;
    op.ac = AC_OP;
    const struct model model = adapted(&arch_mpt, &dims, "Wqkv");
    const struct body_table table = bodies(&model, true, &op);
    const struct body_pair *block = &table.pairs[table.of_block[1]];
    is_int(table.bodies[block->forward].net_bytes, 2 * T * H + 2 * T * Q + 4 * T * 4 + 2 * T * R,
           "of an adapted layer with a bias A's product is kept, beside attention");
}

int main(void)
{
    arena_init(&arena);
    test_every_set();
    test_sequence();
    test_families();
    test_selective();
    arena_release(&arena);
    return tap_done();
}
