/*
 * A simulated step as a page for people. Every number is the mid one where nothing else is said.
 */
#include <math.h>
#include <stdio.h>

#include "src/cli/page.h"
#include "src/cli/sim_report.h"

enum { LABEL_COLUMNS = 18, NUMBER_COLUMNS = 14, BAR_COLUMNS = 30 };

const char *sim_report_unit(const struct sim_report *report, uint16_t unit)
{
    return unit == NO_UNIT ? NULL : report->prepared->plan.units[unit].name;
}

static void add_title(const struct term *term, const char *title, struct text *out)
{
    text_add(out, "\n%s%s%s\n", term->strong, title, term->plain);
}

static void add_row(const char *label, const char *value, struct text *out)
{
    text_add(out, "  %-*s%*s", LABEL_COLUMNS, label, NUMBER_COLUMNS, value);
}

static void add_head(const struct sim_report *report, const struct term *term, struct text *out)
{
    char units[32];
    uint32_t n = report->prepared->plan.n_unit;
    snprintf(units, sizeof units, " in %u unit%s", n, n == 1 ? "" : "s");
    page_head(report->prepared, report->options, units, term, out);
}

/* A quotient with at least three digits that count, or "-" where nothing was to divide by. */
static const char *number_text(double value, int decimals, const char *unit, char buffer[32])
{
    double size = fabs(value) * pow(10, decimals);
    for (; size > 0 && size < 100 && decimals < 9; size *= 10)
        decimals++;
    if (isfinite(value))
        snprintf(buffer, 32, "%.*f%s", decimals, value, unit);
    else
        snprintf(buffer, 32, "-");
    return buffer;
}

/* " (3 h 51 min)" behind a time that is long in seconds. */
static void add_long_time(int64_t ns, struct text *out)
{
    static const struct {
        const char *name;
        uint64_t seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    uint64_t left = (uint64_t)ns / 1000000000;
    unsigned unit = 0;
    if (left < 120)
        return;
    while (left < units[unit].seconds)
        unit++;
    text_add(out, " (%llu %s %llu %s)", (unsigned long long)(left / units[unit].seconds),
             units[unit].name,
             (unsigned long long)(left % units[unit].seconds / units[unit + 1].seconds),
             units[unit + 1].name);
}

static void add_left(const struct sim_report *report, const struct term *term, struct text *out)
{
    static const char label[] = "outside the range that was measured: ";
    struct text words;
    if (report->left.n == 0)
        return;
    text_init(&words);
    tables_left_text(&report->left, &words);
    text_add(out, "  %s%s", term->bad, label);
    page_wrap(words.at, 2 + sizeof label - 1, 4, out);
    text_add(out, "%s", term->plain);
    text_release(&words);
}

static void add_time(const struct sim_report *report, const struct term *term, struct text *out)
{
    const struct step_time *mid = &report->time[SPREAD_MID];
    char a[32], b[32];
    add_title(term, "time of a step", out);
    add_row("step", text_ns(mid->step_ns, a), out);
    add_long_time(mid->step_ns, out);
    text_add(out, "   %s to %s\n", text_ns(report->time[SPREAD_LOW].step_ns, a),
             text_ns(report->time[SPREAD_HIGH].step_ns, b));
    add_row("tokens/s per GPU", number_text(report->tokens_per_s, 1, "", a), out);
    text_add(out, "\n");
    add_row("MFU", number_text(report->mfu_pct, 2, " %", a), out);
    text_add(out, "   HFU %s\n", number_text(report->hfu_pct, 2, " %", a));
    add_row("compute", text_ns(mid->compute_ns, a), out);
    text_add(out, "   the compute stream is busy\n");
    add_row("communication", text_ns(mid->comm_ns, a), out);
    text_add(out, "   of it hidden behind compute: %s\n",
             number_text(report->overlap_pct, 2, " %", b));
    add_row("exposed", text_ns(mid->exposed_comm_ns, a), out);
    text_add(out, "   communication that nothing computes beside\n");
    add_row("contention", text_ns(mid->contention_ns, a), out);
    text_add(out, "   compute is slowed by communication beside it\n");
    if (sim_report_retry_ns(report) > 0) {
        add_row("retries", text_ns(sim_report_retry_ns(report), a), out);
        text_add(out, "   the allocator gives memory back and asks again\n");
    }
    add_left(report, term, out);
}

void sim_report_what_if_text(const struct sim_report *report, const struct term *term,
                             struct text *out)
{
    const int64_t step_ns = report->time[SPREAD_MID].step_ns;
    char time[32], gain[32];
    if (!report->what_if)
        return;
    add_title(term, "what if, and what that gains", out);
    for (unsigned what = 0; what < WHAT_IF_N; what++) {
        if (!(report->what_if >> what & 1))
            continue;
        add_row(what_if_name((enum what_if)what), text_ns(report->what_if_ns[what], time), out);
        text_add(out, "%*s   %s\n", NUMBER_COLUMNS,
                 text_ns(step_ns - report->what_if_ns[what], gain),
                 what_if_words((enum what_if)what));
    }
}

static const char *step_name(uint32_t step)
{
    return step == SIMULATED_STEPS ? "third step" : "ninth step";
}
_Static_assert(SIMULATED_STEPS == 3 && SETTLED_STEPS == 9, "as they are named here");

static void add_bytes_row(const char *label, uint64_t steady, uint64_t first, uint64_t init,
                          struct text *out)
{
    char a[32], b[32], c[32];
    text_add(out, "  %-*s%*s%*s%*s\n", LABEL_COLUMNS, label, NUMBER_COLUMNS, text_bytes(steady, a),
             NUMBER_COLUMNS, text_bytes(first, b), NUMBER_COLUMNS, text_bytes(init, c));
}

static void add_peaks(const struct sim_report *report, struct text *out)
{
    const struct alloc_stats *steady = &report->steady->stats, *first = &report->first->stats,
                             *init = &report->init->stats;
    text_add(out, "  %-*s%*s%*s%*s\n", LABEL_COLUMNS, "", NUMBER_COLUMNS, step_name(report->steps),
             NUMBER_COLUMNS, "first step", NUMBER_COLUMNS, "init");
    add_bytes_row("allocated", steady->peak_allocated, first->peak_allocated, init->peak_allocated,
                  out);
    add_bytes_row("active", steady->peak_active, first->peak_active, init->peak_active, out);
    add_bytes_row("reserved", steady->peak_reserved, first->peak_reserved, init->peak_reserved,
                  out);
}

/* Memory freed on one stream is useless to another, so it matters who reserved it. */
static void add_pools(const struct sim_report *report, struct text *out)
{
    const uint64_t *pool_bytes = report->steady->stats.peak_reserved_by_pool;
    const char *separator = "";
    char bytes[32];
    text_add(out, "  reserved by stream: ");
    for (unsigned i = 0; i < STREAM_N; i++) {
        if (pool_bytes[i] == 0)
            continue;
        text_add(out, "%s%s %s", separator, stream_name((enum stream)i),
                 text_bytes(pool_bytes[i], bytes));
        separator = ", ";
    }
    text_add(out, "\n");
}

/* "4 in 3 steps" */
static const char *count_words(struct retries retries, char out[48])
{
    if (retries.steps > 1)
        snprintf(out, 48, "%u in %u steps", retries.n, retries.steps);
    else
        snprintf(out, 48, "%u in the step", retries.n);
    return out;
}

static void add_withheld(const struct withheld *withheld, struct text *out)
{
    char bytes[32], count[48], words[200];

    if (withheld->bytes == 0)
        return;
    snprintf(words, sizeof words,
             "real runs need more memory: with %s less there are %s, and times are of that",
             text_bytes(withheld->bytes, bytes), count_words(withheld->retries, count));
    text_add(out, "    ");
    page_wrap(words, 4, 4, out);
}

static void add_repeats(const struct sim_report *report, struct text *out)
{
    uint32_t period = report->placement.period;
    char count[48];
    text_add(out, "  allocator retries: %s; ", count_words(report->whole, count));
    if (report->timed) {
        text_add(out, "memory as simulated: record_stream ties it to time\n");
        add_withheld(&report->withheld, out);
        return;
    }
    text_add(out, "addresses ");
    if (period == 0)
        text_add(out, "do not repeat within %u steady steps\n", report->placement.n_step - 1);
    else if (period == 1)
        text_add(out, "are the same in every step\n");
    else
        text_add(out, "repeat every %u steps\n", period);
}

void sim_report_shortage(const struct sim_report *report, struct text *out)
{
    char request[32], limit[32], outside[32];
    text_add(out, "out of memory in ");
    if (report->oom_step > 0)
        text_add(out, "step %u", report->oom_step);
    else
        text_add(out, "initialisation");
    text_add(out, " at a request of %s, with %s there less %s outside torch",
             text_bytes(report->oom_bytes, request), text_bytes(report->limit_bytes, limit),
             text_bytes(report->outside_bytes, outside));
}

static void add_shortage(const struct sim_report *report, const struct term *term, struct text *out)
{
    static const char label[] = "does not fit: ";
    struct text words;
    text_init(&words);
    sim_report_shortage(report, &words);
    text_add(&words, "; all numbers here are those of a GPU with memory enough");
    text_add(out, "  %s%s%s", term->bad, label, term->plain);
    page_wrap(words.at, 2 + sizeof label - 1, 4, out);
    text_release(&words);
}

static void add_fits(const struct sim_report *report, const struct term *term, struct text *out)
{
    char needed[32], limit[32];
    if (!report->fits) {
        add_shortage(report, term, out);
        return;
    }
    text_add(out, "  %sfits:%s %s of %s%s\n", term->good, term->plain,
             text_bytes(report->reserved_bytes + report->outside_bytes, needed),
             text_bytes(report->limit_bytes, limit),
             report->may_not_fit ? ", but not at the upper end of what reserved may be" : "");
    if (report->near_limit)
        text_add(out, "  %snear the limit:%s %s\n", term->bad, term->plain,
                 sim_report_retries(report).n > 0
                     ? "these times have retries in them; how many a real run has is not sure"
                     : "measured runs of this kind are up to 25 % slower");
}

static void add_outside_part(const char *label, uint64_t bytes, const char *source,
                             struct text *out)
{
    char size[32];
    add_row(label, text_bytes(bytes, size), out);
    text_add(out, "   ");
    page_wrap(source, 2 + LABEL_COLUMNS + NUMBER_COLUMNS + 3, 6, out);
}

/* What torch's statistics do not count is a number of the cluster's file, with its source. */
static void add_outside(const struct sim_report *report, struct text *out)
{
    const struct cluster *cluster = &report->prepared->cluster;
    char size[32];
    add_row("outside torch", text_bytes(report->outside_bytes, size), out);
    text_add(out, "\n");
    add_outside_part("  context", cluster->context_bytes, cluster->context_bytes_source, out);
    add_outside_part("  communicator", cluster->communicator_bytes,
                     cluster->communicator_bytes_source, out);
}

static void add_memory(const struct sim_report *report, const struct term *term, struct text *out)
{
    char a[32], b[32];
    add_title(term,
              report->fits ? "memory of a GPU, peaks" : "memory of a GPU, peaks, had it enough",
              out);
    add_peaks(report, out);
    add_outside(report, out);
    text_add(out, "  reserved may be %s to %s in a real run\n", text_bytes(report->reserved_low, a),
             text_bytes(report->reserved_high, b));
    add_pools(report, out);
    add_repeats(report, out);
    add_fits(report, term, out);
}

static void add_peak(const struct sim_report *report, const struct term *term, struct text *out)
{
    const struct place_step *step = report->steady;
    const char *unit = sim_report_unit(report, step->peak_unit);
    char title[256], bytes[32];
    snprintf(title, sizeof title, "allocated at the peak: %s%s%s",
             phase_name((enum phase)step->peak_phase), unit ? ", unit " : "", unit ? unit : "");
    add_title(term, title, out);
    for (unsigned i = 0; i < CLASS_N; i++) {
        uint64_t part = step->stats.peak_by_class[i];
        if (part == 0)
            continue;
        add_row(memory_class_name((enum memory_class)i), text_bytes(part, bytes), out);
        text_add(out, "%7.1f %%", 100 * (double)part / (double)step->stats.peak_allocated);
        term_bar(term, part, step->stats.peak_allocated, BAR_COLUMNS, out);
        text_add(out, "\n");
    }
}

/* Equal tensors are one line. */
static void add_largest(const struct sim_report *report, struct text *out)
{
    for (uint32_t i = 0; i < report->n_largest; i++) {
        const struct alive *alive = &report->largest[i];
        char sum[32], each[32];
        text_add(out, "%s%*s  %5u x %-10s  %s, %s", i == 0 ? "  of that the largest\n" : "",
                 NUMBER_COLUMNS, text_bytes(alive->n * alive->each_bytes, sum), alive->n,
                 text_bytes(alive->each_bytes, each), alive->name,
                 memory_class_name((enum memory_class)alive->memory_class));
        if (alive->n_unit > 1)
            text_add(out, ", %u units", alive->n_unit);
        else if (alive->n_unit == 1)
            text_add(out, ", unit %s", sim_report_unit(report, alive->unit));
        text_add(out, "\n");
    }
}

/* Behind a message that not all ranks share: who does. */
static void add_group(const struct collective_count *collective, uint64_t world, struct text *out)
{
    if (collective->ranks != world)
        text_add(out, "   %s, %llu ranks", comm_name((enum comm)collective->comm),
                 (unsigned long long)collective->ranks);
    text_add(out, "\n");
}

static void add_collectives(const struct sim_report *report, const struct term *term,
                            struct text *out)
{
    if (report->n_collective == 0)
        return;
    add_title(term, "collectives of a step", out);
    text_add(out, "  %-*s%7s%17s  %-6s%14s\n", LABEL_COLUMNS, "", "count", "elements", "dtype",
             "size");
    for (uint32_t i = 0; i < report->n_collective; i++) {
        const struct collective_count *collective = &report->collectives[i];
        char elements[32], bytes[32];
        text_add(out, "  %-*s%7u%17s  %-6s%14s", LABEL_COLUMNS,
                 task_kind_name((enum task_kind)collective->kind), collective->count,
                 text_count(collective->elements, elements),
                 dtype_name((enum dtype)collective->dtype), text_bytes(collective->bytes, bytes));
        add_group(collective, report->prepared->plan.world, out);
    }
}

void sim_report_text(const struct sim_report *report, const struct term *term, struct text *out)
{
    add_head(report, term, out);
    add_time(report, term, out);
    sim_report_what_if_text(report, term, out);
    add_memory(report, term, out);
    add_peak(report, term, out);
    add_largest(report, out);
    add_collectives(report, term, out);
    text_add(out, "\n%sprogram %016llx, verified%s\n", term->quiet,
             (unsigned long long)program_hash(&report->prepared->program), term->plain);
}

void sim_report_warn(const struct sim_report *report, struct text *warnings)
{
    char bytes[32];
    if (!report->fits) {
        text_add(warnings, "does not fit: ");
        sim_report_shortage(report, warnings);
        text_add(warnings, "; with memory enough it would reserve %s\n",
                 text_bytes(report->reserved_bytes, bytes));
    }
    if (report->placement.period == 0 && !report->timed)
        text_add(warnings, "addresses do not repeat within %u steady steps\n",
                 report->placement.n_step - 1);
}
