/*
 * Compared plans as a page for people: head, table, what its marks mean, picture, the one to take.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/space.h"
#include "src/cli/plan_plot.h"
#include "src/cli/plan_rank.h"
#include "src/cli/plan_report.h"

/* As a shell takes it: in quotes where a character may mean something to it. */
static void add_value(const char *value, struct text *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "+-_.,/@:=";
    char name[TERM_NAME_BYTES];
    const char *quote = value[strspn(value, plain)] ? "'" : "";
    text_add(out, "%s%s%s", quote, term_name(value, name), quote);
}

/* What a search kept is in the label of its units. */
bool plan_report_varies(const struct plan_report *report, enum option_id id)
{
    const struct plan_row *rows = report->rows;

    if (report->search.on && id == OPTION_RESHARD && report->search.axes >> AXIS_RESHARD & 1 &&
        !plan_lists_vary(&report->lists, OPTION_RESHARD))
        return false;
    for (uint32_t i = 1; i < report->n_row; i++) {
        const char *a = option_text(&rows[0].options, id), *b = option_text(&rows[i].options, id);
        if (!a != !b || (a && strcmp(a, b) != 0))
            return true;
    }
    return false;
}

/* Units that a search made have no short name that a shell would take. */
static void add_units(const struct plan_row *row, struct text *out)
{
    char name[TERM_NAME_BYTES];
    const bool named = strcmp(row->label, option_text(&row->options, OPTION_UNITS)) == 0;

    text_add(out, named ? " --units" TERM_GLUE : " units ");
    if (named)
        add_value(row->label, out);
    else
        text_add(out, "%s", term_name(row->label, name));
}

void plan_report_differs(const struct plan_report *report, const struct plan_row *row,
                         struct text *out)
{
    for (uint32_t i = 0; i < report->lists.n_list; i++) {
        enum option_id id = report->lists.lists[i].id;
        if (id == OPTION_UNITS)
            add_units(row, out);
        if (id == OPTION_UNITS || !plan_report_varies(report, id))
            continue;
        text_add(out, " --%s" TERM_GLUE, option_table[id].name);
        add_value(option_text(&row->options, id), out);
    }
}

void plan_report_shortage(const struct plan_report *report, struct text *out)
{
    char limit[32], total[32];
    const struct plan_row *row = report->smallest;
    text_add(out, "nothing fits into %s; the smallest,", text_bytes(report->limit_bytes, limit));
    plan_report_differs(report, row, out);
    text_add(out, ", needs %s without retries of the allocator, most of it %s",
             text_bytes(row->total_bytes, total), row->peak);
    for (uint32_t i = 0; i < report->relax.n; i++) {
        text_add(out, i == 0 ? "; would fit with" : " or");
        plan_relax_changes(&report->relax.at[i], out);
    }
}

void plan_report_wrap(const struct plan_report *report, const char *paragraph, unsigned at,
                      unsigned hanging, struct text *out)
{
    const struct term_margins margins = {.columns = report->columns, .at = at, .hanging = hanging};
    term_wrap(paragraph, margins, out);
}

/* A number and its unit stay on one line. */
static const char *glued(const char *number, char buffer[32])
{
    snprintf(buffer, 32, "%s", number);
    for (char *blank = buffer; (blank = strchr(blank, ' '));)
        *blank = *TERM_GLUE;
    return buffer;
}

static const char *glued_ns(int64_t ns, char buffer[32])
{
    char number[32];
    return glued(text_ns(ns, number), buffer);
}

static const char *glued_bytes(uint64_t bytes, char buffer[32])
{
    char number[32];
    return glued(text_bytes(bytes, number), buffer);
}

static bool tokens_vary(const struct plan_report *report)
{
    for (uint32_t i = 1; i < report->n_row; i++)
        if (!report->rows[i].refused && report->rows[i].tokens != report->rows[0].tokens)
            return true;
    return false;
}

static bool needs_retries(const struct plan_row *row)
{
    return row->retries;
}

static bool has_less(const struct plan_row *row)
{
    return row->withheld;
}

/* The ranks of the rows that are so, behind words; nothing where there are none. */
static void add_ranks(const struct plan_report *report, bool (*is_so)(const struct plan_row *),
                      const char *words, struct text *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < report->n_row; i++)
        if (is_so(&report->rows[i]))
            text_add(out, "%s%u", n++ > 0 ? ", " : words, report->rows[i].rank);
    text_add(out, "%s", n > 0 ? "." : "");
}

static void add_retries(const struct plan_report *report, struct text *out)
{
    add_ranks(report, needs_retries, " Retries of the allocator, which take time, are needed by ",
              out);
    add_ranks(report, has_less,
              " Times with the retries that real runs have so near the limit are those of ", out);
}

/* What the marks beside the ranks mean, of those that occur. */
static void add_marks(const struct plan_report *report, const struct term *term, struct text *out)
{
    bool tied = false, too_large = false;
    char outside[32];
    struct text words;
    text_init(&words);
    for (uint32_t i = 0; i < report->n_row; i++) {
        tied = tied || report->rows[i].tied;
        too_large = too_large || (!report->rows[i].refused && !report->rows[i].fits);
    }
    if (report->best)
        text_add(&words, ">" TERM_GLUE "the one to take, ");
    text_add(&words, "*" TERM_GLUE "no other is as fast and as small");
    if (tied)
        text_add(&words,
                 ", =" TERM_GLUE "tied with 1: less than %g" TERM_GLUE
                 "%% or less than what is uncertain apart, or not in the same order at low, mid "
                 "and high",
                 100 * PAIRED_LEAST_SHARE);
    if (too_large)
        text_add(&words, ", !" TERM_GLUE "does not fit; numbers as if it did");
    text_add(&words,
             ". Memory is the highest of initialisation, first and reported step; total is "
             "reserved and %s outside torch.",
             glued_bytes(report->outside_bytes, outside));
    if (tokens_vary(report))
        text_add(&words, " Plans are ordered by the time of a token, and drawn as if each had the "
                         "tokens of 1 in a step.");
    add_retries(report, &words);
    text_add(out, "%s", term->quiet);
    text_add(out, "  ");
    plan_report_wrap(report, words.at, 2, 4, out);
    text_add(out, "%s", term->plain);
    text_release(&words);
}

static void add_best(const struct plan_report *report, const struct term *term, struct text *out)
{
    const struct plan_row *best = report->best;
    char a[32], b[32], mid[32], total[32], limit[32];
    struct text words;
    text_init(&words);
    text_add(&words, "%u,", best->rank);
    plan_report_differs(report, best, &words);
    text_add(&words, ": %s a step (%s to %s), %s of %s", glued_ns(best->step_ns[SPREAD_MID], mid),
             glued_ns(best->step_ns[SPREAD_LOW], a), glued_ns(best->step_ns[SPREAD_HIGH], b),
             glued_bytes(best->total_bytes, total), glued_bytes(report->limit_bytes, limit));
    if (best->rank > 1)
        text_add(&words, "; tied with 1, in fewer units");
    if (best->may_not_fit)
        text_add(&words, "; may not fit if the allocator reserves more than expected");
    if (best->retries)
        text_add(&words, "; only with retries of the allocator");
    if (best->near_limit)
        text_add(&words, "; near the limit, where a step may be up to 25" TERM_GLUE "%% slower");
    if (report->smallest != best)
        text_add(&words, "; the smallest is %u: %s, %s a step", report->smallest->rank,
                 glued_bytes(report->smallest->total_bytes, total),
                 glued_ns(report->smallest->step_ns[SPREAD_MID], mid));
    text_add(out, "%sbest:%s ", term->good, term->plain);
    plan_report_wrap(report, words.at, 6, 6, out);
    text_release(&words);
}

/* A difference that one plan has from another, as one says it. */
static void add_difference(double share, const char *more, const char *less, struct text *out)
{
    const double percent = 100 * (share < 0 ? -share : share);

    if (percent < 0.01)
        text_add(out, "less than 0.01" TERM_GLUE "%% %s", share < 0 ? less : more);
    else
        text_add(out, percent < 100 ? "%.2g" TERM_GLUE "%% %s" : "%.0f" TERM_GLUE "%% %s", percent,
                 share < 0 ? less : more);
}

/* What one would get and give with the next plan in place of the best. */
static void add_runner_up(const struct plan_report *report, const struct term *term,
                          struct text *out)
{
    const struct plan_row *best = report->best, *row = report->runner_up;
    struct text words;
    char bytes[32];

    if (!row)
        return;
    const bool more = row->total_bytes > best->total_bytes;
    text_init(&words);
    text_add(&words, "%u,", row->rank);
    plan_report_differs(report, row, &words);
    text_add(&words, ": ");
    add_difference(plan_rows_slower(row, best), "slower", "faster", &words);
    if (row->total_bytes == best->total_bytes)
        text_add(&words, ", as large");
    else
        text_add(&words, ", %s %s",
                 glued_bytes(more ? row->total_bytes - best->total_bytes
                                  : best->total_bytes - row->total_bytes,
                             bytes),
                 more ? "more" : "less");
    text_add(out, "%srunner-up:%s ", term->quiet, term->plain);
    plan_report_wrap(report, words.at, 11, 6, out);
    text_release(&words);
}

/* What the search would have taken by its own judge. */
static void add_chosen(const struct plan_report *report, struct text *out)
{
    struct text words;
    char total[32];

    for (uint32_t i = 0; i < report->n_row; i++) {
        const struct plan_row *row = &report->rows[i];
        if (!row->chosen || row->refused)
            continue;
        text_init(&words);
        text_add(&words, "%u,", row->rank);
        plan_report_differs(report, row, &words);
        text_add(&words, ": %s", glued_bytes(row->total_bytes, total));
        if (!row->fits)
            text_add(&words, ", which does not fit");
        if (report->best && row != report->best) {
            text_add(&words, ", ");
            add_difference(plan_rows_slower(row, report->best), "slower than the best",
                           "faster than the best", &words);
        }
        text_add(out, "%s takes: ", objective_name(report->search.objective));
        plan_report_wrap(report, words.at,
                         (unsigned)strlen(objective_name(report->search.objective)) + 8, 6, out);
        text_release(&words);
    }
}

static void add_none(const struct plan_report *report, const struct term *term, struct text *out)
{
    char limit[32], total[32];
    struct text words;
    text_init(&words);
    text_add(
        &words,
        "none; nothing fits into %s, the smallest, %u, needs %s without retries of the allocator",
        glued_bytes(report->limit_bytes, limit), report->smallest->rank,
        glued_bytes(report->smallest->total_bytes, total));
    text_add(out, "%sbest:%s ", term->bad, term->plain);
    plan_report_wrap(report, words.at, 6, 6, out);
    text_release(&words);
}

static const char *search_outcome(const struct plan_found *search, char buffer[96])
{
    const double least = (double)search->least_ns;

    if (search->stopped)
        return "stopped before it was done, this is the best so far";
    if (search->first_ns == 0)
        return "none is within the limit";
    if (search->objective != OBJECTIVE_EVENTS)
        return "the judge was no simulation";
    if (search->whole)
        return "the first is optimal of these";
    if (search->least_ns == 0)
        return "how fast the fastest of these can be is not known";
    snprintf(buffer, 96,
             "the first is at most %.1f" TERM_GLUE "%% slower than the fastest of these can be",
             ceil(1000 * fmax((double)search->first_ns - least, 0) / least) / 10);
    return buffer;
}

void plan_report_search(const struct plan_report *report, struct text *out)
{
    const struct plan_found *search = &report->search;
    char judged[32], passed[32], outcome[96];
    static const char *const names[] = {
#define X(id, name, what) name,
        AXES(X)
#undef X
    };

    if (search->space_size == 0)
        return;
    text_add(out, "searched");
    for (unsigned axis = 0, n = 0; axis < AXIS_N; axis++)
        if (search->axes >> axis & 1)
            text_add(out, "%s %s", n++ > 0 ? "," : "", names[axis]);
    if (search->axes != 0)
        text_add(out, " (in units NxM is N of M blocks, k: kept from forward to backward)");
    text_add(out, ": %.4g plans, %s of them %s, %s passed over by bounds; %s", search->space_size,
             text_count(search->judged, judged),
             search->objective == OBJECTIVE_EVENTS ? "simulated" : "judged",
             text_count(search->passed_over, passed), search_outcome(search, outcome));
}

static void add_search(const struct plan_report *report, struct text *out)
{
    struct text words;

    text_init(&words);
    plan_report_search(report, &words);
    if (words.length > 0)
        plan_report_wrap(report, words.at, 0, 2, out);
    text_release(&words);
}

static void add_left(const struct plan_report *report, const struct term *term, struct text *out)
{
    static const char label[] = "outside the range that was measured: ";
    struct text words;
    if (report->left.n == 0)
        return;
    text_init(&words);
    tables_left_text(&report->left, &words);
    text_add(out, "%s%s", term->bad, label);
    plan_report_wrap(report, words.at, sizeof label, 2, out);
    text_add(out, "%s", term->plain);
    text_release(&words);
}

static void add_verdict(const struct plan_report *report, const struct term *term, struct text *out)
{
    if (report->best)
        add_best(report, term, out);
    else
        add_none(report, term, out);
    add_runner_up(report, term, out);
    add_chosen(report, out);
    plan_relax_text(&report->relax, out);
    add_left(report, term, out);
}

void plan_report_text(const struct plan_report *report, const struct term *term, struct text *out)
{
    plan_find_text(&report->find, term, out);
    text_add(out, "%s\n", report->head.at);
    plan_report_table(report, term, out);
    add_marks(report, term, out);
    plan_report_packing(report, term, out);
    const struct plan_plot plot = {.rows = report->rows,
                                   .n_row = report->n_row,
                                   .limit_bytes = report->limit_bytes,
                                   .columns = report->columns};
    if (report->columns >= PLAN_PLOT_LEAST_COLUMNS)
        plan_plot_text(&plot, term, out);
    text_add(out, "\n");
    add_search(report, out);
    add_verdict(report, term, out);
}
