/*
 * Searches that answer yes or no; see plan_probe.h.
 */
#include "src/cli/plan_probe.h"

#include "gpu/stop_signal.h"
#include "src/cli/evaluate.h"
#include "src/cli/plan_hunt.h"
#include "src/cli/plan_rank.h"
#include "src/cli/plan_rows.h"

struct plan_prober {
    struct comparison *c;
    struct plan_progress progress;
    struct hunt hunt;
};

/* How many plans are judged at most, and up to which size a space is gone through whole. */
static const struct {
    uint64_t most, exact;
} efforts[] = {
    [EFFORT_FITS] = {600, 0}, [EFFORT_FAST] = {3000, 0}, [EFFORT_FULL] = {0, 0}, /* as any search */
};

enum status plan_prober_new(struct comparison *c, struct plan_prober **out, struct err *err)
{
    struct plan_prober *prober = arena_array(&c->arena, struct plan_prober, 1);
    const enum status status = prepare_open(c->options, NULL, &prober->hunt.fine, err);

    prober->c = c;
    prober->progress = plan_progress_begin();
    prober->hunt.progress = &prober->progress;
    *out = prober;
    if (status != STATUS_OK)
        prepared_release(&prober->hunt.fine);
    else
        stop_signal_watch();
    return status;
}

void plan_prober_free(struct plan_prober *prober)
{
    stop_signal_unwatch();
    plan_progress_end(&prober->progress);
    prepared_release(&prober->hunt.fine);
}

uint64_t plan_prober_limit_bytes(const struct plan_prober *prober)
{
    return hunt_limit_bytes(prober->c->options, &prober->hunt.fine.cluster);
}

double plan_probe_tokens_per_s(const struct plan_probe *probe)
{
    return probe->step_ns > 0 ? 1e9 * (double)probe->tokens / (double)probe->step_ns : 0;
}

bool plan_probe_is_better(const struct plan_probe *a, const struct plan_probe *b)
{
    if (!a->refused != !b->refused)
        return !a->refused;
    if (a->fits != b->fits)
        return a->fits;
    return a->fits ? plan_token_order(a->step_ns, a->tokens, b->step_ns, b->tokens) < 0
                   : a->total_bytes < b->total_bytes;
}

static void set_effort(struct hunt *hunt, enum plan_effort effort)
{
    if (effort == EFFORT_FULL)
        return;
    hunt->search.most_points = efforts[effort].most;
    hunt->search.exact_points = efforts[effort].exact;
}

static struct plan_probe probe_of(const struct plan *plan, int64_t step_ns, uint64_t total_bytes)
{
    const struct plan_options *o = &plan->options;
    return (struct plan_probe){.gpus = plan->world,
                               .tokens = o->seq * o->batch * o->accum,
                               .step_ns = step_ns,
                               .total_bytes = total_bytes};
}

static enum status probe_space(struct plan_prober *prober, enum plan_effort effort,
                               struct plan_probe *out, struct err *err)
{
    struct hunt *hunt = &prober->hunt;
    enum status status;

    set_effort(hunt, effort);
    status = hunt_fix(hunt, err);
    if (status == STATUS_OK)
        status = hunt_run(hunt, err);
    if (status != STATUS_OK)
        return status;
    if (hunt->finalists.n == 0)
        return err_set(err, STATUS_USAGE, "no plan of the search can be built");
    const struct finalist *first = &hunt->finalists.at[0];
    const struct found *found = &hunt->result.found[first->found];
    *out = probe_of(&hunt->fine.plan, found->judged.step_ns,
                    first->placed.reserved_bytes + hunt->fine.cluster.outside_bytes);
    out->fits = first->placed.fits;
    out->retries = first->placed.retries;
    return hunt_options(hunt, first->found, &prober->c->arena, &out->options, err);
}

static enum status probe_named(struct plan_prober *prober, struct plan_probe *out, struct err *err)
{
    struct prepared *fine = &prober->hunt.fine;
    struct options options = prober->hunt.options;
    struct sim_report report;
    enum status status = prepare_plan(&options, fine, err);

    if (status == STATUS_OK)
        status = evaluate(&options, fine, &report, err);
    if (status != STATUS_OK)
        return status;
    *out = probe_of(&fine->plan, report.time[SPREAD_MID].step_ns,
                    report.reserved_bytes + report.outside_bytes);
    out->fits = report.fits && out->total_bytes <= hunt_limit_bytes(&options, &fine->cluster);
    out->retries = out->fits && report.retries;
    out->options = options;
    return STATUS_OK;
}

static enum status probe_combination(struct plan_prober *prober, enum plan_effort effort,
                                     struct plan_probe *out, struct err *err)
{
    const struct plan_found *asked = &prober->c->report.search;

    if (asked->on && hunt_open(&prober->hunt, asked, NULL) == STATUS_OK)
        return probe_space(prober, effort, out, err);
    return probe_named(prober, out, err);
}

/* Nodes that nobody gave follow from GPUs. */
static enum status take_changes(const struct plan_change *changes, uint32_t n,
                                struct options *options, struct err *err)
{
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
        status = options_take(options, changes[i].id, changes[i].value, err);
        if (changes[i].id == OPTION_GPUS && !option_given(options, OPTION_NODES))
            options_set(options, OPTION_NODES, 0, NULL);
    }
    return status;
}

/* What cannot be built is an answer; what else fails ends all. */
static enum status probe_row(struct plan_prober *prober, enum plan_effort effort,
                             struct plan_probe *out, struct err *err)
{
    struct err why = {0};
    const enum status status = probe_combination(prober, effort, out, &why);

    if (status == STATUS_OK)
        return STATUS_OK;
    if (!plan_row_is_refusal(status))
        return err_set(err, status, "%s", why.text);
    *out = (struct plan_probe){.refused = arena_strdup(&prober->c->arena, why.text)};
    return STATUS_OK;
}

enum status plan_probe(struct plan_prober *prober, const struct plan_change *changes, uint32_t n,
                       enum plan_effort effort, struct plan_probe *out, struct err *err)
{
    const struct comparison *c = prober->c;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < c->report.lists.n_row && status == STATUS_OK; i++) {
        struct plan_probe probe;
        plan_lists_row(&c->report.lists, i, c->options, &prober->hunt.options);
        status = take_changes(changes, n, &prober->hunt.options, err);
        if (status == STATUS_OK)
            status = probe_row(prober, effort, &probe, err);
        if (status == STATUS_OK && (i == 0 || plan_probe_is_better(&probe, out)))
            *out = probe;
    }
    if (status == STATUS_OK && stop_signal_came())
        return err_set(err, STATUS_NO, "stopped before there was an answer");
    return status;
}
