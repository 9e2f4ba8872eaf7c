/*
 * Plans: which units a scheme, a pattern list or a file gives, and what is refused.
 *
 * A plan is compared as text, one line a unit and one a segment (see print_units). Random files of
 * units are held against the list they were made from.
 */
#include "src/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/model_builder.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static struct model small; /* llama3-8b cut to 3 blocks: 30 parameters */
static char file_name[] = "plan-test-XXXXXX";

static struct plan_options with_units(const char *units)
{
    struct plan_options options = plan_options_default();
    options.units = units;
    return options;
}

static struct plan resolve_or_bail(const struct model *model, const struct plan_options *options)
{
    struct plan plan;
    struct err err = {0};
    if (plan_resolve(model, options, &arena, &plan, &err))
        tap_bail(err.text);
    return plan;
}

/*
 * "NAME PARAMETERS [FIRST SEGMENT-LAST] in OUTER": 'keep' where it stays gathered after forward,
 * 'final' where the end of backward reduces it.
 */
static const char *print_units(const struct plan *plan)
{
    const char *text = "";
    for (uint32_t i = 0; i < plan->n_unit; i++) {
        const struct unit *unit = &plan->units[i];
        const char *outer = unit->outer == NO_UNIT ? "-" : plan->units[unit->outer].name;
        text = arena_printf(&arena, "%s%s %u [%u-%u] in %s%s%s\n", text, unit->name, unit->n_param,
                            unit->first_segment, unit->last_segment, outer,
                            unit->reshard_after_forward ? "" : " keep",
                            unit->input_has_grad ? "" : " final");
    }
    return text;
}

/* "block0:1 block1:2 head:0": kind and layer of each segment, and the unit that owns it. */
static const char *print_segments(const struct plan *plan)
{
    const char *text = "";
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        const struct segment *segment = &plan->segments[i];
        text = arena_printf(&arena, "%s%s%s%u:%u", text, i ? " " : "",
                            body_kind_name(segment->kind), segment->layer, segment->unit);
    }
    return text;
}

#define BLOCK_SEGMENTS "embedding0:0 block0:1 block1:2 block2:3 norm0:0 head0:0"

static void test_schemes(void)
{
    static const struct {
        const char *units, *segments, *listing;
    } cases[] = {
        {"block", BLOCK_SEGMENTS,
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0 9 [1-1] in (root)\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        {"block*1", BLOCK_SEGMENTS,
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0 9 [1-1] in (root)\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        {"block*2", "embedding0:0 block0:1 block1:1 block2:2 norm0:0 head0:0",
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0..model.layers.1 18 [1-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        {"block*99", "embedding0:0 block0:1 block1:1 block2:1 norm0:0 head0:0",
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0..model.layers.2 27 [1-3] in (root)\n"},
        {"attn+mlp",
         "embedding0:0 attention0:1 mlp0:2 attention1:3 mlp1:4 attention2:5 mlp2:6 norm0:0 head0:0",
         "(root) 3 [0-8] in - keep final\n"
         "model.layers.0.self_attn 5 [1-1] in (root)\n"
         "model.layers.0.mlp 4 [2-2] in (root)\n"
         "model.layers.1.self_attn 5 [3-3] in (root)\n"
         "model.layers.1.mlp 4 [4-4] in (root)\n"
         "model.layers.2.self_attn 5 [5-5] in (root)\n"
         "model.layers.2.mlp 4 [6-6] in (root)\n"},
        {"whole", "embedding0:0 block0:0 block1:0 block2:0 norm0:0 head0:0",
         "(root) 30 [0-5] in - keep final\n"},
        {"torchtitan", "embedding0:0 block0:1 block1:2 block2:3 norm0:4 head0:4",
         "model.embed_tokens 1 [0-0] in - final\n"
         "model.layers.0 9 [1-1] in -\n"
         "model.layers.1 9 [2-2] in -\n"
         "model.layers.2 9 [3-3] in -\n"
         "model.norm, lm_head 2 [4-5] in -\n"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units(cases[i].units);
        struct plan plan = resolve_or_bail(&small, &options);
        is_str(print_segments(&plan), cases[i].segments, "%s: segments", cases[i].units);
        is_str(print_units(&plan), cases[i].listing, "%s: units", cases[i].units);
        is_int(plan.has_root, strncmp(cases[i].listing, "(root)", 6) == 0, "%s: the root",
               cases[i].units);
    }
}

static void test_patterns(void)
{
    static const struct {
        const char *units, *segments, *listing;
    } cases[] = {
        {"model.layers.?", BLOCK_SEGMENTS,
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0 9 [1-1] in (root)\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        {" lm_head , *.layers.1", "embedding0:0 block0:0 block1:1 block2:0 norm0:0 head0:2",
         "(root) 20 [0-5] in - keep final\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "lm_head 1 [5-5] in (root)\n"},
        /* the root begins after the first segment only by what it owns: its hooks fire first */
        {"model.embed_tokens", "embedding0:1 block0:0 block1:0 block2:0 norm0:0 head0:0",
         "(root) 29 [0-5] in - keep final\n"
         "model.embed_tokens 1 [0-0] in (root) final\n"},
        /* an outer unit owns what inner ones leave, and its hooks enclose theirs */
        {"model,model.layers.?,lm_head",
         "embedding0:0 block0:1 block1:2 block2:3 norm0:0 head0:4",
         "model 2 [0-4] in - final\n"
         "model.layers.0 9 [1-1] in model\n"
         "model.layers.1 9 [2-2] in model\n"
         "model.layers.2 9 [3-3] in model\n"
         "lm_head 1 [5-5] in -\n"},
        {"model.embed_tokens,model.layers.0,model.layers,model",
         "embedding0:2 block0:4 block1:3 block2:3 norm0:1 head0:0",
         "(root) 1 [0-5] in - keep final\n"
         "model 1 [0-4] in (root) final\n"
         "model.embed_tokens 1 [0-0] in model final\n"
         "model.layers 18 [1-3] in model\n"
         "model.layers.0 9 [1-1] in model.layers\n"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units(cases[i].units);
        struct plan plan = resolve_or_bail(&small, &options);
        is_str(print_segments(&plan), cases[i].segments, "'%s': segments", cases[i].units);
        is_str(print_units(&plan), cases[i].listing, "'%s': units", cases[i].units);
    }
}

/* Files are written with ' for ". Returns "@FILE". */
static const char *write_file(const char *text)
{
    FILE *file = fopen(file_name, "w");
    if (!file)
        tap_bail("cannot write a file of units");
    for (; *text; text++)
        fputc(*text == '\'' ? '"' : *text, file);
    fclose(file);
    return arena_printf(&arena, "@%s", file_name);
}

static void test_files(void)
{
    static const struct {
        const char *text, *segments, *listing;
    } cases[] = {
        {"['model.layers.?']", BLOCK_SEGMENTS,
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0 9 [1-1] in (root)\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        /* a list is one unit; its name tells neighbours from others */
        {"[['model.layers.?'], ['model.embed_tokens', 'model.norm', 'lm_head']]",
         "embedding0:0 block0:1 block1:1 block2:1 norm0:0 head0:0",
         "model.embed_tokens, model.norm, lm_head 3 [0-5] in - final\n"
         "model.layers.0..model.layers.2 27 [1-3] in -\n"},
        {"[['model.layers.0', 'model.layers.2'], ['model.layers.1', 'lm_head']]",
         "embedding0:0 block0:1 block1:2 block2:1 norm0:0 head0:2",
         "(root) 2 [0-5] in - keep final\n"
         "model.layers.0, model.layers.2 18 [1-3] in (root)\n"
         "model.layers.1, lm_head 10 [2-5] in (root)\n"},
        {"[['*.embed_tokens', '*.layers.0', '*.layers.2', 'lm_head']]",
         "embedding0:1 block0:1 block1:0 block2:1 norm0:0 head0:1",
         "(root) 10 [0-5] in - keep final\n"
         "model.embed_tokens and 3 more 20 [0-5] in (root) final\n"},
        {"[['lm_head', 'lm_*']]", "embedding0:0 block0:0 block1:0 block2:0 norm0:0 head0:1",
         "(root) 29 [0-5] in - keep final\n"
         "lm_head 1 [5-5] in (root)\n"},
        /* the border inside a block, by hand; what is inside a list's own module adds nothing */
        {"[['model.layers.1.self_attn*', 'model.layers.1.input_layernorm']]",
         "embedding0:0 block0:0 attention1:1 mlp1:0 block2:0 norm0:0 head0:0",
         "(root) 25 [0-6] in - keep final\n"
         "model.layers.1.self_attn, model.layers.1.input_layernorm 5 [2-2] in (root)\n"},
        {"['model.layers.1', ['model.layers.1.mlp', 'model.layers.1.post*']]",
         "embedding0:0 block0:0 attention1:1 mlp1:2 block2:0 norm0:0 head0:0",
         "(root) 21 [0-6] in - keep final\n"
         "model.layers.1 5 [2-3] in (root)\n"
         "model.layers.1.mlp, model.layers.1.post_attention_layernorm 4 [3-3] in model.layers.1\n"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units(write_file(cases[i].text));
        struct plan plan = resolve_or_bail(&small, &options);
        is_str(print_segments(&plan), cases[i].segments, "file %s: segments", cases[i].text);
        is_str(print_units(&plan), cases[i].listing, "file %s: units", cases[i].text);
    }
}

/* One letter a unit: r reshards after forward, k stays gathered. */
static void test_reshard(void)
{
    static const struct {
        const char *units;
        enum reshard reshard;
        const char *kept;
    } cases[] = {
        {"block", RESHARD_AUTO, "krrr"},          {"block", RESHARD_YES, "rrrr"},
        {"block", RESHARD_NO, "kkkk"},            {"block", RESHARD_ALL_BUT_LAST, "krrk"},
        {"torchtitan", RESHARD_AUTO, "rrrrr"},    {"torchtitan", RESHARD_YES, "rrrrr"},
        {"torchtitan", RESHARD_NO, "kkkkk"},      {"torchtitan", RESHARD_ALL_BUT_LAST, "rrrrk"},
        {"whole", RESHARD_AUTO, "k"},             {"whole", RESHARD_YES, "r"},
        {"whole", RESHARD_NO, "k"},               {"whole", RESHARD_ALL_BUT_LAST, "k"},
        {"lm_head", RESHARD_ALL_BUT_LAST, "kk"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units(cases[i].units);
        options.reshard = cases[i].reshard;
        struct plan plan = resolve_or_bail(&small, &options);
        char kept[16] = "";
        for (uint32_t u = 0; u < plan.n_unit && u < sizeof(kept) - 1; u++)
            kept[u] = plan.units[u].reshard_after_forward ? 'r' : 'k';
        is_str(kept, cases[i].kept, "%s under policy %d", cases[i].units, cases[i].reshard);
    }
}

static void test_defaults(void)
{
    static const struct {
        uint64_t gpus, nodes, want_nodes;
    } cases[] = {{1, 0, 1}, {7, 0, 1}, {8, 0, 1}, {12, 0, 2}, {16, 0, 2}, {512, 0, 64}, {16, 4, 4}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units("block");
        options.gpus = cases[i].gpus;
        options.nodes = cases[i].nodes;
        struct plan plan = resolve_or_bail(&small, &options);
        is_int(plan.options.nodes, cases[i].want_nodes, "%" PRIu64 " gpus: nodes", cases[i].gpus);
        is_int(plan.world, cases[i].gpus, "one rank a gpu");
        is_int(plan.gpus_per_node * plan.options.nodes, plan.world, "spread evenly");
    }
    struct plan_options options = plan_options_default();
    struct plan plan = resolve_or_bail(&small, &options);
    is_int(plan.options.seq, 8192, "the model's own sequence where nobody says otherwise");
    ok(plan.param_dtype == DTYPE_BF16 && plan.reduce_dtype == DTYPE_FP32,
       "computed in BF16, reduced in FP32");
    ok(plan.model == &small && plan.options.gpus == 8 && plan.n_unit == 5,
       "8 gpus under the units of torchtitan");
    struct body_options body = plan_body_options(&plan);
    ok(body.batch == 1 && body.seq == 8192 && body.ac == AC_NONE &&
           body.ops == OPS_TORCH_EAGER && body.norm == NORM_FUSED,
       "bodies see the shapes and how PyTorch runs them");
}

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

/* Each grad slot names a member of the segment's unit that is this very parameter. */
static bool maps_grads(const struct plan *plan)
{
    const struct model *model = plan->model;
    for (uint32_t i = 0; i < plan->n_segment; i++) {
        const struct segment *segment = &plan->segments[i];
        uint32_t end = i + 1 < plan->n_segment ? segment[1].grad : model->n_param;
        const struct unit *unit = &plan->units[segment->unit];
        for (uint32_t k = segment->grad; k < end; k++) {
            uint32_t member = plan->grad_member[k];
            if (member >= unit->n_param ||
                plan->unit_params[unit->param + member] != model->piece_params[k])
                return false;
        }
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

static void test_invariants(void)
{
    static const char *const units[] = {
        "block", "block*3", "attn+mlp", "whole", "torchtitan",
        "model.layers,model.layers.1?", /* nested: ten blocks of their own, the others together */
        "model,model.norm,lm_head"};
    for (uint32_t m = 0; m < n_builtin_models; m++) {
        struct model model;
        if (model_open(builtin_models[m].name, 0, &arena, &model, NULL))
            tap_bail("a built-in model is not there");
        for (size_t i = 0; i < LENGTH(units); i++) {
            struct plan_options options = with_units(units[i]);
            struct plan plan = resolve_or_bail(&model, &options);
            ok(keeps_invariants(&plan), "%s in units of '%s' keeps all invariants", model.name,
               units[i]);
        }
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
        return arena_printf(&arena, "'*.%u.self_attn', '*.%u.input_layernorm'", layer, layer);
    return arena_printf(&arena, "'*.%u.mlp', '*.%u.post_attention_layernorm'", layer, layer);
}

static const char *dealt_file(const uint32_t list_of[DEALT])
{
    const char *lists[MAX_LISTS] = {"", "", "", "", "", ""}, *text = "";
    for (uint32_t i = 0; i < DEALT; i++)
        if (list_of[i] < MAX_LISTS) {
            const char **list = &lists[list_of[i]];
            *list = arena_printf(&arena, "%s%s%s", *list, **list ? ", " : "", dealt_patterns(i));
        }
    for (uint32_t i = 0; i < MAX_LISTS; i++)
        if (*lists[i])
            text = arena_printf(&arena, "%s%s[%s]", text, *text ? ", " : "", lists[i]);
    return *text ? arena_printf(&arena, "[%s]", text) : NULL;
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
        struct plan_options options = with_units(write_file(text));
        struct plan plan = resolve_or_bail(&model, &options);
        if (!keeps_invariants(&plan) || !is_as_dealt(&plan, list_of)) {
            ok(false, "units are as dealt: %s", text);
            break;
        }
        arena_reset(&arena);
    }
    ok(true, "%d random files give the units they list", ROUNDS);
    arena_release(&kept);
}

static void is_refused(const struct plan_options *options, enum status status, const char *says,
                       const char *what)
{
    struct plan plan = {.n_unit = 77};
    struct err err = {0};
    is_int(plan_resolve(&small, options, &arena, &plan, &err), status, "%s is refused", what);
    if (!ok(strstr(err.text, says) && !strchr(err.text, '\n'), "%s: \"%s\"", what, says))
        tap_note("%s", err.text);
    ok(plan.n_unit == 77, "%s gives no plan", what);
}

static void test_bad_units(void)
{
    static const struct {
        const char *units, *says;
    } cases[] = {
        {"blok", "no module matches 'blok'; did you mean 'block'?"},
        {"torchtitan2", "did you mean 'torchtitan'?"},
        {"lm_heads", "did you mean 'lm_head'?"},
        {"model.layers.0.self_atn", "did you mean 'model.layers.0.self_attn'?"},
        {"norm", "did you mean 'model.norm'?"},
        {"layers.?", "did you mean 'model.layers.0'?"},
        {"model.layers.?,model.layers.9", "no module matches 'model.layers.9'"},
        {"zzzzzzzzzzzz", "paths run from 'model' to 'lm_head'"},
        {"block,lm_head", "no module matches 'block'; a scheme stands alone"},
        {"block*0", "no unit can have 0 blocks"},
        {"block*", "no module matches 'block*'"},
        {"block*-1", "no module matches 'block*-1'"},
        {"block*99999999999999999999", "no module matches"},
        {"", "empty pattern"},
        {"lm_head,,model.norm", "empty pattern in the list of units 'lm_head,,model.norm'"},
        {"lm_head,", "empty pattern"},
        {"lm_head,lm_*", "module 'lm_head' would be in two units, 'lm_head' and 'lm_*'"},
        {"model.layers.0,model.layers.?", "module 'model.layers.0' would be in two units"},
        {"*", "unit 'model' has no parameters: inner units such as 'model.embed_tokens'"},
        {"model.layers.*", "'*' also stands for dots"},
        {"model.layers,model.layers.?", "unit 'model.layers' has no parameters"},
        {"model.layers.1.self_attn",
         "cuts through the attention of layer 1: 'model.layers.1.self_attn.q_proj.weight' is in "
         "unit 'model.layers.1.self_attn', 'model.layers.1.input_layernorm.weight' in '(root)'; "
         "inside a block a border can only run between attention with input_layernorm and mlp "
         "with post_attention_layernorm"},
        {"*.mlp,*.1", "cuts through the mlp of layer 0"},
        {"*.0.mlp.up_proj", "'model.layers.0.mlp.up_proj.weight' in 'model.layers.0.mlp.up_proj'"},
        {"@no-such-file.json", "cannot read 'no-such-file.json'"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units(cases[i].units);
        enum status status = *cases[i].units == '@' ? STATUS_INPUT : STATUS_USAGE;
        is_refused(&options, status, cases[i].says, arena_printf(&arena, "'%s'", cases[i].units));
    }
}

static void test_bad_files(void)
{
    static const struct {
        const char *text, *says; /* what follows the file's name */
    } cases[] = {
        {"", "line 1"},
        {"['lm_head'", "line 1"},
        {"{'units': []}", "must be a list"},
        {"[]", "names no unit"},
        {"[[]]", "[0]: a unit without patterns"},
        {"['lm_head', 3]", "[1]: a string is needed, not a number"},
        {"['lm_head', ['model.norm', null]]", "[1][1]: "},
        {"['lm_head', 'model.norn']", "[1]: no module matches 'model.norn'; did you mean"},
        {"['lm_head', '']", "[1]: no module matches ''"},
        {"['lm_head', 'block']", "[1]: no module matches 'block'; a scheme stands alone"},
        {"['lm_head', ['model.norm', 'lm_*']]",
         "[1]: module 'lm_head' would be in two units, 'lm_head' and 'model.norm, lm_*'"},
        {"['model.layers', ['model.layers.?']]", "[0]: unit 'model.layers' has no parameters"},
        {"[['model.layers.0.self_attn'], 'lm_head']", "[0]: a unit border cuts through"},
        {"['model.layers.0', ['model.layers.0.mlp']]", "[1]: a unit border cuts through the mlp"},
        {"['model', ['model.norm', 'lm_head']]",
         "[1]: unit 'model.norm, lm_head' lies partly in unit 'model' and partly in '(root)'"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units(write_file(cases[i].text));
        const char *says = arena_printf(&arena, "%s: %s", file_name, cases[i].says);
        is_refused(&options, STATUS_INPUT, says, arena_printf(&arena, "file %s", cases[i].text));
    }
}

/* Another family may embed tokens and positions, in two modules that make one piece. */
static void test_embedding_of_two(void)
{
    static const char *const names[] = {"wte", "wpe", "head"};
    struct model model = {.name = "two"};
    struct model_builder builder;
    model_builder_init(&builder, &arena, &model);
    for (size_t i = 0; i < LENGTH(names); i++) {
        uint32_t param;
        model_builder_enter(&builder, names[i]);
        if (model_builder_param(&builder, "weight", 8, 4, &param, NULL))
            tap_bail("a small parameter is refused");
        model_builder_leave(&builder);
        if (i != 1)
            model_builder_piece(&builder, i == 0 ? BODY_EMBEDDING : BODY_HEAD, 0);
        model_builder_piece_param(&builder, param);
    }
    model_builder_finish(&builder);
    struct plan_options options = with_units("torchtitan");
    options.seq = 8;
    struct plan plan = resolve_or_bail(&model, &options);
    is_str(print_units(&plan), "wte..wpe 2 [0-0] in - final\nhead 1 [1-1] in -\n",
           "the embedding's modules are one unit");
    struct err err = {0};
    options.units = "wpe";
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_USAGE, "half of it is not");
    is_str(err.text, "a unit border cuts through the embedding: 'wte.weight' is in unit '(root)', "
                     "'wpe.weight' in 'wpe'", "and the message has both halves");
}

static void test_cut_regions(void)
{
    static const struct {
        const char *units, *says; /* NULL: allowed */
    } cases[] = {
        {"attn+mlp", "units 'model.layers.0.self_attn' and 'model.layers.0.mlp' cut layer 0"},
        {"@[['*.1.mlp', '*.1.post_*']]", "cut layer 1"},
        {"block*2", NULL},
        {"whole", NULL},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        bool is_file = *cases[i].units == '@';
        struct plan_options options =
            with_units(is_file ? write_file(cases[i].units + 1) : cases[i].units);
        options.ac = AC_FULL;
        if (cases[i].says)
            is_refused(&options, is_file ? STATUS_INPUT : STATUS_USAGE, cases[i].says,
                       arena_printf(&arena, "%s with full checkpointing", cases[i].units));
        else
            ok(resolve_or_bail(&small, &options).n_unit > 0, "%s with full checkpointing is fine",
               cases[i].units);
    }
}

static void test_bad_counts(void)
{
    static const struct {
        uint64_t gpus, nodes, batch, accum, seq;
        const char *says;
    } cases[] = {
        {0, 0, 1, 1, 0, "gpus is 0"},
        {0, 2, 1, 1, 0, "gpus is 0"},
        {PLAN_MAX_RANKS + 8, 0, 1, 1, 0, "gpus is 1048584, at most 1048576"},
        {UINT64_MAX, 0, 1, 1, 0, "gpus is 18446744073709551615"},
        {8, 0, 0, 1, 0, "batch is 0"},
        {8, 0, 1, 0, 0, "accum is 0"},
        {8, 0, 1, PLAN_MAX_ACCUM + 1, 0, "accum is 1025, at most 1024"},
        {8, 3, 1, 1, 0, "8 gpus are no multiple of 3 nodes"},
        {8, 16, 1, 1, 0, "8 gpus are no multiple of 16 nodes"},
        {9, 0, 1, 1, 0, "9 gpus are no multiple of 2 nodes"},
        {8, 0, UINT64_C(1) << 60, 1, 16, "batch 1152921504606846976 times seq 16 passes 64 bits"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = with_units("block");
        options.gpus = cases[i].gpus;
        options.nodes = cases[i].nodes;
        options.batch = cases[i].batch;
        options.accum = cases[i].accum;
        options.seq = cases[i].seq;
        is_refused(&options, STATUS_USAGE, cases[i].says, cases[i].says);
    }
}

/* Segments times microbatches bound the program, which is unrolled. */
static void test_longest_step(void)
{
    const char *path = write_file(
        "{'model_type': 'llama', 'hidden_size': 8, 'intermediate_size': 8, "
        "'num_hidden_layers': 127, 'num_attention_heads': 1, 'vocab_size': 8}");
    struct plan_options options = with_units("attn+mlp");
    options.accum = PLAN_MAX_ACCUM;
    struct model model;
    struct plan plan;
    struct err err = {0};
    if (model_open(path + 1, 126, &arena, &model, &err))
        tap_bail(err.text);
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_OK,
           "1024 microbatches of 255 segments can be planned");
    if (model_open(path + 1, 127, &arena, &model, &err))
        tap_bail(err.text);
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_USAGE,
           "two segments more are too many");
    is_str(err.text, "accum 1024 times 257 segments is more than 262144, which is the longest step "
                     "that is built; lower accum", "and the message names both");
}

int main(void)
{
    arena_init(&arena);
    struct arena kept;
    arena_init(&kept);
    int fd = mkstemp(file_name);
    if (fd < 0)
        tap_bail("cannot make a file of units");
    close(fd);
    if (model_open("llama3-8b", 3, &kept, &small, NULL))
        tap_bail("a built-in model is not there");
    test_schemes();
    test_patterns();
    test_files();
    test_reshard();
    test_defaults();
    test_invariants();
    test_random_files();
    test_bad_units();
    test_bad_files();
    test_embedding_of_two();
    test_cut_regions();
    test_bad_counts();
    test_longest_step();
    unlink(file_name);
    arena_release(&arena);
    arena_release(&kept);
    return tap_done();
}
