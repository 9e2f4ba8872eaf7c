/*
 * Collecting what a program asks of a cluster's tables; see cost_range.h.
 *
 * A range belongs to a rate; several rates may share one, which is then told once.
 */
#include "sim/cost_range.h"

#include <inttypes.h>
#include <string.h>

#include "sim/cost_formula.h"
#include "src/text.h"

enum { MAX_OWNERS = 3 }; /* of a range, told by name */

static void see(struct cost_extent *extent, enum quantity quantity, uint64_t value)
{
    if (value < extent->min[quantity])
        extent->min[quantity] = value;
    if (value > extent->max[quantity])
        extent->max[quantity] = value;
}

void cost_extent_init(struct cost_extent *extent, const struct plan *plan)
{
    *extent = (struct cost_extent){0};
    for (int q = 0; q < QUANTITY_N; q++)
        extent->min[q] = UINT64_MAX;
    see(extent, QUANTITY_HIDDEN, plan->model->dims.hidden);
    see(extent, QUANTITY_TOKENS, plan->options.batch * plan->options.seq);
    see(extent, QUANTITY_SEQ, plan->options.seq);
    see(extent, QUANTITY_GPUS, plan->world);
}

void cost_extent_op(struct cost_extent *extent, const struct op *op)
{
    switch (op_kind_cost(op->kind)) {
    case COST_GEMM:
        see(extent, QUANTITY_GEMM_DIM, op->m);
        see(extent, QUANTITY_GEMM_DIM, op->n);
        see(extent, QUANTITY_GEMM_DIM, op->k);
        break;
    case COST_ATTENTION:
        see(extent, QUANTITY_ATTENTION_ROWS, op->m);
        see(extent, QUANTITY_HEAD_DIM, op->k);
        break;
    case COST_DELTA_RULE:
    case COST_MEMORY:
        break;
    }
}

void cost_extent_collective(struct cost_extent *extent, enum task_kind kind, enum comm comm,
                            struct comm_ranks ranks)
{
    see(extent, QUANTITY_RANKS, ranks.ranks);
    extent->row_readers[kind] |= (uint8_t)(1u << comm);
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
static void tell_owners(const struct cluster *cluster, uint32_t first,
                        const struct valid_range *range, struct text *text)
{
    uint32_t n = 0;
    bool collectives = false;

    for (uint32_t f = first; f < n_cluster_rate_fields; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const bool of_network = !strcmp(field->section, "network");
        if (!has_range(cluster_rate(cluster, field), range) || (of_network && collectives))
            continue;
        collectives |= of_network;
        if (++n > MAX_OWNERS)
            continue;
        text_add(text, "%s", n > 1 ? ", " : "");
        if (of_network)
            text_add(text, "collectives");
        else
            text_add(text, "%s.%s", field->section, field->key);
    }
    if (n > MAX_OWNERS)
        text_add(text, " and %" PRIu32 " more", n - MAX_OWNERS);
}

static void tell(const struct cluster *cluster, uint32_t field, const struct valid_range *range,
                 uint64_t seen, struct text *text)
{
    text_add(text, "%s%s %" PRIu64 " (", text->length ? "; " : "", quantity_name(range->quantity),
             seen);
    tell_owners(cluster, field, range, text);
    if (range->max == UINT64_MAX)
        text_add(text, ": known for %" PRIu64 " and more)", range->min);
    else
        text_add(text, ": known for %" PRIu64 " to %" PRIu64 ")", range->min, range->max);
}

static void tell_rates(const struct cluster *cluster, const struct cost_extent *extent,
                       struct text *text)
{
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate *rate = cluster_rate(cluster, &cluster_rate_fields[f]);
        for (uint32_t i = 0; i < rate->n_valid; i++) {
            const struct valid_range *range = &rate->valid[i];
            const uint64_t min = extent->min[range->quantity], max = extent->max[range->quantity];
            if (min > max || (min >= range->min && max <= range->max) ||
                told_before(cluster, f, range))
                continue;
            tell(cluster, f, range, min < range->min ? min : max, text);
        }
    }
}

/*
 * Of the communicators that read rows of a kind: how many ranks one has in a node, each once. One of
 * a single rank in each node has its adapters alone, and of a row next to nothing.
 */
static void tell_row(const struct cluster *cluster, const struct plan *plan, enum task_kind kind,
                     uint32_t readers, struct text *text)
{
    uint64_t told[COMM_N];
    uint32_t n = 0;

    for (; readers != 0; readers &= readers - 1) {
        const enum comm comm = (enum comm)__builtin_ctz(readers);
        const struct comm_ranks of = comm_ranks_of(plan, comm);
        const uint64_t ranks = of.per_node;
        const struct collective_row *row =
            cost_collective_row(cluster, kind, ranks, of.ranks / ranks);
        bool known = collective_row_nodes(row) > 1 || row->ranks == ranks || ranks == 1;
        for (uint32_t i = 0; i < n; i++)
            known |= told[i] == ranks;
        if (known)
            continue;
        told[n++] = ranks;
        text_add(text, "%s%s of %" PRIu64 " ranks in a node (that of %u is taken)",
                 text->length ? "; " : "", task_kind_name(kind), ranks, row->ranks);
    }
}

const char *cost_leaves_table(const struct cluster *cluster, const struct program *program,
                              const struct cost_extent *extent, struct arena *arena)
{
    const char *told = NULL;
    struct text text;

    text_init(&text);
    tell_rates(cluster, extent, &text);
    for (int kind = 0; kind < TASK_KIND_N; kind++)
        tell_row(cluster, program->plan, (enum task_kind)kind, extent->row_readers[kind], &text);
    if (text.length)
        told = arena_strdup(arena, text.at);
    text_release(&text);
    return told;
}
