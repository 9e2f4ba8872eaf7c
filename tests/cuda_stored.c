/*
 * `unshard run --device cuda` as it is typed, over a CUDA of the host's (tests/fake_cuda.h): a run is stored;
 * one of which a call fails is stored with the call's name, and ends with 5; where there is no device it
 * ends with 3, and nothing is stored.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/command.h"
#include "src/run.h"
#include "tests/fake_cuda.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

const char unshard_version[] = "test"; /* the program's own is where its main() is */

static const struct command run_command = {.name = "run", .bit = COMMAND_RUN, .operand = "model"};

static enum status type(const char *ranks, const char *db, struct err *err)
{
    static struct options options;
    const char *const words[] = {"run",       "llama-tiny", "--device", "cuda",     "--ranks",
                                 ranks,       "--steps",    "2",        "--warmup", "1",
                                 "--timeout", "5",          "--db",     db};
    enum { N = sizeof words / sizeof *words };
    char *argv[N + 1] = {NULL};
    struct output out = {.term = term_open(COLOR_NEVER)};

    for (int i = 0; i < N; i++)
        argv[i] = (char *)(uintptr_t)words[i];
    enum status status = options_parse(&run_command, N, argv, &options, err);
    if (status == STATUS_OK)
        status = cmd_run(&options, &out, err);
    text_release(&out.result);
    text_release(&out.warnings);
    return status;
}

struct stored_case {
    const char *ranks, *of; /* the call that fails; NULL: none */
    uint64_t fail_at;
};

static void check(const struct stored_case *of)
{
    const char *path = rig_path(of->of ? of->of : of->ranks);
    struct err err = {0}, why = {0};
    struct store *store = NULL;
    struct arena arena;
    struct run run;

    arena_init(&arena);
    fake_nccl_share(2);
    fake_cuda_init(&(struct fake_setup){
        .n_device = 2, .driver = 13000, .fail_at = of->of ? of->fail_at : 0, .of = of->of});
    is_int(type(of->ranks, path, &err), of->of ? STATUS_RUN : STATUS_OK, "%s ranks, %s: %s",
           of->ranks, of->of ? of->of : "all goes well", err.text);
    if (store_open_read(path, &store, &why) != STATUS_OK ||
        store_get(store, 0, &arena, &run, &why) != STATUS_OK)
        tap_bail(why.text);
    is_int(run.kind, RUN_REAL, "the run is stored");
    is_str(run.real.device, "cuda", "with its device");
    if (of->of)
        ok(run.real.error && strstr(run.real.error, of->of), "and with the call: %s",
           run.real.error);
    else
        ok(!run.real.error, "without an error");
    store_close(store);
    fake_nccl_unshare();
    arena_release(&arena);
}

static void check_missing(void)
{
    const char *path = rig_path("missing");
    struct err err = {0};

    fake_cuda_init(&(struct fake_setup){.n_device = 1, .driver = 13000, .lacks = "libnccl"});
    is_int(type("1", path, &err), STATUS_DEVICE, "without NCCL: %s", err.text);
    ok(access(path, F_OK) != 0, "nothing is stored");
}

int main(void)
{
    static const struct stored_case cases[] = {
        {"1", NULL, 0},
        {"2", NULL, 0},
        {"1", "cudaMalloc", 3},
        {"1", "cublasLtMatmul", 7},
        {"1", "cudaEventRecord", 40},
        {"1", "cudaStreamWaitEvent", 9},
        {"2", "ncclAllGather", 2},
        {"2", "ncclCommInitRankConfig", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
    check_missing();
    return tap_done();
}
