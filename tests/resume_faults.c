/*
 * Folders that are no checkpoints, or not of this run, are refused in one line with file and place,
 * and nothing in them is passed over in silence.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/checkpoint_rig.h"
#include "tests/quoted.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char folder[] = "resume-faults-XXXXXX"; /* in the build folder */
static struct made made;

static const struct dims small = {.layers = 1,
                                  .hidden = 4,
                                  .intermediate = 5,
                                  .heads = 2,
                                  .kv_heads = 1,
                                  .head_dim = 2,
                                  .vocab = 7,
                                  .default_seq = 4};
static const struct checkpoint_state trained = {
    .steps = 12, .sequences = 96, .seed = 7, .adamw = true};

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

static struct plan_options small_options(void)
{
    struct plan_options options = plan_options_default();
    options.gpus = 2;
    options.nodes = 1;
    options.units = "block";
    return options;
}

static void is_told(const struct err *err, const char *says, const char *what)
{
    if (!ok(strstr(err->text, says) && !strchr(err->text, '\n'), "%s: %s", what, says))
        tap_note("%s", err->text);
}

static void save(const struct made *from, const struct checkpoint_state *state)
{
    struct err err = {0};
    if (checkpoint_rig_save(from, in_folder("saved"), state, &err) != STATUS_OK)
        tap_bail(err.text);
}

static void is_refused(const struct made *to, bool adamw, const char *what, const char *says)
{
    struct resume *resume = NULL;
    struct err err = {0};

    is_int(resume_open(in_folder("saved"), &to->plan, adamw, &resume, &err), STATUS_INPUT,
           "%s is refused", what);
    is_told(&err, says, what);
    ok(!resume, "%s gives nothing", what);
    resume_free(resume);
}

#define STATE(more) \
    "{'schema': 'unshard.checkpoint/1', 'model': 'm', 'steps': 1, 'sequences': 1, " more "}"

static void test_bad_states(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "/state.json"},
        {"{", "/state.json: line 1"},
        {"[]", "must be an object with schema 'unshard.checkpoint/1'"},
        {"{}", "missing key 'schema'"},
        {"{'schema': 'unshard.checkpoint/2'}",
         "schema: 'unshard.checkpoint/2' is not a checkpoint that this version reads"},
        {"{'schema': 'unshard.checkpoint/1', 'model': 3}", "model: a string is needed"},
        {"{'schema': 'unshard.checkpoint/1', 'model': 'm', 'steps': -1}", "steps: "},
        {STATE("'optimizer': 'sgd'"), "missing key 'seed'"},
        {STATE("'seed': 9007199254740993, 'optimizer': 'sgd'"), "seed: "},
        {STATE("'seed': 1"), "missing key 'optimizer'"},
        {STATE("'seed': 1, 'optimizer': 'lion'"), "optimizer: 'lion' is neither adamw nor sgd"},
        {STATE("'seed': 1, 'optimizer': 'adamw', 'loss_scale': 1"), "missing key 'good_steps'"},
        {STATE("'seed': 1, 'optimizer': 'adamw', 'loss_scale': 0, 'good_steps': 0"),
         "loss_scale: must be a positive FP32 number"},
        {STATE("'seed': 1, 'optimizer': 'adamw', 'loss_scale': 1e39, 'good_steps': 0"),
         "loss_scale: must be a positive FP32 number"},
        {STATE("'seed': 1, 'optimizer': 'adamw', 'loss_scale': 1, 'good_steps': 4294967296"),
         "good_steps: "},
    };
    save(&made, &trained);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        quoted_write(in_folder("saved/state.json"), cases[i].text);
        is_refused(&made, true, arena_printf(&arena, "bad state %zu", i), cases[i].says);
    }
    checkpoint_rig_remove(in_folder("saved"));
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void cut_last_byte(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || truncate(path, st.st_size - 1) != 0)
        tap_bail("cannot cut a file of this test");
}

static void cut_data(const char *path)
{
    struct tensor_list list = {0};
    uint64_t first = UINT64_MAX;
    if (safetensors_read(path, &arena, &list, NULL) != STATUS_OK)
        tap_bail("cannot read a file of this test");
    for (uint32_t i = 0; i < list.n; i++)
        first = list.at[i].at_bytes < first ? list.at[i].at_bytes : first;
    if (truncate(path, (off_t)first) != 0)
        tap_bail("cannot cut a file of this test");
}

static void write_at(const char *path, const void *bytes, size_t n, uint64_t at)
{
    const int fd = open(path, O_WRONLY);
    if (fd < 0 || pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n || close(fd) != 0)
        tap_bail("cannot write a file of this test");
}

/* Of the first tensor in the header. */
static void make_whole_numbers(const char *path)
{
    char *text = malloc(1 << 16);
    FILE *file = fopen(path, "rb");
    const size_t n = file && text ? fread(text, 1, 1 << 16, file) : 0;
    const char *found = n ? memmem(text, n, "\"F32\"", 5) : NULL;
    if (!found)
        tap_bail("no FP32 in a file of this test");
    write_at(path, "\"I32\"", 5, (uint64_t)(found - text));
    fclose(file);
    free(text);
}

static void set_count(const char *path, float updates)
{
    struct tensor_list list = {0};
    safetensors_read(path, &arena, &list, NULL);
    const struct tensor *step = tensor_list_find(&list, "model.norm.weight.step");
    if (!step)
        tap_bail("no counter in a file of this test");
    write_at(path, &updates, sizeof updates, step->at_bytes);
}

static void set_count_nan(const char *path)
{
    set_count(path, NAN);
}

static void set_count_negative(const char *path)
{
    set_count(path, -1);
}

#define PARAMETERS "saved/parameters.safetensors"
#define OPTIMIZER "saved/optimizer.safetensors"

static void test_bad_tensors(void)
{
    static const struct {
        const char *what, *name;
        void (*damage)(const char *path);
        const char *says;
    } cases[] = {
        {"no state", "saved/state.json", remove_file, "cannot read '"},
        {"no parameters", PARAMETERS, remove_file, "/parameters.safetensors': No such file"},
        {"no optimizer", OPTIMIZER, remove_file, "/optimizer.safetensors': No such file"},
        {"parameters cut short", PARAMETERS, cut_last_byte, "/parameters.safetensors: tensor '"},
        {"optimizer cut short", OPTIMIZER, cut_last_byte, "/optimizer.safetensors: tensor '"},
        {"parameters without data", PARAMETERS, cut_data, "/parameters.safetensors: tensor '"},
        {"moments without data", OPTIMIZER, cut_data, "/optimizer.safetensors: tensor '"},
        {"parameters of integers", PARAMETERS, make_whole_numbers,
         "is I32; F32, BF16 and F16 are what a run can start from"},
        {"moments of integers", OPTIMIZER, make_whole_numbers, "is I32; F32, BF16 and F16"},
        {"a count that is none", OPTIMIZER, set_count_nan,
         "tensor 'model.norm.weight.step' does not hold a count of updates"},
        {"a count below 0", OPTIMIZER, set_count_negative, "does not hold a count of updates"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        save(&made, &trained);
        cases[i].damage(in_folder(cases[i].name));
        is_refused(&made, true, cases[i].what, cases[i].says);
        checkpoint_rig_remove(in_folder("saved"));
    }
    is_refused(&made, true, "no folder", "saved/state.json'");
}

static void test_cut_while_open(void)
{
    struct resume *resume = NULL;
    struct err err = {0};
    float got;

    save(&made, &trained);
    if (resume_open(in_folder("saved"), &made.plan, true, &resume, &err) != STATUS_OK)
        tap_bail(err.text);
    cut_data(in_folder(PARAMETERS));
    struct resumed_values context = {.resume = resume, .seeded = {.plan = &made.plan}};
    const struct values values = values_resumed(&context);
    is_int(values.param(values.context, 0, 0, 1, &got, &err), STATUS_INPUT,
           "data that are gone when they are needed");
    is_told(&err, "/parameters.safetensors': it ends too early", "it says where");
    resume_free(resume);
    checkpoint_rig_remove(in_folder("saved"));
}

/* ---- checkpoints of other runs ------------------------------------------------------------- */

static void test_other_models(void)
{
    static const struct {
        uint64_t layers, intermediate;
        const char *says;
    } cases[] = {
        {2, 5, "no tensor 'model.layers.1.self_attn.q_proj.weight', which the model of this run"},
        {1, 6, "has shape [5, 4], the model of this run gives it [6, 4]"},
    };
    const struct plan_options options = small_options();
    struct dims dims = small;

    save(&made, &trained);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct made other;
        dims.layers = cases[i].layers;
        dims.intermediate = cases[i].intermediate;
        make_init_dims(&other, &dims, &options);
        is_refused(&other, true, arena_printf(&arena, "another model %zu", i), cases[i].says);
        make_release(&other);
    }
    checkpoint_rig_remove(in_folder("saved"));
}

static void test_other_optimizers(void)
{
    struct checkpoint_state state = trained;

    save(&made, &state);
    is_refused(&made, false, "adamw's by sgd", "resume with --optimizer adamw");
    checkpoint_rig_remove(in_folder("saved"));
    state.adamw = false;
    save(&made, &state);
    is_refused(&made, true, "sgd's by adamw", "resume with --optimizer sgd");
    checkpoint_rig_remove(in_folder("saved"));
}

static void test_other_trained(void)
{
    struct plan_options options = small_options();
    struct made frozen;

    options.policy.freeze = "*norm.weight";
    make_init_dims(&frozen, &small, &options);
    save(&frozen, &trained);
    is_refused(&made, true, "what was frozen and is no longer",
               "norm.weight.step', of a parameter that this run updates: freeze and ignore");
    checkpoint_rig_remove(in_folder("saved"));
    save(&made, &trained);
    is_refused(&frozen, true, "what was trained and is frozen now",
               "' is of no parameter that this run updates: freeze and ignore");
    checkpoint_rig_remove(in_folder("saved"));
    make_release(&frozen);
}

int main(void)
{
    const struct plan_options options = small_options();

    arena_init(&arena);
    make_init_dims(&made, &small, &options);
    if (!mkdtemp(folder))
        tap_bail("cannot make a folder for this test");
    test_bad_states();
    test_bad_tensors();
    test_cut_while_open();
    test_other_models();
    test_other_optimizers();
    test_other_trained();
    is_int(rmdir(folder), 0, "nothing else is left");
    make_release(&made);
    arena_release(&arena);
    return tap_done();
}
