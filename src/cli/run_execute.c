/*
 * A plan really run; see run_execute.h. The same program is simulated first, so that both can be
 * compared.
 */
#include "src/cli/run_execute.h"

#include "gpu/stop_signal.h"
#include "src/cli/evaluate.h"
#include "src/cli/run_job.h"

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

static enum status execute(const struct options *options, struct run_execution *execution,
                           struct err *err)
{
    struct prepared *prepared = &execution->prepared;
    struct sim_report *sim = &execution->sim;
    struct run_report *report = &execution->report;
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

enum status run_execute(struct options *options, const char *model_json, struct run_execution *out,
                        struct err *err)
{
    enum status status = run_refuse(options, err);

    *out = (struct run_execution){0};
    if (status != STATUS_OK)
        return status;
    set_ranks(options);
    status = prepare_open(options, model_json, &out->prepared, err);
    if (status == STATUS_OK)
        status = prepare_plan(options, &out->prepared, err);
    if (status == STATUS_OK)
        status = evaluate(options, &out->prepared, &out->sim, err);
    return status == STATUS_OK ? execute(options, out, err) : status;
}

void run_execution_release(struct run_execution *execution)
{
    run_log_free(execution->report.log);
    prepared_release(&execution->prepared);
}
