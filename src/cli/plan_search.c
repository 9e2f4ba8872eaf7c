/*
 * Searching for plans; see plan_search.h. Of what a search finds a few plans become rows.
 */
#include "src/cli/plan_search.h"

#include "gpu/stop_signal.h"
#include "src/cli/plan_hunt.h"
#include "src/cli/plan_keep.h"
#include "src/cli/plan_point.h"
#include "src/cli/plan_rank.h"

enum { FRONT_ROWS = 6 };

struct hunting {
    struct comparison *c;
    struct output *out;
    struct hunt hunt;
    bool *taken; /* by index in hunt.result.found: it is a row */
};

static enum status add_found(struct hunting *h, uint32_t index, struct err *err)
{
    struct arena *arena = &h->c->arena;
    struct options options;

    if (h->taken[index])
        return STATUS_OK;
    h->taken[index] = true;
    const char *label = plan_point_label(&h->hunt.space, h->hunt.result.found[index].point, arena);
    const enum status status = hunt_options(&h->hunt, index, arena, &options, err);
    return status == STATUS_OK ? comparison_add(h->c, &options, label, &h->out->term, err) : status;
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

/* Where the first fits without giving memory back, so have the others to. */
static bool is_eligible(const struct finalists *all, uint32_t i)
{
    return !all->at[i].placed.retries || all->at[0].placed.retries;
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
        if (is_eligible(&hunt->finalists, i) &&
            (double)found[all[i].found].judged.step_ns < most_ns &&
            before(hunt, all[i].found, best))
            best = all[i].found;
    return best;
}

/* Some of the front, evenly spread, the smallest among them. */
static enum status add_front(struct hunting *h, struct err *err)
{
    const struct finalists *all = &h->hunt.finalists;
    uint32_t *front = arena_array(&h->hunt.fine.arena, uint32_t, all->n_fit + 1), n = 0;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < all->n_fit; i++)
        if (all->at[i].on_front && is_eligible(all, i))
            front[n++] = all->at[i].found;
    const uint32_t most = n < FRONT_ROWS ? n : FRONT_ROWS;
    for (uint32_t i = 0; i < most && status == STATUS_OK; i++)
        status = add_found(h, front[most > 1 ? i * (n - 1) / (most - 1) : 0], err);
    return status;
}

/* Combinations may differ in their tokens. */
static int64_t per_tokens(const struct hunting *h, int64_t ns)
{
    const struct plan_options *o = &h->hunt.fine.plan.options;
    return (int64_t)(PLAN_FOUND_TOKENS * (double)ns /
                     ((double)o->batch * (double)o->accum * (double)o->seq));
}

/* What all combinations were together. */
static void note_search(struct hunting *h)
{
    struct plan_found *found = &h->c->report.search;
    const struct search_result *result = &h->hunt.result;

    found->judged += result->progress.judged;
    found->passed_over += result->progress.passed_over;
    found->stopped |= result->stopped;
    found->whole &= result->whole;
    const int64_t least_ns = per_tokens(h, result->least.step_ns);
    if (found->least_ns == 0 || least_ns < found->least_ns)
        found->least_ns = least_ns;
}

/* Requested bytes were searched, so that one that was not placed may be faster and fit; and steps
   without retries, so that one that needs some is slower than it was judged. */
static bool is_optimal(const struct finalist *first)
{
    return first->found == 0 && first->placed.fits && !first->placed.retries;
}

/* What another judge would take, whether it fits or not: the last row, which is the start's where that is
   the same program. */
static enum status add_choice(struct hunting *h, struct err *err)
{
    enum status status;

    if (h->hunt.search.objective == OBJECTIVE_EVENTS)
        return STATUS_OK;
    status = add_found(h, 0, err);
    if (status == STATUS_OK)
        h->c->report.rows[h->c->report.n_row - 1].chosen = true;
    return status;
}

static enum status add_rows(struct hunting *h, struct err *err)
{
    const struct finalists *finalists = &h->hunt.finalists;
    enum status status = hunt_run(&h->hunt, err);

    if (status != STATUS_OK)
        return status;
    note_search(h);
    plan_keep(&(struct plan_kept){.options = &h->hunt.options,
                                  .lists = &h->c->report.lists,
                                  .space = &h->hunt.space,
                                  .result = &h->hunt.result,
                                  .finalists = finalists,
                                  .limit_bytes = h->hunt.search.limit_bytes},
              &h->c->history);
    if (finalists->n == 0)
        return STATUS_OK;
    h->taken = arena_array(&h->hunt.fine.arena, bool, h->hunt.result.n);
    status = add_choice(h, err);
    if (status == STATUS_OK)
        status = add_found(h, finalists->at[0].found, err);
    h->c->report.search.whole &= is_optimal(&finalists->at[0]);
    if (status != STATUS_OK || finalists->n_fit == 0)
        return status;
    status = add_found(h, first_of_ties(&h->hunt, is_simpler), err);
    if (status == STATUS_OK)
        status = add_found(h, first_of_ties(&h->hunt, is_more_even), err);
    return status == STATUS_OK ? add_front(h, err) : status;
}

/* The plan that one would have had. */
static enum status add_start(struct hunting *h, struct err *err)
{
    const struct options *typed = h->c->options;
    const bool from_file = !option_given(typed, OPTION_UNITS) && option_given(typed, OPTION_PLAN);
    const char *label = option_text(&h->hunt.options, from_file ? OPTION_PLAN : OPTION_UNITS);
    return comparison_add(h->c, &h->hunt.options, label, &h->out->term, err);
}

/* What schemes know nothing of. */
static void warn_of_schemes(struct hunting *h, const struct err *why)
{
    static const enum option_id unused[] = {OPTION_JUDGE, OPTION_FIXED};
    struct text *out = &h->out->warnings;

    text_add(out, "not searched, schemes are compared");
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (option_given(&h->hunt.options, unused[i]))
            text_add(out, ", without --%s", option_table[unused[i]].name);
    text_add(out, ": %s\n", why->text);
}

/* Schemes, one after the other. */
static enum status add_schemes(struct hunting *h, const struct err *why, struct err *err)
{
    static const char *const schemes[] = {"block", "block*2", "block*4", "attn+mlp", "whole"};
    enum status status = STATUS_OK;

    h->c->report.search.whole = false;
    warn_of_schemes(h, why);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes && status == STATUS_OK; i++) {
        struct options options = h->hunt.options;
        status = options_take(&options, OPTION_UNITS, schemes[i], err);
        if (status == STATUS_OK)
            status = comparison_add(h->c, &options, schemes[i], &h->out->term, err);
    }
    return status;
}

/* Rows have to keep within what is searched: what the allocator does depends on it. */
static void take_limit(struct hunting *h)
{
    const uint64_t limit = hunt_limit_bytes(&h->hunt.options, &h->hunt.fine.cluster);

    if (!option_given(&h->hunt.options, OPTION_MEMORY))
        options_set(&h->hunt.options, OPTION_MEMORY, limit,
                    arena_printf(&h->c->arena, "%llu", (unsigned long long)limit));
}

static enum status search_combination(struct hunting *h, struct err *err)
{
    struct plan_report *report = &h->c->report;
    const uint32_t start = report->n_row;
    struct err why = {0};
    enum status status;

    h->c->search++;
    take_limit(h);
    status = add_start(h, err);
    if (status != STATUS_OK || (report->n_row > start && report->rows[start].refused))
        return status;
    status = hunt_open(&h->hunt, &report->search, &why);
    if (status != STATUS_OK)
        return add_schemes(h, &why, err);
    status = hunt_fix(&h->hunt, err);
    if (status != STATUS_OK)
        return status;
    h->hunt.search.objective = report->search.objective;
    report->search.space_size += space_size(&h->hunt.space);
    return add_rows(h, err);
}

enum status plan_search(struct comparison *c, struct output *out, struct err *err)
{
    struct plan_progress progress = plan_progress_begin();
    struct hunting h = {.c = c, .out = out, .hunt = {.progress = &progress}};
    enum status status = prepare_open(c->options, NULL, &h.hunt.fine, err);

    c->report.search.whole = true;
    stop_signal_watch();
    for (uint32_t i = 0; i < c->report.lists.n_row && status == STATUS_OK; i++) {
        plan_lists_row(&c->report.lists, i, c->options, &h.hunt.options);
        status = search_combination(&h, err);
        if (stop_signal_came())
            break;
    }
    stop_signal_unwatch();
    plan_progress_end(&progress);
    prepared_release(&h.hunt.fine);
    return status;
}
