/*
 * `unshard sim`: one training step in time and memory.
 *
 * The numbers are evaluate()'s; how they look is sim_text.c's and sim_json.c's.
 */
#include "src/cli/evaluate.h"
#include "src/cli/history.h"

enum { LARGEST = 10 };

static void find_largest(struct prepared *prepared, struct sim_report *report)
{
    struct alive *largest;
    report->n_largest = alive_at(&prepared->program, report->steady->peak_event, LARGEST,
                                 &prepared->arena, &largest);
    report->largest = largest;
}

enum status cmd_sim(struct options *options, struct output *out, struct err *err)
{
    struct prepared prepared = {0};
    struct sim_report report;
    struct history history;
    enum status status = history_begin(options, RUN_SIM, &history, err);
    if (status != STATUS_OK)
        goto out;
    status = prepare(options, &prepared, err);
    if (status != STATUS_OK)
        goto out;
    status = evaluate(options, &prepared, &report, err);
    if (status != STATUS_OK)
        goto out;

    find_largest(&prepared, &report);
    history_put(&history, &report);
    if (option_given(options, OPTION_JSON)) {
        sim_report_json(&report, &out->result);
    } else {
        sim_report_text(&report, &out->term, &out->result);
        history_text(&history, &out->term, &out->result);
    }
    sim_report_warn(&report, &out->warnings);
    if (!report.fits && option_given(options, OPTION_MEMORY))
        status = STATUS_NO;
out:
    prepared_release(&prepared);
    const enum status stored = history_end(&history, &out->warnings);
    return status == STATUS_OK ? stored : status;
}
