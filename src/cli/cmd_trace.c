/*
 * `unshard trace`: a stored run as a Chrome trace, what readers will say to any trace, and what a
 * profile says.
 *
 * The format and its rules are in traces/; here are the words around them.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "src/cli/command.h"
#include "src/cli/history.h"
#include "src/cli/trace_show.h"
#include "src/json.h"
#include "traces/chrome.h"
#include "traces/trace_check.h"

static void say_exported(const struct options *options, int64_t id, const struct run *run,
                         struct output *out)
{
    const char *path = option_text(options, OPTION_OUTPUT);
    char name[TERM_NAME_BYTES], model[TERM_NAME_BYTES], tasks[32];
    if (!option_given(options, OPTION_JSON)) {
        text_add(&out->result, "run %" PRId64 ", %s of %s, written to %s: %s tasks\n", id,
                 run_kind_name(run->kind), term_name(run->model, model), term_name(path, name),
                 text_count(run->n_task, tasks));
        return;
    }
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.trace_export/1");
    json_add_int(root, "run_id", id);
    json_add_string(root, "model", run->model);
    json_add_string(root, "file", path);
    json_add_u64(root, "tasks", run->n_task);
    json_add_u64(root, "memory_samples", run->n_sample);
    json_print(root, &out->result);
    json_free(root);
}

/* What is no regular file may be stdout, on which nothing but the trace belongs. */
static bool is_regular(const char *path)
{
    struct stat info;
    return strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static enum status export(const struct options *options, struct output *out, struct arena *arena,
                          struct err *err) {
    static const struct chrome_options rank_0 = {.rank = 0};
    const char *path = option_text(options, OPTION_OUTPUT);
    struct run run;
    int64_t id = 0;
    if (!path || !*path) return err_set(err, STATUS_USAGE,
                                        "no file to write; give -o FILE, or -o - for stdout");
    enum status status = history_read(options, options->operands[1], arena, &id, &run, err);
    if (status == STATUS_OK) status = chrome_write(&run, &rank_0, path, err);
    if (status == STATUS_OK && is_regular(path)) say_exported(options, id, &run, out);
    return status;
}

struct report_count {
    const char *key, *words; /* of JSON and of text */
    uint64_t n;
};
enum { COUNT_N = 5 };

static void list_counts(const struct trace_report *report, struct report_count counts[COUNT_N])
{
    const struct report_count all[COUNT_N] = {
        {"events", "events", report->n_event},
        {"slices", "slices", report->n_slice},
        {"tracks", "tracks", report->n_track},
        {"flows", "flows", report->n_flow},
        {"counters", "counter values", report->n_counter},
    };
    memcpy(counts, all, sizeof all);
}

static void check_text(const struct trace_report *report, const struct term *term, struct text *out)
{
    const struct term_margins margins = {.columns = TERM_PAGE_COLUMNS, .at = 2, .hanging = 2};
    struct report_count counts[COUNT_N];
    char number[32], times[32];
    list_counts(report, counts);
    text_add(out, "%s", report->n_finding == 0 ? "no findings:" : "checked:");
    for (unsigned i = 0; i < COUNT_N; i++)
        text_add(out, "%s %s %s", i ? "," : "", text_count(counts[i].n, number), counts[i].words);
    text_add(out, "\n");
    for (uint32_t i = 0; i < report->n_finding; i++) {
        const struct trace_finding *finding = &report->findings[i];
        text_add(out, "\n%s%s%s, for %s: %s time%s, first at byte %s\n  ", term->strong,
                 finding->rule, term->plain, finding->reader, text_count(finding->count, times),
                 finding->count == 1 ? "" : "s", text_count(finding->offset, number));
        term_wrap(finding->text, margins, out);
    }
}

static void check_json(const struct trace_report *report, struct text *out)
{
    struct report_count counts[COUNT_N];
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.trace_check/1");
    list_counts(report, counts);
    for (unsigned i = 0; i < COUNT_N; i++)
        json_add_u64(root, counts[i].key, counts[i].n);
    struct cJSON *findings = json_add_array(root, "findings");
    for (uint32_t i = 0; i < report->n_finding; i++) {
        const struct trace_finding *finding = &report->findings[i];
        struct cJSON *object = json_add_object(findings, NULL);
        json_add_string(object, "rule", finding->rule);
        json_add_string(object, "reader", finding->reader);
        json_add_string(object, "text", finding->text);
        json_add_u64(object, "count", finding->count);
        json_add_u64(object, "offset", finding->offset);
    }
    json_print(root, out);
    json_free(root);
}

static enum status check(const struct options *options, struct output *out, struct arena *arena,
                         struct err *err)
{
    struct trace_report report;
    if (option_given(options, OPTION_OUTPUT))
        return err_set(err, STATUS_USAGE, "'trace check' takes no --output; it writes nothing");
    const enum status status = trace_check(options->operands[1], arena, &report, err);
    if (status != STATUS_OK && status != STATUS_NO)
        return status;
    if (option_given(options, OPTION_JSON))
        check_json(&report, &out->result);
    else
        check_text(&report, &out->term, &out->result);
    return status;
}

static enum status show(const struct options *options, struct output *out, struct arena *arena,
                        struct err *err)
{
    const char *path = options->operands[1];
    struct kineto trace;
    if (option_given(options, OPTION_OUTPUT))
        return err_set(err, STATUS_USAGE, "'trace show' takes no --output; it writes nothing");
    const enum status status = kineto_read(path, arena, &trace, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(options, OPTION_JSON))
        trace_show_json(&trace, path, &out->result);
    else
        trace_show_text(&trace, path, &out->term, &out->result);
    return STATUS_OK;
}

enum status cmd_trace(struct options *options, struct output *out, struct err *err)
{
    static const struct {
        const char *word;
        enum status (*act)(const struct options *options, struct output *out, struct arena *arena,
                           struct err *err);
    } actions[] = {{"export", export}, {"check", check}, {"show", show}};
    const char *word = options->operands[0];
    struct arena arena;
    size_t i = 0;
    while (strcmp(actions[i].word, word))
        i++;
    arena_init(&arena);
    const enum status status = actions[i].act(options, out, &arena, err);
    arena_release(&arena);
    return status;
}
