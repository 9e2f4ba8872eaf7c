/*
 * Table (c) of spec FSDP2: what a plan can ask for that FSDP2 refuses, and the few odd things that it
 * allows; then each option that one of the systems lacks. What no plan can express stands at the end
 * of this file.
 */
#include "src/eligible.h"

#include <string.h>

#include "tests/asked.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct row {
    const char *row;   /* as in the table */
    const char *model; /* built in; NULL: the small llama */
    const char *words;
    enum status status;
    const char *says;
} rows[] = {
    {"mixed compute dtypes in one unit, torch-2.11", NULL, "--keep-fp32 *norm*", STATUS_NO,
     "unit 'model.layers.0' mixes compute dtypes"},
    {"the same: fallback named", NULL, "--keep-fp32 *norm*", STATUS_NO, "--arrange by-dtype"},
    {"the same: which is possible", NULL, "--keep-fp32 *norm* --arrange by-dtype", STATUS_OK, ""},
    {"a unit that by-dtype takes its name's module from", "pack-50m",
     "--units attn+mlp --arrange by-dtype", STATUS_USAGE, "in 'layers.0.self_attn, layers.0.mlp'"},
    {"override policy under torch-2.11", NULL, "--keep-fp32 model.norm.* --freeze model.norm.*",
     STATUS_NO, "torch-2.11 needs one per unit"},
    {"override policy under torch-2.11, of a whole unit", NULL, "--keep-fp32 model.layers.*",
     STATUS_OK, ""},
    {"buffer_dtype", NULL, "--buffer-dtype fp32", STATUS_USAGE,
     "buffer-dtype is nothing that fsdp2 has: its MixedPrecisionPolicy leaves buffers"},
    {"buffer_dtype", NULL, "--buffer-dtype bf16 --system fsdp1 --units block", STATUS_OK, ""},
    {"arrangement that the behavior lacks", NULL, "--arrange precast", STATUS_NO,
     "precast does not exist: torch-2.11 has no units of several compute dtypes"},
    {"arrangement that the behavior lacks", NULL, "--arrange precast --behavior torch-2.15",
     STATUS_NO, "precast does not exist: torch-2.15 has gradients in the reduce dtype already"},
    {"arrangement that the behavior lacks", NULL, "--arrange precast --behavior torch-2.15.0",
     STATUS_NO, "precast does not exist: torch-2.15.0 casts gradients while it packs them"},
    {"mixed grad dtypes at RS, torch-2.15: autograd has cast them", NULL,
     "--keep-fp32 *norm* --behavior torch-2.15", STATUS_OK, ""},
    {"mixed grad dtypes at RS, the release 2.15.0: packed in turn", NULL,
     "--keep-fp32 *norm* --behavior torch-2.15.0", STATUS_OK, ""},
    {"override returns other dtype", NULL,
     "--keep-fp32 *norm* --behavior torch-2.15 --storage-dtype bf16", STATUS_NO,
     "is stored in bf16 and computes in fp32"},
    {"override returns other dtype", NULL,
     "--keep-fp32 *norm* --behavior torch-2.15.0 --storage-dtype bf16", STATUS_NO,
     "is stored in bf16 and computes in fp32"},
    {"shard dim >= ndim", NULL, "--shard-dim lm_head.weight=2", STATUS_USAGE,
     "'lm_head.weight' has no dimension 2, it has 2"},
    {"shard dim >= ndim", NULL, "--shard-dim model.norm.weight=1", STATUS_USAGE,
     "'model.norm.weight' has no dimension 1, it has 1"},
    {"not Shard", NULL, "--shard-dim lm_head.weight=replicate", STATUS_USAGE,
     "'lm_head.weight=replicate' is not PATTERN=DIMENSION"},
    {"uneven Shard(k>0)", NULL, "--gpus 3 --shard-dim lm_head.weight=1", STATUS_NO,
     "'lm_head.weight' has 32 in dimension 1, which 3 ranks cannot share evenly"},
    {"uneven Shard(0): padded", NULL, "--gpus 3", STATUS_OK, ""},
    {"int reshard not a factor of W", NULL, "--reshard 3", STATUS_USAGE,
     "reshard 3 is no factor of the 4 ranks"},
    {"int reshard not a factor of W, with replicas", NULL, "--reshard 4 --replicas 2", STATUS_USAGE,
     "reshard 4 is no factor of the 2 ranks"},
    {"int reshard: 1 is False, W is True", NULL, "--reshard 1", STATUS_OK, ""},
    {"int reshard: 1 is False, W is True", NULL, "--reshard 4", STATUS_OK, ""},
    {"shared param across groups", "gpt-tiny", "--units transformer.wte", STATUS_USAGE,
     "FSDP2 refuses a parameter of two units"},
    {"shared param in one group", "gpt-tiny", "--units torchtitan", STATUS_OK, ""},
    {"K not int", NULL, "--reduce-inputs 1.5", STATUS_USAGE, "'1.5' is not a whole number"},
    {"K a bool", NULL, "--reduce-inputs yes", STATUS_USAGE, "'yes' is not a whole number"},
    {"K < 1", NULL, "--reduce-inputs 0", STATUS_USAGE, "0 is too small, at least 1"},
    {"prefetch list holds what is no unit", NULL, "--prefetch lm_head", STATUS_USAGE,
     "'lm_head' is not a whole number"},
    {"no trainable params", NULL, "--freeze *", STATUS_OK, ""},
    {"unit with no params (pure root)", NULL, "--units torchtitan", STATUS_OK, ""},
    {"several groups in a unit", NULL, "--second-mesh *.mlp.*", STATUS_USAGE,
     "torch-2.11, which has one group of parameters in a unit"},
    {"several groups in a unit", NULL, "--behavior torch-2.15 --second-mesh *.mlp.*", STATUS_OK,
     ""},
    {"several groups in a unit", NULL, "--behavior torch-2.15 --second-mesh *mpl*", STATUS_USAGE,
     "second-mesh: no parameter matches '*mpl*'"},
    {"several groups in a unit", NULL, "--behavior torch-2.15 --second-mesh *.mlp.* --replicas 2",
     STATUS_USAGE, "second-mesh with replicas is not modelled"},
    {"several groups in a unit", NULL, "--behavior torch-2.15 --second-mesh *.mlp.* --reshard 2",
     STATUS_USAGE, "second-mesh with reshard to groups"},
    {"several groups in a unit", NULL,
     "--behavior torch-2.15 --second-mesh *.mlp.* --separate-reduce-comm yes", STATUS_USAGE,
     "second-mesh with separate-reduce-comm"},
    {"several groups in a unit", NULL, "--behavior torch-2.15 --second-mesh *.mlp.* --clip 1",
     STATUS_USAGE, "second-mesh with clip"},
    {"several groups in a unit", NULL, "--behavior torch-2.15 --second-mesh *.mlp.* --scaler yes",
     STATUS_USAGE, "second-mesh with scaler"},
    {"several groups in a unit", NULL,
     "--behavior torch-2.15.0 --keep-fp32 *norm* --storage-dtype bf16 --second-mesh *norm*",
     STATUS_NO, "is stored in bf16 and computes in fp32"},
    {"units by name", NULL, "--no-reshard model.layer.0", STATUS_USAGE,
     "no-reshard: no unit matches 'model.layer.0'; units are called like"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --no-reshard *", STATUS_USAGE,
     "no-reshard is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --second-mesh *", STATUS_USAGE,
     "second-mesh is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --reshard no", STATUS_USAGE,
     "reshard is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --reshard-backward last", STATUS_USAGE,
     "reshard-backward is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --no-unshard-backward *", STATUS_USAGE,
     "no-unshard-backward is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --prefetch 1", STATUS_USAGE,
     "prefetch is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --prefetch-backward 1", STATUS_USAGE,
     "prefetch-backward is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --behavior unshard", STATUS_USAGE,
     "behavior is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --shard-dim lm_head.weight=1",
     STATUS_USAGE, "shard-dim is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --freeze lm_head.weight", STATUS_USAGE,
     "freeze is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --output-dtype fp32", STATUS_USAGE,
     "output-dtype is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --sync last", STATUS_USAGE,
     "sync is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --all-reduce last", STATUS_USAGE,
     "all-reduce is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --last-backward last", STATUS_USAGE,
     "last-backward is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --reduce-inputs 2", STATUS_USAGE,
     "reduce-inputs is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --pack-stream rs", STATUS_USAGE,
     "pack-stream is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --separate-reduce-comm yes",
     STATUS_USAGE, "separate-reduce-comm is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --unused zero", STATUS_USAGE,
     "unused is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --force-sum yes", STATUS_USAGE,
     "force-sum is nothing that fsdp1 has"},
    {"option of FSDP2", NULL, "--system fsdp1 --units block --divide-factor 2", STATUS_USAGE,
     "divide-factor is nothing that fsdp1 has"},
    {"option of FSDP1", NULL, "--fsdp1-strategy grad-op", STATUS_USAGE,
     "fsdp1-strategy is nothing that fsdp2 has"},
    {"option of FSDP1", NULL, "--fsdp1-backward-prefetch post", STATUS_USAGE,
     "fsdp1-backward-prefetch is nothing that fsdp2 has"},
    {"option of FSDP1", NULL, "--forward-prefetch yes", STATUS_USAGE,
     "forward-prefetch is nothing that fsdp2 has"},
    {"option of FSDP1", NULL, "--limit-all-gathers no", STATUS_USAGE,
     "limit-all-gathers is nothing that fsdp2 has"},
    {"option of FSDP1", NULL, "--record-stream no", STATUS_USAGE,
     "record-stream is nothing that fsdp2 has"},
};

static enum status ask(const struct row *row, struct arena *arena, struct plan *plan,
                       struct err *err)
{
    struct plan_options options;
    struct model model;
    enum status status = STATUS_OK;

    if (row->model != NULL)
        status = model_open(row->model, 1, arena, &model, err);
    else
        asked_model(arena, &model);
    if (status == STATUS_OK)
        status = asked_options(row->words, arena, &options, err);
    return status != STATUS_OK ? status : plan_resolve(&model, &options, arena, plan, err);
}

static void rows_have_their_reaction(void)
{
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct arena arena;
        struct plan plan;
        struct err err = {0};
        arena_init(&arena);
        is_int(ask(&rows[i], &arena, &plan, &err), rows[i].status, "%s: %s", rows[i].row,
               rows[i].words);
        if (!ok(strstr(err.text, rows[i].says) != NULL, "says \"%s\"", rows[i].says))
            tap_note("%s", err.text);
        arena_release(&arena);
    }
}

static unsigned count_tasks(const struct program *program, enum task_kind kind)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < program->n_task; i++)
        n += program->tasks[i].kind == kind;
    return n;
}

static void what_is_allowed_does_little(void)
{
    struct made made;

    asked_init(&made, "--freeze *", NULL);
    is_int(count_tasks(&made.program, TASK_REDUCE_SCATTER), 0, "nothing is trained: no RS");
    is_int(count_tasks(&made.program, TASK_ALL_GATHER), 2 * 3, "forward gathers all the same");
    make_release(&made);
    asked_init(&made, "--units torchtitan", NULL);
    ok(!made.plan.has_root && made.plan.n_unit == 3,
       "a pure root is no unit: no group, no prefetch");
    make_release(&made);
}

/* Rules on what no option of ours can mix: the first of two parameters differs in a column. */
static const struct rule {
    const char *row;
    struct param_policy first, second;
    bool holds[BEHAVIOR_N]; /* the rule against it */
    const char *says;
} rules[] = {
    {"mixed orig dtype among trainable",
     {.storage = DTYPE_BF16, .compute = DTYPE_BF16, .trainable = true},
     {.storage = DTYPE_FP32, .compute = DTYPE_BF16, .trainable = true},
     {true, true, true, true, true},
     "mixes storage dtypes: 'model.embed_tokens.weight' is bf16"},
    {"mixed orig dtype, one frozen",
     {.storage = DTYPE_BF16, .compute = DTYPE_BF16, .trainable = false},
     {.storage = DTYPE_FP32, .compute = DTYPE_BF16, .trainable = true},
     {false},
     ""},
    {"mixed reduce dtype among trainable",
     {.compute = DTYPE_BF16, .reduce = DTYPE_BF16, .trainable = true},
     {.compute = DTYPE_BF16, .reduce = DTYPE_FP32, .trainable = true},
     {true, true, true, false, false},
     "mixes reduce dtypes: 'model.embed_tokens.weight' is bf16"},
    {"mixed reduce dtype, one frozen",
     {.compute = DTYPE_BF16, .reduce = DTYPE_BF16, .trainable = false},
     {.compute = DTYPE_BF16, .reduce = DTYPE_FP32, .trainable = true},
     {false},
     ""},
};

static void rules_hold(const struct model *model, const struct rule *rule, enum behavior behavior)
{
    static const uint32_t params[] = {0, 1};
    const struct param_policy policy[] = {rule->first, rule->second};
    const struct eligible_unit unit = {
        .name = "u", .model = model, .policy = policy, .params = params, .n_param = 2};
    struct text broken;

    text_init(&broken);
    is_int(eligible_unit(&unit, behavior, ARRANGE_NATIVE, &broken), rule->holds[behavior], "%s, %s",
           rule->row, behavior_name(behavior));
    if (rule->holds[behavior])
        ok(strstr(broken.at, rule->says) != NULL, "says \"%s\"", rule->says);
    text_release(&broken);
}

static void rules_that_no_option_breaks(void)
{
    struct arena arena;
    struct model model;

    arena_init(&arena);
    asked_model(&arena, &model);
    for (size_t i = 0; i < LENGTH(rules); i++)
        for (int b = 0; b < BEHAVIOR_N; b++)
            rules_hold(&model, &rules[i], (enum behavior)b);
    arena_release(&arena);
}

int main(void)
{
    rows_have_their_reaction();
    what_is_allowed_does_little();
    rules_that_no_option_breaks();
    return tap_done();
}

/*
 * Rows of table (c) that no plan can express:
 *
 *   override differs by rank             one program serves all ranks
 *   override returns what is no dtype    an option names patterns, not functions
 *   0-dim parameter                      no family has one
 *   non-contiguous parameter             a model has shapes, no strides
 *   int reshard + DTensor / SPMD / fp8   there is no tensor parallelism and no fp8
 *   set_reshard_after_forward(int)       a call on a module; the option is fully_shard's argument
 *   params on meta at lazy init          section init gives birth to every shard
 *   offload policy, params not on CPU    there is no offload
 *   DTensor mesh device != FSDP's        there is one mesh
 *   submodule forward before root        a step runs the whole model
 *   list-wrapped root                    a unit of all modules leaves a pure root around it
 *   K > 1 with symm-mem RS               there is no symmetric memory
 *   custom comm, hook, hook stream       there are none
 *   PG-alloc or symm-mem                 there are none
 *   pre/post all-gather hooks, fp8 hook  there are none
 *   TP > 1-D, HSDP replicate dim != 0    the mesh is made from --gpus and --replicas
 *   SPMD DP dim not Replicate            the same
 *   rank skips a unit or param           one program serves all ranks
 *   view output then in-place op         bodies are those of families, which have none
 *   exception mid-step                   a program ends
 *   deepcopy of module                   a call on a module
 *   chunk_cat: empty tensor              no parameter is empty
 */
