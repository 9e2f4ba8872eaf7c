/*
 * A plan really run; see run_execute.h. The same program is simulated first, so that both can be
 * compared.
 */
#include "src/cli/run_execute.h"

#include "gpu/step_graph.h"
#include "gpu/stop_signal.h"
#include "src/cli/evaluate.h"
#include "src/cli/run_job.h"

/* --ranks is what other commands call --gpus, and all are one node, but where they are emulated. Of launched ranks there are as
   many as were started, which --ranks may say again. */
static enum status set_ranks(struct options *options, uint32_t launched, struct arena *arena,
                             struct err *err)
{
    const bool emulated = option_given(options, OPTION_EMULATE_RANKS);
    const uint64_t ranks = emulated       ? option_number(options, OPTION_EMULATE_RANKS)
                           : launched > 0 ? launched
                                          : option_number(options, OPTION_RANKS);

    if (option_given(options, OPTION_RANKS) && option_number(options, OPTION_RANKS) != ranks)
        return err_set(err, STATUS_USAGE, "--ranks %s, but %u processes were started; leave it out",
                       option_text(options, OPTION_RANKS), launched);
    options_set(options, OPTION_GPUS, ranks,
                arena_printf(arena, "%llu", (unsigned long long)ranks));
    if (!option_text(options, OPTION_NODES) && !emulated)
        options_set(options, OPTION_NODES, 1, "1");
    return STATUS_OK;
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

/* Measured steps are replays, all of them: warm-up that nobody asked for is as long as that takes. */
static enum status check_graph(const struct options *options, struct run_asked *asked,
                               struct err *err)
{
    const struct placement *placement = asked->job.placement;
    const uint32_t bound = step_graph_last_bound(placement);
    const enum status status = step_graph_check(asked->job.program, placement, err);

    if (status != STATUS_OK)
        return status;
    if (asked->debug.die_rank >= 0 || asked->debug.hang_rank >= 0)
        return err_set(
            err, STATUS_USAGE,
            "--graph: nobody looks into a step that is replayed; leave out --debug die and "
            "hang");
    if (!option_given(options, OPTION_WARMUP) && asked->real.warmup < bound)
        asked->real.warmup = bound;
    if (asked->real.warmup < bound || asked->job.steps <= asked->real.warmup)
        return err_set(
            err, STATUS_USAGE,
            "--graph: %u steps go before the first that is only replayed; give --warmup %u "
            "or more, and more --steps than that",
            bound, bound);
    return STATUS_OK;
}

static enum status run_ranks(const struct run_job *job, const struct world *world,
                             struct run_log *log, struct err *err)
{
    if (!world->is_launched)
        return run_forked(job, log, err);
    return run_launched(job, world->rank, world->transport, world->transport_self, log, err);
}

/* A log that was not made is none; one that is there belongs to the report. */
static enum status run_asked(struct run_execution *execution, struct run_asked *asked,
                             struct err *err)
{
    struct prepared *prepared = &execution->prepared;
    struct run_report *report = &execution->report;
    const struct world *world = &execution->world;
    struct run_log *log = NULL;
    struct err why = {0};
    enum status status =
        run_log_new(asked->job.ranks, asked->job.steps, prepared->program.n_task, &log, err);

    if (status != STATUS_OK)
        return status;
    status = run_ranks(&asked->job, world, log, &why);
    run_report_make(&execution->sim, log, &asked->real, &why, &prepared->arena, report);
    if (status == STATUS_OK && !report->memory_agrees)
        status = err_set(&why, STATUS_RUN, "reserved bytes are not what the system has mapped");
    if (status == STATUS_OK && world->rank == 0)
        status = run_asked_commit(asked, &why);
    return status == STATUS_OK ? status : err_set(err, status, "%s", why.text);
}

static enum status execute(const struct options *options, struct run_execution *execution,
                           const struct world_plan *plan, struct err *err)
{
    struct run_asked asked = {0};

    if (plan->ranks == 0) /* a launcher ends its ranks itself */
        stop_signal_watch();
    enum status status = world_join(plan, run_timeout_ns(options), &execution->world, err);

    if (status == STATUS_OK)
        status = run_asked_make(options, &execution->prepared, &execution->sim.placement,
                                &execution->world, &asked, err);
    asked.job.emulated_ns = run_emulation(options, &execution->sim.prices[SPREAD_MID]);
    asked.job.pace_ns = run_pace(options, &execution->prepared.program,
                                 &execution->sim.prices[SPREAD_MID], &execution->prepared.arena);
    if (status == STATUS_OK)
        status = check_placed(&execution->sim, asked.job.steps, err);
    if (status == STATUS_OK && asked.job.graph)
        status = check_graph(options, &asked, err);
    if (status == STATUS_OK)
        status = run_asked(execution, &asked, err);
    run_asked_release(&asked);
    if (plan->ranks == 0)
        stop_signal_unwatch();
    return status;
}

enum status run_execute(struct options *options, const char *model_json, struct run_execution *out,
                        struct err *err)
{
    struct world_plan plan = {.ranks = 0};
    enum status status = run_refuse(options, err);

    *out = (struct run_execution){0};
    if (status == STATUS_OK && !option_given(options, OPTION_EMULATE_RANKS))
        status = world_plan((enum transport)option_number(options, OPTION_TRANSPORT),
                            option_text(options, OPTION_RENDEZVOUS), &plan, err);
    if (status == STATUS_OK)
        status = prepare_open(options, model_json, &out->prepared, err);
    if (status == STATUS_OK)
        status = set_ranks(options, plan.ranks, &out->prepared.opened, err);
    if (status == STATUS_OK)
        status = prepare_plan(options, &out->prepared, err);
    if (status == STATUS_OK)
        status = evaluate(options, &out->prepared, &out->sim, err);
    return status == STATUS_OK ? execute(options, out, &plan, err) : status;
}

void run_execution_release(struct run_execution *execution)
{
    const bool together = execution->report.log && execution->report.log->is_whole;

    world_leave(&execution->world, together);
    run_log_free(execution->report.log);
    prepared_release(&execution->prepared);
}
