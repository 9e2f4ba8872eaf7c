/*
 * The program of FSDP1: a golden file that derives each line from the hooks of
 * FullyShardedDataParallel, what its constructor holds, what strategies and prefetch make of it,
 * what cannot be combined, and which of its recorded streams it cannot do without.
 */
#include <stdlib.h>
#include <string.h>

#include "src/place.h"
#include "src/program_print.h"
#include "src/verify.h"
#include "tests/closure.h"
#include "tests/make.h"
#include "tests/tap.h"

static struct plan_options fsdp1_options(void)
{
    struct plan_options options = plan_options_default();
    options.system = SYSTEM_FSDP1;
    options.units = "block";
    options.seq = 128;
    options.workspace_bytes = 8519680;
    return options;
}

static void golden_program(void)
{
    const struct plan_options options = fsdp1_options();
    struct made made;
    struct text text;

    make_init(&made, "llama3-8b", 2, &options);
    text_init(&text);
    program_print(&made.program, SECTION_STEADY, false, &text);
    is_golden(text.at, "llama-2-layers-fsdp1.txt");
    text_release(&text);
    make_release(&made);
}

/* Instructions of a section, those before the loss apart. */
struct counts {
    uint32_t gathers[2], frees[2], host_waits[2], scatters, all_reduces;
};

static struct counts count(const struct program *program, enum section_id section)
{
    struct counts counts = {0};
    int half = 0;

    for (uint32_t i = program->sections[section].begin; i < program->sections[section].end; i++) {
        const struct instr *instr = &program->instrs[i];
        const struct task *task = &program->tasks[instr->id];
        half |= instr->op == INSTR_MARK && instr->id == PHASE_LOSS;
        counts.host_waits[half] += instr->op == INSTR_HOST_WAIT;
        counts.frees[half] +=
            instr->op == INSTR_FREE && program->buffers[instr->id].role == ROLE_FULL;
        if (instr->op != INSTR_LAUNCH)
            continue;
        counts.gathers[half] += task->kind == TASK_ALL_GATHER;
        counts.scatters += task->kind == TASK_REDUCE_SCATTER;
        counts.all_reduces += task->kind == TASK_ALL_REDUCE;
    }
    return counts;
}

/*
 * Four blocks and the root. What a block is gathered and freed: in forward once, unless grad-op keeps
 * it; the root stays from forward to the end of backward. The queue of free events, by length: full
 * shard begins a steady step with 4, waits at each of the 5 all-gathers of forward but fills up by 4
 * frees, and in backward waits before the root, which counts though nothing is gathered, and before
 * all but one block. Grad-op begins with 4 too and has no free in forward: it waits until one is left.
 */
static void strategies(void)
{
    static const struct {
        const char *name;
        enum fsdp1_strategy strategy;
        uint64_t replicas;
        struct counts want;
    } cases[] = {
        {"full", FSDP1_FULL_SHARD, 1, {{5, 4}, {4, 5}, {5, 4}, 5, 0}},
        {"grad-op", FSDP1_SHARD_GRAD_OP, 1, {{5, 0}, {0, 5}, {3, 2}, 5, 0}},
        {"no-shard", FSDP1_NO_SHARD, 1, {{0, 0}, {5, 5}, {0, 0}, 0, 5}},
        {"hybrid", FSDP1_HYBRID_SHARD, 2, {{5, 4}, {4, 5}, {5, 4}, 5, 5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = fsdp1_options();
        const struct counts *want = &cases[i].want;
        struct made made;
        options.fsdp1.strategy = cases[i].strategy;
        options.replicas = cases[i].replicas;
        make_init(&made, "llama3-8b", 4, &options);
        const struct counts got = count(&made.program, SECTION_STEADY);
        for (int half = 0; half < 2; half++) {
            const char *where = half ? "backward" : "forward";
            is_int(got.gathers[half], want->gathers[half], "%s: all-gathers, %s", cases[i].name,
                   where);
            is_int(got.frees[half], want->frees[half], "%s: freed, %s", cases[i].name, where);
            is_int(got.host_waits[half], want->host_waits[half], "%s: the host waits, %s",
                   cases[i].name, where);
        }
        is_int(got.scatters, want->scatters, "%s: reduce-scatters", cases[i].name);
        is_int(got.all_reduces, want->all_reduces, "%s: all-reduces", cases[i].name);
        make_release(&made);
    }
}

/* The units of all-gathers and backward bodies, in host order: "g1 b1 g0 b0" and the like. */
static void backward_order(const struct program *program, struct text *out)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    bool backward = false;

    text_init(out);
    text_add(out, "%s", "");
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct instr *instr = &program->instrs[i];
        const struct task *task = &program->tasks[instr->id];
        backward |= instr->op == INSTR_MARK && instr->id == PHASE_BACKWARD;
        if (instr->op != INSTR_LAUNCH || !backward || task->unit == NO_UNIT)
            continue;
        if (task->kind == TASK_ALL_GATHER || (task->kind == TASK_BACKWARD && task->unit > 0))
            text_add(out, "%s%d ", task->kind == TASK_ALL_GATHER ? "g" : "b", task->unit);
    }
}

static void prefetch(void)
{
    static const char *const want[] = {
        [FSDP1_BACKWARD_PRE] = "g3 g2 b3 g1 b2 b1 ",
        [FSDP1_BACKWARD_POST] = "g3 b3 g2 b2 g1 b1 ",
        [FSDP1_BACKWARD_NONE] = "g3 b3 g2 b2 g1 b1 ",
    };
    for (int when = FSDP1_BACKWARD_PRE; when <= FSDP1_BACKWARD_NONE; when++) {
        struct plan_options options = fsdp1_options();
        struct made made;
        struct text text;
        options.fsdp1.backward_prefetch = (enum fsdp1_prefetch)when;
        make_init(&made, "llama3-8b", 3, &options);
        backward_order(&made.program, &text);
        is_str(text.at, want[when], "backward prefetch %d", when);
        text_release(&text);
        make_release(&made);
    }
}

/* ---- what cannot be combined ---- */

static struct plan_options with_reshard(void)
{
    struct plan_options options = fsdp1_options();
    options.reshard = RESHARD_NO;
    return options;
}

static struct plan_options with_lists(void)
{
    struct plan_options options = fsdp1_options();
    options.units = "torchtitan";
    return options;
}

static struct plan_options with_replicas(void)
{
    struct plan_options options = fsdp1_options();
    options.replicas = 2;
    return options;
}

static struct plan_options with_fp32_norms(void)
{
    struct plan_options options = fsdp1_options();
    options.policy.keep_fp32 = "*norm*";
    return options;
}

static struct plan_options of_fsdp2(void)
{
    struct plan_options options = fsdp1_options();
    options.system = SYSTEM_FSDP2;
    options.fsdp1.record_stream = false;
    return options;
}

static void refusals(void)
{
    static const struct {
        struct plan_options (*options)(void);
        const char *words;
    } cases[] = {
        {with_reshard, "reshard is nothing that fsdp1 has: fsdp1-strategy says"},
        {with_lists, "unit 'model.norm, lm_head' is a list of 2 modules, and FSDP1 wraps one"},
        {with_replicas, "replicas 2 of shards are fsdp1-strategy hybrid"},
        {with_fp32_norms, "mixes compute dtypes"},
        {of_fsdp2, "record-stream is nothing that fsdp2 has: events alone say"},
    };
    struct arena arena;
    struct model model;

    arena_init(&arena);
    if (model_open("llama3-8b", 2, &arena, &model, NULL))
        tap_bail("a built-in model is not there");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct plan_options options = cases[i].options();
        struct err err = {0};
        struct plan plan;
        if (!ok(plan_resolve(&model, &options, &arena, &plan, &err) != STATUS_OK &&
                    strstr(err.text, cases[i].words) != NULL,
                "refused: %s", cases[i].words))
            tap_note("%s", err.text);
    }
    arena_release(&arena);
}

/* ---- recorded streams ---- */

/* Whether the program is safe without one instruction. */
static bool safe_without(const struct program *program, uint32_t without, struct arena *arena,
                         bool *closure)
{
    struct program changed = *program;
    struct fault fault;

    changed.instrs = arena_array(arena, struct instr, program->n_instr);
    memcpy(changed.instrs, program->instrs, program->n_instr * sizeof *changed.instrs);
    changed.instrs[without] = (struct instr){.op = INSTR_MARK};
    *closure = closure_says_safe(&changed);
    return verify_program(&changed, arena, &fault, NULL) == STATUS_OK;
}

/*
 * By role in a steady step of two blocks b0 and b1, and which of them it cannot do without:
 *   cast_temp  5 on AG; 4, since AGI casts the next shard without a wait for AG. Behind the last one,
 *              of b0 in backward, comes the root's pre-forward, where AGI waits for C and so for AG
 *   full       5 on C; 2: b0 and b1 of forward. The host has waited for neither when the next
 *              all-gather, of b1, may be given their memory; behind those of backward AG waits for C
 *   flat_grad  3 on RS; 2: what C allocates next it writes at once. Behind the root's C waits for RS
 */
static void recorded_streams(void)
{
    static const struct dims small = {.layers = 2,
                                      .hidden = 32,
                                      .intermediate = 64,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 8,
                                      .vocab = 96,
                                      .default_seq = 16};
    const struct plan_options options = fsdp1_options();
    uint32_t n[ROLE_N] = {0}, essential[ROLE_N] = {0}, disagree = 0;
    struct made made;

    make_init_dims(&made, &small, &options);
    const struct section *steady = &made.program.sections[SECTION_STEADY];
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct instr *instr = &made.program.instrs[i];
        bool closure;
        if (instr->op != INSTR_RECORD_STREAM)
            continue;
        const bool safe = safe_without(&made.program, i, &made.arena, &closure);
        const uint8_t role = made.program.buffers[instr->id].role;
        n[role]++;
        essential[role] += !safe;
        disagree += safe != closure;
    }
    is_int(n[ROLE_CAST_TEMP], 5, "a stream is recorded of each cast shard");
    is_int(n[ROLE_FULL], 5, "of each unsharded parameter");
    is_int(n[ROLE_FLAT_GRAD], 3, "of each flat gradient");
    is_int(essential[ROLE_CAST_TEMP], 4, "without four casts' the program is unsafe");
    is_int(essential[ROLE_FULL], 2, "without two parameters'");
    is_int(essential[ROLE_FLAT_GRAD], 2, "without two gradients'");
    is_int(disagree, 0, "verifier and closure agree on what cannot be done without");
    make_release(&made);
}

static const struct buffer *states_of(const struct program *program, uint32_t unit)
{
    uint32_t i = 0;

    while (program->buffers[i].role != ROLE_STATE || program->buffers[i].unit != unit)
        i++;
    return &program->buffers[i];
}

/* How many of a unit's parameters do not lie where they have to, or are not all on some rank. */
static uint32_t misplaced(const struct made *made, const struct unit_layout *unit)
{
    const uint64_t compute_bytes = dtype_bytes((enum dtype)unit->casts[0].compute);
    const bool aligned = made->plan.options.fsdp1.use_orig_params;
    /* the process group of NO_SHARD has all ranks; unaligned it is not padded at all */
    const uint64_t ranks = aligned ? made->plan.world : made->plan.shard_ranks;
    uint64_t end = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct param_layout *param = &made->layout.params[unit->param + i];
        const uint64_t gap = param->reduce_offset - end;
        uint64_t held = 0;
        for (uint64_t rank = 0; rank < made->plan.shard_ranks; rank++)
            held += param_layout_piece(param, unit, rank);
        n += held != param->numel || param->reduce_offset < end;
        n += aligned ? param->reduce_offset * compute_bytes % 16 != 0 || gap * compute_bytes >= 16
                     : gap != 0;
        end = param->reduce_offset + param->numel;
    }
    return n + (unit->padded_elements % ranks != 0 || unit->padded_elements - end >= ranks);
}

/* How many moments and counters are not of the size of what rank 0 holds. */
static uint32_t wrong_states(const struct made *made, uint32_t u)
{
    const struct unit_layout *unit = made->layout.units[u];
    const struct buffer *states = states_of(&made->program, u);
    const uint64_t storage_bytes = dtype_bytes((enum dtype)unit->casts[0].storage);
    const bool pieces = made->plan.options.fsdp1.use_orig_params;
    uint32_t at = 0, n = 0;

    for (uint32_t i = 0; i < (pieces ? unit->n_param : 1); i++) {
        const uint64_t elements =
            pieces ? param_layout_piece(&made->layout.params[unit->param + i], unit, 0)
                   : unit->shard_elements;
        const uint64_t want[] = {4, elements * storage_bytes, elements * storage_bytes};
        for (int k = 0; k < 3 && elements > 0; k++, at++)
            n += at >= states->n_member ||
                 buffer_member_bytes(&made->program, states, at) != want[k];
    }
    return n + (at != states->n_member) + (at != 3 * unit->n_updated);
}

/* named_modules(): what a module has itself comes before what its children have. */
static void order_of_parameters(void)
{
    struct plan_options options = fsdp1_options();
    struct made made;
    struct text text;

    options.policy.param = DTYPE_FP32;
    make_init(&made, "kda-flat", 1, &options);
    const struct unit *block = &made.plan.units[1];
    text_init(&text);
    for (uint32_t i = 0; i < 4; i++)
        text_add(&text, "%s ", made.model.params[made.plan.unit_params[block->param + i]].name);
    is_str(text.at,
           "layers.0.input_layernorm.weight layers.0.self_attn.A_log layers.0.self_attn.dt_bias "
           "layers.0.self_attn.q_proj.weight ",
           "a flat parameter begins with what modules have themselves");
    text_release(&text);
    make_release(&made);
}

/* Odd sizes, so that parameters do not end where the next one may begin. */
static void flat_parameters(void)
{
    enum { MODELS = 300 };
    const uint64_t seed = tap_seed(7);
    uint64_t random = seed;
    uint32_t n_misplaced = 0, n_wrong = 0, n_piece = 0;

    for (int i = 0; i < MODELS; i++) {
        static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16};
        const struct dims odd = {.layers = 1 + tap_below(&random, 2),
                                 .hidden = 1 + tap_below(&random, 40),
                                 .intermediate = 1 + tap_below(&random, 40),
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .head_dim = 2 + 2 * tap_below(&random, 5),
                                 .vocab = 1 + tap_below(&random, 100),
                                 .default_seq = 16};
        struct plan_options options = fsdp1_options();
        struct made made;
        options.gpus = 1 + tap_below(&random, 20);
        options.nodes = 1;
        options.fsdp1.strategy = (enum fsdp1_strategy)tap_below(&random, FSDP1_HYBRID_SHARD);
        options.policy.storage = dtypes[tap_below(&random, 2)];
        options.policy.param = dtypes[tap_below(&random, 2)];
        options.fsdp1.use_orig_params = tap_below(&random, 2);
        make_init_dims(&made, &odd, &options);
        for (uint32_t u = 0; u < made.plan.n_unit; u++) {
            n_misplaced += misplaced(&made, made.layout.units[u]);
            n_wrong += wrong_states(&made, u);
            n_piece += made.layout.units[u]->n_updated > 1;
        }
        make_release(&made);
    }
    is_int(n_misplaced, 0, "%d models: ranks hold every parameter of a flat one once", MODELS);
    is_int(n_wrong, 0, "rank 0 has moments of what it holds, of the flat one or of each");
    ok(n_piece > 100, "which %u units have several of", n_piece);
}

/*
 * The constructor, of what is asked for: blocks come before the root, whose parameters are the last
 * and the largest. It holds them, the row that they are put in, and the rank's part of it; without
 * sharding the row is that part. Afterwards the shards are all there is.
 */
static void constructor(void)
{
    static const struct {
        const char *name;
        enum fsdp1_strategy strategy;
        uint64_t ranks, copies; /* of the root's bytes, beside shards */
    } cases[] = {{"full", FSDP1_FULL_SHARD, 8, 2}, {"no-shard", FSDP1_NO_SHARD, 1, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct alloc_config config = alloc_config_default();
        struct plan_options options = fsdp1_options();
        struct placement placement;
        struct made made;

        options.fsdp1.strategy = cases[i].strategy;
        make_init(&made, "llama3-8b", 2, &options);
        place_program(&made.program, &config, &made.arena, &placement);
        const struct alloc_stats *init = &placement.init.stats;
        const uint64_t shards = 4 * made.model.n_element / cases[i].ranks;
        const uint64_t root = 4 * made.layout.units[0]->elements;
        is_int(init->requested, shards, "%s: shards are born", cases[i].name);
        is_int(init->peak_requested, shards + cases[i].copies * root,
               "%s: beside the root's parameters and their row", cases[i].name);
        is_int(placement.init.peak_unit, 0, "%s: the root comes last", cases[i].name);
        make_release(&made);
    }
}

int main(void)
{
    golden_program();
    constructor();
    strategies();
    prefetch();
    refusals();
    recorded_streams();
    flat_parameters();
    order_of_parameters();
    return tap_done();
}
