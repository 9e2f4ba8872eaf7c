/*
 * Bodies of gpt2 and mpt: bytes moved (COST 3, list (a)), what is saved (MEMORY 3.4), operations,
 * gradients in the order of the pieces, tied weights, learned positions, and steps built of them.
 */
#include "src/arch/arch.h"
#include "src/verify.h"
#include "tests/body_make.h"
#include "tests/make.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;

static const struct dims gpt = {.layers = 2,
                                .hidden = 768,
                                .intermediate = 3072,
                                .heads = 12,
                                .kv_heads = 12,
                                .head_dim = 64,
                                .vocab = 50257,
                                .positions = 1024,
                                .tied = true,
                                .bias = true};
enum { BATCH = 3, SEQ = 640 };
static const uint64_t tokens = BATCH * SEQ;

static struct body_table bodies(const struct dims *dims, uint64_t batch, enum ops_profile ops,
                                enum checkpointing ac)
{
    const struct body_options options = {batch, SEQ, DTYPE_BF16, ops, NORM_FUSED, .ac = ac};
    return default_bodies(&arch_mpt, dims, &options, &arena);
}

static uint64_t moved_bytes(const struct body_table *table, enum body_kind kind, bool backward)
{
    const struct body *body = body_of(table, kind, backward);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < body->n_op; i++)
        if (table->ops[body->op + i].pass != PASS_RECOMPUTE)
            sum += table->ops[body->op + i].bytes;
    return sum;
}

static const struct profile_of {
    const char *name;
    enum ops_profile ops;
    uint64_t forward, backward, biases; /* bytes per token and hidden element */
    uint32_t forward_kernels, backward_kernels;
} profiles_of[] = {
    /* linears, attention, two norms, GELU, residuals; backward: twice the linears, three kernels of
       attention, two a norm, GELU, concatenation, sums of residuals, four biases */
    {"eager", OPS_TORCH_EAGER, 36, 86, 18, 4 + 1 + 2 + 1 + 2, 8 + 3 + 4 + 1 + 1 + 2 + 4},
    /* norms and residuals are fused: 16 d and 16 d in place of 20 d and 32 d */
    {"compile", OPS_TORCH_COMPILE, 32, 70, 18, 4 + 1 + 2 + 1 + 2, 8 + 3 + 2 + 1 + 1 + 4},
};

static struct dims unbiased_gpt(void)
{
    struct dims dims = gpt;
    dims.bias = false;
    return dims;
}

static void test_bytes_and_kernels(const struct profile_of *profile)
{
    for (int ac = 0; ac < AC_N; ac++) {
        struct body_table table = bodies(&gpt, BATCH, profile->ops, ac);
        is_int(moved_bytes(&table, BODY_BLOCK, false), profile->forward * tokens * gpt.hidden,
               "%s_%s: bytes of list (a), forward", profile->name, ac_names[ac]);
        is_int(moved_bytes(&table, BODY_BLOCK, true), profile->backward * tokens * gpt.hidden,
               "%s_%s: and backward", profile->name, ac_names[ac]);
    }
    const struct dims unbiased = unbiased_gpt();
    struct body_table table = bodies(&gpt, BATCH, profile->ops, AC_NONE);
    struct body_table without = bodies(&unbiased, BATCH, profile->ops, AC_NONE);
    is_int(moved_bytes(&table, BODY_BLOCK, true) - moved_bytes(&without, BODY_BLOCK, true),
           profile->biases * tokens * gpt.hidden, "%s: the biases' share", profile->name);
    is_int(body_of(&table, BODY_BLOCK, false)->kernels, profile->forward_kernels,
           "%s: launches of forward", profile->name);
    is_int(body_of(&table, BODY_BLOCK, true)->kernels, profile->backward_kernels,
           "%s: launches of backward", profile->name);
    is_int(body_of(&without, BODY_BLOCK, true)->kernels, profile->backward_kernels - 4,
           "%s: four fewer without biases", profile->name);
}

/* 32 T h + 16 T + 4 T heads with the block's input, which is not counted here. */
static void test_saved(const struct profile_of *profile)
{
    struct body_table table = bodies(&gpt, BATCH, profile->ops, AC_NONE);
    const struct events events = events_of(&table, BODY_BLOCK);
    long long out = (long long)slot_of(&table, BODY_BLOCK, SLOT_OUT)->bytes;
    is_int(extremes_of(&events, false, false).net - out,
           tokens * (30 * gpt.hidden + 16 + 4 * gpt.heads), "%s: a block saves 16 U and statistics",
           profile->name);
    ok(pair_of(&table, BODY_BLOCK)->in_dies_in_backward, "%s: its input with it", profile->name);
    table = bodies(&gpt, BATCH, profile->ops, AC_FULL);
    is_int(body_of(&table, BODY_BLOCK, false)->net_bytes, 2 * tokens * gpt.hidden,
           "%s: checkpointed, only the input", profile->name);
}

/*
 * Selective checkpointing keeps products in turn, of qkv, o, up and down the first and the third; but
 * with biases none of them, since torchtitan does not name that operator.
 */
static void test_flops(const struct profile_of *profile, const struct dims *dims,
                       enum checkpointing ac)
{
    const uint64_t h = gpt.hidden, linears = 2 * tokens * 12 * h * h, down = 2 * tokens * 4 * h * h;
    const uint64_t attention = 2 * BATCH * gpt.heads * (uint64_t)SEQ * SEQ * gpt.head_dim;
    const uint64_t products = dims->bias ? linears - down : 2 * tokens * h * h;
    const uint64_t again = ac == AC_FULL ? linears - down + attention : ac == AC_OP ? products : 0;
    struct body_table table = bodies(dims, BATCH, profile->ops, ac);
    is_int(body_of(&table, BODY_BLOCK, false)->flops, linears + attention,
           "%s_%s: flops of forward", profile->name, ac_names[ac]);
    is_int(body_of(&table, BODY_BLOCK, true)->flops, 2 * linears + 5 * attention / 2 + again,
           "%s_%s: flops of backward", profile->name, ac_names[ac]);
}

/* ---- soundness ---------------------------------------------------------------------------- */

/* Grad slot i of a piece has the size of its i-th parameter. */
static bool grads_fit(const struct model *model, const struct body_table *table)
{
    for (uint32_t p = 0; p < model->n_piece; p++) {
        const struct piece *piece = &model->pieces[p];
        if (pair_of(table, piece->kind)->n_grad != piece->n_param)
            return false;
        for (uint32_t i = 0; i < piece->n_param; i++)
            if (slot_of(table, piece->kind, SLOT_GRAD + i)->bytes !=
                2 * model->params[model->piece_params[piece->param + i]].numel)
                return false;
    }
    return true;
}

static struct dims random_dims(uint64_t *state)
{
    struct dims dims = {.layers = 1 + tap_below(state, 4),
                        .intermediate = 1 + tap_below(state, 300),
                        .kv_heads = 1 + tap_below(state, 4),
                        .head_dim = 1 + tap_below(state, 40),
                        .vocab = 1 + tap_below(state, 500),
                        .positions = tap_below(state, 2) * (64 + tap_below(state, 100)),
                        .default_seq = 64,
                        .tied = tap_below(state, 2),
                        .bias = tap_below(state, 2)};
    dims.heads = dims.kv_heads * (1 + tap_below(state, 3));
    dims.hidden = dims.heads * dims.head_dim;
    return dims;
}

static void test_random_shapes(void)
{
    enum { ROUNDS = 300 };
    uint64_t state = tap_seed(20260118);
    int unsound = 0, unfit = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const struct dims dims = random_dims(&state);
        const struct body_options options = {1 + tap_below(&state, 3),
                                             1 + tap_below(&state, 64),
                                             DTYPE_BF16,
                                             tap_below(&state, OPS_NATIVE),
                                             NORM_FUSED,
                                             .ac = AC_NONE};
        struct body_options region = options;
        region.ac = (enum checkpointing)(AC_FULL + tap_below(&state, AC_N - AC_FULL));
        const struct body_table table = default_bodies(&arch_mpt, &dims, &options, &arena);
        const struct body_table checkpointed = default_bodies(&arch_mpt, &dims, &region, &arena);
        for (uint32_t p = 0; p < table.n_pair; p++)
            unsound += !pair_is_sound(&table, &table.pairs[p], dims.tied);
        for (uint32_t p = 0; p < checkpointed.n_pair; p++)
            unsound += !pair_is_sound(&checkpointed, &checkpointed.pairs[p], dims.tied);
        struct model model;
        arch_mpt.build(&dims, &arena, &model, NULL);
        unfit += !grads_fit(&model, &table);
        arena_reset(&arena);
    }
    is_int(unsound, 0, "of %d models each slot is born and dies once", ROUNDS);
    is_int(unfit, 0, "and gradients have the sizes of their parameters");
}

/* ---- embedding and head ------------------------------------------------------------------- */

static void test_embedding(void)
{
    const uint64_t t = tokens, h = gpt.hidden, v = gpt.vocab, p = gpt.positions;
    struct dims untied = gpt;
    untied.tied = false;
    struct body_table table = bodies(&gpt, BATCH, OPS_TORCH_EAGER, AC_NONE);
    struct body_table apart = bodies(&untied, BATCH, OPS_TORCH_EAGER, AC_NONE);
    struct body_table one = bodies(&gpt, 1, OPS_TORCH_EAGER, AC_NONE);
    is_int(body_of(&table, BODY_EMBEDDING, false)->net_bytes, 2 * t * h,
           "embedding leaves the sum of two rows a token");
    is_int(body_of(&table, BODY_EMBEDDING, false)->rise_bytes, 4 * t * h + 2 * SEQ * h,
           "and holds both beside it");
    is_int(body_of(&table, BODY_EMBEDDING, true)->net_bytes,
           (long long)(2 * p * h) - (long long)(2 * t * h),
           "its backward leaves the positions' gradient, the table's is the head's");
    is_int(body_of(&table, BODY_EMBEDDING, true)->rise_bytes, 2 * p * h + 2 * v * h + 16 * t,
           "a second one of the table is held while it is added");
    is_int(body_of(&apart, BODY_EMBEDDING, true)->net_bytes,
           (long long)(2 * p * h + 2 * v * h) - (long long)(2 * t * h), "untied it stays");
    is_int(moved_bytes(&table, BODY_EMBEDDING, true) - moved_bytes(&apart, BODY_EMBEDDING, true),
           6 * v * h, "the sum reads two and writes one");
    is_int(body_of(&table, BODY_EMBEDDING, true)->kernels -
               body_of(&one, BODY_EMBEDDING, true)->kernels,
           1, "gradients of positions are summed over several sequences only");
    is_int(body_of(&table, BODY_HEAD, true)->rise_bytes, 2 * t * h + 2 * v * h,
           "the head bears the tied weight's gradient");
}

/* ---- steps -------------------------------------------------------------------------------- */

/* The verifier agrees with every step of tied and untied models, whatever their units. */
static void test_steps(void)
{
    enum { ROUNDS = 300 };
    uint64_t state = tap_seed(20260119);
    int faults = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct dims dims;
        struct plan_options options;
        struct made made;
        struct fault fault;
        struct err err = {0};
        const char *family = make_random_tied(&state, &dims, &options);
        make_init_family(&made, family, &dims, &options);
        if (verify_program(&made.program, &made.arena, &fault, &err)) {
            tap_note("%s of %s: %s", family, options.units, err.text);
            faults++;
        }
        make_release(&made);
    }
    is_int(faults, 0, "%d steps are found to be in order", ROUNDS);
}

int main(void)
{
    const struct dims unbiased = unbiased_gpt();
    arena_init(&arena);
    for (size_t i = 0; i < LENGTH(profiles_of); i++) {
        test_bytes_and_kernels(&profiles_of[i]);
        test_saved(&profiles_of[i]);
        for (int ac = 0; ac < AC_N; ac++) {
            test_flops(&profiles_of[i], &gpt, (enum checkpointing)ac);
            test_flops(&profiles_of[i], &unbiased, (enum checkpointing)ac);
        }
    }
    test_embedding();
    test_random_shapes();
    test_steps();
    arena_release(&arena);
    return tap_done();
}
