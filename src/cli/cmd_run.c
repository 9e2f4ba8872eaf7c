/*
 * `unshard run`: the placed program really executed, on ranks forked here, or on ranks that a launcher
 * started, of which the first one prints and stores.
 *
 * A run that fails, or is stopped by a signal, is stored too, with how each rank ended.
 */
#include "src/cli/history.h"
#include "src/cli/run_execute.h"

static void print(const struct run_report *report, struct options *options,
                  const struct history *history, struct output *out)
{
    if (option_given(options, OPTION_JSON)) {
        run_report_json(report, &out->result);
    } else {
        run_report_text(report, &out->term, &out->result);
        history_text(history, &out->term, &out->result);
    }
    run_report_warn(report, &out->warnings);
}

enum status cmd_run(struct options *options, struct output *out, struct err *err)
{
    struct run_execution execution = {0};
    struct history history;
    enum status status = history_begin(options, RUN_REAL, &history, err);

    if (status == STATUS_OK)
        status = run_execute(options, NULL, &execution, err);
    if (execution.report.log && execution.world.rank == 0) {
        history_put_real(&history, &execution.report);
        print(&execution.report, options, &history, out);
    }
    if (execution.world.rank > 0 && execution.report.log && execution.report.log->is_whole)
        status = STATUS_OK; /* rank 0 says how all ended: a launcher ends it where another fails */
    run_execution_release(&execution);
    const enum status stored = history_end(&history, &out->warnings);
    return status == STATUS_OK ? stored : status;
}
