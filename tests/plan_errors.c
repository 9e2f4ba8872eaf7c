/*
 * Plans that are refused: units that name nothing or cannot be run, and counts that make no step.
 * Each message is one line, and no plan comes with it.
 */
#include <string.h>

#include "tests/plan_rig.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct plan_rig rig;

static void is_refused(const struct plan_options *options, enum status status, const char *says,
                       const char *what)
{
    struct plan plan = {.n_unit = 77};
    struct err err = {0};
    is_int(plan_resolve(&rig.small, options, &rig.arena, &plan, &err), status, "%s is refused",
           what);
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
        {"layers.?", "did you mean '*.layers.?'?"},
        {"layers.*", "did you mean '*.layers.*'?"},
        {"model.layer.*", "did you mean 'model.layers.*'?"},
        {"modle.layers.?.mlp", "did you mean 'model.layers.?.mlp'?"},
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
        {"model.layers.*,model.layers.2", "'model.layers.*' and 'model.layers.2'"},
        {"model.*,model.layers.*",
         "unit 'model.layers' has no parameters: inner units such as 'model.layers.0' own all of "
         "them; drop or narrow 'model.*', which names it"},
        {"model.layers,model.layers.?", "unit 'model.layers' has no parameters"},
        {"@no-such-file.json", "cannot read 'no-such-file.json'"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options(cases[i].units);
        enum status status = *cases[i].units == '@' ? STATUS_INPUT : STATUS_USAGE;
        is_refused(&options, status, cases[i].says,
                   arena_printf(&rig.arena, "'%s'", cases[i].units));
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
        {"['*.2', ['model.norm', '*.0', '*.1', 'lm_head', '*.2']]", /* only the first are shown */
         "[1]: module 'model.layers.2' would be in two units, '*.2' and "
         "'model.norm, *.0, *.1, ...'"},
        {"['model.layers', ['model.layers.?']]", "[0]: unit 'model.layers' has no parameters"},
        {"['*.embed_tokens', 'model.norm', 'lm_head', ['*.self_attn'], ['*.mlp', '*_layernorm']]",
         "[4]: a unit border cuts through the attention of layer 0: "
         "'model.layers.0.self_attn.q_proj.weight' is in unit 'model.layers.0.self_attn, "
         "model.layers.1.self_attn, model.layers.2.self_attn', "
         "'model.layers.0.input_layernorm.weight' in 'model.layers.0.mlp and 8 more'; inside a "
         "block a border "
         "can only run between attention with input_layernorm and mlp with "
         "post_attention_layernorm, as in the scheme 'attn+mlp'"},
        {"['model', ['model.norm', 'lm_head']]",
         "[1]: unit 'model.norm, lm_head' lies partly in unit 'model' and partly in '(root)'"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options(plan_rig_write(&rig, cases[i].text));
        const char *says = arena_printf(&rig.arena, "%s: %s", rig.file, cases[i].says);
        is_refused(&options, STATUS_INPUT, says,
                   arena_printf(&rig.arena, "file %s", cases[i].text));
    }
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
            plan_rig_options(is_file ? plan_rig_write(&rig, cases[i].units + 1) : cases[i].units);
        options.ac = i % 2 ? AC_OP : AC_FULL;
        if (cases[i].says)
            is_refused(&options, is_file ? STATUS_INPUT : STATUS_USAGE, cases[i].says,
                       arena_printf(&rig.arena, "%s with checkpointing", cases[i].units));
        else
            ok(plan_rig_resolve(&rig, &rig.small, &options).n_unit > 0,
               "%s with checkpointing is fine", cases[i].units);
    }
}

/* A unit needs parameters of its own, and the root as well once it computes with any. */
static void test_ignored(void)
{
    static const struct {
        const char *units, *ignore, *says; /* NULL: allowed */
    } cases[] = {
        {"block", "*layers.1*", "unit 'model.layers.1' has no parameters"},
        {"whole", "*",
         "unit '(root)' has no parameters: 'model.embed_tokens.weight' and whatever else is in no "
         "other unit are ignored; narrow ignore"},
        {"block", "*embed*,model.norm*,lm_head*", "unit '(root)' has no parameters"},
        {"model.layers.*,model.embed*", "model.norm*,lm_head*",
         "unit '(root)' has no parameters: 'model.norm.weight'"},
        {"block", "*embed*,model.norm*", NULL},
        {"torchtitan", "*embed*,model.norm*", "unit 'model.embed_tokens' has no parameters"},
        {"torchtitan", "model.norm*", NULL},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options(cases[i].units);
        options.policy.ignore = cases[i].ignore;
        if (cases[i].says)
            is_refused(&options, STATUS_USAGE, cases[i].says,
                       arena_printf(&rig.arena, "%s without %s", cases[i].units, cases[i].ignore));
        else
            ok(plan_rig_resolve(&rig, &rig.small, &options).n_unit > 0, "%s without %s is fine",
               cases[i].units, cases[i].ignore);
    }
}

/* Backward reads all parameters but the embedding's, also those of units inside of a block. */
static void test_no_unshard_backward(void)
{
    static const struct {
        const char *units, *skipped, *says; /* NULL: allowed */
        enum reshard reshard;
    } cases[] = {
        {"block", "*.1", "unit 'model.layers.1' reads its parameters in backward", RESHARD_AUTO},
        {"block", "*.1.input*", "unit 'model.layers.1.input_layernorm' reads", RESHARD_AUTO},
        {"whole", "*.1.input*", "unit 'model.layers.1.input_layernorm' reads", RESHARD_AUTO},
        {"block", "*.1*", NULL, RESHARD_NO},
        {"*embed*", "*embed*", NULL, RESHARD_AUTO},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options(cases[i].units);
        options.policy.keep_fp32 = "*layernorm*";
        options.arrange = ARRANGE_BY_DTYPE;
        options.no_unshard_backward = cases[i].skipped;
        options.reshard = cases[i].reshard;
        if (cases[i].says)
            is_refused(&options, STATUS_USAGE, cases[i].says,
                       arena_printf(&rig.arena, "%s without %s in backward", cases[i].units,
                                    cases[i].skipped));
        else
            ok(plan_rig_resolve(&rig, &rig.small, &options).n_unit > 0,
               "%s without %s in backward is fine", cases[i].units, cases[i].skipped);
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
        {9, 2, 1, 1, 0, "9 gpus are no multiple of 2 nodes"},
        {9, 0, 1, 1, 0,
         "9 gpus do not fill nodes of 8, nor do 2 nodes share them evenly; give --nodes"},
        {8, 0, UINT64_C(1) << 60, 1, 16, "batch 1152921504606846976 times seq 16 passes 64 bits"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options("block");
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
    const char *path = plan_rig_write(
        &rig, "{'model_type': 'llama', 'hidden_size': 8, 'intermediate_size': 8, "
              "'num_hidden_layers': 127, 'num_attention_heads': 1, 'vocab_size': 8}");
    struct plan_options options = plan_rig_options("attn+mlp");
    options.accum = PLAN_MAX_ACCUM;
    struct model model;
    struct plan plan;
    struct err err = {0};
    if (model_open(path + 1, 126, &rig.arena, &model, &err))
        tap_bail(err.text);
    is_int(plan_resolve(&model, &options, &rig.arena, &plan, &err), STATUS_OK,
           "1024 microbatches of 255 segments can be planned");
    if (model_open(path + 1, 127, &rig.arena, &model, &err))
        tap_bail(err.text);
    is_int(plan_resolve(&model, &options, &rig.arena, &plan, &err), STATUS_USAGE,
           "two segments more are too many");
    is_str(err.text,
           "accum 1024 times 257 segments is more than 262144, which is the longest step "
           "that is built; lower accum",
           "and the message names both");
}

/* Metrics need logits that PyTorch's operators have made, and that are not gone. */
static void test_metrics(void)
{
    static const struct {
        const char *model;
        enum ops_profile ops;
        enum loss_kind loss;
        const char *says; /* NULL: it is not refused */
    } cases[] = {
        {"llama-tiny", OPS_TORCH_EAGER, LOSS_EAGER, NULL},
        {"llama-tiny", OPS_TORCH_COMPILE, LOSS_COMPILED, NULL},
        {"llama-tiny", OPS_NATIVE, LOSS_EAGER, "ops native has no operators for train-metrics"},
        {"llama-tiny", OPS_TORCH_EAGER, LOSS_EAGER_MODEL, "use loss eager"},
        {"copyin-500", OPS_TORCH_EAGER, LOSS_EAGER, "are of logits, and 'copyin-500' has none"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options("block");
        struct model model;
        struct plan plan;
        struct err err = {0};
        options.train_metrics = 1;
        options.policy.behavior = BEHAVIOR_TORCH_PR196626;
        options.ops = cases[i].ops;
        options.loss = cases[i].loss;
        const enum status opened = model_open(cases[i].model, 0, &rig.arena, &model, &err);
        const enum status status = plan_resolve(&model, &options, &rig.arena, &plan, &err);
        ok(!opened && status == (cases[i].says ? STATUS_USAGE : STATUS_OK) &&
               (!cases[i].says || strstr(err.text, cases[i].says)),
           "metrics of %s, ops %d, loss %d are %s", cases[i].model, (int)cases[i].ops,
           (int)cases[i].loss, cases[i].says ? "refused" : "taken");
    }
}

/* Our own operators are those of llama, gpt2 and kda, and compute in one way. */
static void test_native(void)
{
    static const struct {
        const char *model;
        enum norm_kind norm;
        const char *says; /* NULL: it is not refused */
    } cases[] = {
        {"llama-tiny", NORM_FUSED, NULL},
        {"gpt-tiny", NORM_FUSED, NULL},
        {"kda-tiny", NORM_FUSED, NULL},
        {"llama-tiny", NORM_COMPOSITE, "ops native has one operator, use norm fused"},
        {"mpt-125m", NORM_FUSED, "ops native has no operators for mpt; use ops torch-eager"},
        {"simple-llm", NORM_FUSED, "ops native has no operators for simple-llm"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options options = plan_rig_options("block");
        struct model model;
        struct plan plan;
        struct err err = {0};
        options.ops = OPS_NATIVE;
        options.norm = cases[i].norm;
        options.seq = 64;
        options.policy.behavior = BEHAVIOR_UNSHARD;
        const enum status opened = model_open(cases[i].model, 0, &rig.arena, &model, &err);
        const enum status status = plan_resolve(&model, &options, &rig.arena, &plan, &err);
        ok(!opened && status == (cases[i].says ? STATUS_USAGE : STATUS_OK) &&
               (!cases[i].says || strstr(err.text, cases[i].says)),
           "%s under ops native is %s", cases[i].model, cases[i].says ? "refused" : "taken");
    }
}

int main(void)
{
    plan_rig_init(&rig);
    test_bad_units();
    test_bad_files();
    test_cut_regions();
    test_ignored();
    test_no_unshard_backward();
    test_bad_counts();
    test_longest_step();
    test_metrics();
    test_native();
    plan_rig_release(&rig);
    return tap_done();
}
