/*
 * Checkpointing of every K-th block: which blocks are regions, and that each is what it would be in
 * a model of which all blocks are.
 */
#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/tap.h"

enum { LAYERS = 7, EVERY = 3 };

static struct arena arena;

static struct body_table bodies(enum checkpointing ac, uint64_t every)
{
    struct dims dims = llama8b;
    dims.layers = LAYERS;
    const struct body_options options = {
        .batch = 1, .seq = 64, .compute = DTYPE_BF16, .ac = ac, .ac_every = every};
    return default_bodies(&arch_llama, &dims, &options, &arena);
}

/* The embedding is piece 0; each layer has two more. */
static uint32_t attention_of(uint32_t layer)
{
    return 1 + 2 * layer;
}

static bool same_block(const struct body_table *a, const struct body_table *b, uint32_t layer)
{
    const uint32_t piece = attention_of(layer);
    const struct body_pair *p = &a->pairs[a->of_block[piece]], *q = &b->pairs[b->of_block[piece]];
    const struct body *back = &a->bodies[p->backward], *other = &b->bodies[q->backward];
    return a->bodies[p->forward].net_bytes == b->bodies[q->forward].net_bytes &&
           back->net_bytes == other->net_bytes && back->rise_bytes == other->rise_bytes &&
           back->flops == other->flops && back->kernels == other->kernels;
}

static void test_blocks(enum checkpointing ac)
{
    const struct body_table plain = bodies(AC_NONE, 0), all = bodies(ac, 0);
    const struct body_table some = bodies(ac, EVERY);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        const bool is_region = layer == 2 || layer == 5;
        const uint32_t piece = attention_of(layer);
        ok(same_block(&some, is_region ? &all : &plain, layer) &&
               !same_block(&some, is_region ? &plain : &all, layer),
           "every 3rd block as %s: layer %u is %sone of them", ac_names[ac], layer,
           is_region ? "" : "not ");
        ok((some.of_piece[piece] == NO_PAIR) == is_region &&
               (some.of_piece[piece + 1] == NO_PAIR) == is_region,
           "every 3rd block as %s: and has %shalves", ac_names[ac], is_region ? "no " : "");
    }
}

int main(void)
{
    arena_init(&arena);
    test_blocks(AC_FULL);
    test_blocks(AC_OP);
    const struct body_table each = bodies(AC_FULL, 1), all = bodies(AC_FULL, 0);
    ok(same_block(&each, &all, 0) && each.n_pair == all.n_pair, "every 1st block is all of them");
    arena_release(&arena);
    return tap_done();
}
