/*
 * A real run as a page for people: what was measured, beside what was predicted.
 */
#include <math.h>
#include <stdio.h>

#include "src/cli/page.h"
#include "src/cli/run_report.h"

enum { LABEL_COLUMNS = 18, NUMBER_COLUMNS = 14 };

static void add_title(const struct term *term, const char *title, struct text *out)
{
    text_add(out, "\n%s%s%s\n", term->strong, title, term->plain);
}

/* Measured, predicted and the prediction's error, which an emulated run does not show. */
static void add_time_row(const struct run_report *report, const char *label, int64_t measured_ns,
                         int64_t predicted_ns, struct text *out)
{
    char a[32], b[32];

    text_add(out, "  %-*s%*s%*s", LABEL_COLUMNS, label, NUMBER_COLUMNS, text_ns(measured_ns, a),
             NUMBER_COLUMNS, text_ns(predicted_ns, b));
    if (measured_ns > 0 && !report->real.emulated)
        text_add(out, "%+13.1f %%",
                 100 * (double)(predicted_ns - measured_ns) / (double)measured_ns);
    text_add(out, "\n");
}

/* What it costs that tasks have time stamps. */
static void add_bare(const struct run_report *report, struct text *out)
{
    char a[32];

    if (!report->has_tasks)
        text_add(
            out,
            "  no task of a replayed step has a time; predicted is one that the host issues\n");
    else if (report->n_bare > 0)
        text_add(out, "  without time stamps %s, median of %u: stamps cost %+.1f %%\n",
                 text_ns(report->bare_ns, a), report->n_bare,
                 100 * (double)(report->median_ns - report->bare_ns) / (double)report->bare_ns);
}

static void add_time(const struct run_report *report, const struct term *term, struct text *out)
{
    const struct step_time *predicted = &report->sim->time[SPREAD_MID];
    const bool emulated = report->real.emulated;
    char title[96], a[32], b[32];

    if (report->median_step == 0)
        return;
    snprintf(title, sizeof title, "time of a step, median of %u behind %llu for warm-up",
             report->n_measured, (unsigned long long)report->real.warmup);
    add_title(term, title, out);
    text_add(out, "  %-*s%*s%*s%*s\n", LABEL_COLUMNS, "", NUMBER_COLUMNS,
             emulated ? "emulated" : "measured", NUMBER_COLUMNS, "predicted",
             emulated ? 0 : NUMBER_COLUMNS + 1, emulated ? "" : "error");
    add_time_row(report, "step", report->median_ns, predicted->step_ns, out);
    if (report->has_tasks) {
        add_time_row(report, "compute", report->time.compute_ns, predicted->compute_ns, out);
        add_time_row(report, "communication", report->time.comm_ns, predicted->comm_ns, out);
        add_time_row(report, "exposed", report->time.exposed_comm_ns, predicted->exposed_comm_ns,
                     out);
    }
    add_bare(report, out);
    if (emulated)
        text_add(out,
                 "  emulated collectives last as long as predicted: no difference is an error\n");
    text_add(out, "  %s steps took %s to %s; predicted for %s\n",
             emulated ? "emulated" : "measured", text_ns(report->min_ns, a),
             text_ns(report->max_ns, b), report->sim->prepared->cluster.name);
}

static void add_memory(const struct run_report *report, const struct term *term, struct text *out)
{
    char a[32], b[32];

    add_title(term, "memory of a rank", out);
    text_add(out, "  %-*s%*s   peak of the steady step, as predicted\n", LABEL_COLUMNS, "allocated",
             NUMBER_COLUMNS, text_bytes(report->sim->steady->stats.peak_allocated, a));
    text_add(out, "  %-*s%*s   largest of all steps\n", LABEL_COLUMNS, "reserved", NUMBER_COLUMNS,
             text_bytes(report->sim->reserved_bytes, a));
    for (uint32_t i = report->real.n_check; i-- > 0;)
        if (report->real.checks[i].rank == 0) {
            text_add(out, "  %-*s%*s   by the system's account; the program %s%s%s\n",
                     LABEL_COLUMNS, "mapped", NUMBER_COLUMNS,
                     text_bytes(report->real.checks[i].mapped_bytes, a),
                     report->memory_agrees ? term->good : term->bad,
                     report->memory_agrees ? "agrees at all points"
                                           : text_bytes(report->real.checks[i].reserved_bytes, b),
                     term->plain);
            break;
        }
}

static void add_losses(const struct run_report *report, const struct term *term, struct text *out)
{
    const struct run_real *real = &report->real;
    uint32_t shown = 0;

    if (real->n_step == 0 || isnan(real->steps[0].loss))
        return;
    add_title(term, "loss", out);
    for (uint32_t i = 0; i < real->n_step; i++) {
        const bool ends = i < 4 || i + 4 >= real->n_step;
        if (isnan(real->steps[i].loss) || !ends)
            continue;
        text_add(out, "%s%s%9.5f", shown % 8 == 0 ? "  " : " ",
                 i + 4 == real->n_step && real->n_step > 8 ? "... " : "", real->steps[i].loss);
        shown++;
    }
    text_add(out, "\n");
}

static void add_failure(const struct run_report *report, const struct term *term, struct text *out)
{
    const struct run_real *real = &report->real;

    if (!real->error)
        return;
    add_title(term, "the run failed", out);
    text_add(out, "  %s%s%s\n", term->bad, real->error, term->plain);
    for (uint32_t r = 0; r < real->n_rank; r++) {
        text_add(out, "  rank %u in step %llu; finished last:", r,
                 (unsigned long long)real->ranks[r].step);
        const char *separator = " ";
        for (int s = 0; s < STREAM_N; s++)
            if (real->ranks[r].last_task[s]) {
                text_add(out, "%s%s %s", separator, stream_name((enum stream)s),
                         real->ranks[r].last_task[s]);
                separator = ", ";
            }
        text_add(out, "%s\n", *separator == ' ' ? " nothing" : "");
    }
}

void run_report_text(const struct run_report *report, const struct term *term, struct text *out)
{
    const struct prepared *prepared = report->sim->prepared;
    const bool several = report->log->ranks > 1;
    char units[32];

    snprintf(units, sizeof units, " in %u unit%s", prepared->plan.n_unit,
             prepared->plan.n_unit == 1 ? "" : "s");
    page_head(prepared, report->sim->options, units, term, out);
    text_add(out, "run:     %u rank%s on device %s%s%s%s, %u steps, seed %llu\n",
             report->log->ranks, several ? "s" : "", report->real.device, several ? " over " : "",
             several ? report->real.transport : "",
             report->real.emulated ? ", the others emulated" : "", report->log->steps,
             (unsigned long long)report->real.seed);
    add_failure(report, term, out);
    add_losses(report, term, out);
    add_time(report, term, out);
    add_memory(report, term, out);
    text_add(out, "\n%sprogram %016llx%s\n", term->quiet,
             (unsigned long long)program_hash(&report->sim->prepared->program), term->plain);
}
