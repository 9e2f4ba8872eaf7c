/*
 * `unshard run`: the placed program really executed, on ranks forked here.
 *
 * The same program is simulated first, so that both can be compared. A run that fails, or is stopped by
 * a signal, is stored too, with how each rank ended.
 */
#include "gpu/stop_signal.h"
#include "src/cli/evaluate.h"
#include "src/cli/history.h"
#include "src/cli/run_job.h"
#include "src/cli/run_report.h"

/* --ranks is what other commands call --gpus; all are on this machine. */
static void set_ranks(struct options *options)
{
    const uint64_t ranks = option_number(options, OPTION_RANKS);

    options_set(options, OPTION_GPUS, ranks, option_text(options, OPTION_RANKS));
    if (!option_text(options, OPTION_NODES))
        options_set(options, OPTION_NODES, 1, "1");
}

/* What does not repeat has no addresses past the steps that were placed. */
static enum status check_placed(const struct sim_report *sim, uint32_t steps, struct err *err)
{
    const struct placement *placement = &sim->placement;

    if (sim->unlimited)
        return err_set(err, STATUS_RUN, "it does not fit into the memory of %s; see 'unshard sim'",
                       sim->prepared->cluster.name);
    if (placement->period == 0 && steps > placement->n_step)
        return err_set(err, STATUS_RUN,
                       "addresses do not repeat within %u steps, so that no more can be run; take "
                       "fewer --steps",
                       placement->n_step);
    return STATUS_OK;
}

static enum status execute(struct options *options, struct prepared *prepared,
                           struct sim_report *sim, struct run_report *report, struct err *err)
{
    struct run_asked asked;
    struct run_log *log = NULL;
    struct err why = {0};

    stop_signal_watch();
    enum status status = run_asked_make(options, prepared, &sim->placement, &asked, err);
    if (status == STATUS_OK)
        status = check_placed(sim, asked.job.steps, err);
    if (status == STATUS_OK)
        status = run_log_new(asked.job.ranks, asked.job.steps, prepared->program.n_task, &log, err);
    if (status != STATUS_OK)
        goto out;
    status = run_forked(&asked.job, log, &why);
    run_report_make(sim, log, &asked.real, &why, &prepared->arena, report);
    if (status == STATUS_OK && !report->memory_agrees)
        status = err_set(&why, STATUS_RUN, "reserved bytes are not what the system has mapped");
    if (status == STATUS_OK)
        status = run_asked_commit(&asked, &why);
    if (status != STATUS_OK)
        err_set(err, status, "%s", why.text);
out:
    run_asked_release(&asked);
    stop_signal_unwatch();
    return status;
}

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
    struct prepared prepared = {0};
    struct sim_report sim;
    struct run_report report = {.log = NULL};
    struct history history;
    enum status status = history_begin(options, RUN_REAL, &history, err);

    if (status == STATUS_OK)
        status = run_refuse(options, err);
    if (status != STATUS_OK)
        goto out;
    set_ranks(options);
    status = prepare(options, &prepared, err);
    if (status == STATUS_OK)
        status = evaluate(options, &prepared, &sim, err);
    if (status != STATUS_OK)
        goto out;
    status = execute(options, &prepared, &sim, &report, err);
    if (report.log) {
        history_put_real(&history, &report);
        print(&report, options, &history, out);
    }
out:
    run_log_free(report.log);
    prepared_release(&prepared);
    const enum status stored = history_end(&history, &out->warnings);
    return status == STATUS_OK ? stored : status;
}
