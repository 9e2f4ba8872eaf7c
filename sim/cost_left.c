/*
 * The list of left tables; see cost_left.h.
 *
 * A range belongs to a rate; several rates may share one, which is then told once.
 */
#include "sim/cost_left.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cost_formula.h"

enum { MAX_OWNERS = 3 }; /* of a range, told by name */

struct telling {
    const struct cluster *cluster;
    struct arena *arena;
    struct table_left *at;
    uint32_t n, cap;
};

static void add(struct telling *t, struct table_left left)
{
    t->at = arena_grow(t->arena, t->at, &t->cap, t->n + 1, sizeof *t->at);
    t->at[t->n++] = left;
}

static void add_range(struct telling *t, struct table_left left, const char *words)
{
    left.has_range = true;
    left.text = arena_printf(t->arena, "%s, wider by %.0f %%)", words, 100 * (left.widening - 1));
    add(t, left);
}

static bool has_range(const struct rate *rate, const struct valid_range *range)
{
    for (uint32_t i = 0; i < rate->n_valid; i++)
        if (rate->valid[i].quantity == range->quantity && rate->valid[i].min == range->min &&
            rate->valid[i].max == range->max)
            return true;
    return false;
}

static bool told_before(const struct cluster *cluster, uint32_t field,
                        const struct valid_range *range)
{
    for (uint32_t f = 0; f < field; f++)
        if (has_range(cluster_rate(cluster, &cluster_rate_fields[f]), range))
            return true;
    return false;
}

/*
 * Whose range it is: the rates from this one on that share it, the first few by name. Those of the
 * network price collectives and nothing else, and are named by that.
 */
static const char *owners(const struct telling *t, uint32_t first, const struct valid_range *range)
{
    const char *out = "";
    uint32_t n = 0;
    bool collectives = false;

    for (uint32_t f = first; f < n_cluster_rate_fields; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const bool of_network = !strcmp(field->section, "network");
        if (!has_range(cluster_rate(t->cluster, field), range) || (of_network && collectives))
            continue;
        collectives |= of_network;
        if (++n > MAX_OWNERS)
            continue;
        const char *separator = n > 1 ? ", " : "";
        out = of_network
                  ? arena_printf(t->arena, "%s%scollectives", out, separator)
                  : arena_printf(t->arena, "%s%s%s.%s", out, separator, field->section, field->key);
    }
    return n > MAX_OWNERS ? arena_printf(t->arena, "%s and %" PRIu32 " more", out, n - MAX_OWNERS)
                          : out;
}

/* The end of what was seen that lies farther outside. */
static void tell_range(struct telling *t, uint32_t field, const struct valid_range *range,
                       uint64_t seen_min, uint64_t seen_max)
{
    const double below = cost_range_factor(seen_min, range->min, range->max);
    const double above = cost_range_factor(seen_max, range->min, range->max);
    const uint64_t seen = below > above ? seen_min : seen_max;
    const struct table_left left = {
        .quantity = quantity_name((enum quantity)range->quantity),
        .tables = owners(t, field, range),
        .seen = seen,
        .min = range->min,
        .max = range->max,
        .widening = fmax(below, above),
    };
    const char *ends =
        range->max == UINT64_MAX
            ? arena_printf(t->arena, "%" PRIu64 " and more", range->min)
            : arena_printf(t->arena, "%" PRIu64 " to %" PRIu64, range->min, range->max);
    add_range(t, left,
              arena_printf(t->arena, "%s %" PRIu64 " (%s: known for %s", left.quantity, seen,
                           left.tables, ends));
}

static void tell_rates(struct telling *t, const struct cost_extent *extent)
{
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate *rate = cluster_rate(t->cluster, &cluster_rate_fields[f]);
        for (uint32_t i = 0; i < rate->n_valid; i++) {
            const struct valid_range *range = &rate->valid[i];
            const uint64_t min = extent->min[range->quantity], max = extent->max[range->quantity];
            if (min > max || (min >= range->min && max <= range->max) ||
                told_before(t->cluster, f, range))
                continue;
            tell_range(t, f, range, min, max);
        }
    }
}

static void tell_row(struct telling *t, const struct collective_row *row, enum task_kind kind,
                     uint64_t ranks)
{
    const struct table_left left = {
        .quantity = "ranks in a node",
        .tables = task_kind_name(kind),
        .seen = ranks,
        .min = row->ranks,
        .max = row->ranks,
        .widening = cost_range_factor(ranks, row->ranks, row->ranks),
    };
    add_range(t, left,
              arena_printf(t->arena, "%s of %" PRIu64 " ranks in a node (that of %u is taken",
                           left.tables, ranks, row->ranks));
}

/*
 * Of the communicators that read rows of a kind: how many ranks one has in a node, each once. One of
 * a single rank in each node has its adapters alone, and of a row next to nothing.
 */
static void tell_rows(struct telling *t, const struct plan *plan, enum task_kind kind,
                      uint32_t readers)
{
    uint64_t told[COMM_N];
    uint32_t n = 0;

    for (; readers != 0; readers &= readers - 1) {
        const enum comm comm = (enum comm)__builtin_ctz(readers);
        const struct comm_ranks of = comm_ranks_of(plan, comm);
        const uint64_t ranks = of.per_node;
        const struct collective_row *row =
            cost_collective_row(t->cluster, kind, ranks, of.ranks / ranks);
        bool known = collective_row_nodes(row) > 1 || row->ranks == ranks || ranks == 1;
        for (uint32_t i = 0; i < n; i++)
            known |= told[i] == ranks;
        if (known)
            continue;
        told[n++] = ranks;
        tell_row(t, row, kind, ranks);
    }
}

/* What products in FP32 reach is no measurement, whatever their sizes. */
static void tell_fp32(struct telling *t, const struct plan_options *options)
{
    const struct rate *rate = options->tf32 ? &t->cluster->tf32_flops : &t->cluster->fp32_flops;
    const char *tables = options->tf32 ? "gemm.tf32_tflops" : "gemm.fp32_tflops";

    if (options->policy.param != DTYPE_FP32)
        return;
    add(t, (struct table_left){
               .quantity = "products in fp32",
               .tables = tables,
               .widening = 1,
               .text = arena_printf(t->arena, "products in fp32 (%s: %s)", tables, rate->source)});
}

struct tables_left cost_tables_left(const struct cluster *cluster, const struct program *program,
                                    const struct cost_extent *extent,
                                    const uint8_t row_readers[TASK_KIND_N], struct arena *arena)
{
    struct telling t = {.cluster = cluster, .arena = arena};

    tell_fp32(&t, &program->plan->options);
    tell_rates(&t, extent);
    for (int kind = 0; kind < TASK_KIND_N; kind++)
        tell_rows(&t, program->plan, (enum task_kind)kind, row_readers[kind]);
    return (struct tables_left){.at = t.at, .n = t.n};
}

void tables_left_text(const struct tables_left *left, struct text *out)
{
    for (uint32_t i = 0; i < left->n; i++)
        text_add(out, "%s%s", i ? "; " : "", left->at[i].text);
}

static bool has_text(const struct tables_left *list, const char *text)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (!strcmp(list->at[i].text, text))
            return true;
    return false;
}

void tables_left_add(struct tables_left *list, const struct tables_left *more, struct arena *arena)
{
    struct table_left *at = arena_array(arena, struct table_left, list->n + more->n);

    for (uint32_t i = 0; i < list->n; i++)
        at[i] = list->at[i];
    list->at = at;
    for (uint32_t i = 0; i < more->n; i++) {
        if (has_text(list, more->at[i].text))
            continue;
        at[list->n] = more->at[i];
        at[list->n].tables = arena_strdup(arena, more->at[i].tables);
        at[list->n].text = arena_strdup(arena, more->at[i].text);
        list->n++;
    }
}
