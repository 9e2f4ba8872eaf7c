/*
 * Checkpoints that cannot be written are refused in one line that names the place, before time is
 * spent, and nothing half written stays but what a run is worth.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/checkpoint_rig.h"
#include "tests/quoted.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char folder[] = "checkpoint-faults-XXXXXX"; /* in the build folder */
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

/* ---- folders that are not written ---------------------------------------------------------- */

static struct checkpoint *new_checkpoint(const char *name, uint64_t seed)
{
    struct checkpoint_setup setup = {
        .dir = *name ? in_folder(name) : "", .program = &made.program, .state = trained};
    setup.state.seed = seed;
    return checkpoint_new(&setup);
}

static void test_not_created(void)
{
    static const struct {
        const char *what, *name;
        uint64_t seed;
        const char *says;
    } cases[] = {
        {"a folder that is there", "there", 7, "/there': it is there already; name another folder"},
        {"the same with a slash", "there/", 7, "/there': it is there already; name another folder"},
        {"a file that is there", "file", 7, "/file': it is there already"},
        {"a link to nothing", "link", 7, "/link': it is there already"},
        {"another run's beginning", "begun", 7, "/begun.partial' is there, of a run that goes on"},
        {"a folder in none", "none/saved", 7, "none/saved.partial': No such file or directory"},
        {"a folder in a file", "file/saved", 7, "file/saved.partial': Not a directory"},
        {"no name", "", 7, "cannot save to a folder without a name"},
        {"a seed past what JSON holds", "saved", UINT64_C(1) << 53,
         "seed 9007199254740992 is past 2^53 - 1"},
    };
    mkdir(in_folder("there"), 0700);
    mkdir(in_folder("begun.partial"), 0700);
    quoted_write(in_folder("file"), "a file");
    if (symlink("nothing", in_folder("link")) != 0)
        tap_bail("cannot make a link for this test");
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct checkpoint *checkpoint = new_checkpoint(cases[i].name, cases[i].seed);
        struct err err = {0};
        is_int(checkpoint_create(checkpoint, &err), STATUS_INPUT, "%s is refused", cases[i].what);
        is_told(&err, cases[i].says, cases[i].what);
        checkpoint_free(checkpoint);
    }
    is_int(unlink(in_folder("link")), 0, "the link is still there");
    is_int(unlink(in_folder("file")), 0, "so is the file");
    is_int(rmdir(in_folder("there")), 0, "the folder is, and empty");
    is_int(rmdir(in_folder("begun.partial")), 0, "and the other run's");
}

static void test_unwritable(void)
{
    struct checkpoint *checkpoint = new_checkpoint("locked/saved", 7);
    struct err err = {0};

    mkdir(in_folder("locked"), 0500);
    if (access(in_folder("locked"), W_OK) == 0)
        tap_skip("who may write everywhere runs this test");
    else if (is_int(checkpoint_create(checkpoint, &err), STATUS_INPUT, "no right to write"))
        is_told(&err, "locked/saved.partial': Permission denied", "it says so");
    checkpoint_free(checkpoint);
    rmdir(in_folder("locked"));
}

/* Files of this size are too large here, as they would be for a full disk. */
static void test_no_space(void)
{
    struct checkpoint *checkpoint = new_checkpoint("saved", 7);
    struct rlimit had, little;
    struct err err = {0};

    if (getrlimit(RLIMIT_FSIZE, &had) != 0)
        tap_bail("no limit of file sizes");
    little = had;
    little.rlim_cur = checkpoint->files[FILE_OPTIMIZER].head.file_bytes - 1;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    const enum status status = checkpoint_create(checkpoint, &err);
    setrlimit(RLIMIT_FSIZE, &had);
    is_int(status, STATUS_INPUT, "too little space is found before the run");
    is_told(&err, "saved.partial/optimizer.safetensors': ", "for the second file");
    ok(!checkpoint_rig_exists(in_folder("saved.partial")), "and the first is removed with it");
    checkpoint_free(checkpoint);
}

/* ---- runs that do not end well ------------------------------------------------------------- */

static enum status write_rank(const struct checkpoint *checkpoint, uint32_t rank, struct err *err)
{
    const struct checkpoint_memory memory = checkpoint_rig_memory(&made, rank, &arena);
    return checkpoint_write_memory(checkpoint, rank, &memory, err);
}

static void test_abandoned(void)
{
    struct checkpoint *checkpoint = new_checkpoint("saved", 7);
    struct err err = {0};

    is_int(checkpoint_create(checkpoint, &err), STATUS_OK, "a checkpoint begins");
    ok(checkpoint_rig_exists(in_folder("saved.partial/optimizer.safetensors")),
       "its files are there at once");
    ok(!checkpoint_rig_exists(in_folder("saved")), "under another name");
    is_int(write_rank(checkpoint, 0, &err), STATUS_OK, "one rank writes, the other fails");
    checkpoint_free(checkpoint);
    ok(!checkpoint_rig_exists(in_folder("saved.partial")), "then nothing is left");
}

static void test_file_gone(void)
{
    struct checkpoint *checkpoint = new_checkpoint("saved", 7);
    struct err err = {0};

    checkpoint_create(checkpoint, &err);
    unlink(in_folder("saved.partial/parameters.safetensors"));
    is_int(write_rank(checkpoint, 1, &err), STATUS_INPUT, "a file that is gone cannot be written");
    is_told(&err, "cannot write '", "it is named");
    checkpoint_free(checkpoint);
}

static void test_name_taken(void)
{
    struct checkpoint *checkpoint = new_checkpoint("saved", 7);
    struct err err = {0};

    checkpoint_create(checkpoint, &err);
    write_rank(checkpoint, 0, &err);
    write_rank(checkpoint, 1, &err);
    mkdir(in_folder("saved"), 0700);
    quoted_write(in_folder("saved/state.json"), "{}");
    is_int(checkpoint_commit(checkpoint, &err), STATUS_INPUT,
           "a name that was taken in the meantime");
    is_told(&err, "all that was saved is in '", "loses nothing");
    checkpoint_free(checkpoint);
    ok(checkpoint_rig_exists(in_folder("saved.partial/state.json")), "what was saved is there");
    checkpoint_rig_remove(in_folder("saved"));
    checkpoint_rig_remove(in_folder("saved.partial"));
}

int main(void)
{
    const struct plan_options options = small_options();

    arena_init(&arena);
    make_init_dims(&made, &small, &options);
    if (!mkdtemp(folder))
        tap_bail("cannot make a folder for this test");
    test_not_created();
    test_unwritable();
    test_no_space();
    test_abandoned();
    test_file_gone();
    test_name_taken();
    is_int(rmdir(folder), 0, "nothing else is left");
    make_release(&made);
    arena_release(&arena);
    return tap_done();
}
