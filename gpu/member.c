/*
 * Members of units; see member.h. Places come from the layout, nothing is computed twice.
 */
#include "gpu/member.h"

struct member unit_member(const struct plan *plan, const struct layout *layout, uint32_t unit,
                          uint32_t i)
{
    const uint32_t id = plan->unit_params[plan->units[unit].param + i];
    const struct param *param = &plan->model->params[id];
    struct member out = {.param = id,
                         .place = &layout->params[layout->units[unit]->param + i],
                         .policy = &plan->policy[id],
                         .before = 1,
                         .behind = 1};

    for (uint32_t d = 0; d < out.policy->shard_dim; d++)
        out.before *= param->shape[d];
    for (uint32_t d = out.policy->shard_dim + 1u; d < param->n_dim; d++)
        out.behind *= param->shape[d];
    return out;
}

struct rows member_rows(const struct member *member, uint64_t rank)
{
    const uint64_t first = rank * member->place->chunk_rows;
    const uint64_t n = param_layout_rows(member->place, rank);
    return (struct rows){.first = n ? first : 0, .n = n};
}
