/*
 * Predicting the rows of a table of measured runs; see validate.h. One row after the other, each
 * with memory of its own, so that a table of any length needs that of its largest row.
 */
#include "src/cli/validate.h"

#include <math.h>
#include <string.h>

#include "src/cli/evaluate.h"

static const double GIB = (double)(1 << 30);

enum status validate_options(const struct row_command *command, struct options *out,
                             struct err *err)
{
    static const struct command sim = {.name = "sim", .bit = COMMAND_SIM, .operand = "model"};
    return options_parse(&sim, command->argc, command->argv, out, err);
}

/* The command as one would type it. */
static const char *command_text(const struct row_command *command, struct arena *arena)
{
    struct text text;
    const char *out;

    text_init(&text);
    text_add(&text, "unshard");
    for (int i = 0; i < command->argc; i++)
        text_add(&text, " %s", command->argv[i]);
    out = arena_strdup(arena, text.at);
    text_release(&text);
    return out;
}

static double signed_error_pct(double predicted, double measured)
{
    return 100 * (predicted / measured - 1);
}

/* Peaks of the step that is reported, of the kind that was measured. */
static double peak_gib(const struct sim_report *report, const char *kind)
{
    const struct alloc_stats *stats = &report->steady->stats;

    if (!strcmp(kind, "reserved"))
        return (double)stats->peak_reserved / GIB;
    if (!strcmp(kind, "active"))
        return (double)stats->peak_active / GIB;
    return strcmp(kind, "allocated") == 0 ? (double)stats->peak_allocated / GIB : NAN;
}

static void fill(const struct sim_report *report, struct arena *arena, struct validated_row *row)
{
    const struct step_time *mid = &report->time[SPREAD_MID];

    row->predicted_s = (double)mid->step_ns * 1e-9;
    row->low_s = (double)report->time[SPREAD_LOW].step_ns * 1e-9;
    row->high_s = (double)report->time[SPREAD_HIGH].step_ns * 1e-9;
    row->error_pct = signed_error_pct(row->predicted_s, row->run->step_s);
    row->comm_share = (double)mid->comm_ns / (double)mid->step_ns;
    row->exposed_share = (double)mid->exposed_comm_ns / (double)mid->step_ns;
    row->near_memory_limit = !report->fits || report->near_limit;
    row->counts = strcmp(row->run->trust, "low") != 0;
    if (!isnan(row->run->peak_gib)) {
        row->peak_gib = peak_gib(report, row->run->peak_kind);
        row->peak_error_pct = signed_error_pct(row->peak_gib, row->run->peak_gib);
    }
    tables_left_add(&row->left, &report->left, arena);
}

static enum status predict(const struct row_command *command, struct arena *arena,
                           struct validated_row *row, struct err *err)
{
    struct options options;
    struct prepared prepared = {0};
    struct sim_report report;
    enum status status = validate_options(command, &options, err);

    if (status != STATUS_OK)
        return status;
    if ((status = prepare(&options, &prepared, err)) == STATUS_OK &&
        (status = evaluate(&options, &prepared, &report, err)) == STATUS_OK)
        fill(&report, arena, row);
    prepared_release(&prepared);
    return status;
}

/* What a row asks for and is not there is an answer; a file that cannot be read is not. */
static enum status validate_row(const char *clusters, const char *without, struct arena *arena,
                                struct validated_row *row, struct err *err)
{
    struct row_command command;
    struct err why = {0};
    enum status status = validate_command(row->run, clusters, without, arena, &command, &why);

    row->predicted_s = row->low_s = row->high_s = row->error_pct = NAN;
    row->peak_gib = row->peak_error_pct = NAN;
    if (status == STATUS_OK) {
        row->command = command_text(&command, arena);
        status = predict(&command, arena, row, &why);
    }
    if (status == STATUS_USAGE) {
        row->reason = arena_strdup(arena, why.text);
        return STATUS_OK;
    }
    return status == STATUS_OK ? STATUS_OK
                               : err_set(err, status, "row '%.80s': %s", row->run->id, why.text);
}

enum status validate_rows(const char *clusters, struct arena *arena, struct validation *validation,
                          struct err *err)
{
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < validation->n && status == STATUS_OK; i++)
        status = validate_row(clusters, validation->without, arena, &validation->rows[i], err);
    if (status == STATUS_OK)
        validate_count(validation, arena);
    return status;
}
