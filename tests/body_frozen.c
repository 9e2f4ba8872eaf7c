/*
 * Bodies of which some parameters are frozen: what autograd then leaves out, saves and frees.
 *
 * Cases by hand first; then random sets of trainable parameters, where whatever is frozen must make
 * no body longer, and a sound one stays sound.
 */
#include <string.h>

#include "src/arch/arch.h"
#include "src/text.h"
#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

static const struct dims small = {.layers = 2,
                                  .hidden = 64,
                                  .intermediate = 160,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 16,
                                  .vocab = 256};
enum { T = 128, H = 64, F = 160, Q = 64, KV = 32, V = 256 };
static const struct body_options plain = {
    1, T, DTYPE_BF16, OPS_TORCH_EAGER, NORM_FUSED, .ac = AC_NONE};

/* With a gradient of those parameters only that a pattern matches. */
static struct body_table train_only(const struct model *model, const char *pattern,
                                    const struct body_options *options)
{
    struct policy_options of_policy = policy_options_default();
    struct param_policy *policy;
    struct err err = {0};
    of_policy.freeze = "*";
    if (policy_resolve(model, &of_policy, &arena, &policy, &err))
        tap_bail(err.text);
    for (uint32_t i = 0; i < model->n_param; i++)
        policy[i].has_grad = text_matches(pattern, model->params[i].name);
    return bodies_with(model, policy, options, &arena);
}

static const struct body_pair *pair_at(const struct body_table *table, uint32_t piece)
{
    return &table->pairs[table->of_piece[piece]];
}

/* What a forward keeps besides its output, and its input if it frees that. */
static int64_t saved_bytes(const struct body_table *table, const struct body_pair *pair)
{
    const struct slot *slots = &table->slots[pair->slot];
    return table->bodies[pair->forward].net_bytes - (int64_t)slots[SLOT_OUT].bytes +
           (pair->in_dies_in_forward ? (int64_t)slots[SLOT_IN].bytes : 0);
}

static uint64_t flops(const struct body_table *table, const struct body_pair *pair)
{
    return table->bodies[pair->backward].flops;
}

/* ---- by hand; pieces: embedding, attention, MLP, attention, MLP, norm, head --------------- */

static void test_head_alone(const struct model *model)
{
    struct body_table table = train_only(model, "lm_head.*", &plain);
    int empty = 0, saved = 0;
    for (uint32_t p = 0; p < 6; p++) {
        const struct body_pair *pair = pair_at(&table, p);
        empty += table.bodies[pair->backward].n_tape == 0 && !pair->has_d_out;
        saved += saved_bytes(&table, pair) != 0 || (p > 0 && !pair->in_dies_in_forward);
    }
    is_int(empty, 6, "head alone: all before it goes forward only");
    is_int(saved, 0, "and saves nothing");
    is_int(flops(&table, pair_at(&table, 6)), 2 * T * H * V, "its own backward is one product");
    ok(pair_at(&table, 6)->in_dies_in_backward && !pair_at(&table, 6)->has_d_in,
       "for which its input is kept");
    ok(table.pairs[table.of_loss].has_d_in, "and the loss has a gradient to give");
}

static void test_nothing(const struct model *model)
{
    struct body_table table = train_only(model, "", &plain);
    const struct body_pair *loss = &table.pairs[table.of_loss];
    int backward = 0;
    for (uint32_t i = 0; i < table.n_pair; i++)
        backward += table.bodies[table.pairs[i].backward].n_tape > 0;
    is_int(backward, 0, "nothing is trained: no body has a backward");
    ok(loss->in_dies_in_forward && table.bodies[loss->forward].net_bytes == -2 * T * V,
       "and the loss keeps no probabilities");
}

/* A frozen embedding: the first block is computed from constants. */
static void test_first_block(const struct model *model)
{
    struct body_table table = train_only(model, "*layers*", &plain);
    const struct body_pair *first = pair_at(&table, 1), *second = pair_at(&table, 3);
    ok(!first->has_d_in && first->has_d_out && second->has_d_in && second->d_in_place,
       "frozen embedding: the second block hands a gradient on, the first does not");
    ok(first != second, "so that they are two variants");
    is_int(flops(&table, second) - flops(&table, first), 0,
           "its norm needs the gradients of all products all the same");
    is_int(table.bodies[second->backward].kernels - table.bodies[first->backward].kernels, 2,
           "what is left out is the norm's own and the residual's sum");
    is_int(table.bodies[first->backward].net_bytes - table.bodies[second->backward].net_bytes,
           -2 * T * H, "and the gradient of the output dies");

    table = train_only(model, "*layers.?.*_proj.*", &plain);
    first = pair_at(&table, 1);
    second = pair_at(&table, 3);
    is_int(flops(&table, second) - flops(&table, first), 2 * T * H * (Q + 2 * KV),
           "with the norm frozen three products are left out too");
    is_int(saved_bytes(&table, second) - saved_bytes(&table, first), 4 * T,
           "and no statistics are saved");
    ok(first->in_dies_in_forward && second->in_dies_in_backward, "nor is the input");
}

/* Gradients go through frozen weights without touching them. */
static void test_through_frozen(const struct model *model)
{
    struct body_table all = train_only(model, "*", &plain);
    struct body_table table = train_only(model, "*embed_tokens*", &plain);
    const struct body_pair *mlp = pair_at(&table, 2), *whole = pair_at(&all, 2);
    is_int(flops(&table, mlp), flops(&all, whole) / 2, "embedding alone: half of the products run");
    is_int(saved_bytes(&all, whole) - saved_bytes(&table, mlp), 2 * T * (H + F),
           "inputs of linear layers are not saved, factors and inputs of SiLU are");
    is_int(table.bodies[mlp->backward].net_bytes + saved_bytes(&table, mlp), -2 * T * H,
           "no gradient of a parameter is left, and the input is gone");
}

/* q alone in the first block: attention is gone through for the gradient of q. */
static void test_one_weight(const struct model *model)
{
    struct body_table table = train_only(model, "*layers.0.*q_proj*", &plain);
    const struct body_pair *attention = pair_at(&table, 1);
    const uint64_t of_q = flops(&table, attention);
    is_int(of_q, 2 * T * H * Q + 5 * 4 * T * T * 16 + 2 * T * Q * H,
           "q alone: o's input gradient, attention and one weight gradient");
    is_int(saved_bytes(&table, attention), 2 * T * (H + 4 * Q) + 4 * T * 4,
           "the norm's result and what attention wants are saved");
    table = train_only(model, "*layers.0.*v_proj*", &plain);
    is_int(of_q - flops(&table, pair_at(&table, 1)), 2 * T * H * (Q - KV),
           "v's weight is smaller by half");
}

static void test_checkpointed(const struct model *model)
{
    struct body_options full = plain;
    full.ac = AC_FULL;
    struct body_table table = train_only(model, "*layers.1.*", &full);
    const struct body_pair *first = &table.pairs[table.of_block[1]];
    ok(first->in_dies_in_forward && table.bodies[first->backward].n_tape == 0,
       "checkpointing: a frozen block is no region");
    table = train_only(model, "*layers.0.*o_proj*", &full);
    first = &table.pairs[table.of_block[1]];
    is_int(table.bodies[first->forward].net_bytes, 2 * T * H, "another keeps its input");
    ok(first->in_dies_in_backward, "to its end");
    const uint64_t again = 2 * T * (2 * H * H + 2 * H * KV + 2 * H * F) + 2 * 4 * T * T * 16;
    is_int(flops(&table, first), again + 2 * T * H * Q + 2 * T * 3 * H * F,
           "and all but its last product runs again, where o alone is trained");
}

/* ---- every set of one half, against requires_grad as autograd hands it forward ------------- */

struct expected {
    uint32_t kernels; /* of backward */
    uint64_t saved;   /* bytes, without the input */
    bool input_is_saved;
};

/* Of q, k, v, o and norm, those in the set are trained; x: the input has a gradient. */
static struct expected expect_attention(bool x, unsigned set)
{
    const bool gq = set & 1, gk = set & 2, gv = set & 4, go = set & 8, gn = set & 16;
    const bool n = x || gn, q = n || gq, k = n || gk, v = n || gv, attends = q || k || v;
    uint32_t linears = attends + go + 3u * n + gv + gk + gq;
    uint32_t between = 3u * attends + v + k + 3u * k + 3u * q;
    uint64_t saved = 2 * T * H * (gq || gk || gv) + 4 * T * n;
    saved += attends ? 2 * T * 4 * Q + 4 * T * 4 : 2 * T * Q * go;
    return (struct expected){linears + between + 2u * n + gn + 2u * x, saved, n};
}

/* Of gate, up, down and norm. */
static struct expected expect_mlp(bool x, unsigned set)
{
    const bool gg = set & 1, gu = set & 2, gd = set & 4, gn = set & 8;
    const bool n = x || gn, gate = n || gg, up = n || gu, product = gate || up;
    uint32_t linears = product + gd + 2u * n + gu + gg;
    uint32_t between = gate + up + gate;
    uint64_t factors = (uint64_t)gate + up + gate + gd; /* up, silu(gate), gate, the product */
    uint64_t saved = 2 * T * F * factors + 2 * T * H * (gg || gu) + 4 * T * n;
    return (struct expected){linears + between + n + gn + 2u * x, saved, n};
}

static bool is_as_expected(const struct body_table *table, uint32_t piece,
                           const struct expected *expected)
{
    const struct body_pair *pair = pair_at(table, piece);
    return table->bodies[pair->backward].kernels == expected->kernels &&
           saved_bytes(table, pair) == (int64_t)expected->saved &&
           pair->in_dies_in_backward == expected->input_is_saved &&
           pair_is_sound(table, pair, false);
}

/* The parameters of a piece in the order of its grad slots: of set, the i-th has bit i. */
static void test_every_set(const struct model *model, uint32_t piece, const char *name,
                           struct expected (*expect)(bool x, unsigned set))
{
    const uint32_t n_param = model->pieces[piece].n_param;
    struct param_policy *policy = arena_array(&arena, struct param_policy, model->n_param);
    int wrong = 0;
    memcpy(policy, default_policy(model, &arena), model->n_param * sizeof *policy);
    for (unsigned set = 0; set < 1u << (n_param + 1); set++) {
        const bool x = set >> n_param;
        const unsigned trained = set & ((1u << n_param) - 1);
        for (uint32_t i = 0; i < model->n_param; i++)
            policy[i].has_grad = x && i == 0; /* of the embedding */
        for (uint32_t i = 0; i < n_param; i++)
            policy[model->piece_params[model->pieces[piece].param + i]].has_grad = trained >> i & 1;
        const struct body_table table = bodies_with(model, policy, &plain, &arena);
        const struct expected expected = expect(x, trained);
        wrong += !is_as_expected(&table, piece, &expected);
    }
    is_int(wrong, 0, "%s: %u sets run and save what requires_grad says", name, 2u << n_param);
}

/* ---- any set ------------------------------------------------------------------------------ */

struct work {
    uint64_t kernels, moved, flops;
    int64_t saved, peak[2]; /* requested bytes above what was there before forward */
};

static struct work work_of(const struct body_table *table, const struct body_pair *pair)
{
    struct work work = {.saved = saved_bytes(table, pair)};
    for (int back = 0; back < 2; back++) {
        const struct body *body = &table->bodies[back ? pair->backward : pair->forward];
        work.kernels += body->kernels;
        work.flops += body->flops;
        work.peak[back] = (int64_t)body->rise_bytes + (back ? work.saved : 0);
        for (uint32_t i = 0; i < body->n_op; i++)
            work.moved += table->ops[body->op + i].bytes;
    }
    return work;
}

static bool is_less(const struct body_table *frozen, const struct body_table *table,
                    const uint32_t *of_frozen, const uint32_t *of, uint32_t piece)
{
    if (of[piece] == NO_PAIR)
        return of_frozen[piece] == NO_PAIR;
    const struct work less = work_of(frozen, &frozen->pairs[of_frozen[piece]]);
    const struct work more = work_of(table, &table->pairs[of[piece]]);
    return less.kernels <= more.kernels && less.moved <= more.moved && less.flops <= more.flops &&
           less.saved <= more.saved && less.peak[0] <= more.peak[0] && less.peak[1] <= more.peak[1];
}

/* Births of gradients on all tapes are those that the policy has, with their bytes. */
static bool grads_fit(const struct model *model, const struct param_policy *policy,
                      const struct body_table *table)
{
    for (uint32_t p = 0; p < model->n_piece; p++) {
        const struct piece *piece = &model->pieces[p];
        if (table->of_piece[p] == NO_PAIR)
            continue; /* a half of a checkpointed block */
        const struct slot *grads = &table->slots[pair_at(table, p)->slot + SLOT_GRAD];
        for (uint32_t i = 0; i < piece->n_param; i++) {
            const uint32_t param = model->piece_params[piece->param + i];
            const uint64_t bytes =
                model->params[param].numel * dtype_bytes((enum dtype)policy[param].grad);
            if (grads[i].bytes != (policy[param].has_grad ? bytes : 0))
                return false;
        }
    }
    return true;
}

/* gpt2 always learns positions and biases; kda may have neither embedding nor head. */
static struct dims random_dims(uint64_t *state, const struct arch *arch)
{
    struct dims dims = {.layers = 1 + tap_below(state, 3),
                        .intermediate = 1 + tap_below(state, 100),
                        .kv_heads = 1 + tap_below(state, 3),
                        .head_dim = 2 + tap_below(state, 20),
                        .vocab = 1 + tap_below(state, 300),
                        .default_seq = 32};
    dims.heads = dims.kv_heads * (1 + tap_below(state, 2));
    dims.hidden = dims.heads * dims.head_dim;
    if (arch == &arch_simple_llm)
        dims.heads = dims.kv_heads = dims.hidden / dims.head_dim;
    if (arch == &arch_kda) {
        dims.heads = dims.kv_heads;
        dims.vocab *= tap_below(state, 2);
        dims.flat = tap_below(state, 2);
    }
    if (arch == &arch_mpt || arch == &arch_gpt2) {
        dims.tied = tap_below(state, 2);
        dims.bias = arch == &arch_gpt2 || tap_below(state, 2);
        dims.positions = arch == &arch_gpt2 || tap_below(state, 2) ? 32 : 0;
    }
    return dims;
}

static void freeze_some(const struct model *model, struct param_policy *policy, uint64_t *state)
{
    const uint64_t of_8 = tap_below(state, 9);
    for (uint32_t i = 0; i < model->n_param; i++)
        policy[i].has_grad &= tap_below(state, 8) < of_8;
}

static struct body_options random_options(uint64_t *state, const struct arch *arch)
{
    const struct profile *profile = &profiles[tap_below(state, PROFILE_N)];
    return (struct body_options){
        .batch = 1 + tap_below(state, 2),
        .seq = 1 + tap_below(state, 32),
        .compute = tap_below(state, 4) ? DTYPE_BF16 : DTYPE_FP32,
        .ops = arch->native_bodies || profile->ops != OPS_NATIVE ? profile->ops : OPS_TORCH_EAGER,
        .norm = arch->norm_is_fused ? NORM_FUSED : profile->norm,
        .ac = (enum checkpointing)tap_below(state, AC_N)};
}

static void test_random_sets(void)
{
    enum { ROUNDS = 1500 };
    static const struct arch *const families[] = {&arch_llama, &arch_kda, &arch_mpt, &arch_gpt2,
                                                  &arch_simple_llm};
    uint64_t state = tap_seed(20261129);
    int unsound = 0, unfit = 0, more = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const struct arch *arch = families[tap_below(&state, sizeof families / sizeof *families)];
        const struct dims dims = random_dims(&state, arch);
        const struct model model = model_of(arch, &dims, &arena);
        const struct body_options options = random_options(&state, arch);
        struct param_policy *policy = arena_array(&arena, struct param_policy, model.n_param);
        memcpy(policy, default_policy(&model, &arena), model.n_param * sizeof *policy);
        freeze_some(&model, policy, &state);
        const struct body_table table = bodies_with(&model, policy, &options, &arena);
        for (uint32_t p = 0; p < table.n_pair; p++)
            unsound += !pair_is_sound(&table, &table.pairs[p], dims.tied);
        unfit += !grads_fit(&model, policy, &table);

        policy[tap_below(&state, model.n_param)].has_grad = false;
        const struct body_table frozen = bodies_with(&model, policy, &options, &arena);
        for (uint32_t p = 0; p < model.n_piece; p++)
            more += !is_less(&frozen, &table, frozen.of_piece, table.of_piece, p) +
                    !is_less(&frozen, &table, frozen.of_block, table.of_block, p);
        arena_reset(&arena);
    }
    is_int(unsound, 0, "of %d sets each slot is born and dies once", ROUNDS);
    is_int(unfit, 0, "gradients are born of exactly the trainable parameters");
    is_int(more, 0, "one more that is frozen makes nothing longer, larger or later");
}

int main(void)
{
    arena_init(&arena);
    const struct model model = model_of(&arch_llama, &small, &arena);
    test_head_alone(&model);
    test_nothing(&model);
    test_first_block(&model);
    test_through_frozen(&model);
    test_one_weight(&model);
    test_checkpointed(&model);
    test_every_set(&model, 1, "attention", expect_attention);
    test_every_set(&model, 2, "mlp", expect_mlp);
    test_random_sets();
    arena_release(&arena);
    return tap_done();
}
