/*
 * unshard's own JSON: what is written of a model is read back to the same, and what was changed in
 * between is found. Edits are made in the text, as a person would make them.
 */
#include "src/model_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/arch/arch.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char file[] = "model-json-test-XXXXXX"; /* in the build folder */

static const char *print(const struct model *model)
{
    struct cJSON *root = json_new_object();
    struct text text;
    text_init(&text);
    json_add_string(root, "schema", MODEL_JSON_SCHEMA);
    model_json_add(model, root);
    model_json_add_tensors(model, root);
    json_print(root, &text);
    json_free(root);
    const char *copy = arena_strdup(&arena, text.at);
    text_release(&text);
    return copy;
}

static void write_file(const char *text)
{
    FILE *out = fopen(file, "w");
    if (!out || fputs(text, out) == EOF || fclose(out) != 0)
        tap_bail("cannot write a file of this test");
}

static struct model open_or_bail(const char *what, uint64_t layers)
{
    struct model model;
    struct err err = {0};
    if (model_open(what, layers, &arena, &model, &err))
        tap_bail(err.text);
    return model;
}

static void test_round_trip(uint64_t layers)
{
    for (uint32_t i = 0; i < n_builtin_models; i++) {
        struct model model = open_or_bail(builtin_models[i].name, layers), again = {0};
        struct err err = {0};
        const char *text = print(&model);
        write_file(text);
        if (!is_int(model_open(file, 0, &arena, &again, &err), STATUS_OK,
                    "%s of %llu layers is read back", model.name,
                    (unsigned long long)model.dims.layers)) {
            tap_note("%s", err.text);
            continue;
        }
        is_str(again.name, model.name, "%s keeps its name", model.name);
        ok(again.arch == model.arch && strcmp(print(&again), text) == 0,
           "%s is written again the same", model.name);
        arena_reset(&arena);
    }
}

/* Tensors of which nothing else is known are a list, which is read back as one. */
static void test_list_of_tensors(void)
{
    struct tensor tensors[] = {
        {.name = "b.weight", .file = "x", .stored = "F16", .n_dim = 2, .shape = {3, 4}},
        {.name = "a.1.bias", .file = "x", .stored = "BF16", .n_dim = 1, .shape = {7}},
        {.name = "a.0.scale", .file = "x", .n_dim = 0},
    };
    struct tensor_list list = {.at = tensors, .n = LENGTH(tensors)};
    struct model model = {.name = "tensors alone"};
    if (tensor_list_sort(&list, NULL) || model_from_tensors(&list, &arena, &model, NULL))
        tap_bail("a good list is refused");
    write_file(print(&model));
    struct model again = open_or_bail(file, 0);
    is_int(again.n_element, 20, "a list of tensors is read back");
    is_str(print(&again), print(&model), "and written again the same");
    write_file("{\"schema\": \"unshard.model/1\", \"model\": \"m\", \"family\": \"tensors\"}");
    struct err err = {0};
    is_int(model_open(file, 0, &arena, &model, &err), STATUS_INPUT, "no list is refused");
    ok(strstr(err.text, "missing key 'tensors'"), "by name");
}

static void test_cut_after_reading(void)
{
    struct model whole = open_or_bail("mpt-125m", 0);
    write_file(print(&whole));
    struct model two = open_or_bail(file, 2), same = open_or_bail("mpt-125m", 2);
    is_str(print(&two), print(&same), "a file's model is cut as a built-in one is");
}

/* The text with the first place of some words replaced by others. */
static const char *replace(const char *text, const char *words, const char *by)
{
    const char *at = strstr(text, words);
    if (!at)
        tap_bail(words);
    return arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, by, at + strlen(words));
}

/* A file may say less: the family and sizes are enough. */
static void test_short_file(void)
{
    write_file(
        "{\"schema\": \"unshard.model/1\", \"model\": \"mine\", \"family\": \"mpt\", \"layers\": 1,"
        "\"hidden\": 8, \"intermediate\": 16, \"heads\": 2, \"kv_heads\": 2, \"head_dim\": 4,"
        "\"vocab\": 10, \"seq\": 4}");
    struct model model = open_or_bail(file, 0);
    is_str(model.name, "mine", "a short file names its model");
    /* embedding and head 80 each, block 4 * 64 + 2 * 128 + 2 norms of 8, the last norm 8 */
    is_int(model.n_element, 160 + 4 * 64 + 2 * 128 + 3 * 8,
           "and without switches it has no biases, no positions and two matrices");
    ok(!model.dims.tied && !model.dims.bias && model.dims.positions == 0, "which it says");
}

static void test_bad_files(void)
{
    static const struct {
        const char *words, *by, *says;
    } cases[] = {
        {"unshard.model/1", "unshard.plan/1", "schema: 'unshard.plan/1' is not a model"},
        {"\"unshard.model/1\"", "1", "schema: a string is needed"},
        {"\"mpt\"", "\"mtp\"", "family: unknown family 'mtp'; did you mean 'mpt'?"},
        {"\"mpt\"", "\"none-like-it\"", "family: unknown family 'none-like-it'"},
        {"\"family\"", "\"famly\"", "unknown key 'famly'; did you mean 'family'?"},
        {"\"hidden\"", "\"hiden\"", "unknown key 'hiden'; did you mean 'hidden'?"},
        {"\"heads\":", "\"zebra\":", "unknown key 'zebra'"},
        {"\"layers\":\t1", "\"layers\":\t0", "layers: at least 1 is needed"},
        {"\"layers\":\t1", "\"layers\":\t4097", "layers: 4097 is too large"},
        {"\"hidden\":\t768", "\"hidden\":\t769", "head_dim: times heads it is not hidden"},
        {"\"kv_heads\":\t12", "\"kv_heads\":\t5", "kv_heads: 5 does not divide heads"},
        {"\"vocab\":\t50368", "\"vocab\":\t0", "vocab: at least 1 is needed"},
        {"\"flat\":\tfalse", "\"flat\":\ttrue", "flat: true is not supported for mpt"},
        {"\"tied\":\ttrue", "\"tied\":\t1", "tied: a boolean is needed"},
        {"\"parameters\":\t", "\"parameters\":\t1", "is said, the sizes give 47344896"},
        {"\"positions\":\t2048", "\"positions\":\t1024", "is said, the sizes give"},
        {"768]", "769]", "tensor 'transformer.wte.weight' has shape [50368, 769], "},
        {"\"fp32\"", "\"bf16\"", "tensors[0]: dtype: 'bf16' is not supported"},
        {"wte.weight", "wte..weight", "tensors[0]: name: not the name of a tensor"},
        {"wte.weight", "wpe.weight", "tensor 'transformer.wpe.weight' is there twice"},
        {"wte.weight", "wxe.weight", "no tensor 'transformer.wte.weight', which the sizes ask for"},
        {"\"elements\"", "\"element\"", "unknown key 'element'; did you mean 'elements'?"},
        {"\"tensors\":\t[", "\"tensors\":\t[7, ", "tensors[0]: must be an object"},
    };
    struct model mpt = open_or_bail("mpt-125m", 1);
    const char *good = print(&mpt);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct model model = {.name = "untouched"};
        struct err err = {0};
        write_file(replace(good, cases[i].words, cases[i].by));
        is_int(model_open(file, 0, &arena, &model, &err), STATUS_INPUT, "%s for %s is refused",
               cases[i].by, cases[i].words);
        if (!ok(strstr(err.text, cases[i].says) && strstr(err.text, file) &&
                    !strchr(err.text, '\n'),
                "with the file and: %s", cases[i].says))
            tap_note("%s", err.text);
        is_str(model.name, "untouched", "and gives no model");
    }
}

/* What one family has another may lack: such a size is refused, not passed over. */
static void test_foreign_sizes(void)
{
    static const struct {
        const char *model, *words, *by, *says;
    } cases[] = {
        {"llama3-8b", "\"positions\":\t0", "\"positions\":\t9", "positions: llama learns none"},
        {"llama3-8b", "\"bias\":\tfalse", "\"bias\":\ttrue", "bias: true is not supported yet"},
        {"llama3-8b", "\"head_dim\":\t128", "\"head_dim\":\t127", "a head of odd size 127"},
        {"gpt2", "\"bias\":\ttrue", "\"bias\":\tfalse", "bias: false is not supported for gpt2"},
        {"gpt2", "\"kv_heads\":\t12", "\"kv_heads\":\t6", "kv_heads: gpt2 has as many as heads"},
        {"gpt2", "\"positions\":\t1024", "\"positions\":\t0", "positions: at least 1 is needed"},
        {"kda-flat", "\"positions\":\t0", "\"positions\":\t5", "positions: kda learns none"},
        {"kda-flat", "\"tied\":\tfalse", "\"tied\":\ttrue", "tied: true is not supported for kda"},
        {"simple-llm", "\"tied\":\tfalse", "\"tied\":\ttrue", "tied: true is not supported"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct model model = open_or_bail(cases[i].model, 1);
        struct err err = {0};
        write_file(replace(print(&model), cases[i].words, cases[i].by));
        is_int(model_open(file, 0, &arena, &model, &err), STATUS_INPUT, "%s with %s is refused",
               cases[i].model, cases[i].by);
        if (!ok(strstr(err.text, cases[i].says), "with: %s", cases[i].says))
            tap_note("%s", err.text);
    }
}

/* Whatever single bytes are wrong, the answer is a model or one line. */
static void test_random_damage(void)
{
    enum { ROUNDS = 1000 };
    uint64_t state = tap_seed(20260120);
    struct arena kept;
    struct model simple;
    int wrong = 0;
    arena_init(&kept);
    if (model_open("simple-llm", 1, &kept, &simple, NULL))
        tap_bail("a built-in model is not there");
    for (int round = 0; round < ROUNDS; round++) {
        char *text = arena_strdup(&arena, print(&simple));
        size_t length = strlen(text);
        struct model model;
        struct err err = {0};
        for (uint64_t n = 1 + tap_below(&state, 3); n > 0; n--)
            text[tap_below(&state, length)] = (char)(1 + tap_below(&state, 255));
        write_file(text);
        enum status status = model_open(file, 0, &arena, &model, &err);
        wrong += status != STATUS_OK &&
                 (status != STATUS_INPUT || !*err.text || strchr(err.text, '\n'));
        arena_reset(&arena);
    }
    is_int(wrong, 0, "%d damaged files are models or are refused in one line", ROUNDS);
    arena_release(&kept);
}

int main(void)
{
    int fd = mkstemp(file);
    if (fd < 0)
        tap_bail("cannot make a file");
    close(fd);
    arena_init(&arena);
    test_round_trip(0);
    test_round_trip(1);
    test_list_of_tensors();
    test_cut_after_reading();
    test_short_file();
    test_bad_files();
    test_foreign_sizes();
    test_random_damage();
    arena_release(&arena);
    unlink(file);
    return tap_done();
}
