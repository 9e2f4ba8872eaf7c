/*
 * Collecting what a program asks of a cluster's tables; see cost_range.h.
 *
 * A range belongs to a rate; several rates may share one, which is then told once.
 */
#include "sim/cost_range.h"

#include <inttypes.h>

#include "sim/cost_formula.h"
#include "src/text.h"

static void see(struct cost_extent *extent, enum quantity quantity, uint64_t value)
{
    if (value < extent->min[quantity])
        extent->min[quantity] = value;
    if (value > extent->max[quantity])
        extent->max[quantity] = value;
}

void cost_extent_init(struct cost_extent *extent, const struct plan *plan)
{
    for (int q = 0; q < QUANTITY_N; q++) {
        extent->min[q] = UINT64_MAX;
        extent->max[q] = 0;
    }
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
    case COST_MEMORY:
        break;
    }
}

/* Is a range of an earlier rate the same? */
static bool told_before(const struct cluster *cluster, uint32_t field,
                        const struct valid_range *range)
{
    for (uint32_t f = 0; f < field; f++) {
        const struct rate *rate = cluster_rate(cluster, &cluster_rate_fields[f]);
        for (uint32_t i = 0; i < rate->n_valid; i++)
            if (rate->valid[i].quantity == range->quantity && rate->valid[i].min == range->min &&
                rate->valid[i].max == range->max)
                return true;
    }
    return false;
}

static void tell(struct text *text, const char *section, const char *key,
                 const struct valid_range *range, uint64_t seen)
{
    text_add(text, "%s%s %" PRIu64 " (%s.%s is known for ", text->length ? "; " : "",
             quantity_name(range->quantity), seen, section, key);
    if (range->max == UINT64_MAX)
        text_add(text, "%" PRIu64 " and more)", range->min);
    else
        text_add(text, "%" PRIu64 " to %" PRIu64 ")", range->min, range->max);
}

static void tell_rates(const struct cluster *cluster, const struct cost_extent *extent,
                       struct text *text)
{
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const struct rate *rate = cluster_rate(cluster, field);
        for (uint32_t i = 0; i < rate->n_valid; i++) {
            const struct valid_range *range = &rate->valid[i];
            const uint64_t min = extent->min[range->quantity], max = extent->max[range->quantity];
            if (min > max || (min >= range->min && max <= range->max) ||
                told_before(cluster, f, range))
                continue;
            tell(text, field->section, field->key, range, min < range->min ? min : max);
        }
    }
}

static void tell_rows(const struct cluster *cluster, const struct plan *plan, struct text *text)
{
    if (plan->world == 1)
        return;
    for (int kind = 0; kind < TASK_KIND_N; kind++) {
        const struct collective_row *row =
            task_kind_is_collective(kind) ? cost_collective_row(cluster, kind, plan->gpus_per_node)
                                          : NULL;
        if (row && row->ranks != plan->gpus_per_node)
            text_add(text, "%s%s of %" PRIu64 " ranks in a node (that of %u is taken)",
                     text->length ? "; " : "", task_kind_name(kind), plan->gpus_per_node,
                     row->ranks);
    }
}

const char *cost_leaves_table(const struct cluster *cluster, const struct program *program,
                              const struct cost_extent *extent, struct arena *arena)
{
    const char *told = NULL;
    struct text text;

    text_init(&text);
    tell_rates(cluster, extent, &text);
    tell_rows(cluster, program->plan, &text);
    if (text.length)
        told = arena_strdup(arena, text.at);
    text_release(&text);
    return told;
}
