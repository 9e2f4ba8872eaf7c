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
#include "src/cli/evaluate.h"
#include "src/cli/history.h"
#include "src/cli/page.h"
#include "src/cli/plan_progress.h"
#include "src/cli/plan_rank.h"
#include "src/cli/plan_report.h"
#include "src/plan_units.h"

struct comparison {
    struct options *options; /* as typed */
    struct prepared prepared;
    struct plan_report report;
    struct history history;
    struct arena arena; /* rows and their texts */
};

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

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void fill_memory(const struct sim_report *report, struct plan_row *row)
{
    const struct place_step *steps[] = {report->init, report->first, report->third};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        row->allocated_bytes = max_u64(row->allocated_bytes, steps[i]->stats.peak_allocated);
        row->active_bytes = max_u64(row->active_bytes, steps[i]->stats.peak_active);
    }
    row->reserved_bytes = report->reserved_bytes;
    row->total_bytes = report->reserved_bytes + report->outside_bytes;
    row->fits = report->fits;
    row->near_limit = report->near_limit;
    row->may_not_fit = report->may_not_fit;
}

/* "44.2 GiB of activation in loss of step 3": the largest class when allocated is highest. */
static const char *describe_peak(const struct sim_report *report, struct arena *arena)
{
    static const char *const names[] = {"initialisation", "step 1", "step 3"};
    const struct place_step *steps[] = {report->init, report->first, report->third};
    unsigned most = 0, class = 0;
    for (unsigned i = 1; i < 3; i++) {
        if (steps[i]->stats.peak_allocated > steps[most]->stats.peak_allocated)
            most = i;
    }
    const struct place_step *step = steps[most];
    for (unsigned i = 1; i < CLASS_N; i++) {
        if (step->stats.peak_by_class[i] > step->stats.peak_by_class[class])
            class = i;
    }
    const char *unit = sim_report_unit(report, step->peak_unit);
    char bytes[32];
    return arena_printf(arena, "%s, %s at the peak in %s of %s%s%s",
                        memory_class_name((enum memory_class) class),
                        text_bytes(step->stats.peak_by_class[class], bytes),
                        phase_name((enum phase)step->peak_phase), names[most],
                        unit ? ", unit " : "", unit ? unit : "");
}

static void fill_row(struct comparison *c, const struct sim_report *report, struct plan_row *row)
{
    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        row->step_ns[spread] = report->time[spread].step_ns;
    row->exposed_ns = report->time[SPREAD_MID].exposed_comm_ns;
    row->overlap_pct = report->overlap_pct;
    row->n_unit = c->prepared.plan.n_unit;
    for (uint32_t i = 0; i < report->n_collective; i++) {
        row->n_collective += report->collectives[i].count;
        row->moved_bytes += report->collectives[i].count * report->collectives[i].bytes;
    }
    fill_memory(report, row);
    row->packing = packing_of(&c->prepared.program, &report->prices[SPREAD_MID]);
    row->peak = describe_peak(report, &c->arena);
    if (!row->json)
        return;
    sim_report_fields(report, row->json);
    json_add_u64(row->json, "total_bytes", row->total_bytes);
    json_add_u64(row->json, "collective_count", row->n_collective);
    json_add_u64(row->json, "collective_bytes", row->moved_bytes);
    plan_row_packing_json(row);
}

/* What is the same for every plan, from the first that can be built. */
static void fill_common(struct comparison *c, const struct sim_report *report,
                        const struct plan_row *row)
{
    if (c->report.head.at)
        return;
    static const enum option_id completed[] = {OPTION_NODES, OPTION_SEQ};
    for (size_t i = 0; i < sizeof completed / sizeof *completed; i++)
        options_set(c->options, completed[i], option_number(&row->options, completed[i]),
                    option_text(&row->options, completed[i]));
    c->report.limit_bytes = report->limit_bytes;
    c->report.outside_bytes = report->outside_bytes;
}

static bool is_refusal(enum status status)
{
    return status == STATUS_NO || status == STATUS_USAGE || status == STATUS_INPUT;
}

static void refuse(struct comparison *c, const struct err *why, struct plan_row *row)
{
    row->refused = arena_strdup(&c->arena, why->text);
    if (!row->json)
        return;
    prepared_options_json(&row->options, row->json);
    json_add_string(row->json, "refused", row->refused);
}

static enum status evaluate_row(struct comparison *c, const struct term *term, uint32_t index,
                                struct err *err)
{
    struct plan_row *row = &c->report.rows[index];
    struct sim_report report;
    plan_lists_row(&c->report.lists, index, c->options, &row->options);
    if (option_given(c->options, OPTION_JSON)) {
        row->json = json_new_object();
        json_add_string(row->json, "scheme", option_text(&row->options, OPTION_UNITS));
        json_add_string(row->json, "behavior", option_text(&row->options, OPTION_BEHAVIOR));
        json_add_string(row->json, "arrange", option_text(&row->options, OPTION_ARRANGE));
    }
    enum status status = prepare_plan(&row->options, &c->prepared, err);
    if (status == STATUS_OK)
        status = evaluate(&row->options, &c->prepared, &report, err);
    if (is_refusal(status)) {
        refuse(c, err, row);
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return status;
    history_put(&c->history, &report);
    fill_row(c, &report, row);
    fill_common(c, &report, row);
    if (!c->report.head.at)
        page_head(&c->prepared, c->options, "", term, &c->report.head);
    if (report.leaves_table && !c->report.leaves_table)
        c->report.leaves_table = arena_strdup(&c->arena, report.leaves_table);
    return STATUS_OK;
}

static enum status evaluate_rows(struct comparison *c, const struct term *term, struct err *err)
{
    struct plan_progress progress = plan_progress_begin();
    struct err why = {0}, first = {0};
    enum status status = STATUS_OK;
    uint32_t n_refused = 0, n = c->report.lists.n_row;
    c->report.rows = arena_array(&c->arena, struct plan_row, n);
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
        status = evaluate_row(c, term, i, &why);
        c->report.n_row = i + 1;
        if (c->report.rows[i].refused && n_refused++ == 0)
            first = why;
        plan_progress_at(&progress, i + 1, n);
    }
    plan_progress_end(&progress);
    if (status != STATUS_OK)
        return err_set(err, status, "%s", why.text);
    if (n_refused == n)
        return err_set(err, first.status, "%s", first.text);
    return STATUS_OK;
}

static void print_report(struct comparison *c, struct output *out)
{
    struct plan_report *report = &c->report;
    plan_rows_rank(report->rows, report->n_row);
    report->best = plan_rows_best(report->rows, report->n_row);
    report->smallest = plan_rows_smallest(report->rows, report->n_row);
    if (option_given(c->options, OPTION_JSON)) {
        plan_report_json(report, &out->result);
    } else {
        plan_report_text(report, &out->term, &out->result);
        history_text(&c->history, &out->term, &out->result);
    }
}

/* The same words as an error where a limit was given, and as a warning where it was not. */
static enum status judge(const struct comparison *c, struct output *out, struct err *err)
{
    struct text words;
    enum status status = STATUS_OK;
    if (c->report.best)
        return STATUS_OK;
    text_init(&words);
    plan_report_shortage(&c->report, &words);
    for (char *glue = words.at; (glue = strchr(glue, *TERM_GLUE));)
        *glue = ' ';
    if (option_given(c->options, OPTION_MEMORY))
        status = err_set(err, STATUS_NO, "%s", words.at);
    else
        text_add(&out->warnings, "%s\n", words.at);
    text_release(&words);
    return status;
}

static void release(struct comparison *c)
{
    for (uint32_t i = 0; i < c->report.n_row; i++)
        json_free(c->report.rows[i].json);
    text_release(&c->report.head);
    arena_release(&c->arena);
    prepared_release(&c->prepared);
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
    if (status != STATUS_OK)
        goto out;
    status = plan_lists_read(options, &c.arena, &c.report.lists, err);
    if (status != STATUS_OK)
        goto out;
    status = prepare_open(options, NULL, &c.prepared, err);
    if (status != STATUS_OK)
        goto out;
    status = check_units(&c, err);
    if (status != STATUS_OK)
        goto out;
    c.report.model = c.prepared.model.name;
    c.report.cluster = c.prepared.cluster.name;
    c.report.parameters = c.prepared.model.n_element;
    status = evaluate_rows(&c, &out->term, err);
    if (status != STATUS_OK)
        goto out;
    print_report(&c, out);
    status = judge(&c, out, err);
out:
    release(&c);
    const enum status stored = history_end(&c.history, &out->warnings);
    return status == STATUS_OK ? stored : status;
}
