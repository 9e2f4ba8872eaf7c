/*
 * A profile as a page; see trace_show.h. Long lists are cut, JSON has them whole.
 */
#include "src/cli/trace_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/page.h"

enum { ROWS_MAX = 12, RANGES_MAX = 40, UNITS_MAX = 100, UNIT_COLUMNS = 34 };

static void add_title(const char *title, const struct term *term, struct text *out)
{
    text_add(out, "\n%s%s%s\n", term->strong, title, term->plain);
}

/* Behind a list that was cut. */
static void add_more(uint32_t n, uint32_t shown, struct text *out)
{
    if (n > shown)
        text_add(out, "  and %" PRIu32 " more, which --json has\n", n - shown);
}

static void add_time(int64_t ns, struct text *out)
{
    char time[32];
    text_add(out, "  %10s", text_ns(ns, time));
}

/* Count, sum and what one takes. */
static void add_spread(const struct kineto_spread *spread, struct text *out)
{
    char count[32];
    text_add(out, " %9s", text_count(spread->n, count));
    add_time(spread->sum_ns, out);
    add_time(spread->low_ns, out);
    add_time(spread->mid_ns, out);
    add_time(spread->high_ns, out);
}

static void add_head(const struct kineto *trace, const char *path, const struct term *term,
                     struct text *out)
{
    char name[TERM_NAME_BYTES], device[TERM_NAME_BYTES], count[32];
    struct text words = {0};
    text_add(&words, "%s events", text_count(trace->n_event, count));
    text_add(&words, ", %s on GPUs", text_count(trace->n_gpu, count));
    if (trace->has_rank)
        text_add(&words, ", rank %" PRId64, trace->rank);
    if (trace->has_rank && trace->world_size > 0)
        text_add(&words, " of %" PRId64, trace->world_size);
    if (*trace->device_name)
        text_add(&words, ", on %s", term_name(trace->device_name, device));
    if (trace->has_date)
        text_add(&words, ", of %s", trace->date);
    term_name(path, name);
    text_add(out, "%s%s%s: ", term->strong, name, term->plain);
    page_wrap(words.at, term_columns(name) + 2, 2, out);
    text_release(&words);
}

static void add_streams(const struct kineto *trace, const struct term *term, struct text *out)
{
    char kernels[32], copies[32], sets[32];
    if (trace->n_stream == 0)
        return;
    add_title("streams                kernels    copies      sets        busy    of its span", term,
              out);
    for (uint32_t i = 0; i < trace->n_stream; i++) {
        const struct kineto_stream *stream = &trace->streams[i];
        const int64_t span_ns = stream->end_ns - stream->begin_ns;
        text_add(out, "  GPU %-3" PRId64 " stream %-5" PRId64 " %9s %9s %9s", stream->device,
                 stream->stream, text_count(stream->n_kernel, kernels),
                 text_count(stream->n_copy, copies), text_count(stream->n_set, sets));
        add_time(stream->busy_ns, out);
        text_add(out, "       %5.1f %%\n",
                 span_ns > 0 ? 100.0 * (double)stream->busy_ns / (double)span_ns : 0);
    }
}

static void add_works(const struct kineto *trace, const struct term *term, struct text *out)
{
    if (trace->n_gpu == 0)
        return;
    add_title("work on GPUs            count        time  of one: 10 %        50 %        90 %",
              term, out);
    for (int work = 0; work < KINETO_WORK_N; work++) {
        if (trace->works[work].n == 0)
            continue;
        text_add(out, "  %-17s", kineto_work_name((enum kineto_work)work));
        add_spread(&trace->works[work], out);
        text_add(out, "\n");
    }
    add_title("kernels of most time    count        time  of one: 10 %        50 %        90 %",
              term, out);
    for (uint32_t i = 0; i < trace->n_kernel && i < ROWS_MAX; i++) {
        text_add(out, "  %-17s", kineto_work_name(trace->kernels[i].work));
        add_spread(&trace->kernels[i].spread, out);
        text_add(out, "\n    ");
        term_text(trace->kernels[i].name, TERM_PAGE_COLUMNS - 4, out);
        text_add(out, "\n");
    }
    add_more(trace->n_kernel, ROWS_MAX, out);
}

static void add_collectives(const struct kineto *trace, const struct term *term, struct text *out)
{
    char size[32], dtype[TERM_NAME_BYTES];
    uint32_t shown = 0;
    if (trace->n_call == 0)
        return;
    add_title("collectives, whole messages                         count        time  of one: least"
              "        50 %",
              term, out);
    for (uint32_t i = 0; i < trace->n_collective; i++) {
        const struct kineto_collective *of = &trace->collectives[i];
        char count[32];
        if (of->spread.n == 0 || shown++ >= RANGES_MAX)
            continue;
        text_add(out, "  %-14s", of->kind);
        if (of->ranks > 0)
            text_add(out, " %4" PRIu32 " ranks %10s %-10.10s", of->ranks,
                     text_bytes(of->bytes, size), term_name(of->dtype, dtype));
        else
            text_add(out, " %-32s", "of sizes that are not in it");
        text_add(out, " %8s", text_count(of->spread.n, count));
        add_time(of->spread.sum_ns, out);
        text_add(out, "   ");
        add_time(of->spread.least_ns, out);
        add_time(of->spread.mid_ns, out);
        text_add(out, "\n");
    }
    add_more(shown, RANGES_MAX, out);
}

static int by_time(const void *a, const void *b)
{
    const struct kineto_product *x = *(const struct kineto_product *const *)a;
    const struct kineto_product *y = *(const struct kineto_product *const *)b;
    if (x->spread.sum_ns != y->spread.sum_ns)
        return x->spread.sum_ns < y->spread.sum_ns ? 1 : -1;
    return (x > y) - (x < y);
}

static void add_product(const struct kineto_product *of, struct text *out)
{
    struct text shape = {0};
    char dtype[TERM_NAME_BYTES], count[32];
    trace_add_shape(of, &shape);
    text_add(out, "  %-44s %-13.13s %7s", shape.at, term_name(of->dtype, dtype),
             text_count(of->spread.n, count));
    add_time(of->spread.mid_ns, out);
    text_add(out, " %10.1f\n", trace_tflops(of, of->spread.mid_ns));
    text_release(&shape);
}

static void add_products(const struct kineto *trace, const struct term *term, struct text *out)
{
    struct arena arena;
    uint32_t n = 0;
    arena_init(&arena);
    const struct kineto_product **order =
        arena_array(&arena, const struct kineto_product *, trace->n_product);
    for (uint32_t i = 0; i < trace->n_product; i++) {
        if (trace->products[i].spread.n > 0)
            order[n++] = &trace->products[i];
    }
    if (n > 0) {
        qsort(order, n, sizeof(*order), by_time);
        add_title(
            "products and attention by shape, most time first              count        50 %    "
            "TFLOP/s",
            term, out);
    }
    for (uint32_t i = 0; i < n && i < ROWS_MAX; i++)
        add_product(order[i], out);
    add_more(n, ROWS_MAX, out);
    arena_release(&arena);
}

static void add_host(const struct kineto *trace, const struct term *term, struct text *out)
{
    if (trace->launch.n > 0) {
        add_title("launches                count        time  of one: 10 %        50 %        90 %",
                  term, out);
        text_add(out, "  the call         ");
        add_spread(&trace->launch, out);
        text_add(out, "\n  from one to next ");
        add_spread(&trace->interval, out);
        text_add(out, "\n");
    }
    if (trace->n_range == 0)
        return;
    add_title("marked ranges           count   host, 50 %    operations    on GPUs  collectives",
              term, out);
    for (uint32_t i = 0; i < trace->n_range && i < RANGES_MAX; i++) {
        const struct kineto_range *range = &trace->ranges[i];
        char count[32], kernels[32];
        text_add(out, "  ");
        term_text(range->name, TERM_PAGE_COLUMNS - 4, out);
        text_add(out, "\n%28s", text_count(range->host.n, count));
        add_time(range->host.mid_ns, out);
        text_add(out, " %12s", text_count(range->n_kernel, kernels));
        add_time(range->gpu_ns, out);
        add_time(range->collective_ns, out);
        text_add(out, "\n");
    }
    add_more(trace->n_range, RANGES_MAX, out);
}

/* Of each part what one takes. */
static void add_units(const struct kineto *trace, const struct term *term, struct text *out)
{
    const struct trace_unit *units;
    struct arena arena;
    arena_init(&arena);
    const uint32_t n = trace_units(trace, &arena, &units);
    if (n > 0) {
        add_title("units of FSDP, GPUs' time of one", term, out);
        for (int part = 0; part < TRACE_PART_N; part++)
            text_add(out, "  %10s", trace_part_name((enum trace_part)part));
        text_add(out, "\n");
    }
    for (uint32_t i = 0; i < n && i < UNITS_MAX; i++) {
        text_add(out, "  ");
        for (int part = 0; part < TRACE_PART_N; part++) {
            if (units[i].n[part] > 0)
                add_time(units[i].ns[part] / (int64_t)units[i].n[part], out);
            else
                text_add(out, "  %10s", "-");
        }
        text_add(out, "  ");
        term_text(*units[i].name ? units[i].name : "without a name: the root", UNIT_COLUMNS, out);
        text_add(out, "\n");
    }
    add_more(n, UNITS_MAX, out);
    arena_release(&arena);
}

static void add_limits(const struct kineto *trace, const struct term *term, struct text *out)
{
    const char *limits[TRACE_LIMITS_MAX];
    struct arena arena;
    arena_init(&arena);
    const uint32_t n = trace_limits(trace, &arena, limits);
    add_title("what this trace cannot tell", term, out);
    for (uint32_t i = 0; i < n; i++) {
        text_add(out, "  ");
        page_wrap(limits[i], 2, 4, out);
    }
    arena_release(&arena);
}

void trace_show_text(const struct kineto *trace, const char *path, const struct term *term,
                     struct text *out)
{
    add_head(trace, path, term, out);
    add_streams(trace, term, out);
    add_works(trace, term, out);
    add_collectives(trace, term, out);
    add_products(trace, term, out);
    add_units(trace, term, out);
    add_host(trace, term, out);
    add_limits(trace, term, out);
}
