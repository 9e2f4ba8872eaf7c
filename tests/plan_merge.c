/*
 * A plan that was joined from a fine one is the plan that names make: the program of units that
 * plan_merge() put together equals that of the same modules written as lists and resolved.
 */
#include "src/plan_merge.h"

#include <inttypes.h>
#include <string.h>

#include "src/plan_check.h"
#include "src/plan_modules.h"
#include "src/schedule/system.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { N_RANDOM = 400 };

static unsigned met_root, met_joined, met_halves, met_tied, met_refused;

/* Neighbours that can join do so now and then; what is no block may go to the root. */
static void draw_groups(uint64_t *state, const struct merge_source *source, uint16_t *group_of)
{
    const struct plan *fine = source->fine;
    bool open = false; /* the unit before can be joined */
    uint16_t n = 0;

    for (uint32_t u = 0; u < fine->n_unit; u++) {
        const bool joins = source->joins[u];
        const bool in_root = plan_is_root(fine, u) || tap_below(state, 8) == 0;
        if (in_root) {
            group_of[u] = MERGE_ROOT;
            met_root++;
        } else if (open && joins && tap_below(state, 2)) {
            group_of[u] = (uint16_t)(n - 1);
            met_joined++;
        } else {
            group_of[u] = n++;
        }
        open = joins && !in_root;
    }
}

static uint64_t hash_of(const struct made *made, const struct plan *plan, struct arena *arena)
{
    struct layout layout;
    struct program program;

    if (layout_build(plan, arena, &layout, NULL) != STATUS_OK)
        tap_bail("a joined plan has no layout");
    schedule_program(plan, &layout, &made->bodies, arena, &program);
    return program_hash(&program);
}

/* The merged plan's own reshard is this one. */
static void compare(const struct made *made, const struct plan *merged, enum reshard reshard,
                    struct arena *arena, const char *what)
{
    struct plan_options options = merged->options;
    struct plan named;
    struct err err = {0};
    struct text units;

    text_init(&units);
    plan_units_text(merged, arena, &units);
    options.units = units.at;
    options.reshard = reshard;
    const enum status status = plan_resolve(&made->model, &options, arena, &named, &err);
    met_refused += status != STATUS_OK;
    if (status != STATUS_OK || plan_check(merged, arena, NULL) != STATUS_OK)
        is_int(plan_check(merged, arena, NULL), status, "%s is refused as %s is: %s", what,
               units.at, err.text);
    else
        ok(hash_of(made, merged, arena) == hash_of(made, &named, arena), "%s is what %s makes",
           what, units.at);
    text_release(&units);
}

static void merge_random(uint64_t seed)
{
    uint64_t state = seed;
    struct dims dims = {0};
    struct plan_options options;
    const char *family = "llama";
    struct made made;
    struct merge_source source;
    struct plan merged;
    uint16_t group_of[256];

    dims = make_random_dims(&state);
    options = make_random_options(&state, &dims);
    if (tap_below(&state, 3) == 0)
        family = make_random_tied(&state, &dims, &options);
    options.units = options.ac == AC_NONE && tap_below(&state, 2) ? "half" : "piece";
    options.reshard = RESHARD_AUTO;
    options.no_reshard = options.no_unshard_backward = options.host_sync = NULL;
    options.policy.second_mesh = NULL;
    make_init_family(&made, family, &dims, &options);
    met_halves += options.units[0] == 'h';
    met_tied += made.model.tied_head != 0;
    if (made.plan.n_unit > sizeof group_of / sizeof *group_of ||
        merge_source_init(&made.plan, &made.arena, &source, NULL) != STATUS_OK)
        tap_bail("a fine plan cannot be joined");
    draw_groups(&state, &source, group_of);
    plan_merge(&source, group_of, &made.arena, &merged);
    compare(&made, &merged, RESHARD_AUTO, &made.arena,
            arena_printf(&made.arena, "seed %" PRIu64 ", %s", seed, family));
    make_release(&made);
}

/* Backward's hooks of the root fire whether or not anything in it is trained. */
static void test_frozen_root(void)
{
    struct plan_options options = plan_options_default();
    struct made made;
    struct merge_source source;
    struct plan merged;
    uint16_t group_of[256];

    options.units = "piece";
    options.policy.freeze = "model.embed_tokens.*";
    make_init(&made, "llama3-8b", 2, &options);
    if (made.plan.n_unit > sizeof group_of / sizeof *group_of ||
        merge_source_init(&made.plan, &made.arena, &source, NULL) != STATUS_OK)
        tap_bail("a fine plan cannot be joined");
    group_of[0] = MERGE_ROOT;
    for (uint32_t u = 1; u < made.plan.n_unit; u++)
        group_of[u] = (uint16_t)(u - 1);
    plan_merge(&source, group_of, &made.arena, &merged);
    merged.units[0].reshard_after_forward = true;
    compare(&made, &merged, RESHARD_YES, &made.arena, "a root that is frozen and freed");
    make_release(&made);
}

static void test_refused(void)
{
    static const struct {
        const char *units, *host_sync, *no_unshard, *says;
    } cases[] = {
        {"model.layers.*,model", NULL, NULL, "lies inside of another one"},
        {"piece", "*.0", NULL, "has a switch of its own"},
        {"piece", NULL, "model.embed_tokens", "has a switch of its own"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct made made;
        struct merge_source source;
        struct err err = {0};
        options.units = cases[i].units;
        options.host_sync = cases[i].host_sync;
        options.no_unshard_backward = cases[i].no_unshard;
        make_init(&made, "llama3-8b", 2, &options);
        ok(merge_source_init(&made.plan, &made.arena, &source, &err) == STATUS_USAGE &&
               strstr(err.text, cases[i].says),
           "a unit that %s cannot be joined", cases[i].says);
        make_release(&made);
    }
}

int main(void)
{
    uint64_t seed = tap_seed(7);
    for (unsigned i = 0; i < N_RANDOM; i++)
        merge_random(seed + i);
    ok(met_root > 50 && met_joined > 200 && met_halves > 50 && met_tied > 20 &&
           met_refused < N_RANDOM / 4,
       "roots (%u), joins (%u), halves (%u) and tied heads (%u) were among them; %u were refused",
       met_root, met_joined, met_halves, met_tied, met_refused);
    test_frozen_root();
    test_refused();
    return tap_done();
}
