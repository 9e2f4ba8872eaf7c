/*
 * One function a switch; see plan_check.h. Sources: spec FSDP2 tables (b) and (c).
 */
#include "src/plan_check.h"

#include <inttypes.h>
#include <string.h>

#include "src/text.h"

bool plan_unit_begins(const struct plan *plan, uint32_t segment)
{
    return plan->units[plan->segments[segment].unit].first_segment == segment;
}

bool plan_unit_ends(const struct plan *plan, uint32_t segment)
{
    return plan->units[plan->segments[segment].unit].last_segment == segment;
}

/* Shard(k) with k > 0 needs equal parts, as in fully_shard. */
static enum status check_shard_dims(const struct plan *plan, struct err *err)
{
    for (uint32_t i = 0; i < plan->model->n_param; i++) {
        const struct param *param = &plan->model->params[i];
        const uint8_t dim = plan->policy[i].shard_dim;
        if (dim == 0 || param->shape[dim] % plan->shard_ranks == 0)
            continue;
        return err_set(err, STATUS_NO,
                       "'%s' has %" PRIu64 " in dimension %u, which %" PRIu64
                       " ranks cannot share evenly; only dimension 0 is padded",
                       param->name, param->shape[dim], dim, plan->shard_ranks);
    }
    return STATUS_OK;
}

/* A unit that is not there when backward comes to a segment that reads its parameters. */
static const struct unit *missing_unit(const struct plan *plan, const struct segment *segment)
{
    for (uint32_t part = 0; part < 1 + segment->n_inner; part++) {
        const uint16_t u = part == 0 ? segment->unit : plan->inner_units[segment->inner + part - 1];
        if (!plan->units[u].unshard_in_backward && plan->units[u].reshard_after_forward)
            return &plan->units[u];
    }
    return NULL;
}

/* Of all modules the embedding alone does not read its parameters in backward. */
static enum status check_unshard_backward(const struct plan *plan, struct err *err)
{
    for (uint32_t s = 0; s < plan->n_segment; s++) {
        const struct unit *unit = plan->segments[s].kind == BODY_EMBEDDING
                                      ? NULL
                                      : missing_unit(plan, &plan->segments[s]);
        if (unit)
            return err_set(err, STATUS_USAGE,
                           "no-unshard-backward: unit '%s' reads its parameters in backward; only "
                           "an embedding can do without, or a unit that is not resharded",
                           unit->name);
    }
    return STATUS_OK;
}

/* What a unit gives out in another dtype has to be cast again by the unit that takes it. */
static enum status check_casts(const struct plan *plan, struct err *err)
{
    const enum dtype dtype = plan->options.output_dtype;

    if (dtype == DTYPE_N || dtype == plan->param_dtype)
        return STATUS_OK;
    if (!plan->options.cast_inputs)
        return err_set(err, STATUS_USAGE,
                       "output-dtype %s goes into units that compute in %s, and cast-inputs no "
                       "casts nothing",
                       dtype_name(dtype), dtype_name(plan->param_dtype));
    for (uint32_t s = 0; s + 1 < plan->n_segment; s++)
        if (plan_unit_ends(plan, s) && !plan_unit_begins(plan, s + 1))
            return err_set(err, STATUS_USAGE,
                           "output-dtype %s: what unit '%s' gives out goes into the middle of unit "
                           "'%s', where nothing casts it to %s",
                           dtype_name(dtype), plan->units[plan->segments[s].unit].name,
                           plan->units[plan->segments[s + 1].unit].name,
                           dtype_name(plan->param_dtype));
    return STATUS_OK;
}

static bool names_unit(const struct plan *plan, const char *pattern)
{
    for (uint32_t u = 0; u < plan->n_unit; u++)
        if (text_matches(pattern, plan->units[u].name))
            return true;
    return false;
}

/* Patterns of units: one that names none would be a typing error that changes an answer. */
static enum status check_patterns(const struct plan *plan, const char *option, const char *patterns,
                                  struct arena *arena, struct err *err)
{
    char *rest = patterns ? arena_strdup(arena, patterns) : NULL;
    for (char *pattern; (pattern = strsep(&rest, ","));)
        if (*pattern && !names_unit(plan, pattern))
            return err_set(err, STATUS_USAGE,
                           "%s: no unit matches '%s'; units are called like '%s'", option, pattern,
                           plan->units[plan->n_unit - 1].name);
    return STATUS_OK;
}

enum status plan_check_units(const struct plan *plan, struct arena *arena, struct err *err)
{
    enum status status = check_patterns(plan, "host-sync", plan->options.host_sync, arena, err);
    if (!status)
        status = check_patterns(plan, "no-reshard", plan->options.no_reshard, arena, err);
    if (!status)
        status = check_patterns(plan, "no-unshard-backward", plan->options.no_unshard_backward,
                                arena, err);
    if (!status)
        status = check_unshard_backward(plan, err);
    return status ? status : check_casts(plan, err);
}

enum status plan_check(const struct plan *plan, struct arena *arena, struct err *err)
{
    const enum status status = plan_check_units(plan, arena, err);
    return status ? status : check_shard_dims(plan, err);
}
