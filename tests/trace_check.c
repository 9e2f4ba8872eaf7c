/*
 * The checker on traces with one flaw each: the rule and the reader that it breaks are named.
 *
 * The sound trace is that of a small run (traces/toy.json); each case changes a piece or two of its
 * text. A second table holds files made by hand for other readers against what those did with them.
 */
#include "traces/trace_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/tap.h"
#include "tests/trace_run.h"
#include "traces/chrome.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static char folder[] = "/tmp/unshard-trace-check-XXXXXX";
static struct arena arena;

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

static void write_text(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text, 1, length, file) != length || fclose(file))
        tap_bail("a file cannot be written");
}

static const struct trace_finding *finding_of(const struct trace_report *report, const char *rule)
{
    for (uint32_t i = 0; i < report->n_finding; i++) {
        if (!strcmp(report->findings[i].rule, rule))
            return &report->findings[i];
    }
    return NULL;
}

static void note_findings(const struct trace_report *report)
{
    for (uint32_t i = 0; i < report->n_finding; i++)
        tap_note("%s (%s): %s", report->findings[i].rule, report->findings[i].reader,
                 report->findings[i].text);
}

/* A piece of the sound trace and what stands there instead. */
struct change {
    const char *from, *to;
};

struct tampering {
    const char *what, *rule, *reader;
    struct change changes[2];
};

/* Ids of the small run: host 1000, GPU 1; launch 4 is that of the forward task of layers.0. */
static const struct tampering tamperings[] = {
    {"a kernel begins 1 ns before the one before it ends",
     "slices-nest",
     "Perfetto",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":0.149,\"dur\":0.191"}}},
    {"a kernel ends 1 ns behind the range around it",
     "slices-nest",
     "Perfetto",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":0.150,\"dur\":0.191"}}},
    {"two launches overlap by 1 ns",
     "slices-nest",
     "Perfetto",
     {{"\"ts\":0.050,\"dur\":0.010,\"args\"", "\"ts\":0.050,\"dur\":0.011,\"args\""}}},
    {"a flow ends and nothing begins it",
     "flow-paired",
     "Perfetto",
     {{"\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":1000,\"tid\":1000,\"id\":4",
       "\"ph\":\"i\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":1000,\"tid\":1000,\"id\":4"}}},
    {"a flow begins and nothing ends it",
     "flow-paired",
     "Perfetto",
     {{"\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":1,\"tid\":7,\"id\":4",
       "\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":1,\"tid\":7,\"id\":44"}}},
    {"a flow has another category at its end",
     "flow-paired",
     "Perfetto",
     {{"\"ph\":\"f\",\"cat\":\"ac2g\"", "\"ph\":\"f\",\"cat\":\"ac2h\""}}},
    {"two flows have one id",
     "flow-once",
     "Perfetto",
     {{"\"id\":4,\"ts\":0.060", "\"id\":3,\"ts\":0.060"}}},
    {"a flow begins where no slice is",
     "flow-enclosed",
     "Perfetto",
     {{"\"id\":4,\"ts\":0.060", "\"id\":4,\"ts\":0.461"}}},
    {"a flow ends at the end of its kernel",
     "flow-enclosed",
     "Perfetto",
     {{"\"id\":9,\"ts\":0.750", "\"id\":9,\"ts\":0.941"}}},
    {"a flow ends on another track than its kernel",
     "flow-at-kernel",
     "TraceLens",
     {{"\"pid\":1,\"tid\":7,\"id\":4", "\"pid\":1,\"tid\":20,\"id\":4"}}},
    {"a key twice in an event",
     "keys-once",
     "all",
     {{"\"name\":\"forward\",\"pid\":1000", "\"name\":\"forward\",\"pid\":1000,\"pid\":2"}}},
    {"a key twice in arguments",
     "keys-once",
     "all",
     {{"\"cbid\":211", "\"cbid\":211,\"x\":{\"cbid\":1},\"cbid\":211"}}},
    {"a key twice, among many",
     "keys-once",
     "all",
     {{"\"cbid\":211",
       "\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,"
       "\"k\":1,\"l\":1,\"m\":1,\"n\":1,\"o\":1,\"p\":1,\"q\":1,\"r\":1,\"s\":1,\"t\":1,"
       "\"u\":1,\"v\":1,\"w\":1,\"x\":1,\"y\":1,\"z\":1,\"c\":1,\"cbid\":211"}}},
    {"a key twice in what is no event",
     "keys-once",
     "all",
     {{"{\"schemaVersion\":1", "{\"x\":[{\"y\":[],\"y\":{}}],\"schemaVersion\":1"}}},
    {"a key twice in the outermost object",
     "keys-once",
     "all",
     {{"{\"schemaVersion\":1", "{\"schemaVersion\":1,\"schemaVersion\":1"}}},
    {"no blank before the rank", "rank-blank", "HTA", {{"\"rank\": 0", "\"rank\":0"}}},
    {"no rank", "rank-given", "HTA", {{"\"rank\": 0", "\"range\": 0"}}},
    {"the rank behind the events",
     "rank-first",
     "HTA",
     {{"\"distributedInfo\"", "\"info\""}, {"\n]}", "\n],\"distributedInfo\":{\"rank\": 0}}"}}},
    {"another rank before the rank",
     "rank-first",
     "HTA",
     {{"{\"schemaVersion\":1", "{\"x\":{\"rank\": 3},\"schemaVersion\":1"}}},
    {"a pid that is text",
     "numeric-ids",
     "speedscope",
     {{"\"name\":\"forward\",\"pid\":1000", "\"name\":\"forward\",\"pid\":\"host\""}}},
    {"a tid that is null",
     "numeric-ids",
     "speedscope",
     {{"\"name\":\"forward\",\"pid\":1000,\"tid\":1000",
       "\"name\":\"forward\",\"pid\":1000,\"tid\":null"}}},
    {"a negative pid",
     "ids-kept",
     "Perfetto",
     {{"\"name\":\"forward\",\"pid\":1000", "\"name\":\"forward\",\"pid\":-1"}}},
    {"tid 0",
     "ids-kept",
     "Perfetto",
     {{"\"name\":\"forward\",\"pid\":1000,\"tid\":1000",
       "\"name\":\"forward\",\"pid\":1000,\"tid\":0"}}},
    {"a comma behind the last event", "strict-json", "all", {{"\n]}", ",\n]}"}}},
    {"a comma too many between events",
     "strict-json",
     "all",
     {{"},\n{\"ph\":\"X\"", "},,\n{\"ph\":\"X\""}}},
    {"a missing comma between events",
     "strict-json",
     "all",
     {{"},\n{\"ph\":\"X\"", "}\n{\"ph\":\"X\""}}},
    {"a missing colon", "strict-json", "all", {{"\"cbid\":211", "\"cbid\" 211"}}},
    {"a wrong bracket", "strict-json", "all", {{"\"cbid\":211", "\"cbid\":[211}"}}},
    {"text behind the end", "strict-json", "all", {{"\n]}", "\n]} {"}}},
    {"NaN", "strict-json", "all", {{"\"cbid\":211", "\"cbid\":NaN"}}},
    {"inf", "strict-json", "all", {{"\"cbid\":211", "\"cbid\":inf"}}},
    {"a fraction with a sign", "strict-json", "all", {{"\"ts\":0.150", "\"ts\":0.-50"}}},
    {"a number with a leading zero", "strict-json", "all", {{"\"cbid\":211", "\"cbid\":0211"}}},
    {"a control byte in a name", "strict-json", "all", {{"ProfilerStep#1", "ProfilerStep#1\x01"}}},
    {"a name that is not UTF-8", "strict-json", "all", {{"ProfilerStep#1", "ProfilerStep#1\xff"}}},
    {"a single backslash in a name", "strict-json", "all", {{"layers.0)", "layers\\0)"}}},
    {"half a character as an escape",
     "no-surrogates",
     "Perfetto",
     {{"ProfilerStep#1", "ProfilerStep#1\\ud83d\\ude00"}}},
    {"a flaw in the head",
     "strict-json",
     "all",
     {{"\"window_begin_ns\":40", "\"window_begin_ns\":4O"}}},
    {"a comma after the first bracket",
     "format-guess",
     "Perfetto",
     {{"{\"schemaVersion\"", "{,\"schemaVersion\""}}},
    {"two steps",
     "profiler-step",
     "HTA",
     {{"\"traceEvents\": [", "\"traceEvents\": [{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
                             "\"ProfilerStep#2\",\"pid\":9,\"tid\":9,\"ts\":0,\"dur\":1},"}}},
    {"an empty event",
     "event-objects",
     "speedscope",
     {{"},\n{\"ph\":\"X\"", "},\n{},{\"ph\":\"X\""}}},
    {"an event that is a number",
     "event-objects",
     "speedscope",
     {{"},\n{\"ph\":\"X\"", "},\n7,{\"ph\":\"X\""}}},
    {"an event without ph",
     "phase",
     "Perfetto",
     {{"{\"ph\":\"X\",\"cat\":\"user_annotation\"", "{\"cat\":\"user_annotation\""}}},
    {"a time in quotes",
     "times-are-numbers",
     "HTA",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":\"0.150\",\"dur\":0.190"}}},
    {"a slice without dur",
     "times-are-numbers",
     "HTA",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":0.150"}}},
    {"times since 1970",
     "times-exact",
     "Perfetto",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":1712195406752834.123,\"dur\":0.190"}}},
    {"a negative dur",
     "durations",
     "Perfetto",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":0.150,\"dur\":-2"}}},
    {"a time before 0",
     "durations",
     "Perfetto",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":-0.150,\"dur\":0.01"}}},
    {"a slice of eight days",
     "under-7-days",
     "HTA",
     {{"\"ts\":0.150,\"dur\":0.190", "\"ts\":5.150,\"dur\":691200000000"}}},
    {"a slice without cat",
     "category",
     "HTA",
     {{"{\"ph\":\"X\",\"cat\":\"user_annotation\"", "{\"ph\":\"X\""}}},
    {"B without E",
     "begin-end-paired",
     "Perfetto",
     {{"\"traceEvents\": [", "\"traceEvents\": [{\"ph\":\"B\",\"name\":\"b\",\"pid\":9,\"tid\":9,"
                             "\"ts\":1},"}}},
    {"E without B",
     "begin-end-paired",
     "Perfetto",
     {{"\"traceEvents\": [", "\"traceEvents\": [{\"ph\":\"E\",\"name\":\"b\",\"pid\":9,\"tid\":9,"
                             "\"ts\":1},"}}},
    {"B and E across a slice",
     "slices-nest",
     "Perfetto",
     {{"\"traceEvents\": [", "\"traceEvents\": [{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":7,"
                             "\"ts\":0.2},{\"ph\":\"E\",\"pid\":1,\"tid\":7,\"ts\":9},"}}},
    {"a kernel on stream 0", "stream-positive", "HTA", {{"\"stream\":7", "\"stream\":0"}}},
    {"a kernel without a stream", "gpu-arguments", "HTA", {{"\"stream\":7", "\"strom\":7"}}},
    {"a kernel without a launch",
     "launch-paired",
     "HTA",
     {{"\"cbid\":211,\"correlation\":4", "\"cbid\":211,\"correlation\":44"}}},
    {"two launches of one correlation",
     "launch-once",
     "HTA",
     {{"\"cbid\":211,\"correlation\":4", "\"cbid\":211,\"correlation\":3"}}},
    {"a kernel before its launch",
     "launch-before-kernel",
     "HTA",
     {{"\"ts\":0.050,\"dur\":0.010,\"args\"", "\"ts\":0.141,\"dur\":0,\"args\""}}},
    {"a launch as the first event",
     "metadata-first",
     "HTA",
     {{"\"traceEvents\": [",
       "\"traceEvents\": [{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"l\","
       "\"pid\":9,\"tid\":9,\"ts\":0,\"dur\":1,\"args\":{\"correlation\":99}},"}}},
    {"a collective by another name",
     "nccl-name",
     "HTA",
     {{"ncclDevKernel_AllGather_RING_LL", "all_gather (layers.0) "}}},
    {"a collective without a dtype",
     "nccl-arguments",
     "TraceLens",
     {{",\"dtype\":\"BFloat16\"", ""}}},
    {"a group larger than its messages",
     "nccl-sizes",
     "TraceLens",
     {{"\"Group size\":2", "\"Group size\":3"}}},
    {"a shard that is no part of the message",
     "nccl-sizes",
     "TraceLens",
     {{"\"Out msg nelems\":1000", "\"Out msg nelems\":1001"}}},
    {"a reduce-scatter that scatters nothing",
     "nccl-sizes",
     "TraceLens",
     {{"\"In msg nelems\":2000,\"Out msg nelems\":1000",
       "\"In msg nelems\":2000,\"Out msg nelems\":2000"}}},
    {"a message so large that its size has no number",
     "nccl-sizes",
     "TraceLens",
     {{"\"In msg nelems\":500", "\"In msg nelems\":9223372036854775807"}}},
    {"an all-reduce that loses something",
     "nccl-sizes",
     "TraceLens",
     {{"_allgather_base", "allreduce"}}},
    {"a group of other ranks than it has",
     "nccl-group",
     "TraceLens",
     {{"\"Process Group Ranks\":\"[0, 1]\"", "\"Process Group Ranks\":\"[0, 1, 10]\""}}},
    {"a group that is larger in the head",
     "nccl-group",
     "TraceLens",
     {{"\"pg_size\":2", "\"pg_size\":4"}}},
    {"a group that is another one in the head",
     "nccl-group",
     "TraceLens",
     {{"\"pg_size\":2",
       "\"pg_size\":4}, {\"pg_name\":\"1\",\"pg_size\":2},\"x\",{\"pg_name\":\"2\""}}},
    {"a counter of two values",
     "counter-one-key",
     "Perfetto",
     {{"\"args\":{\"bytes\":", "\"args\":{\"more\":1,\"bytes\":"}}},
    {"a counter of text",
     "counter-number",
     "Perfetto",
     {{"\"args\":{\"bytes\":", "\"args\":{\"bytes\":\"many\"},\"x\":{\"bytes\":"}}},
    {"a process without a name", "metadata-name", "Perfetto", {{"rank 0 host", ""}}},
};

static char *changed(const char *text, const struct change *change)
{
    const char *at = strstr(text, change->from);
    if (!at)
        tap_bail(arena_printf(&arena, "nothing to tamper with: %s", change->from));
    return arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, change->to,
                        at + strlen(change->from));
}

static void test_tampering(const char *sound, const struct tampering *tampering)
{
    const char *path = in_folder("tampered.json"), *text = sound;
    struct trace_report report = {0};
    struct err err = {.text = ""};
    for (size_t i = 0; i < LENGTH(tampering->changes) && tampering->changes[i].from; i++)
        text = changed(text, &tampering->changes[i]);
    write_text(path, text, strlen(text));

    const enum status status = trace_check(path, &arena, &report, &err);
    const struct trace_finding *finding = finding_of(&report, tampering->rule);
    if (!ok(status == STATUS_NO && finding && !strcmp(finding->reader, tampering->reader),
            "%s: %s of %s", tampering->what, tampering->rule, tampering->reader))
        note_findings(&report);
    unlink(path);
}

static void test_cut_off(const char *sound)
{
    const char *path = in_folder("cut.json");
    const size_t length = strlen(sound), head = (size_t)(strchr(sound, '\n') - sound);
    int wrong = 0;
    for (size_t kept = head + 40; kept + 3 < length; kept += 97) {
        struct trace_report report = {0};
        struct err err;
        write_text(path, sound, kept);
        const enum status status = trace_check(path, &arena, &report, &err);
        wrong +=
            status != STATUS_INPUT && (status != STATUS_NO || !finding_of(&report, "strict-json"));
    }
    is_int(wrong, 0, "a trace that is cut off anywhere is not strict JSON");
    unlink(path);
}

static void test_cut_off_gzip(void)
{
    const char *path = in_folder("toy.json.gz");
    const struct chrome_options options = {.rank = 0};
    struct trace_report report = {0};
    struct err err = {.text = ""};
    chrome_write(trace_run_small(&arena), &options, path, NULL);
    if (truncate(path, 900))
        tap_bail("a file cannot be made shorter");
    const enum status status = trace_check(path, &arena, &report, &err);
    const struct trace_finding *finding = finding_of(&report, "strict-json");
    is_int(status, STATUS_NO, "a compressed trace that is cut off is read as far as it goes");
    is_str(finding ? finding->text : "", "the compressed data is damaged or cut off",
           "and told to be so");
    unlink(path);
}

/* Compressed in pieces, one of them empty, one that ends in the middle of a name. */
static void test_members(const char *sound)
{
    const size_t length = strlen(sound), ends[] = {0, length / 3, length / 3, length - 1, length};
    const char *path = in_folder("members.json.gz");
    struct trace_report report = {0};
    struct err err = {.text = ""};
    size_t at = 0;
    unlink(path);
    for (size_t i = 0; i < LENGTH(ends); i++) {
        gzFile out = gzopen(path, "ab");
        const int piece = (int)(ends[i] - at);
        if (!out || (piece > 0 && gzwrite(out, sound + at, (unsigned)piece) != piece) ||
            gzclose(out) != Z_OK)
            tap_bail("a file cannot be written");
        at = ends[i];
    }
    is_int(trace_check(path, &arena, &report, &err), STATUS_OK,
           "a file of several gzip members has no finding");
    is_int(report.n_flow, 20, "and is read to its end");
    struct stat about;
    if (stat(path, &about) || truncate(path, about.st_size - 9))
        tap_bail("a file cannot be made shorter");
    is_int(trace_check(path, &arena, &report, &err), STATUS_NO, "nor may the last be cut off");
    ok(finding_of(&report, "strict-json"), "which is told");
    unlink(path);
}

static void test_place(const char *sound)
{
    const char *path = in_folder("place.json");
    const struct change change = {"\"cbid\":211", "\"cbid\":NaN"};
    struct trace_report report = {0};
    struct err err;
    const char *text = changed(sound, &change);
    write_text(path, text, strlen(text));
    trace_check(path, &arena, &report, &err);
    const struct trace_finding *finding = finding_of(&report, "strict-json");
    is_int(finding ? (long long)finding->offset : -1, strstr(text, "NaN") - text,
           "a finding gives the byte of malformed text");
    unlink(path);
}

static void test_names_of_files(const char *sound)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"a.json", true},
        {"a.pt.trace.json", true},
        {"a.trace", false},
        {"a.json.gz", false},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const char *path = in_folder(cases[i].name);
        struct trace_report report = {0};
        struct err err;
        write_text(path, sound, strlen(sound));
        trace_check(path, &arena, &report, &err);
        ok(!finding_of(&report, "file-suffix") == cases[i].good, "plain text named %s %s",
           cases[i].name, cases[i].good ? "is taken" : "is not found by HTA and TraceLens");
        unlink(path);
    }
}

static void test_not_a_trace(void)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "the file is empty"},
        {"  \n", "the file is empty"},
        {"name,dur\n", "a trace begins with '{' or '['"},
        {"{}", "no array 'traceEvents': not a Chrome trace"},
        {"{\"traceEvents\": 3}", "no array 'traceEvents': not a Chrome trace"},
        {"{\"traceEvents\": []}", "no events: not a Chrome trace"},
        {"[[1, 2], [3]]", "no events: not a Chrome trace"},
        {"\x1f\x8b", "the compressed data is damaged or cut off"},
    };
    const char *path = in_folder("none.json");
    struct trace_report report;
    struct err err;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_text(path, cases[i].text, strlen(cases[i].text));
        is_int(trace_check(path, &arena, &report, &err), STATUS_INPUT, "no trace, case %zu", i);
        is_str(err.text, arena_printf(&arena, "cannot read '%s': %s", path, cases[i].error),
               "and why");
    }
    write_text(path, "{\"x\": \"", 7);
    if (truncate(path, 65 << 20))
        tap_bail("a file cannot be made longer");
    is_int(trace_check(path, &arena, &report, &err), STATUS_INPUT, "a value that does not end");
    is_str(err.text,
           arena_printf(&arena,
                        "cannot read '%s': value at byte 6 is longer than 64 MiB: not a Chrome "
                        "trace",
                        path),
           "is not read into memory without limit");
    unlink(path);
    is_int(trace_check(folder, &arena, &report, &err), STATUS_INPUT, "a folder is no trace");
    is_int(trace_check(in_folder("missing"), &arena, &report, &err), STATUS_INPUT,
           "nor is a file that is not there");
}

/* Files on which other readers were tried: which rule, if any, says what they did with it. */
static void test_cases(void)
{
    static const struct {
        const char *file, *rule; /* NULL: nothing but the rank is missed */
    } cases[] = {
        {"a_overlap", "slices-nest"},
        {"b_touch", NULL},
        {"c_pid0", "ids-kept"},
        {"d_negpid", "ids-kept"},
        {"e_bigts", "times-exact"},
        {"f_strts", "times-are-numbers"},
        {"g2_nan", "strict-json"},
        {"g_inf", "strict-json"},
        {"h_trunc_arr", "strict-json"},
        {"h_trunc_obj", "strict-json"},
        {"i_trailcomma", "strict-json"},
        {"j_ctrl", "strict-json"},
        {"m_negdur", "durations"},
        {"p_empty", "event-objects"},
        {"q_counter", "counter-one-key"},
        {"r2_flowbefore", NULL},
        {"r_flow", "flow-paired"},
        {"s_async", "has-slices"},
        {"t_sort", NULL},
        {"u_gpuanno", NULL},
        {"v_round", NULL},
        {"x_strpid", "numeric-ids"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const char *path = tap_shared(arena_printf(&arena, "cases/json/%s.json", cases[i].file));
        struct trace_report report = {0};
        struct err err;
        if (!path) {
            tap_skip("no shared data");
            continue;
        }
        is_int(trace_check(path, &arena, &report, &err), STATUS_NO, "%s has no rank",
               cases[i].file);
        if (cases[i].rule)
            ok(finding_of(&report, cases[i].rule), "%s: %s", cases[i].file, cases[i].rule);
        else
            is_int(report.n_finding, 1, "%s: nothing else is found", cases[i].file);
    }
}

int main(void)
{
    const struct chrome_options options = {.rank = 0};
    struct trace_report report;
    struct err err = {.text = ""};
    arena_init(&arena);
    if (!mkdtemp(folder))
        tap_bail("no temporary folder can be made");
    const char *path = in_folder("toy.json");
    if (chrome_write(trace_run_small(&arena), &options, path, &err))
        tap_bail(err.text);
    is_int(trace_check(path, &arena, &report, &err), STATUS_OK, "the sound trace has no finding");
    is_int(report.n_flow, 20, "two flow ends a task are counted");
    is_int(report.n_track, 5, "the host and four streams are tracks");
    char *sound = tap_read_file(path);
    unlink(path);

    for (size_t i = 0; i < LENGTH(tamperings); i++)
        test_tampering(sound, &tamperings[i]);
    test_place(sound);
    test_cut_off(sound);
    test_cut_off_gzip();
    test_members(sound);
    test_names_of_files(sound);
    test_not_a_trace();
    test_cases();
    free(sound);
    rmdir(folder);
    arena_release(&arena);
    return tap_done();
}
