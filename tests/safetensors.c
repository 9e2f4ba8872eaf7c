/*
 * Headers of safetensors: what good ones give, alone, in an index and beside a config.json, and
 * what is said of each kind of bad one. Files hold headers written out here, and zeros for data.
 */
#include "src/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/arch/arch.h"
#include "src/plan.h"
#include "tests/quoted.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char folder[] = "safetensors-test-XXXXXX"; /* in the build folder */

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

/* Single quotes of the header stand for double ones; announced < 0: the header's own length. */
static void write_tensors(const char *name, const char *header, long long announced, size_t data)
{
    FILE *out = fopen(in_folder(name), "wb");
    size_t length = strlen(header);
    unsigned long long n = announced < 0 ? length : (unsigned long long)announced;
    if (!out)
        tap_bail("cannot write a file of this test");
    for (int i = 0; i < 8; i++)
        fputc((int)(n >> 8 * i & 0xff), out);
    for (size_t i = 0; i < length; i++)
        fputc(header[i] == '\'' ? '"' : header[i], out);
    for (size_t i = 0; i < data; i++)
        fputc(0, out);
    if (fclose(out) != 0)
        tap_bail("cannot write a file of this test");
}

static enum status open_in(const char *name, uint64_t layers, struct model *out, struct err *err)
{
    *out = (struct model){.name = "untouched"};
    *err = (struct err){0};
    return model_open(in_folder(name), layers, &arena, out, err);
}

static void is_refused(const char *name, const char *says, const char *what)
{
    struct model model;
    struct err err;
    is_int(open_in(name, 0, &model, &err), STATUS_INPUT, "%s is refused", what);
    if (!ok(strstr(err.text, says) && !strchr(err.text, '\n') && !strchr(err.text, '\033'),
            "with one line: %s", says))
        tap_note("%s", err.text);
    is_str(model.name, "untouched", "and gives no model");
}

/* ---- one file alone ----------------------------------------------------------------------- */

#define A "'a.10.w': {'dtype': 'F32', 'shape': [2, 3], 'data_offsets': [0, 24]}"
#define B "'a.9.w': {'dtype': 'BF16', 'shape': [4], 'data_offsets': [24, 32]}"
#define C "'scale': {'dtype': 'F8_E4M3', 'shape': [], 'data_offsets': [32, 33]}"

static void test_good_file(void)
{
    struct model model;
    struct err err;
    write_tensors("good.safetensors", "{'__metadata__': {'format': 'pt'}, " A ", " C ", " B "}   ",
                  -1, 33);
    if (!is_int(open_in("good.safetensors", 0, &model, &err), STATUS_OK, "a good file is a model"))
        tap_bail(err.text);
    is_int(model.n_param, 3, "of three parameters");
    is_int(model.n_element, 11, "and eleven elements, one of them without dimensions");
    is_str(model.params[0].name, "a.9.w", "numbers in names are in order of their value");
    is_str(model.params[1].name, "a.10.w", "all of one module in a row");
    is_str(model.params[2].name, "scale", "a name without dots is the model's own");
    is_str(model.params[0].stored, "BF16", "the stored dtype is kept");
    is_int(model.params[0].storage, DTYPE_FP32, "though training stores FP32");
    is_int(model.params[1].shape[1], 3, "shapes are the header's");
    ok(model_module(&model, "a.10") > model_module(&model, "a.9"), "names give modules");
}

static void test_no_step(void)
{
    struct plan_options options = plan_options_default();
    struct model model;
    struct plan plan;
    struct err err;
    write_tensors("good.safetensors", "{" A "}", -1, 24);
    if (open_in("good.safetensors", 0, &model, &err))
        tap_bail(err.text);
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_INPUT,
           "without a config.json no step is planned");
    ok(strstr(err.text, "what is missing is the model's config.json beside the file"),
       "and the message says what is missing");
    is_int(open_in("good.safetensors", 1, &model, &err), STATUS_USAGE, "nor are layers cut");
}

static void test_header_alone(void)
{
    struct model model;
    struct err err;
    write_tensors("head.safetensors", "{" A ", " B "}", -1, 0);
    is_int(open_in("head.safetensors", 0, &model, &err), STATUS_OK,
           "a file that ends with its header is read");
    is_int(model.n_element, 10, "as if the data were there");
}

static void test_bad_lengths(void)
{
    static const struct {
        long long announced;
        size_t data;
        const char *says;
    } cases[] = {
        {1000, 24, "a header of 1000 bytes is announced, the file has only 94 more"},
        {0x7fffffffffffffff, 24, "a header of 9223372036854775807 bytes is announced"},
        {0, 24, "a header of 0 bytes holds no JSON object"},
        {1, 24, "a header of 1 bytes holds no JSON object"},
        {30, 24, "line 1"},
        {-1, 20, "tensor 'a.10.w' ends at byte 24 of the data, the file has 20"},
        {-1, 30, "the last 6 bytes belong to no tensor"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_tensors("bad.safetensors", "{" A "}", cases[i].announced, cases[i].data);
        is_refused("bad.safetensors", cases[i].says, arena_printf(&arena, "bad length %zu", i));
    }
}

static void test_too_long_header(void)
{
    write_tensors("bad.safetensors", "{}", SAFETENSORS_MAX_HEADER + 1, 0);
    if (truncate(in_folder("bad.safetensors"), 2000000000) != 0) {
        tap_skip("no large file can be made here");
        return;
    }
    is_refused("bad.safetensors", "a header of 100000001 bytes, at most 100000000 are read",
               "a header past the limit");
}

static void test_bad_files(void)
{
    FILE *out = fopen(in_folder("bad.safetensors"), "wb");
    if (!out || fputs("short", out) == EOF || fclose(out) != 0)
        tap_bail("cannot write a file of this test");
    is_refused("bad.safetensors", "a file of 5 bytes", "a file without a length");
    is_refused("none.safetensors", "cannot read", "a file that is not there");
    if (mkdir(in_folder("folder.safetensors"), 0700) == 0)
        is_refused("folder.safetensors/", "config.json", "an empty folder");
    rmdir(in_folder("folder.safetensors"));
    if (mkfifo(in_folder("pipe.safetensors"), 0600) == 0)
        is_refused("pipe.safetensors", "not a regular file", "a pipe");
    unlink(in_folder("pipe.safetensors"));
}

#define ONE(dtype, shape, offsets) \
    "{'a': {'dtype': " dtype ", 'shape': " shape ", 'data_offsets': " offsets "}}"

static void test_bad_headers(void)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } cases[] = {
        {" {}", 0, "the header does not begin with '{'"},
        {"[]", 0, "the header does not begin with '{'"},
        {"{}", 0, "the header names no tensor"},
        {"{'__metadata__': {}}", 0, "the header names no tensor"},
        {"{'__metadata__': {'a': 1}, " A "}", 24, "__metadata__.a: a string is needed"},
        {"{'__metadata__': 3, " A "}", 24, "__metadata__: must be an object"},
        {"{" A, 24, "line 1"},
        {"{" A "} x", 24, "line 1"},
        {"{" A ", " A "}", 24, "key 'a.10.w' is there twice"},
        {"{'a': 3}", 0, "a: must be an object"},
        {"{'a': {}}", 0, "missing key 'dtype'"},
        {ONE("'F33'", "[1]", "[0, 4]"), 4, "a.dtype: unknown dtype 'F33'; did you mean"},
        {ONE("'complex'", "[1]", "[0, 4]"), 4, "a.dtype: unknown dtype 'complex'"},
        {ONE("32", "[1]", "[0, 4]"), 4, "a.dtype: a string is needed"},
        {ONE("'F32'", "1", "[0, 4]"), 4, "a.shape: must be a list"},
        {ONE("'F32'", "[-1]", "[0, 4]"), 4, "a.shape[0]: a whole number of 0 or more"},
        {ONE("'F32'", "[1.5]", "[0, 4]"), 4, "a.shape[0]: "},
        {ONE("'F32'", "[1e300]", "[0, 4]"), 4, "a.shape[0]: "},
        {ONE("'F32'", "[1,1,1,1,1,1,1,1,1]", "[0, 4]"), 4, "a.shape: more than 8 numbers"},
        {ONE("'F32'", "[4503599627370496, 4503599627370496]", "[0, 4]"), 4,
         "a: the shape has more elements than a file can hold"},
        {ONE("'F32'", "[1]", "[4, 0]"), 4, "a: data_offsets are reversed: 4 to 0"},
        {ONE("'F32'", "[1]", "[0]"), 4, "a: data_offsets must be two numbers"},
        {ONE("'F32'", "[1]", "[0, 4, 8]"), 4, "a.data_offsets: more than 2 numbers"},
        {ONE("'F32'", "[1]", "[0, 9007199254740992]"), 4, "too large to be read exactly"},
        {ONE("'F32'", "[2]", "[0, 4]"), 4, "a: shape and dtype need 8 bytes, data_offsets give 4"},
        {ONE("'F4'", "[3]", "[0, 1]"), 1, "a: shape and dtype need 2 bytes, data_offsets give 1"},
        {ONE("'F32'", "[1]", "[4, 8]"), 8, "bytes 0 to 4, before 'a', belong to no tensor"},
        {"{'a': {'dtype': 'U8', 'shape': [4], 'data_offsets': [0, 4]}, "
         "'b': {'dtype': 'U8', 'shape': [4], 'data_offsets': [3, 7]}}",
         7, "tensors 'a' and 'b' overlap"},
        {"{'a': {'dtype': 'U8', 'shape': [4], 'data_offsets': [0, 4]}, "
         "'b': {'dtype': 'U8', 'shape': [4], 'data_offsets': [0, 4]}}",
         4, "tensors 'a' and 'b' overlap"},
        {"{'': {'dtype': 'U8', 'shape': [1], 'data_offsets': [0, 1]}}", 1, "not a tensor's name"},
        {"{'a..b': {'dtype': 'U8', 'shape': [1], 'data_offsets': [0, 1]}}", 1,
         "not a tensor's name"},
        {"{'a.': {'dtype': 'U8', 'shape': [1], 'data_offsets': [0, 1]}}", 1, "not a tensor's name"},
        {"{'\\u001b[2J': {'dtype': 'U8', 'shape': [1], 'data_offsets': [0, 1]}}", 1,
         "not a tensor's name"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_tensors("bad.safetensors", cases[i].header, -1, cases[i].data);
        is_refused("bad.safetensors", cases[i].says, arena_printf(&arena, "bad header %zu", i));
    }
}

/* Whatever single bytes are wrong, the answer is a model or one line. */
static void test_random_damage(void)
{
    enum { ROUNDS = 2000 };
    static const char good[] = "{" A ", " B ", " C "}";
    uint64_t state = tap_seed(20260117);
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char *header = arena_strdup(&arena, good);
        struct model model;
        struct err err;
        for (uint64_t n = 1 + tap_below(&state, 3); n > 0; n--)
            header[tap_below(&state, strlen(good))] = (char)(1 + tap_below(&state, 255));
        write_tensors("bad.safetensors", header, -1, 33);
        enum status status = open_in("bad.safetensors", 0, &model, &err);
        wrong += status != STATUS_OK && (status != STATUS_INPUT || !*err.text ||
                                         strchr(err.text, '\n') || strchr(err.text, '\033'));
        arena_reset(&arena);
    }
    is_int(wrong, 0, "%d damaged headers are models or are refused in one line", ROUNDS);
}

/* ---- an index ----------------------------------------------------------------------------- */

static void write_parts(const char *map)
{
    write_tensors("part-1.safetensors", "{" A "}", -1, 24);
    write_tensors("part-2.safetensors",
                  "{'b': {'dtype': 'F16', 'shape': [5], 'data_offsets': [0, 10]}}", -1, 10);
    quoted_write(in_folder("model.safetensors.index.json"), map);
}

#define TWO "'a.10.w': 'part-1.safetensors', 'b': 'part-2.safetensors'"

static void test_index(void)
{
    static const struct {
        const char *map, *says;
    } cases[] = {
        {"{'weight_map': {'a.10.w': 'part-1.safetensors', 'b': 'part-1.safetensors'}}",
         "tensor 'b' is not in '"},
        {"{'weight_map': {'a.10.w': 'part-2.safetensors', 'b': 'part-1.safetensors'}}",
         "the index does not say so"},
        {"{'weight_map': {" TWO ", 'c': 'part-1.safetensors'}}", "tensor 'c' is not in '"},
        {"{'weight_map': {" TWO ", 'c': 'part-3.safetensors'}}", "cannot read"},
        {"{'weight_map': {'b': '../part-2.safetensors'}}",
         "weight_map.b: '../part-2.safetensors' is not a .safetensors file beside the index"},
        {"{'weight_map': {'b': '/etc/passwd'}}", "is not a .safetensors file beside the index"},
        {"{'weight_map': {'b..c': 'part-2.safetensors'}}", "not a tensor's name"},
        {"{'weight_map': {'b': 2}}", "weight_map.b: a string is needed"},
        {"{'weight_map': {}}", "weight_map: names no tensor"},
        {"{'weight_map': 3}", "weight_map: must be an object"},
        {"{'metadata': {}}", "missing key 'weight_map'"},
        {"[]", "must be an object with a weight_map"},
        {"{", "line 1"},
    };
    struct model model;
    struct err err;
    write_parts("{'metadata': {'total_size': 34}, 'weight_map': {" TWO "}}");
    if (!is_int(open_in("model.safetensors.index.json", 0, &model, &err), STATUS_OK,
                "an index of two files is a model"))
        tap_note("%s", err.text);
    is_int(model.n_element, 11, "of what is in both");
    is_int(open_in("", 0, &model, &err), STATUS_OK, "and so is its folder, without a config.json");
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_parts(cases[i].map);
        is_refused("model.safetensors.index.json", cases[i].says,
                   arena_printf(&arena, "bad index %zu", i));
    }
    unlink(in_folder("model.safetensors.index.json"));
    unlink(in_folder("part-1.safetensors"));
    unlink(in_folder("part-2.safetensors"));
}

/* ---- beside a config.json ----------------------------------------------------------------- */

static const char config[] = "{'model_type': 'gpt2', 'n_embd': 8, 'n_layer': 2, 'n_head': 2, "
                             "'n_positions': 4, 'vocab_size': 10}";

/* A header of all that the config asks for, as the bare model names it; edited as a case says. */
static const char *header_of(const struct model *model, const char *skip, const char *more)
{
    const char *text = "{";
    unsigned long long at = 0;
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        const char *name = param->name + strlen("transformer.");
        if (skip && strcmp(name, skip) == 0)
            continue;
        const char *shape = "";
        for (unsigned k = 0; k < param->n_dim; k++)
            shape = arena_printf(&arena, "%s%s%llu", shape, k ? ", " : "",
                                 (unsigned long long)param->shape[k]);
        text = arena_printf(&arena,
                            "%s%s'%s': {'dtype': 'BF16', 'shape': [%s], 'data_offsets': "
                            "[%llu, %llu]}",
                            text, at ? ", " : "", name, shape, at,
                            at + 2 * (unsigned long long)param->numel);
        at += 2 * (unsigned long long)param->numel;
    }
    if (more)
        text = arena_printf(&arena,
                            "%s, '%s': {'dtype': 'U8', 'shape': [1, 3], 'data_offsets': "
                            "[%llu, %llu]}",
                            text, more, at, at + 3);
    return arena_printf(&arena, "%s}", text);
}

static void test_config_beside(void)
{
    struct plan_options options = plan_options_default();
    struct model plain, model;
    struct plan plan;
    struct err err;
    quoted_write(in_folder("config.json"), config);
    if (open_in("config.json", 0, &plain, &err))
        tap_bail(err.text);
    write_tensors("model.safetensors", header_of(&plain, NULL, "h.0.attn.bias"), -1, 0);
    if (!is_int(open_in("model.safetensors", 0, &model, &err), STATUS_OK,
                "headers without prefix, with a mask, agree with a config.json"))
        tap_note("%s", err.text);
    is_int(model.n_element, plain.n_element, "the mask is no parameter");
    is_str(model.params[0].name, "transformer.wte.weight", "names are the model's");
    is_str(model.params[0].stored, "BF16", "dtypes are the header's");
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_OK, "a step can be planned");
    is_int(open_in("", 0, &model, &err), STATUS_OK, "the folder of both is the same model");
    is_str(model.params[0].stored, "BF16", "with the header's dtypes");
    is_int(plan_resolve(&model, &options, &arena, &plan, &err), STATUS_OK, "and can be planned");
    is_int(open_in("model.safetensors", 1, &model, &err), STATUS_OK, "layers are cut");
    is_str(model.params[model.n_param - 1].stored, "BF16", "and what is left has its dtypes");
}

static void test_config_disagrees(void)
{
    static const struct {
        const char *skip, *more, *says;
    } cases[] = {
        {"h.1.ln_2.bias", NULL,
         "/model.safetensors: no tensor 'transformer.h.1.ln_2.bias', which "},
        {NULL, "h.2.ln_1.bias", "tensor 'h.2.ln_1.bias' is not in the model that"},
        {"h.0.ln_1.bias", "h.0.ln_1.bias", "tensor 'h.0.ln_1.bias' has shape [1, 3], "},
        {NULL, "lm_head.weight", "tensor 'lm_head.weight' has shape [1, 3], "},
    };
    struct model plain;
    struct err err;
    if (open_in("config.json", 0, &plain, &err))
        tap_bail(err.text);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_tensors("model.safetensors", header_of(&plain, cases[i].skip, cases[i].more), -1, 0);
        is_refused("model.safetensors", cases[i].says, arena_printf(&arena, "disagreement %zu", i));
        is_refused("", cases[i].says, "and so is the folder");
        is_refused("", "/model.safetensors: ", "in which the file is named");
    }
    is_refused("model.safetensors", "config.json gives it [10, 8]", "a tied head of another shape");
    quoted_write(in_folder("config.json"), "{'model_type': 'mamba'}");
    is_refused("model.safetensors", "unknown model type 'mamba'",
               "a config.json of another family");
    unlink(in_folder("config.json"));
    unlink(in_folder("model.safetensors"));
}

int main(void)
{
    if (!mkdtemp(folder))
        tap_bail("cannot make a folder for files");
    arena_init(&arena);
    test_good_file();
    test_no_step();
    test_header_alone();
    test_bad_lengths();
    test_too_long_header();
    test_bad_files();
    test_bad_headers();
    test_random_damage();
    unlink(in_folder("good.safetensors"));
    unlink(in_folder("head.safetensors"));
    unlink(in_folder("bad.safetensors"));
    test_index();
    test_config_beside();
    test_config_disagrees();
    rmdir(folder);
    arena_release(&arena);
    return tap_done();
}
