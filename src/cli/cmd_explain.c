/*
 * `unshard explain`: why a step takes as long as it does; or, with --program, the program that it
 * is, as text (src/program_print.h).
 *
 * Simulates a model, or a run of the history again, and stores nothing.
 */
#include "src/cli/evaluate.h"
#include "src/cli/explain_report.h"
#include "src/cli/history.h"
#include "src/program_print.h"

/* A comment of its own, however many lines that takes. */
static void add_comment(const char *words, struct text *out)
{
    const struct term_margins margins = {
        .columns = TERM_PAGE_COLUMNS, .at = 2, .hanging = 4, .lead = "#"};
    text_add(out, "# ");
    term_wrap(words, margins, out);
}

static void add_head(const struct prepared *prepared, const struct options *options,
                     struct text *out)
{
    char name[TERM_NAME_BYTES];
    struct text words;
    text_init(&words);
    text_add(&words, "unshard explain %s --program", term_name(prepared->model.name, name));
    prepared_options_text(options, &words);
    add_comment(words.at, out);
    text_release(&words);
    text_add(out, "# program %016llx\n", (unsigned long long)program_hash(&prepared->program));
}

static void print_program(const struct prepared *prepared, const struct options *options,
                          struct text *out)
{
    uint64_t only = option_number(options, OPTION_SECTION);
    bool expand = option_given(options, OPTION_EXPAND);
    add_head(prepared, options, out);
    for (unsigned section = 0; section < SECTION_N; section++) {
        if (only == SECTION_N || only == section)
            program_print(&prepared->program, (enum section_id)section, expand, out);
    }
}

static enum status explain(const struct options *options, struct prepared *prepared,
                           struct explain_report *report, struct err *err)
{
    struct arena *arena = &prepared->arena;
    struct path path;
    enum status status = evaluate(options, prepared, &report->step, err);
    if (status != STATUS_OK)
        return status;
    causes_find(report->step.engine, arena, &report->causes);
    const uint32_t steps = report->step.time[SPREAD_MID].steps;
    report->begin_ns = causes_end_ns(&report->causes, steps - 1);
    report->explained_ns = causes_end_ns(&report->causes, steps) - report->begin_ns;
    critical_path(&report->causes, steps, arena, &path);
    report->path = path_sums(&report->causes, &path);
    stalls_find(&report->causes, steps, arena, &report->stalls);
    return remedies_try(&report->step, &report->stalls, arena, &report->trials, err);
}

static enum status print_explanation(const struct options *options, struct prepared *prepared,
                                     const struct stored_run *stored, struct output *out,
                                     struct err *err)
{
    struct explain_report report = {.stored = stored};
    enum status status = explain(options, prepared, &report, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(options, OPTION_JSON))
        explain_report_json(&report, &out->result);
    else
        explain_report_text(&report, &out->term, &out->result);
    sim_report_warn(&report.step, &out->warnings);
    return STATUS_OK;
}

enum status cmd_explain(struct options *options, struct output *out, struct err *err)
{
    const bool is_run = history_is_run(options->operands[0]);
    struct prepared prepared = {0};
    struct stored_run stored;
    struct arena arena;
    if (option_given(options, OPTION_PROGRAM) && option_given(options, OPTION_JSON))
        return err_set(err, STATUS_USAGE, "a program has no JSON; leave out --program or --json");
    arena_init(&arena);
    enum status status = is_run ? stored_run_prepare(options, &arena, &stored, &prepared, err)
                                : prepare(options, &prepared, err);
    if (status != STATUS_OK)
        goto out;
    if (is_run)
        stored_run_warn(&stored, &prepared, &out->warnings);
    if (option_given(options, OPTION_PROGRAM))
        print_program(&prepared, options, &out->result);
    else
        status = print_explanation(options, &prepared, is_run ? &stored : NULL, out, err);
out:
    prepared_release(&prepared);
    arena_release(&arena);
    return status;
}
