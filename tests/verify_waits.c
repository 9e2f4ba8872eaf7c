/*
 * The verifier on the programs of the scheduler, against a brute-force closure: each WAIT taken
 * out, then random instructions taken out or moved. Which WAITs are essential is also written down
 * by hand.
 */
#include <stdlib.h>
#include <string.h>

#include "src/verify.h"
#include "tests/closure.h"
#include "tests/make.h"
#include "tests/tap.h"

static const struct dims small = {.layers = 2, .hidden = 32, .intermediate = 64, .heads = 4,
                                  .kv_heads = 2, .head_dim = 8, .vocab = 96, .default_seq = 16};

static struct plan_options small_options(const char *units)
{
    struct plan_options options = plan_options_default();
    options.units = units;
    options.gpus = 8;
    options.nodes = 1;
    options.workspace_bytes = 1 << 20;
    return options;
}

/* The same program with other instructions; tasks, buffers and frames are shared. */
struct variant {
    struct program program;
    struct instr *instrs;
};

static void variant_init(struct variant *v, const struct program *program)
{
    *v = (struct variant){.program = *program};
    v->instrs = malloc(program->n_instr * sizeof *v->instrs);
    if (v->instrs == NULL)
        abort();
    memcpy(v->instrs, program->instrs, program->n_instr * sizeof *v->instrs);
    v->program.instrs = v->instrs;
}

static void variant_remove(struct variant *v, uint32_t instr)
{
    struct program *p = &v->program;

    memmove(v->instrs + instr, v->instrs + instr + 1, (p->n_instr - instr - 1) * sizeof *v->instrs);
    p->n_instr--;
    for (int s = 0; s < SECTION_N; s++) {
        p->sections[s].begin -= p->sections[s].begin > instr;
        p->sections[s].end -= p->sections[s].end > instr;
    }
}

static void variant_move(struct variant *v, uint32_t from, uint32_t to)
{
    const struct instr moved = v->instrs[from];

    if (from < to)
        memmove(v->instrs + from, v->instrs + from + 1, (to - from) * sizeof moved);
    else
        memmove(v->instrs + to + 1, v->instrs + to, (from - to) * sizeof moved);
    v->instrs[to] = moved;
}

struct wait_counts {
    uint32_t n_wait, n_essential, n_steady, n_steady_essential; /* WAITs taken out */
    uint32_t n_disagree, n_misnamed, n_pair;
};

/* One WAIT out: does verify fail exactly where the closure loses a pair, and name such a pair? */
static void remove_wait(struct made *made, struct closure *closure, struct arena *scratch,
                        uint32_t instr, struct wait_counts *counts)
{
    const struct section *steady = &made->program.sections[SECTION_STEADY];
    const uint32_t n_lost = closure_lost(closure, instr);
    struct variant variant;
    struct fault fault = {.kind = FAULT_NONE};

    variant_init(&variant, &made->program);
    variant_remove(&variant, instr);
    arena_reset(scratch);
    const bool fails = verify_program(&variant.program, scratch, &fault, NULL) != STATUS_OK;
    free(variant.instrs);
    counts->n_wait++;
    counts->n_essential += n_lost > 0;
    counts->n_steady += instr >= steady->begin;
    counts->n_steady_essential += instr >= steady->begin && n_lost > 0;
    counts->n_disagree += fails != (n_lost > 0);
    if (fails && !closure_is_lost(closure, fault.first, fault.second, fault.buffer))
        counts->n_misnamed++;
}

static struct wait_counts remove_waits(const struct plan_options *options)
{
    struct made made;
    struct closure closure;
    struct arena scratch;
    struct fault fault;
    struct err err = {0};
    struct wait_counts counts = {0};

    make_init_dims(&made, &small, options);
    closure_init(&closure, &made.program);
    arena_init(&scratch);
    if (verify_program(&made.program, &scratch, &fault, &err) != STATUS_OK)
        tap_bail(err.text);
    if (closure_lost(&closure, CLOSURE_NONE) > 0 || closure.n_broken > 0)
        tap_bail("the closure finds a fault in a program of the scheduler");
    for (uint32_t i = 0; i < made.program.n_instr; i++)
        if (made.program.instrs[i].op == INSTR_WAIT)
            remove_wait(&made, &closure, &scratch, i, &counts);
    counts.n_pair = closure.n_pair;
    closure_release(&closure);
    arena_release(&scratch);
    make_release(&made);
    return counts;
}

static void check_waits(const char *units, uint64_t accum, enum reshard reshard)
{
    struct plan_options options = small_options(units);
    struct wait_counts all = {0};

    options.accum = accum;
    options.reshard = reshard;
    for (int ac = 0; ac < AC_N; ac++) {
        for (uint64_t prefetch = 0; prefetch <= 2; prefetch++) {
            options.ac = (enum checkpointing)ac;
            options.prefetch = options.prefetch_backward = prefetch;
            const struct wait_counts counts = remove_waits(&options);
            all.n_wait += counts.n_wait;
            all.n_essential += counts.n_essential;
            all.n_disagree += counts.n_disagree;
            all.n_misnamed += counts.n_misnamed;
            all.n_pair += counts.n_pair;
        }
    }
    is_int(all.n_disagree, 0,
           "%s, accum %d, reshard %d: a WAIT taken out fails where a pair is lost", units,
           (int)accum, (int)reshard);
    is_int(all.n_misnamed, 0, "%s, accum %d, reshard %d: and the lost pair is named", units,
           (int)accum, (int)reshard);
    ok(all.n_essential > 0 && all.n_essential < all.n_wait, "some WAITs are essential, some not");
    tap_note("%u WAITs, %u essential; %u pairs", all.n_wait, all.n_essential, all.n_pair);
}

/*
 * A 2-layer llama under "block" units: the root (embedding, norm, head; it stays gathered from
 * forward to backward), block 0 and block 1. ">" reads "comes before", co is a copy-out, rs a
 * reduce-scatter, b0 and b1 the blocks. First the WAITs of a kind in a steady step, then those of
 * them that are essential, since no other way leads from the one task to the other.
 *
 *   root begin    AGI waits C   1  1  optimizer > copy_in(root), which reads the shards
 *                 AG waits C    1  0  all_gather(root) comes behind copy_in(root) anyway
 *   all-gathers   AG waits AGI  5  5  copy_in > all_gather of root, b0, b1, then b1, b0
 *                 C waits AG    5  5  all_gather > copy-out of the same
 *   their output  AGI waits C   5  3  co(root) > copy_in(b1), which may be given its memory;
 *                                     co(b1) > copy_in(b1) of backward; there co(b1) > copy_in(b0)
 *                                     not: co(b0) of forward, since co(b1) comes behind it and no
 *                                     copy-in between; of backward, since the root begin does it
 *                 AG waits C    5  0  it writes only behind a copy-in
 *   reductions    RS waits C    3  3  pack > reduce-scatter of b1, b0, root
 *                 C waits RS    2  2  rs(b1) > pack(b0), rs(b0) > pack(root), which may be given
 *                                     the memory of their inputs
 *                 C waits RS    2  0  rs(root) > optimizer, once for the gradients and once for
 *                                     the input that is freed: each makes up for the other
 *                              29 19
 */
static void check_by_hand(void)
{
    const struct plan_options options = small_options("block");
    const struct wait_counts counts = remove_waits(&options);

    is_int(counts.n_steady, 29, "2 layers, block units: a steady step has 29 WAITs");
    is_int(counts.n_steady_essential, 19, "of which 19 are essential, by hand and by closure");
    is_int(counts.n_disagree, 0, "and by the verifier");
}

/* FSDP1, whose allocator makes some WAITs needless; without record_stream its streams have to. */
static void check_fsdp1_waits(enum fsdp1_strategy strategy, bool record_stream)
{
    struct plan_options options = small_options("block");

    options.system = SYSTEM_FSDP1;
    options.fsdp1.strategy = strategy;
    options.fsdp1.record_stream = record_stream;
    const struct wait_counts counts = remove_waits(&options);
    is_int(counts.n_disagree, 0, "fsdp1, strategy %d, record_stream %d: verifier and closure agree",
           (int)strategy, (int)record_stream);
    is_int(counts.n_misnamed, 0, "and the lost pair is named");
    tap_note("%u WAITs, %u essential; %u pairs", counts.n_wait, counts.n_essential, counts.n_pair);
}

/* ---- random changes ---- */

/* Where an instruction may go: within its section. */
static uint32_t somewhere(const struct program *program, uint32_t instr, uint64_t *state,
                          bool earlier, bool later)
{
    const struct section *section = program->sections;
    while (instr < section->begin || instr >= section->end)
        section++;
    const uint32_t low = earlier ? section->begin : instr;
    const uint32_t high = later ? section->end : instr + 1;
    return low + (uint32_t)tap_below(state, high - low);
}

static uint32_t any_instr(const struct program *program, uint64_t *state, enum instr_op op)
{
    uint32_t instr;
    do
        instr = (uint32_t)tap_below(state, program->n_instr);
    while (op != INSTR_N && program->instrs[instr].op != op);
    return instr;
}

/* What is done to one instruction, chosen among those of a kind. */
static const struct change {
    const char *name;
    enum instr_op op; /* INSTR_N: any */
    bool removed, earlier, later;
} changes[] = {
    {"any one removed", INSTR_N, true, false, false},
    {"a launch removed", INSTR_LAUNCH, true, false, false},
    {"a record removed", INSTR_RECORD, true, false, false},
    {"an alloc removed", INSTR_ALLOC, true, false, false},
    {"a free moved earlier", INSTR_FREE, false, true, false},
    {"a free moved later", INSTR_FREE, false, false, true},
    {"an alloc moved earlier", INSTR_ALLOC, false, true, false},
    {"a launch moved", INSTR_LAUNCH, false, true, true},
    {"a wait moved later", INSTR_WAIT, false, false, true},
    {"a record moved earlier", INSTR_RECORD, false, true, false},
    {"any one moved", INSTR_N, false, true, true},
    {"a stream not recorded", INSTR_RECORD_STREAM, true, false, false},
    {"a stream recorded later", INSTR_RECORD_STREAM, false, false, true},
};
enum { N_CHANGE = sizeof changes / sizeof *changes, ROUNDS = 60 };

/* Of any system; but only FSDP1 has streams to record. */
static struct plan_options any_options(uint64_t *state, const struct dims *dims,
                                       const struct change *change)
{
    if (change->op != INSTR_RECORD_STREAM && tap_below(state, 3) > 0)
        return make_random_options(state, dims);
    struct plan_options options = make_random_fsdp1(state);
    options.policy.ignore = NULL; /* the closure knows no forward without a backward */
    if (change->op == INSTR_RECORD_STREAM) {
        options.gpus = 8;
        options.replicas = 1;
        options.fsdp1.strategy = FSDP1_FULL_SHARD;
        options.fsdp1.record_stream = true;
    }
    return options;
}

/* A little way only, so that not every change breaks something. */
static void change_instr(struct variant *v, const struct change *change, uint64_t *state)
{
    const uint32_t from = any_instr(&v->program, state, change->op);
    uint32_t to = somewhere(&v->program, from, state, change->earlier, change->later);
    const uint32_t reach = 1 + (uint32_t)tap_below(state, 8);

    if (change->removed) {
        variant_remove(v, from);
        return;
    }
    if (to > from + reach)
        to = from + reach;
    if (from > to + reach)
        to = from - reach;
    variant_move(v, from, to);
}

static void check_changes(const struct change *change, uint64_t seed)
{
    uint64_t state = seed + (uint64_t)(change - changes);
    uint32_t n_safe = 0, n_disagree = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct dims dims = small;
        struct plan_options options = any_options(&state, &dims, change);
        struct made made;
        struct variant variant;
        struct fault fault;
        dims.layers = 1 + tap_below(&state, 2);
        make_init_dims(&made, &dims, &options);
        variant_init(&variant, &made.program);
        change_instr(&variant, change, &state);
        const bool safe =
            verify_program(&variant.program, &made.arena, &fault, NULL) == STATUS_OK;
        n_safe += safe;
        if (safe != closure_says_safe(&variant.program))
            n_disagree++;
        free(variant.instrs);
        make_release(&made);
    }
    is_int(n_disagree, 0, "%s: verifier and closure agree", change->name);
    tap_note("%u of %d were still safe", n_safe, (int)ROUNDS);
}

int main(void)
{
    static const enum reshard variants[] = {RESHARD_AUTO, RESHARD_YES, RESHARD_NO,
                                            RESHARD_ALL_BUT_LAST};
    check_by_hand();
    for (size_t r = 0; r < sizeof variants / sizeof *variants; r++) {
        for (uint64_t accum = 1; accum <= 2; accum++) {
            check_waits("block", accum, variants[r]);
            check_waits("torchtitan", accum, variants[r]);
        }
    }
    for (int strategy = FSDP1_FULL_SHARD; strategy <= FSDP1_NO_SHARD; strategy++) {
        check_fsdp1_waits((enum fsdp1_strategy)strategy, true);
        check_fsdp1_waits((enum fsdp1_strategy)strategy, false);
    }
    const uint64_t seed = tap_seed(20260301);
    for (size_t i = 0; i < N_CHANGE; i++)
        check_changes(&changes[i], seed);
    return tap_done();
}
