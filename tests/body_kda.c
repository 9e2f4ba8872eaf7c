/*
 * Bodies of kda: what a block saves (MEMORY 3.7), how far its backward rises, the FLOPs of the
 * delta rule, gradients in the order of the pieces, and models without embedding and head.
 */
#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

/* kda-1.75b's block. */
static const struct dims kda = {.layers = 2,
                                .hidden = 4096,
                                .intermediate = 12160,
                                .heads = 32,
                                .kv_heads = 32,
                                .head_dim = 128};
enum { T = 2048, H = 4096, HK = 4096, HEADS = 32, D = 128, F = 12160 };

static struct body_table bodies(const struct dims *dims, enum checkpointing ac)
{
    const struct body_options options = {1, T, DTYPE_BF16, OPS_TORCH_EAGER, NORM_FUSED, .ac = ac};
    return default_bodies(&arch_kda, dims, &options, &arena);
}

/* The pair of the second layer, whose input was computed. */
static const struct body_pair *second(const struct body_table *table, enum body_kind kind)
{
    const uint32_t piece = kind == BODY_MLP ? 3 : 2;
    return &table->pairs[(kind == BODY_BLOCK ? table->of_block : table->of_piece)[piece]];
}

static void test_saved(void)
{
    const struct body_table table = bodies(&kda, AC_NONE);
    const struct body_pair *attention = second(&table, BODY_ATTENTION);
    const int64_t out = 2 * T * H;
    /* statistics of the norm, of q and k, beta as it is projected and after, of the output norm */
    const int64_t small = 4 * T + (8 + 2 + 4 + 4) * T * HEADS + 2 * 2 * T * D;
    is_int(table.bodies[attention->forward].net_bytes - out, 2 * T * (H + 11 * HK) + small,
           "attention saves 12 U of wide tensors, statistics and low-rank products");
    ok(attention->in_dies_in_backward && attention->d_in_place && !attention->in_dies_in_forward,
       "and the residual for its norm");

    const struct body_table full = bodies(&kda, AC_FULL);
    is_int(full.bodies[second(&full, BODY_BLOCK)->forward].net_bytes, out,
           "checkpointed, a block saves its input alone");
}

/*
 * Of twelve products the odd ones stay: q, v, f_b, g_a, o, up. The chunk kernels are in no list, and
 * run again with the even ones, but for the last.
 */
static void test_selective(void)
{
    const struct body_table table = bodies(&kda, AC_OP), full = bodies(&kda, AC_FULL);
    const struct body_pair *block = second(&table, BODY_BLOCK);
    const uint64_t all = full.bodies[second(&full, BODY_BLOCK)->backward].flops;
    const uint64_t kept = 2 * T * (2 * H * HK + D * HK + H * D + HK * H + H * kda.intermediate);
    is_int(table.bodies[block->forward].net_bytes, 2 * T * (3 * HK + D + 2 * H + kda.intermediate),
           "selectively checkpointed, a block keeps every second product");
    is_int(all - table.bodies[block->backward].flops, kept, "and these are not computed again");
}

/* Parameters' gradients are counted apart: they are born on the way. */
static void test_transient(void)
{
    const struct body_table table = bodies(&kda, AC_NONE);
    const struct body_pair *attention = second(&table, BODY_ATTENTION);
    const struct events events = events_of_pair(&table, attention);
    int64_t live = 0, most = 0;
    for (int i = events.n_forward; i < events.n; i++) {
        const struct event *event = &events.at[i];
        if (event->slot >= SLOT_GRAD && event->slot < SLOT_GRAD + attention->n_grad)
            continue;
        live += event->alloc ? (int64_t)event->bytes : -(int64_t)event->bytes;
        most = live > most ? live : most;
    }
    const double tensors = (double)most / (2.0 * T * HK);
    if (!ok(tensors > 17.5 && tensors < 21.5, "backward rises by about 20 tensors of all heads"))
        tap_note("it rises by %.2f", tensors);
}

/* Products of the chunks, by their number and size; a token has 64 / 64 of one. */
static void test_flops(void)
{
    enum { C = 64 };
    const uint64_t chunks = T / C * HEADS;
    const uint64_t of_c2d = 2 * C * C * D, of_cd2 = 2 * C * D * D, of_c3 = 2 * C * C * C;
    const uint64_t linears = 2ull * T * (4 * H * HK + 2 * D * (H + HK) + H * HEADS);
    const struct body_table table = bodies(&kda, AC_NONE);
    const struct body_pair *attention = second(&table, BODY_ATTENTION);
    const uint64_t forward = table.bodies[attention->forward].flops - linears;
    const uint64_t exact = chunks * (5 * of_c2d + 3 * of_cd2 + of_c3 / 3);
    ok(forward <= exact && exact - forward < T * HEADS,
       "five products of a chunk's square, three with the state and one inverse");
    is_int(table.bodies[attention->backward].flops - 2 * linears,
           chunks * (12 * of_c2d + 8 * of_cd2 + 2 * of_c3),
           "backward makes two and two of them again, then two for each");
}

/* A_log and dt_bias, where they stand, in FP32. */
static void test_grads(bool flat)
{
    struct dims dims = kda;
    dims.flat = flat;
    const struct model model = model_of(&arch_kda, &dims, &arena);
    const struct body_table table = bodies(&dims, AC_NONE);
    int unfit = 0, fp32 = 0;
    for (uint32_t p = 0; p < model.n_piece; p++) {
        const struct body_pair *pair = &table.pairs[table.of_piece[p]];
        unfit += pair->n_grad != model.pieces[p].n_param;
        for (uint32_t i = 0; i < pair->n_grad; i++) {
            const struct param *param =
                &model.params[model.piece_params[model.pieces[p].param + i]];
            const uint64_t bytes = param->numel * (param->keep_fp32 ? 4 : 2);
            unfit += table.slots[pair->slot + SLOT_GRAD + i].bytes != bytes;
            fp32 += param->keep_fp32;
        }
        unfit += !pair_is_sound(&table, pair, false);
    }
    is_int(unfit, 0, "%s: gradients have the sizes of their parameters", flat ? "flat" : "held");
    is_int(fp32, 4, "two in FP32 a block");
}

/* Hidden states come from outside, and the mean of the last ones is the loss. */
static void test_headless(void)
{
    const struct body_table table = bodies(&kda, AC_NONE);
    const struct body_pair *first = &table.pairs[table.of_block[0]];
    const struct body_pair *loss = &table.pairs[table.of_loss];
    const int64_t hidden = 2 * T * H;
    ok(first != second(&table, BODY_BLOCK) && !first->has_d_in && first->has_d_out,
       "without an embedding the first block's input has no gradient");
    ok(!first->in_dies_in_forward && !first->in_dies_in_backward, "and is not the block's to free");
    is_int(table.slots[first->slot + SLOT_IN].bytes, hidden, "it is of hidden states");
    is_int(table.bodies[loss->forward].net_bytes, 2 - hidden,
           "without a head the loss lets the last hidden states go and leaves a number");
    is_int(table.bodies[loss->backward].net_bytes, hidden - 2, "its backward gives their gradient");
    ok(loss->in_dies_in_forward && loss->has_d_in && loss->n_grad == 0, "as that of its input");

    struct dims dims = kda;
    dims.vocab = 1000;
    const struct body_table whole = bodies(&dims, AC_NONE);
    const struct body_pair *block = &whole.pairs[whole.of_block[1]];
    ok(block->has_d_in && block->d_in_place && whole.of_block[1] == whole.of_block[3],
       "with an embedding all blocks are equal");
    is_int(whole.bodies[whole.pairs[whole.of_loss].forward].rise_bytes, 8 * T * 1000,
           "and the loss is that of logits");
}

int main(void)
{
    arena_init(&arena);
    test_saved();
    test_selective();
    test_transient();
    test_flops();
    test_grads(false);
    test_grads(true);
    test_headless();
    arena_release(&arena);
    return tap_done();
}
