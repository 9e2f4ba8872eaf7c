/*
 * Plans of many shapes: what plan.h promises holds for each, files of units give what was dealt to
 * them, and patterns find what a search without an index finds.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/plan_units.h"
#include "tests/plan_rig.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct plan_rig rig;

/* What every plan promises, whatever its units: the invariants of plan.h. */
static bool owns_each_param_once(const struct plan *plan)
{
    uint32_t next = 0;
    unsigned char *seen = calloc(plan->model->n_param, 1);
    bool good = seen != NULL;
    for (uint32_t u = 0; u < plan->n_unit && good; u++) {
        const struct unit *unit = &plan->units[u];
        good = unit->param == next && unit->n_param > 0;
        next += unit->n_param;
        for (uint32_t i = unit->param; i < next && good; i++) {
            good = !seen[plan->unit_params[i]]++ &&
                   (i == unit->param || plan->unit_params[i - 1] < plan->unit_params[i]);
        }
    }
    free(seen);
    return good && next == plan->model->n_param;
}

/* Segments are the pieces in order, joined only within a layer. */
static bool covers_pieces(const struct plan *plan)
{
    uint32_t piece = 0;
    for (uint32_t i = 0; i < plan->n_segment; i++, piece++) {
        const struct segment *segment = &plan->segments[i];
        const struct piece *p = &plan->model->pieces[piece];
        bool block = segment->kind == BODY_BLOCK;
        if (segment->grad != p->param || segment->layer != p->layer ||
            segment->kind != (block ? BODY_BLOCK : p->kind))
            return false;
        if (block && (p->kind != BODY_ATTENTION || p[1].kind != BODY_MLP))
            return false;
        piece += block;
    }
    return piece == plan->model->n_piece;
}

/* The member-th parameter of the unit that has a gradient; NO_PARAM where there are fewer. */
#define NO_PARAM UINT32_MAX
static uint32_t grad_member(const struct plan *plan, uint32_t u, uint32_t member)
{
    const struct unit *unit = &plan->units[u];
    for (uint32_t i = 0; i < unit->n_param; i++) {
        uint32_t param = plan->unit_params[unit->param + i];
        if (plan->policy[param].has_grad && member-- == 0)
            return param;
    }
    return NO_PARAM;
}

/* Whether grad slot k of the segment is placed where its parameter's gradient is. */
static bool maps_grad(const struct plan *plan, const struct segment *segment, uint32_t k)
{
    const struct grad_place *place = &plan->grad_places[k];
    uint32_t param = plan->model->piece_params[k];
    if (place->part > segment->n_inner)
        return false;
    uint32_t u =
        place->part == 0 ? segment->unit : plan->inner_units[segment->inner + place->part - 1];
    return !plan->policy[param].has_grad || grad_member(plan, u, place->member) == param;
}

static bool maps_grads(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        const struct segment *segment = &plan->segments[i];
        uint32_t end = i + 1 < plan->n_segment ? segment[1].grad : plan->model->n_param;
        for (uint32_t k = segment->grad; k < end; k++)
            if (!maps_grad(plan, segment, k))
                return false;
    }
    return true;
}

static bool spans_nest(const struct plan *plan)
{
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        const struct unit *unit = &plan->units[u];
        if (u > 0 && unit[-1].first_segment > unit->first_segment)
            return false;
        if (unit->outer == NO_UNIT)
            continue;
        const struct unit *outer = &plan->units[unit->outer];
        if (unit->outer >= u || outer->first_segment > unit->first_segment ||
            outer->last_segment < unit->last_segment)
            return false;
    }
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        const struct unit *unit = &plan->units[plan->segments[i].unit];
        if (i < unit->first_segment || i > unit->last_segment)
            return false;
    }
    return !plan->has_root || (plan->units[0].first_segment == 0 &&
                               plan->units[0].last_segment == plan->n_segment - 1);
}

static bool keeps_invariants(const struct plan *plan)
{
    return owns_each_param_once(plan) && covers_pieces(plan) && maps_grads(plan) &&
           spans_nest(plan);
}

static void test_invariants_of(const struct model *model, const char *const *units, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct plan_options options = plan_rig_options(units[i]);
        struct plan plan = plan_rig_resolve(&rig, model, &options);
        ok(keeps_invariants(&plan), "%s in units of '%s' keeps all invariants", model->name,
           units[i]);
    }
}

/* A unit of two dtypes of compute is refused as torch-2.11 does it. */
static bool mixes_compute(const struct model *model)
{
    for (uint32_t i = 0; i < model->n_param; i++)
        if (model->params[i].keep_fp32)
            return true;
    return false;
}

static void test_invariants(void)
{
    static const char *const schemes[] = {"block", "block*3", "attn+mlp", "whole", "torchtitan"};
    static const struct {
        const char *arch;
        const char *units[2]; /* nested: ten blocks of their own, the others together; a chain */
    } patterns[] = {
        {"llama", {"model.layers,model.layers.1?", "model,model.norm,lm_head"}},
        {"gpt2", {"transformer.h,transformer.h.1?", "transformer.h,transformer.ln_f"}},
        {"mpt", {"transformer.blocks,transformer.blocks.1?", "*.blocks,transformer.norm_f"}},
    };
    for (uint32_t m = 0; m < n_builtin_models; m++) {
        struct model model;
        if (model_open(builtin_models[m].name, 0, &rig.arena, &model, NULL))
            tap_bail("a built-in model is not there");
        if (model.arch->no_step || mixes_compute(&model))
            continue;
        test_invariants_of(&model, schemes, LENGTH(schemes));
        for (size_t i = 0; i < LENGTH(patterns); i++)
            if (model.dims.layers > 10 && strcmp(patterns[i].arch, builtin_models[m].arch) == 0)
                test_invariants_of(&model, patterns[i].units, 2);
    }
}

/*
 * Random files: the smallest things that may be units of their own (embedding, each half of each
 * block, norm, head) are dealt out to a few lists and the root. Each list becomes the unit that
 * owns exactly what was dealt to it.
 */
enum { DEAL_LAYERS = 4, DEALT = 2 * DEAL_LAYERS + 3, MAX_LISTS = 6 };

static const char *dealt_patterns(uint32_t piece)
{
    if (piece == 0)
        return "'model.embed_tokens'";
    if (piece >= DEALT - 2)
        return piece == DEALT - 2 ? "'model.norm'" : "'lm_head'";
    uint32_t layer = (piece - 1) / 2;
    if (piece % 2 == 1)
        return arena_printf(&rig.arena, "'*.%u.self_attn', '*.%u.input_layernorm'", layer, layer);
    return arena_printf(&rig.arena, "'*.%u.mlp', '*.%u.post_attention_layernorm'", layer, layer);
}

static const char *dealt_file(const uint32_t list_of[DEALT])
{
    const char *lists[MAX_LISTS] = {"", "", "", "", "", ""}, *text = "";
    for (uint32_t i = 0; i < DEALT; i++)
        if (list_of[i] < MAX_LISTS) {
            const char **list = &lists[list_of[i]];
            *list =
                arena_printf(&rig.arena, "%s%s%s", *list, **list ? ", " : "", dealt_patterns(i));
        }
    for (uint32_t i = 0; i < MAX_LISTS; i++)
        if (*lists[i])
            text = arena_printf(&rig.arena, "%s%s[%s]", text, *text ? ", " : "", lists[i]);
    return *text ? arena_printf(&rig.arena, "[%s]", text) : NULL;
}

/* Pieces share a unit if and only if they were dealt to the same list. */
static bool is_as_dealt(const struct plan *plan, const uint32_t list_of[DEALT])
{
    uint16_t unit_of[DEALT];
    uint32_t piece = 0;
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        unit_of[piece++] = plan->segments[i].unit;
        bool block = plan->segments[i].kind == BODY_BLOCK;
        if (block)
            unit_of[piece++] = plan->segments[i].unit;
        bool before_mlp = piece % 2 == 0 && piece < DEALT - 2;
        if (!block && before_mlp && list_of[piece - 1] == list_of[piece])
            return false; /* two halves in one unit are one segment */
    }
    for (uint32_t i = 0; i < DEALT; i++)
        for (uint32_t k = 0; k < i; k++)
            if ((unit_of[i] == unit_of[k]) != (list_of[i] == list_of[k]))
                return false;
    return piece == DEALT;
}

static void test_random_files(void)
{
    enum { ROUNDS = 200 };
    uint64_t state = tap_seed(20260115);
    struct arena kept;
    struct model model;
    arena_init(&kept);
    if (model_open("llama2-7b", DEAL_LAYERS, &kept, &model, NULL))
        tap_bail("a built-in model is not there");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t list_of[DEALT];
        for (uint32_t i = 0; i < DEALT; i++)
            list_of[i] = (uint32_t)tap_below(&state, MAX_LISTS + 1);
        const char *text = dealt_file(list_of);
        if (!text)
            continue;
        struct plan_options options = plan_rig_options(plan_rig_write(&rig, text));
        struct plan plan = plan_rig_resolve(&rig, &model, &options);
        if (!keeps_invariants(&plan) || !is_as_dealt(&plan, list_of)) {
            ok(false, "units are as dealt: %s", text);
            break;
        }
        arena_reset(&rig.arena);
    }
    ok(true, "%d random files give the units they list", ROUNDS);
    arena_release(&kept);
}

/* A path of the model with some of it replaced by wildcards, so that it matches that path. */
static const char *random_pattern(const struct model *model, uint64_t *state)
{
    uint64_t module = 1 + tap_below(state, model->n_module - 1);
    char *pattern = arena_strdup(&rig.arena, model->modules[module].path);
    for (uint64_t n = tap_below(state, 4); n > 0; n--) {
        size_t length = strlen(pattern), at = tap_below(state, length);
        size_t run = tap_below(state, 2) ? tap_below(state, length - at) : 0;
        bool one = run == 0 && pattern[at] != '*' && tap_below(state, 2);
        pattern[at] = one ? '?' : '*';
        memmove(pattern + at + 1, pattern + at + 1 + run, length - at - run);
    }
    return pattern;
}

/* What the pattern matches and no match is around: found without an index or subtree ranges. */
static bool is_outermost_match(const struct model *model, const char *pattern, uint32_t module)
{
    const struct module *modules = model->modules;
    if (module == 0 || !text_matches(pattern, modules[module].path))
        return false;
    for (uint32_t around = modules[module].parent; around != 0; around = modules[around].parent)
        if (text_matches(pattern, modules[around].path))
            return false;
    return true;
}

static void test_random_patterns(void)
{
    enum { ROUNDS = 2000 };
    uint64_t state = tap_seed(20260116);
    for (int round = 0; round < ROUNDS; round++) {
        const char *pattern = random_pattern(&rig.small, &state);
        struct unit_drafts drafts;
        struct err err = {0};
        if (plan_units_draft(&rig.small, pattern, &rig.arena, &drafts, &err))
            tap_bail(err.text);
        uint32_t n = 0;
        for (uint32_t i = 0; i < rig.small.n_module; i++) {
            bool match = is_outermost_match(&rig.small, pattern, i);
            if (drafts.of_module[i] != (match ? n : NO_DRAFT)) {
                ok(false, "'%s': module '%s'", pattern, rig.small.modules[i].path);
                return;
            }
            n += match;
        }
        if (drafts.n_draft != n) {
            ok(false, "'%s' makes %u units", pattern, n);
            return;
        }
        arena_reset(&rig.arena);
    }
    ok(true, "%d random patterns make a unit of each outermost match", ROUNDS);
}

/* The deepest model with each block by its path, in a list each and all in one. */
static void test_many_patterns(void)
{
    static const struct dims dims = {.layers = MODEL_MAX_LAYERS,
                                     .hidden = 8,
                                     .intermediate = 8,
                                     .heads = 1,
                                     .kv_heads = 1,
                                     .head_dim = 8,
                                     .vocab = 8,
                                     .default_seq = 8};
    struct model model = {.name = "deep", .arch = arch_by_name("llama"), .dims = dims};
    struct err err = {0};
    if (model.arch->build(&dims, &rig.model_arena, &model, &err))
        tap_bail(err.text);
    struct text units;
    text_init(&units);
    for (int i = 0; i < MODEL_MAX_LAYERS; i++)
        text_add(&units, "%s'model.layers.%d'", i ? ", " : "", i);
    struct plan_options options =
        plan_rig_options(plan_rig_write(&rig, arena_printf(&rig.arena, "[%s]", units.at)));
    struct plan plan = plan_rig_resolve(&rig, &model, &options);
    is_int(plan.n_unit, MODEL_MAX_LAYERS + 1, "4096 paths are 4096 units and the root");
    ok(keeps_invariants(&plan), "which keep all invariants");
    plan_rig_write(&rig, arena_printf(&rig.arena, "[[%s]]", units.at));
    plan = plan_rig_resolve(&rig, &model, &options);
    is_str(plan.units[1].name, "model.layers.0..model.layers.4095",
           "in one list they are one unit");
    text_release(&units);
}

int main(void)
{
    plan_rig_init(&rig);
    test_invariants();
    test_random_files();
    test_random_patterns();
    test_many_patterns();
    plan_rig_release(&rig);
    return tap_done();
}
