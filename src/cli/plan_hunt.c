/*
 * From options to finalists; see plan_hunt.h.
 */
#include "src/cli/plan_hunt.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/stop_signal.h"
#include "sim/judge_pool.h"
#include "src/cli/plan_point.h"

/* Of a GPU's memory, where nobody gives a limit: nearer to it steps get slower (COST 7). */
static const double MARGIN = 0.92;

uint64_t hunt_limit_bytes(const struct options *options, const struct cluster *cluster)
{
    return option_given(options, OPTION_MEMORY)
               ? option_number(options, OPTION_MEMORY)
               : (uint64_t)(MARGIN * (double)cluster->memory_bytes);
}

static uint64_t limit_of_torch(const struct hunt *hunt)
{
    const struct cluster *cluster = &hunt->fine.cluster;
    const uint64_t limit = hunt_limit_bytes(&hunt->options, cluster);
    return limit > cluster->outside_bytes ? limit - cluster->outside_bytes : 0;
}

static bool go_on(void *self, const struct search_progress *progress)
{
    struct hunt *hunt = self;
    plan_progress_search(hunt->progress, progress->judged + progress->passed_over,
                         progress->expected, progress->best_ns);
    return stop_signal_came() == 0;
}

static uint32_t jobs_of(const struct options *options)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (option_given(options, OPTION_JOBS))
        return (uint32_t)option_number(options, OPTION_JOBS);
    return cores < 1 ? 1 : cores > JUDGE_POOL_MAX ? JUDGE_POOL_MAX : (uint32_t)cores;
}

/* Whether there are any. */
static bool fix_matching(struct hunt *hunt, const char *pattern)
{
    bool any = false;

    for (uint32_t a = 0; a < hunt->space.n_atom; a++) {
        if (!text_matches(pattern, hunt->fine.plan.units[a].name))
            continue;
        space_fix(&hunt->space, a);
        any = true;
    }
    return any;
}

static enum status fail_no_match(struct hunt *hunt, const char *pattern, struct err *err)
{
    const uint32_t n = hunt->space.n_atom;
    const char **names = arena_array(&hunt->fine.arena, const char *, n + 1);
    char otherwise[128];

    for (uint32_t a = 0; a < n; a++)
        names[a] = hunt->fine.plan.units[a].name;
    snprintf(otherwise, sizeof otherwise, "they are called like '%.80s'", names[n / 2]);
    err_set(err, STATUS_USAGE, "--fixed: no module of the search matches '%.80s'", pattern);
    return options_hint(err, pattern, names, otherwise);
}

enum status hunt_fix(struct hunt *hunt, struct err *err)
{
    const char *patterns = option_text(&hunt->options, OPTION_FIXED);
    char *rest = patterns ? arena_strdup(&hunt->fine.arena, patterns) : NULL;

    for (char *pattern; (pattern = strsep(&rest, ","));)
        if (!fix_matching(hunt, pattern))
            return fail_no_match(hunt, pattern, err);
    return STATUS_OK;
}

static void set_search(struct hunt *hunt)
{
    hunt->search = search_options_default();
    hunt->search.limit_bytes = limit_of_torch(hunt);
    hunt->search.jobs = jobs_of(&hunt->options);
    hunt->search.max_units = (uint32_t)option_number(&hunt->options, OPTION_MAX_UNITS);
    hunt->search.go_on = go_on;
    hunt->search.self = hunt;
}

/* Units that are cut over groups are all neither freed nor kept. */
static unsigned axes_of(const struct hunt *hunt, const struct plan_found *asked)
{
    const bool grouped = option_number(&hunt->options, OPTION_RESHARD) == RESHARD_RANKS;
    return grouped ? asked->axes & ~(1u << AXIS_RESHARD) : asked->axes;
}

enum status hunt_open(struct hunt *hunt, const struct plan_found *asked, struct err *err)
{
    struct options fine = hunt->options;
    struct plan_options start = prepare_plan_options(&hunt->options, &hunt->fine.cluster);
    const bool halves = asked->halves && start.ac == AC_NONE;
    enum status status;

    if (start.system == SYSTEM_FSDP1)
        return err_set(err, STATUS_USAGE,
                       "FSDP1 wraps one module to a unit, so that there are none to join");
    /* patterns of units that are none of these; which are kept the start says */
    fine.values[OPTION_NO_RESHARD] = (struct option_value){.text = NULL};
    status = options_take(&fine, OPTION_UNITS, halves ? "half" : "piece", err);
    if (status == STATUS_OK)
        status = prepare_plan(&fine, &hunt->fine, err);
    if (status == STATUS_OK)
        status = plan_resolve(&hunt->fine.model, &start, &hunt->fine.arena, &hunt->start, err);
    if (status == STATUS_OK)
        status = space_init(&hunt->fine.plan, &hunt->start, axes_of(hunt, asked), &hunt->fine.arena,
                            &hunt->space, err);
    if (status != STATUS_OK)
        return status;
    set_search(hunt);
    return STATUS_OK;
}

static struct alloc_config config_of(const struct hunt *hunt)
{
    struct alloc_config config = alloc_config_default();

    config.expandable = option_number(&hunt->options, OPTION_ALLOCATOR) != 0;
    config.capacity_bytes = hunt->search.limit_bytes;
    return config;
}

enum status hunt_run(struct hunt *hunt, struct err *err)
{
    const struct prepared *fine = &hunt->fine;
    const struct alloc_config config = config_of(hunt);
    const enum status status = search_run(&hunt->space, &fine->cluster, &fine->bodies,
                                          &hunt->search, &hunt->fine.arena, &hunt->result, err);

    if (status != STATUS_OK)
        return status;
    hunt->finalists = (struct finalists){0};
    if (hunt->result.n > 0)
        finalists_place(&hunt->space, &fine->cluster, &fine->bodies, &hunt->result, &config,
                        hunt->search.jobs, &hunt->fine.arena, &hunt->finalists);
    return STATUS_OK;
}

enum status hunt_options(struct hunt *hunt, uint32_t found, struct arena *arena,
                         struct options *out, struct err *err)
{
    return plan_point_options(&hunt->space, hunt->result.found[found].point, &hunt->options,
                              &hunt->fine, arena, out, err);
}
