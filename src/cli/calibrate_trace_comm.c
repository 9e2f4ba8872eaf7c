/*
 * Rows of collectives from profiles; see calibrate_trace.h.
 *
 * A rank's kernel lasts from its own arrival to the end, so that it also waits for the others. Where
 * the traces of several ranks have a group's collectives in equal number, the least time of the ranks
 * is taken of each, and the median of these; else the least tenth of all, an upper bound.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cost_formula.h"
#include "src/cli/calibrate_trace.h"

/* With sizes so far apart the start can be told from the rate. */
static const double APART = 16;
static const double MB = 1e6;

/* Collectives of one size in one group, and what one takes. */
struct point {
    const struct kineto_collective *of;
    uint64_t n;
    uint64_t ranks_seen; /* 1: cannot be matched */
    double sent_bytes, seconds;
    double fast_s, slow_s; /* at 10 and 90 %, where ranks are matched; else the same */
};

struct points {
    struct point *at;
    uint32_t n;
};

/* Kinds that a cluster has rows of. */
static const uint8_t kinds[] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
enum { KIND_N = sizeof kinds / sizeof *kinds };

static bool is_same(const struct kineto_collective *a, const struct kineto_collective *b)
{
    return a->ranks == b->ranks && a->elements == b->elements && !strcmp(a->kind, b->kind) &&
           !strcmp(a->group, b->group) && !strcmp(a->list, b->list) && !strcmp(a->dtype, b->dtype);
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static const struct kineto_collective *find(const struct kineto *trace,
                                            const struct kineto_collective *of)
{
    for (uint32_t i = 0; i < trace->n_collective; i++) {
        if (is_same(&trace->collectives[i], of))
            return &trace->collectives[i];
    }
    return NULL;
}

/* The times of these collectives in their trace, in order. */
static uint64_t collect(const struct kineto *trace, const struct kineto_collective *of, int64_t *to)
{
    const uint32_t number = (uint32_t)(of - trace->collectives);
    uint64_t n = 0;

    for (uint64_t i = 0; i < trace->n_call; i++) {
        if (trace->calls[i].collective == number)
            to[n++] = trace->calls[i].dur_ns;
    }
    return n;
}

/* Of each of n collectives the least of so many ranks, whose times stand one after the other. */
static void take_least(int64_t *times_ns, uint64_t n, uint64_t ranks)
{
    for (uint64_t rank = 1; rank < ranks; rank++) {
        for (uint64_t i = 0; i < n; i++) {
            if (times_ns[rank * n + i] < times_ns[i])
                times_ns[i] = times_ns[rank * n + i];
        }
    }
}

static uint64_t count_calls(const struct calibrate_traces *traces,
                            const struct kineto_collective *of)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < traces->n; i++) {
        const struct kineto_collective *there = find(&traces->traces[i], of);
        n += there ? there->spread.n : 0;
    }
    return n;
}

static struct point point_of(const struct calibrate_traces *traces,
                             const struct kineto_collective *of)
{
    int64_t *times_ns = arena_array(traces->arena, int64_t, count_calls(traces, of));
    uint64_t n = 0, n_rank = 0;
    bool equal = true;

    for (uint32_t i = 0; i < traces->n; i++) {
        const struct kineto_collective *there = find(&traces->traces[i], of);
        if (!there || there->spread.n == 0)
            continue;
        equal = equal && there->spread.n == of->spread.n;
        n += collect(&traces->traces[i], there, times_ns + n);
        n_rank++;
    }
    const bool matched = equal && n_rank > 1;
    if (matched)
        take_least(times_ns, n = of->spread.n, n_rank);
    qsort(times_ns, n, sizeof *times_ns, compare_ns);
    const uint64_t tenth = (n - 1) / 10;
    const uint64_t mid = matched ? (n - 1) / 2 : tenth, last = matched ? n - 1 - tenth : tenth;
    return (struct point){.of = of,
                          .n = n,
                          .ranks_seen = matched ? n_rank : 1,
                          .sent_bytes = (double)of->bytes * (of->ranks - 1.0) / of->ranks,
                          .seconds = (double)times_ns[mid] * 1e-9,
                          .fast_s = (double)times_ns[tenth] * 1e-9,
                          .slow_s = (double)times_ns[last] * 1e-9};
}

/* All ranks of a group that are listed, as in "[0, 1]", are in one node; one without a list is small. */
static bool in_node(const struct kineto_collective *of, uint64_t per_node)
{
    uint64_t node = 0;
    bool first = true;

    for (const char *at = of->list; *at;) {
        char *end;
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        const uint64_t of_rank = strtoull(at, &end, 10) / per_node;
        if (!first && of_rank != node)
            return false;
        node = of_rank;
        first = false;
        at = end;
    }
    return of->ranks <= per_node;
}

static bool is_sized(const struct kineto_collective *of, const char *kind)
{
    return !strcmp(of->kind, kind) && of->bytes > 0 && of->ranks > 1 && of->spread.n > 0 &&
           of->spread.least_ns > 0;
}

/* In an earlier trace, or earlier in this one. */
static bool is_known(const struct points *points, const struct kineto_collective *of)
{
    for (uint32_t i = 0; i < points->n; i++) {
        if (is_same(points->at[i].of, of))
            return true;
    }
    return false;
}

static struct points points_of(struct calibrate_traces *traces, const char *kind, uint64_t per_node)
{
    struct points points = {0};
    uint32_t most = 0;

    for (uint32_t i = 0; i < traces->n; i++)
        most += traces->traces[i].n_collective;
    points.at = arena_array(traces->arena, struct point, most);
    for (uint32_t i = 0; i < traces->n; i++) {
        for (uint32_t j = 0; j < traces->traces[i].n_collective; j++) {
            const struct kineto_collective *of = &traces->traces[i].collectives[j];
            if (!is_sized(of, kind) || is_known(&points, of))
                continue;
            if (in_node(of, per_node))
                points.at[points.n++] = point_of(traces, of);
            else
                traces->n_between += of->spread.n;
        }
    }
    return points;
}

/* ---- a row from points ------------------------------------------------------------------------------ */

/* Sums over the points of one number of ranks, each by the square of its time: errors in percent. */
struct fit {
    double w, ws, wss, wt, wst;
    double least_bytes, most_bytes;
    double faster, slower; /* the largest shares */
    uint64_t n_call, n_size;
    uint64_t least_seen; /* ranks */
};

static void add_point(struct fit *fit, const struct point *point, double known_s)
{
    const double w = 1 / (point->seconds * point->seconds), s = point->sent_bytes;
    const double t = point->seconds - known_s;

    fit->w += w;
    fit->ws += w * s;
    fit->wss += w * s * s;
    fit->wt += w * t;
    fit->wst += w * s * t;
    fit->least_bytes = fit->n_size == 0 ? s : fmin(fit->least_bytes, s);
    fit->most_bytes = fmax(fit->most_bytes, s);
    fit->least_seen = fit->n_size == 0 || point->ranks_seen < fit->least_seen ? point->ranks_seen
                                                                              : fit->least_seen;
    fit->faster = fmax(fit->faster, 1 - point->fast_s / point->seconds);
    fit->slower = fmax(fit->slower, point->slow_s / point->seconds - 1);
    fit->n_call += point->n;
    fit->n_size++;
}

/* Start and rate by least squares, where the sizes tell both; no start is priced below the floor. */
static bool fit_line(const struct fit *fit, double floor_s, struct collective_row *row)
{
    const double det = fit->w * fit->wss - fit->ws * fit->ws;
    const double per_byte = (fit->w * fit->wst - fit->ws * fit->wt) / det;
    const double start_s = (fit->wss * fit->wt - fit->ws * fit->wst) / det;

    if (fit->most_bytes < APART * fit->least_bytes || !(per_byte > 0) || !(start_s >= floor_s))
        return false;
    row->a_s = start_s;
    row->b_s_per_sqrt_mb = 0;
    row->bytes_per_s = 1 / per_byte;
    return true;
}

/* The rate alone, after the start that the row has. */
static bool fit_rate(const struct fit *fit, struct collective_row *row)
{
    if (!(fit->wst > 0))
        return false;
    row->bytes_per_s = fit->wss / fit->wst;
    return true;
}

static const char *row_source(const struct calibrate_traces *of, const struct fit *fit, bool line,
                              const char *preset)
{
    const char *how =
        fit->least_seen > 1
            ? arena_printf(of->arena, "10, 50 and 90 %% of the least times of %" PRIu64 " ranks",
                           fit->least_seen)
            : "the least tenth, in which a rank still may wait for others";
    const char *rest =
        line ? "start and rate fitted" : arena_printf(of->arena, "the start is that of %s", preset);

    return arena_printf(of->arena, "%s: %s, %" PRIu64 " calls of %" PRIu64 " size%s; %s",
                        of->origin, how, fit->n_call, fit->n_size, fit->n_size == 1 ? "" : "s",
                        rest);
}

/* The row for this number of ranks, as far as its points tell it. */
static bool make_row(const struct calibrate_traces *of, const struct cluster *preset,
                     const struct points *points, struct collective_row *row)
{
    const struct collective_row *nearest =
        cost_collective_row(preset, (enum task_kind)row->kind, row->ranks, 1);
    const double floor_s = preset->collective_floor_s.at[SPREAD_MID];
    struct fit both = {0}, rate = {0};

    row->a_s = nearest ? nearest->a_s : 0;
    row->b_s_per_sqrt_mb = nearest ? nearest->b_s_per_sqrt_mb : 0;
    for (uint32_t i = 0; i < points->n; i++) {
        const struct point *point = &points->at[i];
        const double start_s =
            fmax(row->a_s, floor_s) + row->b_s_per_sqrt_mb * sqrt(point->sent_bytes / MB);
        if (point->of->ranks != row->ranks)
            continue;
        add_point(&both, point, 0);
        add_point(&rate, point, start_s);
    }
    const bool line = fit_line(&both, floor_s, row);
    if (!line && !fit_rate(&rate, row))
        return false;
    row->faster = both.faster;
    row->slower = both.slower;
    row->source = row_source(of, &both, line, preset->name);
    return true;
}

static void put_row(struct cluster *out, struct collective_row *rows,
                    const struct collective_row *row)
{
    uint32_t i = 0;

    while (i < out->n_collective && (rows[i].kind != row->kind || rows[i].ranks != row->ranks ||
                                     collective_row_nodes(&rows[i]) > 1))
        i++;
    rows[i] = *row;
    out->n_collective += i == out->n_collective;
}

static bool is_first_of_ranks(const struct points *points, uint32_t i)
{
    uint32_t first = 0;

    while (points->at[first].of->ranks != points->at[i].of->ranks)
        first++;
    return first == i;
}

static void put_kind(struct calibrate_traces *of, const struct cluster *preset, uint8_t kind,
                     struct cluster *out, struct collective_row *rows)
{
    const char *name = task_kind_name((enum task_kind)kind);
    const struct points points = points_of(of, name, preset->max_gpus_per_node);

    for (uint32_t i = 0; i < points.n; i++) {
        struct collective_row row = {.kind = kind, .ranks = points.at[i].of->ranks};
        if (!is_first_of_ranks(&points, i) || !make_row(of, preset, &points, &row))
            continue;
        put_row(out, rows, &row);
        text_add(&of->set, "%s%s over %" PRIu32 " ranks", of->set.length > 0 ? ", " : "", name,
                 row.ranks);
    }
}

void calibrate_trace_comm(struct calibrate_traces *of, struct cluster *out)
{
    const struct cluster preset = *out;
    uint64_t most = preset.n_collective;

    for (uint32_t i = 0; i < of->n; i++)
        most += of->traces[i].n_collective;
    struct collective_row *rows = arena_array(of->arena, struct collective_row, most);
    if (preset.n_collective > 0)
        memcpy(rows, preset.collectives, preset.n_collective * sizeof *rows);
    out->collectives = rows;
    for (int i = 0; i < KIND_N; i++)
        put_kind(of, &preset, kinds[i], out, rows);
}
