/*
 * Plans to rows; see plan_rows.h. All are simulated one after the other in the same memory.
 */
#include "src/cli/plan_rows.h"

#include "src/cli/evaluate.h"
#include "src/cli/page.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void fill_memory(const struct sim_report *report, struct plan_row *row)
{
    const struct place_step *steps[] = {report->init, report->first, report->steady};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        row->allocated_bytes = max_u64(row->allocated_bytes, steps[i]->stats.peak_allocated);
        row->active_bytes = max_u64(row->active_bytes, steps[i]->stats.peak_active);
    }
    row->reserved_bytes = report->reserved_bytes;
    row->total_bytes = report->reserved_bytes + report->outside_bytes;
    row->fits = report->fits;
    row->retries = report->retries;
    row->withheld = report->withheld.bytes > 0;
    row->near_limit = report->near_limit;
    row->may_not_fit = report->may_not_fit;
}

/* "44.2 GiB of activation in loss of step 3": the largest class when allocated is highest. */
static const char *describe_peak(const struct sim_report *report, struct arena *arena)
{
    const char *const names[] = {"initialisation", "step 1",
                                 arena_printf(arena, "step %u", report->steps)};
    const struct place_step *steps[] = {report->init, report->first, report->steady};
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

static enum status fill_row(struct comparison *c, const struct sim_report *report,
                            struct plan_row *row, struct err *err)
{
    const enum status status =
        paired_simulate(&c->prepared.program, report->prices,
                        report->timed ? NULL : &report->placement, &row->shift, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        row->step_ns[spread] = report->time[spread].step_ns;
    const struct plan_options *plan = &c->prepared.plan.options;
    row->tokens = plan->seq * plan->batch * plan->accum;
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
        return STATUS_OK;
    sim_report_fields(report, row->json);
    json_add_u64(row->json, "total_bytes", row->total_bytes);
    json_add_u64(row->json, "collective_count", row->n_collective);
    json_add_u64(row->json, "collective_bytes", row->moved_bytes);
    plan_row_packing_json(row);
    return STATUS_OK;
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

bool plan_row_is_refusal(enum status status)
{
    return status == STATUS_NO || status == STATUS_USAGE || status == STATUS_INPUT;
}

static void refuse(struct comparison *c, const struct err *why, struct plan_row *row)
{
    row->refused = arena_strdup(&c->arena, why->text);
    row->status = why->status;
    if (!row->json)
        return;
    prepared_options_json(&row->options, row->json);
    json_add_string(row->json, "refused", row->refused);
}

/* The last row is none. */
static void drop_row(struct comparison *c)
{
    json_free(c->report.rows[--c->report.n_row].json);
}

static bool has_too_many_units(const struct comparison *c)
{
    const uint64_t most = option_number(c->options, OPTION_MAX_UNITS);
    return most > 0 && c->prepared.plan.n_unit > most;
}

/* One search has one plan under several names: as it was typed, and as it was found. */
static bool is_known(const struct comparison *c, const struct plan_row *row)
{
    const struct plan_row *other = c->report.rows;

    if (row->search == 0 || row->program_hash == 0)
        return false;
    while (other->search != row->search || other->program_hash != row->program_hash)
        other++;
    return other < row;
}

static enum status evaluate_row(struct comparison *c, struct plan_row *row, const struct term *term,
                                struct err *err)
{
    struct sim_report report;
    struct err why = {0};
    enum status status = prepare_plan(&row->options, &c->prepared, &why);

    if (status == STATUS_OK)
        row->program_hash = program_hash(&c->prepared.program);
    if (is_known(c, row) || (status == STATUS_OK && has_too_many_units(c))) {
        drop_row(c);
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = evaluate(&row->options, &c->prepared, &report, &why);
    if (plan_row_is_refusal(status)) {
        refuse(c, &why, row);
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return err_set(err, status, "%s", why.text);
    history_put(&c->history, &report);
    if ((status = fill_row(c, &report, row, err)) != STATUS_OK)
        return status;
    fill_common(c, &report, row);
    if (!c->report.head.at)
        page_head(&c->prepared, c->options, "", term, &c->report.head);
    tables_left_add(&c->report.left, &report.left, &c->arena);
    return STATUS_OK;
}

enum status comparison_add(struct comparison *c, const struct options *options, const char *label,
                           const struct term *term, struct err *err)
{
    struct plan_report *report = &c->report;

    report->rows =
        arena_grow(&c->arena, report->rows, &c->cap_row, report->n_row + 1, sizeof *report->rows);
    struct plan_row *row = &report->rows[report->n_row++];
    *row = (struct plan_row){.options = *options, .label = label, .search = c->search};
    if (option_given(c->options, OPTION_JSON)) {
        row->json = json_new_object();
        json_add_string(row->json, "scheme", label);
        json_add_string(row->json, "behavior", option_text(options, OPTION_BEHAVIOR));
        json_add_string(row->json, "arrange", option_text(options, OPTION_ARRANGE));
    }
    return evaluate_row(c, row, term, err);
}

void comparison_release(struct comparison *c)
{
    for (uint32_t i = 0; i < c->report.n_row; i++)
        json_free(c->report.rows[i].json);
    text_release(&c->report.head);
    arena_release(&c->arena);
    prepared_release(&c->prepared);
}
