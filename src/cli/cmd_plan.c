/*
 * `unshard plan`: one model cut in several ways, which is best?
 *
 * Makes a plan of every combination of the lists, evaluates one after the other in the same memory
 * and keeps of each its row. What cannot be built is a row too, with the reason. Order and places
 * are plan_rank.c's, looks those of plan_text.c and plan_json.c.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/cli/command.h"
#include "src/cli/plan_emit.h"
#include "src/cli/plan_keep.h"
#include "src/cli/plan_progress.h"
#include "src/cli/plan_rank.h"
#include "src/cli/plan_rows.h"
#include "src/cli/plan_search.h"
#include "src/cli/plan_vary.h"
#include "src/plan_units.h"

/*
 * A pattern or a file that cannot be meant is a mistake, not a plan that is refused; that a model
 * has nothing for a scheme is no mistake.
 */
static enum status check_units(struct comparison *c, struct err *err)
{
    for (uint32_t i = 0; i < c->report.lists.n_list; i++) {
        const struct plan_list *list = &c->report.lists.lists[i];
        for (uint32_t v = 0; list->id == OPTION_UNITS && v < list->n; v++) {
            struct unit_drafts drafts;
            if (plan_list_is_scheme(list->values[v]))
                continue;
            enum status status = plan_units_draft(&c->prepared.model, list->values[v],
                                                  &c->prepared.arena, &drafts, err);
            if (status != STATUS_OK)
                return status;
        }
    }
    return STATUS_OK;
}

static enum status compare_lists(struct comparison *c, const struct term *term, struct err *err)
{
    const struct plan_lists *lists = &c->report.lists;
    struct plan_progress progress = plan_progress_begin();
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < lists->n_row && status == STATUS_OK; i++) {
        struct options options;
        plan_lists_row(lists, i, c->options, &options);
        status = comparison_add(c, &options, option_text(&options, OPTION_UNITS), term, err);
        plan_progress_at(&progress, i + 1, lists->n_row);
    }
    plan_progress_end(&progress);
    return status;
}

/* Where all are refused the reason of the first one is that of the command. */
static enum status check_rows(const struct comparison *c, struct err *err)
{
    const struct plan_row *rows = c->report.rows;

    if (c->report.n_row == 0)
        return err_set(err, STATUS_NO, "no plan of so few units was found; see --max-units");
    for (uint32_t i = 0; i < c->report.n_row; i++)
        if (!rows[i].refused)
            return STATUS_OK;
    return err_set(err, rows[0].status, "%s", rows[0].refused);
}

/* Places, and what could be done where nothing fits. */
static enum status rank_rows(struct comparison *c, struct err *err)
{
    struct plan_report *report = &c->report;

    plan_rows_rank(report->rows, report->n_row);
    report->best = plan_rows_best(report->rows, report->n_row);
    if (report->best)
        report->search.first_ns = plan_row_step_ns(report->rows, SPREAD_MID, PLAN_FOUND_TOKENS);
    report->runner_up = plan_rows_runner_up(report->rows, report->n_row, report->best);
    report->smallest = plan_rows_smallest(report->rows, report->n_row);
    return report->best || report->find.on || report->search.stopped ? STATUS_OK
                                                                     : plan_relax(c, err);
}

static void print_report(struct comparison *c, struct output *out)
{
    struct plan_report *report = &c->report;

    if (option_given(c->options, OPTION_JSON)) {
        plan_report_json(report, &out->result);
    } else {
        plan_report_text(report, &out->term, &out->result);
        history_text(&c->history, &out->term, &out->result);
    }
}

/* Nothing fits: the answer is no where a limit was given or all was searched; of named plans and of a
   search that was stopped it is a warning. */
static enum status judge(const struct comparison *c, struct output *out, struct err *err)
{
    const bool none = c->report.find.on && !c->report.find.found;
    struct text words;
    enum status status = STATUS_OK;
    if (c->report.best && !none)
        return STATUS_OK;
    text_init(&words);
    if (none)
        plan_find_none(&c->report.find, &words);
    else
        plan_report_shortage(&c->report, &words);
    for (char *glue = words.at; (glue = strchr(glue, *TERM_GLUE));)
        *glue = ' ';
    const bool searched = c->report.search.on && !c->report.search.stopped;
    if (none || searched || option_given(c->options, OPTION_MEMORY))
        status = err_set(err, STATUS_NO, "%s", words.at);
    else
        text_add(&out->warnings, "%s\n", words.at);
    text_release(&words);
    return status;
}

/* A page's, or the terminal's where that has fewer. */
static unsigned page_columns(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
        size.ws_col < TERM_PAGE_COLUMNS)
        return size.ws_col;
    return TERM_PAGE_COLUMNS;
}

enum status cmd_plan(struct options *options, struct output *out, struct err *err)
{
    struct comparison c = {.options = options, .report = {.options = options}};
    arena_init(&c.arena);
    c.report.columns = page_columns();
    enum status status = history_begin(options, RUN_PLAN, &c.history, err);
    if (status == STATUS_OK)
        status = plan_emit_check(options, err);
    if (status != STATUS_OK)
        goto out;
    status = plan_keep_check(options, err);
    if (status == STATUS_OK)
        status = plan_vary(options, &c.arena, &c.report.search, err);
    if (status == STATUS_OK)
        status = plan_vary_lists(options, &c.report.search, &c.arena, &c.report.lists, err);
    if (status != STATUS_OK)
        goto out;
    status = prepare_open(options, NULL, &c.prepared, err);
    if (status != STATUS_OK)
        goto out;
    status = check_units(&c, err);
    if (status != STATUS_OK)
        goto out;
    status = plan_find(&c, err);
    if (status != STATUS_OK)
        goto out;
    c.report.model = c.prepared.model.name;
    c.report.cluster = c.prepared.cluster.name;
    c.report.parameters = c.prepared.model.n_element;
    status = c.report.search.on ? plan_search(&c, out, err) : compare_lists(&c, &out->term, err);
    if (status == STATUS_OK)
        status = check_rows(&c, err);
    if (status == STATUS_OK)
        status = rank_rows(&c, err);
    if (status != STATUS_OK)
        goto out;
    status = judge(&c, out, err);
    if (status == STATUS_OK)
        status = plan_emit(&c, out, err);
    if (!plan_emit_instead(options))
        print_report(&c, out);
out:
    comparison_release(&c);
    const enum status stored = history_end(&c.history, &out->warnings);
    return status == STATUS_OK ? stored : status;
}
