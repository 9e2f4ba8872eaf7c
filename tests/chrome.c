/*
 * What the trace writer writes, and what it refuses: the example trace byte for byte, names that
 * JSON has to escape, files that cannot be written, runs that cannot be drawn.
 */
#include "traces/chrome.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tests/trace_run.h"
#include "traces/out_file.h"
#include "traces/trace_check.h"

static char folder[] = "/tmp/unshard-chrome-XXXXXX";
static struct arena arena;

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

static enum status write_run(const struct run *run, const char *path, struct err *err)
{
    const struct chrome_options options = {.rank = 0};
    return chrome_write(run, &options, path, err);
}

static int files_in_folder(void)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += *entry->d_name != '.';
    closedir(dir);
    return n;
}

static void test_example(void)
{
    const char *top = getenv("top_srcdir");
    const char *path = in_folder("toy.json");
    struct err err = {.text = ""};
    is_int(write_run(trace_run_small(&arena), path, &err), STATUS_OK, "a run is written");
    char *got = tap_read_file(path);
    char *want = tap_read_file(arena_printf(&arena, "%s/traces/toy.json", top ? top : "."));
    is_str(got, want, "it is the example trace");
    free(got);
    free(want);

    struct stat about;
    ok(!stat(path, &about) && (about.st_mode & 0444) != 0, "the file can be read by others");
    is_int(write_run(trace_run_small(&arena), path, &err), STATUS_OK, "and replaced");
    is_int(files_in_folder(), 1, "nothing is left beside it");
    unlink(path);
}

static void test_compressed(void)
{
    const char *path = in_folder("toy.json.gz");
    struct err err = {.text = ""};
    struct trace_report report;
    is_int(write_run(trace_run_small(&arena), path, &err), STATUS_OK, "a .gz is written");
    FILE *file = fopen(path, "rb");
    ok(file && fgetc(file) == 0x1f && fgetc(file) == 0x8b, "it is compressed");
    if (file)
        fclose(file);
    is_int(trace_check(path, &arena, &report, &err), STATUS_OK, "and reads without a finding");
    unlink(path);
}

/* The line of a trace that has this text, up to its end. */
static const char *line_with(const char *trace, const char *text)
{
    const char *at = trace ? strstr(trace, text) : NULL;
    return at ? arena_printf(&arena, "%.*s", (int)strlen(text), at) : "(not in the trace)";
}

static void test_names(void)
{
    static const struct {
        const char *name, *printed;
    } cases[] = {
        {"a\"b\\c", "\"unit\":\"a\\\"b\\\\c\""},
        {"a\x01\tb\x7f", "\"unit\":\"a\\u0001\\tb\x7f\""},
        {"größe 層 \xf0\x9f\x98\x80", "\"unit\":\"größe 層 \xf0\x9f\x98\x80\""},
        {"bad \xff\xc3 bytes", "\"unit\":\"bad \xef\xbf\xbd\xef\xbf\xbd bytes\""},
        {"", "\"unit\":\"\""},
    };
    const char *path = in_folder("names.json");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run *run = trace_run_small(&arena);
        struct trace_report report;
        run->units[0].name = cases[i].name;
        run->tasks[0].name = run->model = run->cluster = cases[i].name;
        write_run(run, path, NULL);
        char *trace = tap_read_file(path);
        is_str(line_with(trace, cases[i].printed), cases[i].printed, "name %zu is escaped", i);
        is_int(trace_check(path, &arena, &report, NULL), STATUS_OK, "name %zu breaks no reader", i);
        free(trace);
    }
    unlink(path);
}

static void test_other_rank(void)
{
    const struct chrome_options second = {.rank = 1}, none = {.rank = 2};
    const char *path = in_folder("rank-1.pt.trace.json");
    struct err err;
    is_int(chrome_write(trace_run_small(&arena), &second, path, &err), STATUS_OK, "rank 1 of 2");
    char *trace = tap_read_file(path);
    is_str(line_with(trace, "\"rank\": 1,"), "\"rank\": 1,", "its rank is in the file");
    free(trace);
    unlink(path);
    is_int(chrome_write(trace_run_small(&arena), &none, path, &err), STATUS_USAGE, "rank 2 of 2");
    is_str(err.text, "no rank 2: the run has 2 ranks", "is refused");
}

/* Each communicator of the run has its group in the head and in its messages. */
static void test_groups(void)
{
    static const char *const texts[] = {
        "\"pg_count\":6",
        "\"pg_desc\":\"mesh_shard\",\"backend_config\":\"cuda:nccl\",\"pg_size\":8",
        "\"ranks\":[8, 9, 10, 11, 12, 13, 14, 15]",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "\"In msg nelems\":125,\"Out msg nelems\":1000,\"Group size\":8",
        "\"In msg nelems\":500,\"Out msg nelems\":2000,\"Group size\":4",
        "\"In msg nelems\":2000,\"Out msg nelems\":250,\"Group size\":8",
        "\"In msg nelems\":500,\"Out msg nelems\":500,\"Group size\":2",
        "\"Process Group Ranks\":\"[8, 9, 10, 11, 12, 13, 14, 15]\",\"reduction\":\"premul\"",
        "\"Process Group Ranks\":\"[5, 13]\",\"reduction\":\"sum\"",
    };
    const struct chrome_options options = {.rank = 13};
    const char *path = in_folder("rank-13.pt.trace.json");
    struct trace_report report;
    struct err err = {.text = ""};
    is_int(chrome_write(trace_run_groups(&arena), &options, path, &err), STATUS_OK,
           "a run of several communicators is written");
    char *trace = tap_read_file(path);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        is_str(line_with(trace, texts[i]), texts[i], "with text %zu of its groups", i);
    is_int(trace_check(path, &arena, &report, &err), STATUS_OK, "and breaks no reader");
    free(trace);
    unlink(path);
}

static void test_no_place(void)
{
    const char *missing = in_folder("missing/x.json");
    struct err err;
    is_int(write_run(trace_run_small(&arena), missing, &err), STATUS_INPUT, "no such folder");
    is_str(err.text, arena_printf(&arena, "cannot write '%s': No such file or directory", missing),
           "is told in one line");
    is_int(write_run(trace_run_small(&arena), folder, &err), STATUS_INPUT, "a folder as the file");
    is_str(err.text, arena_printf(&arena, "cannot write '%s': Is a directory", folder),
           "is told in one line");
    is_int(write_run(trace_run_small(&arena), "/dev/full", &err), STATUS_INPUT, "a full device");
    is_str(err.text, "cannot write '/dev/full': No space left on device", "is told in one line");
    is_int(write_run(trace_run_small(&arena), "/dev/null", &err), STATUS_OK,
           "a device is written in place");
    struct stat about;
    ok(!stat("/dev/null", &about) && S_ISCHR(about.st_mode), "and stays a device");
}

static void test_full(const char *name)
{
    const char *path = in_folder(name);
    struct rlimit before, little = {.rlim_cur = 500};
    struct err err = {.text = ""};
    FILE *file = fopen(path, "w");
    if (!file)
        tap_bail("no file can be made");
    fputs("what was there", file);
    fclose(file);

    getrlimit(RLIMIT_FSIZE, &before);
    little.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &little);
    const enum status status = write_run(trace_run_small(&arena), path, &err);
    setrlimit(RLIMIT_FSIZE, &before);

    is_int(status, STATUS_INPUT, "%s: no room for the file in the middle of it", name);
    is_str(err.text, arena_printf(&arena, "cannot write '%s': File too large", path),
           "is told in one line");
    is_int(files_in_folder(), 1, "no temporary file stays behind");
    char *text = tap_read_file(path);
    is_str(text, "what was there", "what was there is not touched");
    free(text);
    unlink(path);
}

static void test_link(void)
{
    const char *path = in_folder("link.json"), *behind = in_folder("behind.json");
    struct stat about;
    FILE *file = fopen(behind, "w");
    if (file)
        fclose(file);
    if (symlink(behind, path))
        tap_bail("no link can be made");
    write_run(trace_run_small(&arena), path, NULL);
    ok(!lstat(path, &about) && S_ISLNK(about.st_mode), "a symbolic link stays one");
    ok(!stat(behind, &about) && about.st_size > 0, "and the file behind it is written");
    unlink(path);
    unlink(behind);
}

static void break_kind(struct run *run)
{
    run->tasks[3].kind = TASK_KIND_N;
}

static void break_unit(struct run *run)
{
    run->tasks[3].unit = 2;
}

static void break_comm(struct run *run)
{
    run->tasks[8].comm = COMM_REPLICATE;
}

static void break_groups(struct run *run)
{
    run->comm_ranks[COMM_KEPT] = 3;
}

static void break_span(struct run *run)
{
    run->tasks[3].end_ns = run->tasks[3].start_ns - 1;
}

static void break_far(struct run *run)
{
    run->tasks[9].end_ns = INT64_MAX;
}

static void break_launch(struct run *run)
{
    run->tasks[3].launch_ns = run->tasks[2].launched_ns - 1;
}

static void break_stream(struct run *run)
{
    run->tasks[3].start_ns = run->tasks[2].end_ns - 1;
}

static void break_sample(struct run *run)
{
    run->samples[1].at_ns = run->samples[0].at_ns - 1;
}

static void test_refused(void)
{
    static const struct {
        void (*breaks)(struct run *run);
        const char *text;
    } cases[] = {
        {break_kind, "task 3 'forward layers.0' has no known kind, stream, dtype, phase or "
                     "reduction"},
        {break_unit, "task 3 'forward layers.0' belongs to a unit that the run does not have"},
        {break_comm, "task 8 'reduce_scatter layers.1' has a communicator that the run does not "
                     "have"},
        {break_groups, "its ranks cannot be divided into groups of equal size"},
        {break_span, "task 3 'forward layers.0' ends before it begins, or lies more than 52 days "
                     "from the step"},
        {break_far, "task 9 'optimizer ' ends before it begins, or lies more than 52 days from the "
                    "step"},
        {break_launch, "task 3 'forward layers.0' is launched before the launch of the task before "
                       "it is over"},
        {break_stream, "task 3 'forward layers.0' overlaps an earlier task on its stream"},
        {break_sample, "memory sample 1 is not in order of time"},
    };
    const char *path = in_folder("refused.json");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run *run = trace_run_small(&arena);
        struct err err = {.text = ""};
        cases[i].breaks(run);
        is_int(write_run(run, path, &err), STATUS_INPUT, "refused: %s", cases[i].text);
        is_str(err.text, arena_printf(&arena, "cannot draw the run: %s", cases[i].text),
               "and told so");
    }
    is_int(files_in_folder(), 0, "no file comes of it");
}

/* In a process of its own, which says when it is in the middle of the file and goes on writing. */
static void write_on(const char *path, int said)
{
    static const char text[1 << 16];
    struct out_file out;
    struct err err;
    if (out_open(path, &out, &err))
        _exit(1);
    for (int i = 0; i < 1 << 12; i++) {
        if (out_write(&out, text, sizeof(text), &err) || (i == 16 && write(said, "x", 1) != 1))
            break;
        usleep(i < 16 ? 0 : 10000);
    }
    _exit(2);
}

/* What ends it with this signal, -1 where it ends otherwise. */
static int end_with(int signal_number, const char *path)
{
    int said[2], state = 0;
    char byte;
    if (pipe(said))
        tap_bail("no pipe can be made");
    const pid_t child = fork();
    if (child == 0)
        write_on(path, said[1]);
    close(said[1]);
    ok(read(said[0], &byte, 1) == 1 && files_in_folder() == 1, "half of a file is there");
    close(said[0]);
    kill(child, signal_number);
    waitpid(child, &state, 0);
    return WIFSIGNALED(state) ? WTERMSIG(state) : -1;
}

static void test_ended(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        signal(numbers[i], SIG_DFL);
        is_int(end_with(numbers[i], in_folder("half.json")), numbers[i],
               "signal %d ends who writes, as it would without a file", numbers[i]);
        is_int(files_in_folder(), 0, "and leaves nothing behind");
    }
}

static void test_signals_kept(void)
{
    struct err err = {.text = ""};
    struct sigaction now;
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    is_int(write_run(trace_run_small(&arena), in_folder("toy.json"), &err), STATUS_OK,
           "a run is written where a signal is ignored");
    sigaction(SIGTERM, NULL, &now);
    ok(now.sa_handler == SIG_DFL, "afterwards a signal does what it did before");
    sigaction(SIGHUP, NULL, &now);
    ok(now.sa_handler == SIG_IGN, "and one that was ignored still is");
    signal(SIGHUP, SIG_DFL);
    unlink(in_folder("toy.json"));
}

int main(void)
{
    arena_init(&arena);
    if (!mkdtemp(folder))
        tap_bail("no temporary folder can be made");
    test_example();
    test_compressed();
    test_names();
    test_other_rank();
    test_groups();
    test_no_place();
    test_full("full.json");
    test_full("full.json.gz");
    test_link();
    test_refused();
    test_ended();
    test_signals_kept();
    rmdir(folder);
    arena_release(&arena);
    return tap_done();
}
