/*
 * Models: published sizes, names in registration order, and what is said of an unknown name.
 *
 * Counts are the published ones; shapes of a one-layer model are written out; the ranges that the
 * rest of the program relies on are checked on built-in and on random models.
 */
#include "src/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/model_builder.h"
#include "tests/quoted.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char config_path[] = "model-test-XXXXXX"; /* in the build folder */

static struct model open_or_bail(const char *what, uint64_t layers)
{
    struct model model;
    struct err err = {0};
    if (model_open(what, layers, &arena, &model, &err))
        tap_bail(err.text);
    return model;
}

static const struct module *module_at(const struct model *model, const char *path)
{
    int id = model_module(model, path);
    if (id < 0)
        tap_bail(path);
    return &model->modules[id];
}

static uint64_t elements_under(const struct model *model, const char *path)
{
    const struct module *module = module_at(model, path);
    uint64_t sum = 0;
    for (uint32_t i = module->first_param; i < module->end_param; i++)
        sum += model->params[i].numel;
    return sum;
}

static void test_published_sizes(void)
{
    static const char llama[] = "model.layers.0", gpt2[] = "transformer.h.0";
    static const char mpt[] = "transformer.blocks.0", other[] = "layers.0";
    static const struct {
        const char *name, *first_block;
        uint64_t parameters, block, seq;
    } cases[] = {
        {"llama2-7b", llama, 6738415616, 202383360, 4096},
        {"llama2-13b", llama, 13015864320, 317204480, 4096},
        {"llama2-34b", llama, 33743970304, 692076544, 4096},
        {"llama2-70b", llama, 68976648192, 855654400, 4096},
        {"llama3-8b", llama, 8030261248, 218112000, 8192},
        {"llama3-13b-kempner", llama, 14840386560, 338176000, 4096},
        {"llama3-70b", llama, 70553706496, 855654400, 8192},
        {"llama3-405b", llama, 405853388800, 3187703808, 8192},
        {"llama-tiny", llama, 119104, 43136, 64},
        {"gpt2", gpt2, 124439808, 7087872, 1024},
        {"gpt2-medium", gpt2, 354823168, 12596224, 1024},
        {"gpt2-large", gpt2, 774030080, 19677440, 1024},
        {"gpt2-xl", gpt2, 1557611200, 30740800, 1024},
        {"gpt-tiny", gpt2, 120576, 49984, 64},
        {"mpt-125m", mpt, 125311488, 7087872, 2048},
        {"mpt-350m", mpt, 355985408, 12596224, 2048},
        {"mpt-760m", mpt, 760470528, 28331520, 2048},
        {"mpt-1b", mpt, 1315950592, 50358272, 2048},
        {"mpt-3b", mpt, 2651837440, 78676480, 2048},
        {"mpt-7b", mpt, 6658859008, 201379840, 2048},
        {"mpt-13b", mpt, 12853954560, 314639360, 2048},
        {"mpt-30b", mpt, 29975214080, 616655872, 2048},
        {"mpt-70b", mpt, 64862437376, 805412864, 2048},
        {"kda-1.75b", other, 1750566144, 218820768, 2048},
        {"kda-flat", other, 1750566144, 218820768, 2048},
        {"kda-tiny", llama, 145668, 56418, 64},
        {"simple-llm", other, 3660288, 786944, 32},
        {"pack-50m", other, 50331648 + 6160, 50331648 + 6160, 2048},
        {"copyin-500", other, 1027614720, 1027614720, 2048},
    };
    is_int(n_builtin_models, LENGTH(cases), "each built-in model is checked");
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct model model = open_or_bail(cases[i].name, 0);
        is_str(model.name, cases[i].name, "a built-in model has its own name");
        is_int(model.n_element, cases[i].parameters, "%s has its published size", cases[i].name);
        is_int(elements_under(&model, cases[i].first_block), cases[i].block, "%s: the first block",
               cases[i].name);
        is_int(model.dims.default_seq, cases[i].seq, "%s: the sequence", cases[i].name);
    }
}

/* 1 block of llama3-8b: what named_modules() and named_parameters() give, in their order. */
static void test_registration_order(void)
{
    static const char *const modules[] = {
        "", "model", "model.embed_tokens", "model.layers", "model.layers.0",
        "model.layers.0.self_attn", "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.v_proj",
        "model.layers.0.self_attn.o_proj", "model.layers.0.mlp", "model.layers.0.mlp.gate_proj",
        "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj",
        "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm",
        "lm_head"};
    static const struct {
        const char *name;
        uint64_t rows, columns; /* 0: a vector */
    } params[] = {
        {"model.embed_tokens.weight", 128256, 4096},
        {"model.layers.0.self_attn.q_proj.weight", 4096, 4096},
        {"model.layers.0.self_attn.k_proj.weight", 1024, 4096},
        {"model.layers.0.self_attn.v_proj.weight", 1024, 4096},
        {"model.layers.0.self_attn.o_proj.weight", 4096, 4096},
        {"model.layers.0.mlp.gate_proj.weight", 14336, 4096},
        {"model.layers.0.mlp.up_proj.weight", 14336, 4096},
        {"model.layers.0.mlp.down_proj.weight", 4096, 14336},
        {"model.layers.0.input_layernorm.weight", 4096, 0},
        {"model.layers.0.post_attention_layernorm.weight", 4096, 0},
        {"model.norm.weight", 4096, 0},
        {"lm_head.weight", 128256, 4096},
    };
    struct model model = open_or_bail("llama3-8b", 1);
    if (is_int(model.n_module, LENGTH(modules), "a one-block llama has this many modules"))
        for (size_t i = 0; i < LENGTH(modules); i++)
            is_str(model.modules[i].path, modules[i], "module %zu", i);
    if (!is_int(model.n_param, LENGTH(params), "and this many parameters"))
        return;
    for (size_t i = 0; i < LENGTH(params); i++) {
        const struct param *param = &model.params[i];
        is_str(param->name, params[i].name, "parameter %zu", i);
        ok(param->n_dim == (params[i].columns ? 2 : 1) && param->shape[0] == params[i].rows &&
               (param->n_dim == 1 || param->shape[1] == params[i].columns),
           "%s has its shape", param->name);
        ok(param->storage == DTYPE_FP32 && param->trainable, "%s is FP32 and trained", param->name);
    }
}

/* The order of grad slots: a half's matrices as they are registered, then its norm. */
static void test_pieces(void)
{
    static const struct {
        enum body_kind kind;
        unsigned layer;
        const char *params; /* last words but "weight" */
    } pieces[] = {
        {BODY_EMBEDDING, 0, "embed_tokens"},
        {BODY_ATTENTION, 0, "q_proj k_proj v_proj o_proj input_layernorm"},
        {BODY_MLP, 0, "gate_proj up_proj down_proj post_attention_layernorm"},
        {BODY_ATTENTION, 1, "q_proj k_proj v_proj o_proj input_layernorm"},
        {BODY_MLP, 1, "gate_proj up_proj down_proj post_attention_layernorm"},
        {BODY_NORM, 0, "norm"},
        {BODY_HEAD, 0, "lm_head"},
    };
    struct model model = open_or_bail("llama2-7b", 2);
    if (!is_int(model.n_piece, LENGTH(pieces), "two blocks make seven pieces"))
        return;
    for (uint32_t i = 0; i < model.n_piece; i++) {
        const struct piece *piece = &model.pieces[i];
        ok(piece->kind == pieces[i].kind && piece->layer == pieces[i].layer, "piece %u is %s %u", i,
           body_kind_name(pieces[i].kind), pieces[i].layer);
        struct text names;
        text_init(&names);
        for (uint32_t k = 0; k < piece->n_param; k++) {
            const struct param *param = &model.params[model.piece_params[piece->param + k]];
            const char *path = model.modules[param->module].path;
            const char *dot = strrchr(path, '.');
            text_add(&names, "%s%s", k ? " " : "", dot ? dot + 1 : path);
        }
        is_str(names.at, pieces[i].params, "piece %u: its grad slots", i);
        text_release(&names);
    }
}

/* What the header promises: preorder, ranges that nest, and one piece for each parameter. */
static bool modules_nest(const struct model *model)
{
    const struct module *all = model->modules;
    bool good = all[0].parent == 0 && all[0].end == model->n_module && !*all[0].path &&
                all[0].first_param == 0 && all[0].end_param == model->n_param;
    for (uint32_t i = 1; i < model->n_module && good; i++) {
        const struct module *module = &all[i], *parent = &all[module->parent];
        size_t length = strlen(parent->path);
        good = module->parent < i && i < module->end && module->end <= parent->end &&
               module->first_param >= parent->first_param &&
               module->first_param <= module->end_param &&
               module->end_param <= parent->end_param &&
               strncmp(module->path, parent->path, length) == 0 &&
               (length == 0 || module->path[length] == '.');
    }
    return good;
}

static bool modules_are_found(const struct model *model)
{
    for (uint32_t i = 0; i < model->n_module; i++)
        if (model_module(model, model->modules[i].path) != (int)i)
            return false;
    return true;
}

static bool params_are_in_ranges(const struct model *model)
{
    uint64_t sum = 0;
    bool good = true;
    for (uint32_t i = 0; i < model->n_param && good; i++) {
        const struct param *param = &model->params[i];
        uint64_t numel = 1;
        for (unsigned k = 0; k < param->n_dim; k++)
            numel *= param->shape[k];
        sum += numel;
        good = numel == param->numel;
        for (uint32_t m = 0; m < model->n_module && good; m++) {
            bool inside = param->module >= m && param->module < model->modules[m].end;
            good = inside == (i >= model->modules[m].first_param &&
                              i < model->modules[m].end_param);
        }
    }
    return good && sum == model->n_element;
}

/* A tied head's weight is the embedding's, the first that is listed, and comes again at the end. */
static bool pieces_part_params(const struct model *model)
{
    unsigned char *seen = calloc(model->n_param, 1);
    uint32_t next = 0, n = model->n_param;
    bool good = seen != NULL;
    for (uint32_t i = 0; i < model->n_piece && good; i++) {
        good = model->pieces[i].param == next && model->pieces[i].n_param > 0;
        next += model->pieces[i].n_param;
    }
    good = good && next == model->n_piece_param && next == n + (model->tied_head != 0);
    for (uint32_t i = 0; i < n && good; i++)
        good = !seen[model->piece_params[i]]++;
    free(seen);
    return good && (model->tied_head == 0 || model->piece_params[n] == model->piece_params[0]);
}

static void test_invariants(void)
{
    for (uint32_t i = 0; i < n_builtin_models; i++) {
        const uint64_t layers = builtin_models[i].dims.layers;
        struct model model = open_or_bail(builtin_models[i].name, layers < 3 ? layers : 3);
        ok(modules_nest(&model), "%s: modules are in preorder and nest", model.name);
        ok(modules_are_found(&model), "%s: each module is found by its path", model.name);
        ok(params_are_in_ranges(&model), "%s: subtrees are ranges of parameters", model.name);
        ok(pieces_part_params(&model), "%s: pieces part the parameters", model.name);
    }
}

static void test_layers_are_cut(void)
{
    struct model model = open_or_bail("llama3-70b", 2);
    is_int(model.dims.layers, 2, "a cut model has as many layers as were asked for");
    is_int(model.n_element, 2 * 855654400LL + 2 * 128256 * 8192LL + 8192, "and their parameters");
    struct err err = {0};
    is_int(model_open("llama2-7b", 33, &arena, &model, &err), STATUS_USAGE, "33 of 32 layers");
    is_str(err.text, "cannot cut 'llama2-7b' to 33 layers, it has only 32", "are refused");
}

static void test_flops(void)
{
    struct model model = open_or_bail("llama3-8b", 0);
    /* 6 * 8,030,261,248 + 6 * 32 layers * 32 heads * 128 * 8192 */
    is_near(model_flops_per_token(&model, 8192), 48181567488.0 + 6442450944.0, 0,
            "six FLOPs a parameter, and half of full attention");
}

static void test_unknown_names(void)
{
    static const struct {
        const char *name;
        enum status status;
        const char *says;
    } cases[] = {
        {"llama3-8", STATUS_USAGE, "did you mean 'llama3-8b'?"},
        {"Llama2-70b", STATUS_USAGE, "did you mean 'llama2-70b'?"},
        {"nothing-like-it", STATUS_USAGE, "'model list'"},
        {"", STATUS_USAGE, "unknown model ''"},
        {"no/such/folder", STATUS_INPUT, "cannot read 'no/such/folder'"},
        {"no-such.json", STATUS_INPUT, "cannot read 'no-such.json'"},
        {"/", STATUS_INPUT, "config.json'"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct model model = {.name = "untouched"};
        struct err err = {0};
        is_int(model_open(cases[i].name, 0, &arena, &model, &err), cases[i].status, "'%s'",
               cases[i].name);
        if (!ok(strstr(err.text, cases[i].says), "'%s' is answered with %s", cases[i].name,
                cases[i].says))
            tap_note("%s", err.text);
        is_str(model.name, "untouched", "and gives no model");
    }
}

/* Random sizes against the formula of INPUTS 2.1, with the head dimension apart from the rest. */
static void test_random_configs(void)
{
    uint64_t state = tap_seed(20260114), wrong = 0;
    enum { ROUNDS = 100 };
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t kv = 1 + tap_below(&state, 8), heads = kv * (1 + tap_below(&state, 8));
        uint64_t d = 2 * (1 + tap_below(&state, 64)), layers = 1 + tap_below(&state, 12);
        uint64_t hidden = 1 + tap_below(&state, 9000), ffn = 1 + tap_below(&state, 30000);
        uint64_t vocab = 1 + tap_below(&state, 200000);
        quoted_write(config_path, arena_printf(
            &arena,
            "{'model_type': 'llama', 'hidden_size': %" PRIu64 ", 'intermediate_size': %" PRIu64
            ", 'num_hidden_layers': %" PRIu64 ", 'num_attention_heads': %" PRIu64
            ", 'num_key_value_heads': %" PRIu64 ", 'head_dim': %" PRIu64 ", 'vocab_size': %" PRIu64
            "}",
            hidden, ffn, layers, heads, kv, d, vocab));
        struct model model = open_or_bail(config_path, 0);
        uint64_t block = 2 * hidden * (heads + kv) * d + 3 * hidden * ffn + 2 * hidden;
        wrong += model.n_element != layers * block + 2 * vocab * hidden + hidden;
        wrong += !modules_nest(&model) || !params_are_in_ranges(&model) ||
                 !pieces_part_params(&model);
        arena_reset(&arena);
    }
    is_int(wrong, 0, "%d random configs give the sizes of the formula and keep the ranges", ROUNDS);
}

static void test_other_trees(void)
{
    struct model_builder builder;
    struct model model = {.name = "tree"};
    struct err err = {0};
    const uint64_t shape[] = {3};
    uint32_t weight;
    model_builder_init(&builder, &arena, &model);
    is_int(model_builder_tensor(&builder, "scale", 1, shape, &weight, &err), STATUS_OK,
           "the model itself may own a parameter");
    model_builder_piece(&builder, BODY_NORM, 0);
    model_builder_piece_param(&builder, weight);
    model_builder_enter(&builder, "empty");
    model_builder_leave(&builder);
    model_builder_finish(&builder);
    is_str(model.params[0].name, "scale", "whose name has no dot in front");
    const struct module *empty = module_at(&model, "empty");
    ok(empty->first_param == empty->end_param, "a module without parameters has an empty range");
    ok(modules_nest(&model) && params_are_in_ranges(&model) && pieces_part_params(&model),
       "and the ranges hold");
    is_int(model_module(&model, "no.such"), -1, "a path that is not there is not found");
    is_int(model_module(&model, ""), 0, "the empty path is the model itself");
}

int main(void)
{
    int fd = mkstemp(config_path);
    if (fd < 0)
        tap_bail("cannot make a config file");
    close(fd);
    arena_init(&arena);
    test_published_sizes();
    test_registration_order();
    test_pieces();
    test_invariants();
    test_layers_are_cut();
    test_flops();
    test_unknown_names();
    test_random_configs();
    test_other_trees();
    arena_release(&arena);
    unlink(config_path);
    return tap_done();
}
