/*
 * Compared plans as a page for people: head, table, what its marks mean, picture, the one to take.
 */
#include <stdio.h>
#include <string.h>

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

void plan_report_differs(const struct plan_report *report, const struct plan_row *row,
                         struct text *out)
{
    for (uint32_t i = 0; i < report->lists.n_list; i++) {
        enum option_id id = report->lists.lists[i].id;
        if (id != OPTION_UNITS && !plan_lists_vary(&report->lists, id))
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
    text_add(out, ", needs %s, most of it %s", text_bytes(row->total_bytes, total), row->peak);
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
                 "%% apart, or not in the same order at low, mid and high",
                 100 * PLAN_TIE_SHARE);
    if (too_large)
        text_add(&words, ", !" TERM_GLUE "does not fit; numbers as if it did");
    text_add(&words,
             ". Memory is the highest of initialisation, first and third step; total is "
             "reserved and %s outside torch.",
             glued_bytes(report->outside_bytes, outside));
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

static void add_none(const struct plan_report *report, const struct term *term, struct text *out)
{
    char limit[32], total[32];
    struct text words;
    text_init(&words);
    text_add(&words, "none; nothing fits into %s, the smallest is %u with %s",
             glued_bytes(report->limit_bytes, limit), report->smallest->rank,
             glued_bytes(report->smallest->total_bytes, total));
    text_add(out, "%sbest:%s ", term->bad, term->plain);
    plan_report_wrap(report, words.at, 6, 6, out);
    text_release(&words);
}

static void add_verdict(const struct plan_report *report, const struct term *term, struct text *out)
{
    if (report->best)
        add_best(report, term, out);
    else
        add_none(report, term, out);
    if (report->leaves_table) {
        text_add(out, "%soutside the range that was measured: ", term->bad);
        plan_report_wrap(report, report->leaves_table, 38, 2, out);
        text_add(out, "%s", term->plain);
    }
}

void plan_report_text(const struct plan_report *report, const struct term *term, struct text *out)
{
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
    add_verdict(report, term, out);
}
