/*
 * How far a checkpointed block is computed again: up to the last tensor that backward needs, or to
 * its end (set_checkpoint_early_stop). The latter has all operators of forward once more, and lets go
 * of the output that it makes; nothing else of the pair is different.
 */
#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static struct arena arena;

static const struct {
    const struct arch *arch;
    const struct dims *dims;
} families[] = {
    {&arch_llama, &small_llama},
    {&arch_gpt2, &small_gpt},
    {&arch_mpt, &small_gpt},
    {&arch_kda, &small_kda},
};

struct recompute {
    const struct op *forward, *again, *rest;
    uint32_t n_forward, n_again, n_rest;
    const struct body *before, *after;
};

/* Of the first block, which is checkpointed as all are. */
static struct recompute recompute_of(const struct body_table *table)
{
    const struct body_pair *pair = pair_of(table, BODY_BLOCK);
    struct recompute out = {.before = &table->bodies[pair->forward],
                            .after = &table->bodies[pair->backward]};

    out.forward = &table->ops[out.before->op];
    out.n_forward = out.before->n_op;
    out.again = &table->ops[out.after->op];
    while (out.n_again < out.after->n_op && out.again[out.n_again].pass == PASS_RECOMPUTE)
        out.n_again++;
    out.rest = out.again + out.n_again;
    out.n_rest = out.after->n_op - out.n_again;
    return out;
}

/* The work of the same operators; passes and slots may differ. */
static bool same_work(const struct op *a, const struct op *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].kind != b[i].kind || a[i].m != b[i].m || a[i].n != b[i].n || a[i].k != b[i].k ||
            a[i].kernels != b[i].kernels || a[i].bytes != b[i].bytes)
            return false;
    return true;
}

static struct body_table bodies(size_t family, const struct profile *profile, enum checkpointing ac,
                                bool full)
{
    const struct body_options options = {.batch = 2,
                                         .seq = 65,
                                         .compute = DTYPE_BF16,
                                         .ops = profile->ops,
                                         .norm = profile->norm,
                                         .ac = ac,
                                         .full_recompute = full};
    return default_bodies(families[family].arch, families[family].dims, &options, &arena);
}

static void test_block(size_t family, const struct profile *profile, enum checkpointing ac)
{
    const struct body_table early = bodies(family, profile, ac, false);
    const struct body_table full = bodies(family, profile, ac, true);
    const struct recompute a = recompute_of(&early), b = recompute_of(&full);
    const bool compiled =
        profile->ops == OPS_TORCH_COMPILE && families[family].arch->blocks_compile;
    const uint32_t more = b.n_again - a.n_again;

    tap_note("%s, %s, %s: %u operators again of %u, %u to the end", families[family].arch->name,
             profile->name, ac_names[ac], a.n_again, a.n_forward, b.n_again);
    ok(pair_is_sound(&full, pair_of(&full, BODY_BLOCK), families[family].dims->tied),
       "what is borne to the end dies, the boundary stays");
    ok(a.n_forward == b.n_forward && same_work(a.forward, b.forward, a.n_forward) &&
           a.n_rest == b.n_rest && same_work(a.rest, b.rest, a.n_rest) &&
           same_work(a.again, b.again, a.n_again),
       "forward, gradients and the first of the recompute are the same");
    ok(a.before->net_bytes == b.before->net_bytes && a.after->net_bytes == b.after->net_bytes,
       "nothing is left behind");
    if (compiled)
        is_int(more, 0, "a compiled block leaves out what nobody needs");
    else if (ac == AC_FULL)
        ok(more > 0 && b.n_again == b.n_forward && same_work(b.forward, b.again, b.n_forward),
           "all of forward is computed again");
    else
        ok(same_work(b.forward + b.n_forward - more, b.again + a.n_again, more),
           "the end of forward is computed again");
}

int main(void)
{
    static const enum checkpointing regions[] = {AC_FULL, AC_OP};

    for (size_t f = 0; f < LENGTH(families); f++)
        for (int p = 0; p < PROFILE_N; p++)
            for (size_t i = 0; i < LENGTH(regions); i++) {
                if (profiles[p].ops == OPS_NATIVE && !families[f].arch->native_bodies)
                    continue;
                if (profiles[p].norm == NORM_COMPOSITE && families[f].arch != &arch_llama)
                    continue;
                test_block(f, &profiles[p], regions[i]);
                arena_reset(&arena);
            }
    arena_release(&arena);
    return tap_done();
}
