/*
 * Searching for plans; see plan_search.h.
 *
 * The search knows requested bytes alone; what the allocator reserves is known of the finalists
 * (sim/finalists.h), of which a few become rows.
 */
#include "src/cli/plan_search.h"

#include <string.h>
#include <unistd.h>

#include "gpu/stop_signal.h"
#include "sim/finalists.h"
#include "sim/judge_pool.h"
#include "src/cli/plan_keep.h"
#include "src/cli/plan_point.h"
#include "src/cli/plan_progress.h"
#include "src/cli/plan_rank.h"

enum { FRONT_ROWS = 6 };

/* Below this share of a GPU's memory, where nobody gives a limit: nearer steps get slower (COST 7). */
static const double MARGIN = 0.92;

/* Axis words of --search that are values of an option. */
static const struct {
    enum option_id option;
    const char *values;
} listed[SEARCH_WORD_N] = {
    [SEARCH_AC] = {OPTION_AC, "none,op,every:2,full"},
    [SEARCH_ALLOCATOR] = {OPTION_ALLOCATOR, "caching,expandable"},
    [SEARCH_ARRANGE] = {OPTION_ARRANGE, "native,by-dtype,precast"},
    [SEARCH_HOLD] = {OPTION_REDUCE_INPUTS, "1,2,3"},
    [SEARCH_COMM] = {OPTION_SEPARATE_REDUCE_COMM, "no,yes"},
};

static bool any_given(const struct options *options, enum option_id a, enum option_id b)
{
    return option_given(options, a) || option_given(options, b);
}

static unsigned free_axes(const struct options *options)
{
    unsigned axes = AXES_ALL;

    if (any_given(options, OPTION_RESHARD, OPTION_NO_RESHARD))
        axes &= ~(1u << AXIS_RESHARD);
    if (any_given(options, OPTION_PREFETCH, OPTION_PREFETCH_BACKWARD))
        axes &= ~(1u << AXIS_PREFETCH);
    return axes;
}

void plan_search_options(struct options *options, struct plan_found *out)
{
    const bool asked = option_given(options, OPTION_SEARCH);
    const unsigned words = (unsigned)option_number(options, OPTION_SEARCH);

    *out = (struct plan_found){.on = asked || !option_given(options, OPTION_UNITS)};
    if (!out->on)
        return;
    out->axes = asked ? words & AXES_ALL : free_axes(options);
    out->halves = words >> SEARCH_SPLIT & 1;
    if (!option_given(options, OPTION_UNITS) && !option_given(options, OPTION_PLAN))
        options_set(options, OPTION_UNITS, 1, "torchtitan");
    for (unsigned word = 0; word < SEARCH_WORD_N; word++)
        if (words >> word & 1 && listed[word].values && !option_given(options, listed[word].option))
            options_set(options, listed[word].option, 1, listed[word].values);
}

/* ---- one combination of lists --------------------------------------------------------------------- */

struct hunt {
    struct comparison *c;
    struct output *out;
    struct options options; /* of this combination */
    struct prepared fine;   /* its units as small as they may become */
    struct plan start;
    struct space space;
    struct search_options search;
    struct search_result result;
    struct finalists finalists;
    struct plan_progress progress;
    bool *taken; /* by index in result.found: it is a row */
};

static uint64_t limit_of(const struct hunt *hunt)
{
    const struct cluster *cluster = &hunt->fine.cluster;
    const uint64_t limit = option_given(&hunt->options, OPTION_MEMORY)
                               ? option_number(&hunt->options, OPTION_MEMORY)
                               : (uint64_t)(MARGIN * (double)cluster->memory_bytes);
    return limit > cluster->outside_bytes ? limit - cluster->outside_bytes : 0;
}

static bool go_on(void *self, const struct search_progress *progress)
{
    struct hunt *hunt = self;
    plan_progress_search(&hunt->progress, progress->judged + progress->passed_over,
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

/* Atoms that --fixed names stay as the start has them. */
static void fix_atoms(struct hunt *hunt)
{
    const char *patterns = option_text(&hunt->options, OPTION_FIXED);
    char *rest = patterns ? arena_strdup(&hunt->fine.arena, patterns) : NULL;

    for (char *pattern; (pattern = strsep(&rest, ","));)
        for (uint32_t a = 0; a < hunt->space.n_atom; a++)
            if (text_matches(pattern, hunt->fine.plan.units[a].name))
                space_fix(&hunt->space, a);
}

/* The space of the combination. STATUS_USAGE where it has none. */
static enum status open_space(struct hunt *hunt, struct err *err)
{
    struct options fine = hunt->options;
    struct plan_options start = prepare_plan_options(&hunt->options, &hunt->fine.cluster);
    const bool halves = hunt->c->report.search.halves && start.ac == AC_NONE;
    enum status status = options_take(&fine, OPTION_UNITS, halves ? "half" : "piece", err);

    if (status == STATUS_OK)
        status = prepare_plan(&fine, &hunt->fine, err);
    if (status == STATUS_OK && program_is_timed(&hunt->fine.program))
        return err_set(err, STATUS_USAGE, "where memory depends on times no search is fast");
    if (status == STATUS_OK)
        status = plan_resolve(&hunt->fine.model, &start, &hunt->fine.arena, &hunt->start, err);
    if (status == STATUS_OK)
        status = space_init(&hunt->fine.plan, &hunt->start, hunt->c->report.search.axes,
                            &hunt->fine.arena, &hunt->space, err);
    if (status == STATUS_OK)
        fix_atoms(hunt);
    return status;
}

static enum status run_search(struct hunt *hunt, struct err *err)
{
    struct plan_found *found = &hunt->c->report.search;
    const enum status status = search_run(&hunt->space, &hunt->fine.cluster, &hunt->fine.bodies,
                                          &hunt->search, &hunt->fine.arena, &hunt->result, err);
    const struct search_result *result = &hunt->result;

    if (status != STATUS_OK)
        return status;
    hunt->taken = arena_array(&hunt->fine.arena, bool, result->n + 1);
    found->judged += result->progress.judged;
    found->passed_over += result->progress.passed_over;
    found->stopped |= result->stopped;
    found->whole &= result->whole;
    if (found->least_ns == 0 || result->least.step_ns < found->least_ns)
        found->least_ns = result->least.step_ns;
    return STATUS_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static enum status add_found(struct hunt *hunt, uint32_t index, struct err *err)
{
    const uint8_t *point = hunt->result.found[index].point;
    struct options options;
    enum status status;

    if (hunt->taken[index])
        return STATUS_OK;
    hunt->taken[index] = true;
    status = plan_point_options(&hunt->space, point, &hunt->options, &hunt->fine, &hunt->c->arena,
                                &options, err);
    if (status == STATUS_OK)
        status = comparison_add(hunt->c, &options,
                                plan_point_label(&hunt->space, point, &hunt->c->arena),
                                &hunt->out->term, err);
    return status;
}

/* Fewer units first, then more even ones, then the faster. */
static bool is_simpler(const struct hunt *hunt, uint32_t a, uint32_t b)
{
    const struct found *x = &hunt->result.found[a], *y = &hunt->result.found[b];
    const uint32_t x_runs = space_runs(&hunt->space, x->point),
                   y_runs = space_runs(&hunt->space, y->point);

    if (x->n_unit != y->n_unit)
        return x->n_unit < y->n_unit;
    return x_runs != y_runs ? x_runs < y_runs : x->judged.step_ns < y->judged.step_ns;
}

static bool is_more_even(const struct hunt *hunt, uint32_t a, uint32_t b)
{
    const uint32_t x = space_runs(&hunt->space, hunt->result.found[a].point),
                   y = space_runs(&hunt->space, hunt->result.found[b].point);
    return x != y ? x < y
                  : hunt->result.found[a].judged.step_ns < hunt->result.found[b].judged.step_ns;
}

/* Of those that tie with the fastest the one that is first in another order. */
static uint32_t first_of_ties(const struct hunt *hunt,
                              bool (*before)(const struct hunt *hunt, uint32_t a, uint32_t b))
{
    const struct finalist *all = hunt->finalists.at;
    const struct found *found = hunt->result.found;
    const double most_ns = (1 + PAIRED_LEAST_SHARE) * (double)found[all[0].found].judged.step_ns;
    uint32_t best = all[0].found;

    for (uint32_t i = 1; i < hunt->finalists.n_fit; i++)
        if ((double)found[all[i].found].judged.step_ns < most_ns &&
            before(hunt, all[i].found, best))
            best = all[i].found;
    return best;
}

/* Some of the front, evenly spread, the smallest among them. */
static enum status add_front(struct hunt *hunt, struct err *err)
{
    const struct finalists *all = &hunt->finalists;
    uint32_t *front = arena_array(&hunt->fine.arena, uint32_t, all->n_fit + 1), n = 0;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < all->n_fit; i++)
        if (all->at[i].on_front)
            front[n++] = all->at[i].found;
    const uint32_t most = n < FRONT_ROWS ? n : FRONT_ROWS;
    for (uint32_t i = 0; i < most && status == STATUS_OK; i++)
        status = add_found(hunt, front[most > 1 ? i * (n - 1) / (most - 1) : 0], err);
    return status;
}

static struct alloc_config config_of(const struct hunt *hunt)
{
    struct alloc_config config = alloc_config_default();

    config.expandable = option_number(&hunt->options, OPTION_ALLOCATOR) != 0;
    config.capacity_bytes = hunt->search.limit_bytes;
    return config;
}

static void note_best(struct hunt *hunt)
{
    struct plan_found *summary = &hunt->c->report.search;
    const struct found *best = &hunt->result.found[hunt->finalists.at[0].found];

    if (summary->best_ns == 0 || best->judged.step_ns < summary->best_ns)
        summary->best_ns = best->judged.step_ns;
    /* requested bytes were searched, so that one that was not placed may be faster and fit */
    summary->whole &= hunt->finalists.at[0].found == 0;
}

static enum status add_rows(struct hunt *hunt, struct err *err)
{
    const struct alloc_config config = config_of(hunt);
    enum status status = run_search(hunt, err);

    if (status != STATUS_OK || hunt->result.n == 0)
        return status;
    finalists_place(&hunt->space, &hunt->fine.cluster, &hunt->fine.bodies, &hunt->result, &config,
                    hunt->search.jobs, &hunt->fine.arena, &hunt->finalists);
    plan_keep(&(struct plan_kept){.options = &hunt->options,
                                  .lists = &hunt->c->report.lists,
                                  .space = &hunt->space,
                                  .result = &hunt->result,
                                  .finalists = &hunt->finalists,
                                  .limit_bytes = hunt->search.limit_bytes},
              &hunt->c->history);
    if (hunt->finalists.n == 0)
        return STATUS_OK;
    status = add_found(hunt, hunt->finalists.at[0].found, err);
    if (status != STATUS_OK || hunt->finalists.n_fit == 0)
        return status;
    note_best(hunt);
    status = add_found(hunt, first_of_ties(hunt, is_simpler), err);
    if (status == STATUS_OK)
        status = add_found(hunt, first_of_ties(hunt, is_more_even), err);
    return status == STATUS_OK ? add_front(hunt, err) : status;
}

/* The plan that one would have had. */
static enum status add_start(struct hunt *hunt, struct err *err)
{
    const bool from_file = !option_given(hunt->c->options, OPTION_UNITS) &&
                           option_given(hunt->c->options, OPTION_PLAN);
    const char *label = option_text(&hunt->options, from_file ? OPTION_PLAN : OPTION_UNITS);
    return comparison_add(hunt->c, &hunt->options, label, &hunt->out->term, err);
}

/* Schemes, one after the other. */
static enum status add_schemes(struct hunt *hunt, const struct err *why, struct err *err)
{
    static const char *const schemes[] = {"block", "block*2", "block*4", "attn+mlp", "whole"};
    enum status status = STATUS_OK;

    text_add(&hunt->out->warnings, "not searched, schemes are compared: %s\n", why->text);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes && status == STATUS_OK; i++) {
        struct options options = hunt->options;
        status = options_take(&options, OPTION_UNITS, schemes[i], err);
        if (status == STATUS_OK)
            status = comparison_add(hunt->c, &options, schemes[i], &hunt->out->term, err);
    }
    return status;
}

static enum status search_combination(struct hunt *hunt, struct err *err)
{
    struct err why = {0};
    enum status status = add_start(hunt, err);

    if (status != STATUS_OK || hunt->c->report.rows[hunt->c->report.n_row - 1].refused)
        return status;
    status = open_space(hunt, &why);
    if (status != STATUS_OK)
        return add_schemes(hunt, &why, err);
    hunt->search = search_options_default();
    hunt->search.limit_bytes = limit_of(hunt);
    hunt->search.jobs = jobs_of(&hunt->options);
    hunt->search.max_units = (uint32_t)option_number(&hunt->options, OPTION_MAX_UNITS);
    hunt->search.go_on = go_on;
    hunt->search.self = hunt;
    hunt->c->report.search.space_size += space_size(&hunt->space);
    return add_rows(hunt, err);
}

enum status plan_search(struct comparison *c, struct output *out, struct err *err)
{
    struct hunt hunt = {.c = c, .out = out, .progress = plan_progress_begin()};
    enum status status = prepare_open(c->options, NULL, &hunt.fine, err);

    c->report.search.whole = true;
    stop_signal_watch();
    for (uint32_t i = 0; i < c->report.lists.n_row && status == STATUS_OK; i++) {
        plan_lists_row(&c->report.lists, i, c->options, &hunt.options);
        status = search_combination(&hunt, err);
        if (stop_signal_came())
            break;
    }
    stop_signal_unwatch();
    plan_progress_end(&hunt.progress);
    prepared_release(&hunt.fine);
    return status;
}
