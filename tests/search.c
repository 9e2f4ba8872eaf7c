/*
 * A search finds the plan that is best: 200 random cases against an oracle that writes every plan down
 * as text, resolves it and simulates all of it, and knows nothing of points, bounds or batches.
 */
#include "sim/search.h"

#include <inttypes.h>
#include <string.h>

#include "sim/simulate.h"
#include "src/schedule/system.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { N_CASES = 200, MOST_ATOMS = 16, MOST_PLANS = 1200 };

static const unsigned axis_sets[] = {
    1u << AXIS_GROUPING,
    1u << AXIS_TAIL,
    1u << AXIS_GROUPING | 1u << AXIS_RESHARD,
    1u << AXIS_GROUPING | 1u << AXIS_PREFETCH,
    1u << AXIS_GROUPING | 1u << AXIS_TAIL,
    1u << AXIS_TAIL | 1u << AXIS_RESHARD,
    AXES_ALL,
};

struct rig {
    struct made made; /* of units as small as they get */
    struct plan start;
    struct plan_options options;
    struct cluster cluster;
    struct space space;
    unsigned axes;
};

/* ---- the oracle ----------------------------------------------------------------------------------- */

struct answer {
    int64_t step_ns;     /* of the fastest within the limit; INT64_MAX: none is */
    uint64_t peak_bytes; /* of the smallest of all */
    uint64_t most_bytes; /* of the largest */
    uint64_t n;
};

struct oracle {
    struct rig *rig;
    uint64_t limit_bytes;
    struct arena arena;
    const char *atoms[MOST_ATOMS]; /* modules */
    int unit_of[MOST_ATOMS];       /* the root is 0 */
    uint32_t n_atom, n_block;
    struct answer answer;
};

static const char *units_text(struct oracle *o, int n_unit)
{
    const char *text = "";
    for (int u = 1; u <= n_unit; u++) {
        const char *list = "";
        for (uint32_t a = 0; a < o->n_atom; a++)
            if (o->unit_of[a] == u)
                list = arena_printf(&o->arena, "%s%s\"%s\"", list, *list ? "," : "", o->atoms[a]);
        text = arena_printf(&o->arena, "%s%s[%s]", text, *text ? "," : "", list);
    }
    return *text ? arena_printf(&o->arena, "[%s]", text) : "whole";
}

/* Nothing of the judge's: every step from the text on, and three steps on the clock. */
static void simulate_plan(struct oracle *o, const struct plan *plan)
{
    const struct rig *rig = o->rig;
    struct layout layout;
    struct program program;
    struct prices prices;
    struct step_time time;
    struct summary summary;
    uint64_t peak = 0;

    if (layout_build(plan, &o->arena, &layout, NULL) != STATUS_OK)
        tap_bail("no layout");
    schedule_program(plan, &layout, &rig->made.bodies, &o->arena, &program);
    if (cost_price(&rig->cluster, SPREAD_MID, &program, &o->arena, &prices, NULL) != STATUS_OK ||
        simulate(&program, &prices, NULL, &o->arena, &time, NULL, NULL) != STATUS_OK)
        tap_bail("no simulation");
    summary_of(&program, &summary);
    for (unsigned s = 0; s < SECTION_N; s++)
        peak = summary.peak_bytes[s] > peak ? summary.peak_bytes[s] : peak;
    struct answer *answer = &o->answer;
    if (peak <= o->limit_bytes && time.step_ns < answer->step_ns)
        answer->step_ns = time.step_ns;
    answer->peak_bytes = peak < answer->peak_bytes ? peak : answer->peak_bytes;
    answer->most_bytes = peak > answer->most_bytes ? peak : answer->most_bytes;
    answer->n++;
}

/* With every set of units that keep their parameters, where that varies. */
static void try_keeps(struct oracle *o, struct plan *plan)
{
    const bool varies = o->rig->axes >> AXIS_RESHARD & 1;

    for (uint32_t keeps = 0; keeps < (varies ? 1u << plan->n_unit : 1); keeps++) {
        for (uint32_t u = 0; varies && u < plan->n_unit; u++)
            plan->units[u].reshard_after_forward = !(keeps >> u & 1);
        simulate_plan(o, plan);
    }
}

static void try_units(struct oracle *o, int n_unit)
{
    const bool varies = o->rig->axes >> AXIS_PREFETCH & 1;
    struct plan_options options = o->rig->options;

    arena_reset(&o->arena);
    options.units = units_text(o, n_unit);
    for (uint64_t forward = 0; forward < (varies ? 3 : 1); forward++)
        for (uint64_t backward = 0; backward < (varies ? 3 : 1); backward++) {
            struct plan plan;
            options.prefetch = varies ? forward : o->rig->options.prefetch;
            options.prefetch_backward = backward;
            if (plan_resolve(&o->rig->made.model, &options, &o->arena, &plan, NULL) != STATUS_OK)
                tap_bail("a plan of the oracle is refused");
            try_keeps(o, &plan);
        }
}

static int start_unit(const struct oracle *o, uint32_t a)
{
    const struct plan *start = &o->rig->start;
    const uint32_t param = o->rig->made.plan.unit_params[o->rig->made.plan.units[a].param];

    for (uint32_t u = 0; u < start->n_unit; u++)
        for (uint32_t i = 0; i < start->units[u].n_param; i++)
            if (start->unit_params[start->units[u].param + i] == param)
                return plan_is_root(start, u) ? 0 : (int)u + 1;
    return -1;
}

static bool is_block(const struct oracle *o, uint32_t a)
{
    return a > 0 && a <= o->n_block;
}

/* Whether the atom may choose freely where it goes, next to the one before it. */
static bool varies(const struct oracle *o, uint32_t a)
{
    const bool in_blocks = a > 0 && is_block(o, a) && is_block(o, a - 1);
    return o->rig->axes >> (in_blocks ? AXIS_GROUPING : AXIS_TAIL) & 1;
}

/* Atom by atom: a new unit, that of the atom before, or the root. */
static void try_atoms(struct oracle *o, uint32_t a, int n_unit)
{
    const int before = a > 0 ? o->unit_of[a - 1] : 0;

    if (a == o->n_atom) {
        try_units(o, n_unit);
        return;
    }
    const int was = start_unit(o, a), was_before = a > 0 ? start_unit(o, a - 1) : -1;
    const bool free = varies(o, a), end_free = o->rig->axes >> AXIS_TAIL & 1;
    if (free || (was > 0 && was != was_before)) {
        o->unit_of[a] = n_unit + 1;
        try_atoms(o, a + 1, n_unit + 1);
    }
    if (before > 0 && (free || (was > 0 && was == was_before))) {
        o->unit_of[a] = before;
        try_atoms(o, a + 1, n_unit);
    }
    if (!is_block(o, a) && (end_free || was == 0)) {
        o->unit_of[a] = 0;
        try_atoms(o, a + 1, n_unit);
    }
}

static struct answer ask_oracle(struct rig *rig, uint64_t limit_bytes)
{
    struct oracle o = {.rig = rig,
                       .limit_bytes = limit_bytes,
                       .n_atom = rig->space.n_atom,
                       .n_block = rig->space.n_atom - 3,
                       .answer = {.step_ns = INT64_MAX, .peak_bytes = UINT64_MAX}};

    arena_init(&o.arena);
    for (uint32_t a = 0; a < o.n_atom; a++)
        o.atoms[a] = rig->made.plan.units[a].name;
    try_atoms(&o, 0, 0);
    arena_release(&o.arena);
    return o.answer;
}

/* ---- cases ---------------------------------------------------------------------------------------- */

/* Blocks that are neither all communication nor all compute, on few or many GPUs. */
static void draw_case(uint64_t *state, struct rig *rig)
{
    static const char *const starts[] = {"torchtitan", "block", "piece"};
    static const char *const clusters[] = {"h100-sxm", "a100-sxm-80g", "toy"};
    const uint64_t heads = 8 << tap_below(state, 3);
    const unsigned set = (unsigned)tap_below(state, sizeof axis_sets / sizeof *axis_sets);
    static const uint64_t most_layers[] = {10, 12, 5, 6, 6, 12, 2};
    const struct dims dims = {.layers = 1 + tap_below(state, most_layers[set]),
                              .hidden = heads * 128,
                              .intermediate = heads * 128 * (1 + tap_below(state, 4)),
                              .heads = heads,
                              .kv_heads = heads,
                              .head_dim = 128,
                              .vocab = 1000 << tap_below(state, 6),
                              .default_seq = 512 << tap_below(state, 4)};
    struct err err = {0};

    rig->axes = axis_sets[set];
    rig->options = plan_options_default();
    rig->options.gpus = 2 << tap_below(state, 8);
    rig->options.ac = (enum checkpointing)tap_below(state, 3);
    rig->options.prefetch = tap_below(state, 3);
    rig->options.units = "piece";
    make_init_dims(&rig->made, &dims, &rig->options);
    rig->options.units = starts[tap_below(state, 3)];
    if (plan_resolve(&rig->made.model, &rig->options, &rig->made.arena, &rig->start, &err) !=
            STATUS_OK ||
        cluster_open(clusters[tap_below(state, 8) / 3], &rig->made.arena, &rig->cluster, &err) !=
            STATUS_OK ||
        space_init(&rig->made.plan, &rig->start, rig->axes, &rig->made.arena, &rig->space, &err) !=
            STATUS_OK)
        tap_bail(err.text);
}

static uint64_t n_judged[BOUND_N + 1]; /* without each bound; with all */
static unsigned n_short, n_limited, n_large;

static struct search_result search(struct rig *rig, uint64_t limit_bytes, unsigned bounds,
                                   uint32_t jobs)
{
    struct search_options options = search_options_default();
    struct search_result result;
    struct err err = {0};

    options.limit_bytes = limit_bytes;
    options.bounds = bounds;
    options.jobs = jobs;
    if (search_run(&rig->space, &rig->cluster, &rig->made.bodies, &options, &rig->made.arena,
                   &result, &err) != STATUS_OK)
        tap_bail(err.text);
    return result;
}

static bool is_right(const struct search_result *result, const struct answer *answer)
{
    if (!result->whole || result->n == 0)
        return false;
    if (answer->step_ns == INT64_MAX)
        return result->found[0].judged.peak_bytes == answer->peak_bytes;
    return result->found[0].judged.step_ns == answer->step_ns;
}

static bool same_found(const struct search_result *a, const struct search_result *b,
                       uint32_t point_bytes)
{
    if (a->n != b->n || a->progress.judged != b->progress.judged)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (memcmp(a->found[i].point, b->found[i].point, point_bytes) != 0)
            return false;
    return true;
}

static void test_case(uint64_t seed)
{
    uint64_t state = seed;
    struct rig rig;

    do
        draw_case(&state, &rig);
    while (space_size(&rig.space) > MOST_PLANS && (make_release(&rig.made), true));
    const struct answer all = ask_oracle(&rig, UINT64_MAX);
    const uint64_t range = all.most_bytes - all.peak_bytes;
    const uint64_t limit =
        tap_below(&state, 4) ? all.peak_bytes - 1 + tap_below(&state, range + 2) : UINT64_MAX;
    const struct answer answer = ask_oracle(&rig, limit);
    const char *what =
        arena_printf(&rig.made.arena, "seed %" PRIu64 ", %u atoms, axes %x, %" PRIu64 " plans",
                     seed, rig.space.n_atom, rig.axes, answer.n);
    n_short += answer.step_ns == INT64_MAX;
    n_limited += answer.step_ns > all.step_ns && answer.step_ns < INT64_MAX;
    n_large += answer.n > 200;

    is_int(answer.n, (uint64_t)space_size(&rig.space), "%s: all of them are in the space", what);
    const struct search_result result = search(&rig, limit, BOUNDS_ALL, 1);
    if (!ok(is_right(&result, &answer), "%s: the best of them is found", what))
        tap_note("%" PRIi64 " ns, %" PRIu64 " bytes; found %u, the first of %" PRIi64
                 " ns, %" PRIu64 " bytes; limit %" PRIu64,
                 answer.step_ns, answer.peak_bytes, result.n,
                 result.n ? result.found[0].judged.step_ns : 0,
                 result.n ? result.found[0].judged.peak_bytes : 0, limit);
    n_judged[BOUND_N] += result.progress.judged;
    for (unsigned bound = 0; bound < BOUND_N; bound++) {
        const struct search_result without = search(&rig, limit, BOUNDS_ALL & ~(1u << bound), 1);
        ok(is_right(&without, &answer), "%s: and without bound %u", what, bound);
        n_judged[bound] += without.progress.judged;
    }
    const struct search_result threads = search(&rig, limit, BOUNDS_ALL, 3);
    ok(same_found(&threads, &result, rig.space.point_bytes), "%s: and on three threads", what);
    make_release(&rig.made);
}

/* Asked to go on, n times. */
static bool count_down(void *self, const struct search_progress *progress)
{
    uint32_t *n = self;
    return progress->judged > 0 && (*n)-- > 1;
}

/* What was judged before somebody said no is the answer. */
static void test_stopped(uint64_t seed)
{
    uint64_t state = seed;
    struct search_options options = search_options_default();
    struct search_result result;
    struct rig rig;
    uint32_t n = 1;

    do
        draw_case(&state, &rig);
    while (space_size(&rig.space) < 100 && (make_release(&rig.made), true));
    options.go_on = count_down;
    options.self = &n;
    if (search_run(&rig.space, &rig.cluster, &rig.made.bodies, &options, &rig.made.arena, &result,
                   NULL) != STATUS_OK)
        tap_bail("a search failed");
    ok(result.stopped && !result.whole && result.n > 0 &&
           result.n < (uint32_t)space_size(&rig.space),
       "a search that is stopped has %u of %.0f plans, the best first", result.n,
       space_size(&rig.space));
    for (uint32_t i = 1; i < result.n && i < 20; i++)
        ok(result.found[i - 1].judged.step_ns <= result.found[i].judged.step_ns, "in order");
    make_release(&rig.made);
}

int main(void)
{
    const uint64_t seed = tap_seed(3);

    for (unsigned i = 0; i < N_CASES; i++)
        test_case(seed + 1000 * i);
    test_stopped(seed);
    ok(n_short > 5 && n_limited > 20 && n_large > 20,
       "%u cases in which nothing fits, %u in which the limit decides, %u of over 200 plans",
       n_short, n_limited, n_large);
    for (unsigned bound = 0; bound < BOUND_N; bound++)
        ok(n_judged[bound] > n_judged[BOUND_N],
           "without bound %u more is judged: %" PRIu64 ", not %" PRIu64, bound, n_judged[bound],
           n_judged[BOUND_N]);
    return tap_done();
}
