/*
 * An explanation as a page for people.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/explain_report.h"
#include "src/cli/page.h"

enum { LABEL_COLUMNS = 24, NUMBER_COLUMNS = 12, BAR_COLUMNS = 30 };
enum { PART_N = 2 * TASK_KIND_N + 1 };

/* Time of one kind, on the device or on the host. */
struct part {
    const char *where, *name;
    int64_t ns;
};

const char *explain_report_task(const struct explain_report *report, uint32_t span,
                                char name[PROGRAM_NAME_MAX])
{
    if (span == NO_SPAN)
        return "the end of the step";
    return program_task_name(report->causes.program, report->causes.spans[span].task, name);
}

static void add_title(const struct term *term, const char *title, struct text *out)
{
    text_add(out, "\n%s%s%s\n", term->strong, title, term->plain);
}

static void add_share(const struct explain_report *report, int64_t ns, struct text *out)
{
    const int64_t step_ns = report->explained_ns;
    char time[32];
    text_add(out, "%*s%7.1f %%", NUMBER_COLUMNS, text_ns(ns, time),
             step_ns > 0 ? 100 * (double)ns / (double)step_ns : 0);
}

static void add_head(const struct explain_report *report, const struct term *term, struct text *out)
{
    const struct step_time *time = report->step.time;
    char units[32], mid[32], low[32], high[32];
    uint32_t n = report->step.prepared->plan.n_unit;
    snprintf(units, sizeof units, " in %" PRIu32 " unit%s", n, n == 1 ? "" : "s");
    if (report->stored)
        text_add(out, "run %" PRId64 " of the history, simulated again\n", report->stored->id);
    page_head(report->step.prepared, report->step.options, units, term, out);
    text_add(out, "\na step takes %s (%s to %s)\n", text_ns(time[SPREAD_MID].step_ns, mid),
             text_ns(time[SPREAD_LOW].step_ns, low), text_ns(time[SPREAD_HIGH].step_ns, high));
    if (time[SPREAD_MID].measured > 1)
        text_add(out, "that is the mean of %" PRIu32 " steps; the last, which follows, takes %s\n",
                 time[SPREAD_MID].measured, text_ns(report->explained_ns, mid));
}

/* The longest first, equal ones in the order in which they were listed: there the device leads. */
static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void add_path(const struct explain_report *report, const struct term *term, struct text *out)
{
    struct part parts[PART_N];
    for (unsigned kind = 0; kind < TASK_KIND_N; kind++) {
        const char *name = task_kind_name((enum task_kind)kind);
        parts[kind] = (struct part){"", name, report->path.device_ns[kind]};
        parts[TASK_KIND_N + kind] = (struct part){"host: ", name, report->path.host_ns[kind]};
    }
    parts[PART_N - 1] = (struct part){"host: ", "retries", report->path.memory_ns};
    qsort(parts, PART_N, sizeof *parts, compare_parts);
    add_title(term, "critical path, by what it goes through", out);
    for (unsigned i = 0; i < PART_N && parts[i].ns > 0; i++) {
        char label[64];
        snprintf(label, sizeof label, "%s%s", parts[i].where, parts[i].name);
        text_add(out, "  %-*s", LABEL_COLUMNS, label);
        add_share(report, parts[i].ns, out);
        term_bar(term, (uint64_t)parts[i].ns, (uint64_t)report->explained_ns, BAR_COLUMNS, out);
        text_add(out, "\n");
    }
}

static void add_idle(const struct explain_report *report, const struct term *term, struct text *out)
{
    add_title(term, "time in which nothing computes, by what held it", out);
    for (unsigned cause = 0; cause < STALL_CAUSE_N; cause++) {
        if (report->stalls.by_cause_ns[cause] == 0)
            continue;
        text_add(out, "  %-*s", LABEL_COLUMNS, stall_cause_name((enum stall_cause)cause));
        add_share(report, report->stalls.by_cause_ns[cause], out);
        text_add(out, "   %s\n", stall_cause_words((enum stall_cause)cause));
    }
    text_add(out, "  %-*s", LABEL_COLUMNS, "in all");
    add_share(report, report->stalls.idle_ns, out);
    text_add(out, "   in %" PRIu32 " stall%s\n", report->stalls.n,
             report->stalls.n == 1 ? "" : "s");
}

/* Where it is, what it keeps waiting, what held it, and the remedy by its number. */
static void add_stall(const struct explain_report *report, const struct stall *stall,
                      struct text *out)
{
    const struct trial *trial = trials_for(&report->trials, (enum stall_cause)stall->cause);
    char length[32], at[32], held[PROGRAM_NAME_MAX], holder[PROGRAM_NAME_MAX];
    struct text words;
    text_init(&words);
    text_add(out, "  %*s at %*s ", NUMBER_COLUMNS, text_ns(stall->end_ns - stall->begin_ns, length),
             NUMBER_COLUMNS, text_ns(stall->begin_ns - report->begin_ns, at));
    text_add(&words, "%s %s, held by %s%s (%s)", stall->inside ? "inside" : "before",
             explain_report_task(report, stall->span, held),
             stall->cause == STALL_HOST ? "the host at " : "",
             explain_report_task(report, stall->holder, holder),
             stall_cause_name((enum stall_cause)stall->cause));
    if (trial)
        text_add(&words, "; remedy %d", (int)(trial - report->trials.at) + 1);
    page_wrap(words.at, 2 * NUMBER_COLUMNS + 7, 2 * NUMBER_COLUMNS + 7, out);
    text_release(&words);
}

static void add_stalls(const struct explain_report *report, const struct term *term,
                       struct text *out)
{
    if (report->stalls.n == 0)
        return;
    add_title(term, "the costliest stalls", out);
    for (uint32_t i = 0; i < report->stalls.n && i < EXPLAIN_STALLS; i++)
        add_stall(report, &report->stalls.at[i], out);
}

static void add_remedies(const struct explain_report *report, const struct term *term,
                         struct text *out)
{
    if (report->trials.n == 0)
        return;
    add_title(term, "remedies, each simulated, and what they gain", out);
    for (uint32_t i = 0; i < report->trials.n; i++) {
        const struct trial *trial = &report->trials.at[i];
        text_add(out, "  %" PRIu32 " %-*s", i + 1, LABEL_COLUMNS + 6, trial->bottleneck);
        add_share(report, trial->gain_ns, out);
        text_add(out, "   %s%s\n", trial->change, trial->fits ? "" : ", which does not fit");
    }
}

void explain_report_text(const struct explain_report *report, const struct term *term,
                         struct text *out)
{
    add_head(report, term, out);
    add_path(report, term, out);
    add_idle(report, term, out);
    add_stalls(report, term, out);
    add_remedies(report, term, out);
    sim_report_what_if_text(&report->step, term, out);
    text_add(out, "\n%sprogram %016llx, verified%s\n", term->quiet,
             (unsigned long long)program_hash(&report->step.prepared->program), term->plain);
}
