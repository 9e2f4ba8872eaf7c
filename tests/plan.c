/*
 * Plans: which units a scheme, a pattern list or a file gives, and what is filled in.
 *
 * A plan is compared as text, one line a unit and one a segment (see print_units).
 */
#include "src/plan.h"

#include <inttypes.h>
#include <string.h>

#include "src/arch/arch.h"
#include "src/model_builder.h"
#include "tests/plan_rig.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct plan_rig rig;

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
        text = arena_printf(&rig.arena, "%s%s %u [%u-%u] in %s%s%s\n", text, unit->name,
                            unit->n_param, unit->first_segment, unit->last_segment, outer,
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
        text = arena_printf(&rig.arena, "%s%s%s%u:%u", text, i ? " " : "",
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
        struct plan_options options = plan_rig_options(cases[i].units);
        struct plan plan = plan_rig_resolve(&rig, &rig.small, &options);
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
        /* '*' stands for dots too, but what is inside a match is none of its own */
        {"model.layers.*", BLOCK_SEGMENTS,
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0 9 [1-1] in (root)\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        {"*", "embedding0:0 block0:0 block1:0 block2:0 norm0:0 head0:1",
         "model 29 [0-4] in - final\n"
         "lm_head 1 [5-5] in -\n"},
        {"model", "embedding0:1 block0:1 block1:1 block2:1 norm0:1 head0:0",
         "(root) 1 [0-5] in - keep final\n"
         "model 29 [0-4] in (root) final\n"},
        {"model.*", "embedding0:1 block0:2 block1:2 block2:2 norm0:3 head0:0",
         "(root) 1 [0-5] in - keep final\n"
         "model.embed_tokens 1 [0-0] in (root) final\n"
         "model.layers 27 [1-3] in (root)\n"
         "model.norm 1 [4-4] in (root)\n"},
        /* what another pattern matches inside is a unit */
        {"*,model.layers.*", "embedding0:0 block0:1 block1:2 block2:3 norm0:0 head0:4",
         "model 2 [0-4] in - final\n"
         "model.layers.0 9 [1-1] in model\n"
         "model.layers.1 9 [2-2] in model\n"
         "model.layers.2 9 [3-3] in model\n"
         "lm_head 1 [5-5] in -\n"},
        {" lm_head , *.layers.1", "embedding0:0 block0:0 block1:1 block2:0 norm0:0 head0:2",
         "(root) 20 [0-5] in - keep final\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "lm_head 1 [5-5] in (root)\n"},
        /* the root begins after the first segment only by what it owns: its hooks fire first */
        {"model.embed_tokens", "embedding0:1 block0:0 block1:0 block2:0 norm0:0 head0:0",
         "(root) 29 [0-5] in - keep final\n"
         "model.embed_tokens 1 [0-0] in (root) final\n"},
        /* an outer unit owns what inner ones leave, and its hooks enclose theirs */
        {"model,model.layers.?,lm_head", "embedding0:0 block0:1 block1:2 block2:3 norm0:0 head0:4",
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
        struct plan_options options = plan_rig_options(cases[i].units);
        struct plan plan = plan_rig_resolve(&rig, &rig.small, &options);
        is_str(print_segments(&plan), cases[i].segments, "'%s': segments", cases[i].units);
        is_str(print_units(&plan), cases[i].listing, "'%s': units", cases[i].units);
    }
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
        {"['model.layers.*']", BLOCK_SEGMENTS,
         "(root) 3 [0-5] in - keep final\n"
         "model.layers.0 9 [1-1] in (root)\n"
         "model.layers.1 9 [2-2] in (root)\n"
         "model.layers.2 9 [3-3] in (root)\n"},
        {"[['model.layers.*'], 'model']", "embedding0:1 block0:2 block1:2 block2:2 norm0:1 head0:0",
         "(root) 1 [0-5] in - keep final\n"
         "model 2 [0-4] in (root) final\n"
         "model.layers.0..model.layers.2 27 [1-3] in model\n"},
        {"['model.layers.1', ['*.1.mlp*', '*.1.post*']]",
         "embedding0:0 block0:0 attention1:1 mlp1:2 block2:0 norm0:0 head0:0",
         "(root) 21 [0-6] in - keep final\n"
         "model.layers.1 5 [2-3] in (root)\n"
         "model.layers.1.mlp, model.layers.1.post_attention_layernorm 4 [3-3] in model.layers.1\n"},
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
        struct plan_options options = plan_rig_options(plan_rig_write(&rig, cases[i].text));
        struct plan plan = plan_rig_resolve(&rig, &rig.small, &options);
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
        {"block", RESHARD_AUTO, "krrr"},
        {"block", RESHARD_YES, "rrrr"},
        {"block", RESHARD_NO, "kkkk"},
        {"block", RESHARD_ALL_BUT_LAST, "krrk"},
        {"torchtitan", RESHARD_AUTO, "rrrrr"},
        {"torchtitan", RESHARD_YES, "rrrrr"},
        {"torchtitan", RESHARD_NO, "kkkkk"},
        {"torchtitan", RESHARD_ALL_BUT_LAST, "rrrrk"},
        {"whole", RESHARD_AUTO, "k"},
        {"whole", RESHARD_YES, "r"},
        {"whole", RESHARD_NO, "k"},
        {"whole", RESHARD_ALL_BUT_LAST, "k"},
        {"lm_head", RESHARD_ALL_BUT_LAST, "kk"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options(cases[i].units);
        options.reshard = cases[i].reshard;
        struct plan plan = plan_rig_resolve(&rig, &rig.small, &options);
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
        struct plan_options options = plan_rig_options("block");
        options.gpus = cases[i].gpus;
        options.nodes = cases[i].nodes;
        struct plan plan = plan_rig_resolve(&rig, &rig.small, &options);
        is_int(plan.options.nodes, cases[i].want_nodes, "%" PRIu64 " gpus: nodes", cases[i].gpus);
        is_int(plan.world, cases[i].gpus, "one rank a gpu");
        is_int(plan.gpus_per_node * plan.options.nodes, plan.world, "spread evenly");
    }
    struct plan_options options = plan_options_default();
    struct plan plan = plan_rig_resolve(&rig, &rig.small, &options);
    is_int(plan.options.seq, 8192, "the model's own sequence where nobody says otherwise");
    ok(plan.param_dtype == DTYPE_BF16 && plan.reduce_dtype == DTYPE_FP32,
       "computed in BF16, reduced in FP32");
    ok(plan.model == &rig.small && plan.options.gpus == 8 && plan.n_unit == 5,
       "8 gpus under the units of torchtitan");
    struct body_options body = plan_body_options(&plan);
    ok(body.batch == 1 && body.seq == 8192 && body.ac == AC_NONE && body.ops == OPS_TORCH_EAGER &&
           body.norm == NORM_FUSED,
       "bodies see the shapes and how PyTorch runs them");
}

/* Another family may embed tokens and positions, in two modules that make one piece. */
static void test_embedding_of_two(void)
{
    static const char *const names[] = {"wte", "wpe", "head"};
    static const uint64_t shape[] = {8, 4};
    struct model model = {.name = "two", .arch = arch_by_name("gpt2")};
    struct model_builder builder;
    model_builder_init(&builder, &rig.arena, &model);
    for (size_t i = 0; i < LENGTH(names); i++) {
        uint32_t param;
        model_builder_enter(&builder, names[i]);
        if (model_builder_tensor(&builder, "weight", 2, shape, &param, NULL))
            tap_bail("a small parameter is refused");
        model_builder_leave(&builder);
        if (i != 1)
            model_builder_piece(&builder, i == 0 ? BODY_EMBEDDING : BODY_HEAD, 0);
        model_builder_piece_param(&builder, param);
    }
    model_builder_finish(&builder);
    struct plan_options options = plan_rig_options("torchtitan");
    options.seq = 8;
    struct plan plan = plan_rig_resolve(&rig, &model, &options);
    is_str(print_units(&plan), "wte..wpe 2 [0-0] in - final\nhead 1 [1-1] in -\n",
           "the embedding's modules are one unit");
    options.units = "wpe";
    plan = plan_rig_resolve(&rig, &model, &options);
    is_str(print_units(&plan), "(root) 2 [0-1] in - keep final\nwpe 1 [0-0] in (root) final\n",
           "half of it is a unit inside of the other's");
}

int main(void)
{
    plan_rig_init(&rig);
    test_schemes();
    test_patterns();
    test_files();
    test_reshard();
    test_defaults();
    test_embedding_of_two();
    plan_rig_release(&rig);
    return tap_done();
}
