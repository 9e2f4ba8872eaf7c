/*
 * A parameter of a unit and what of it a rank holds.
 *
 * A shard is padded: it lies as [before][chunk_rows][behind], of which the rank's rows are the
 * first of each chunk. Offsets in communication buffers are the layout's. FSDP1 has no members but
 * the flat parameter: not for it.
 */
#ifndef GPU_MEMBER_H
#define GPU_MEMBER_H

#include "src/layout.h"

struct member {
    uint32_t param; /* of the model */
    const struct param_layout *place;
    const struct param_policy *policy;
    /* Sizes of the dimensions before and behind the sharded one, multiplied. */
    uint64_t before, behind;
};
/* The i-th of the unit. */
struct member unit_member(const struct plan *plan, const struct layout *layout, uint32_t unit,
                          uint32_t i);

/* Rows of the sharded dimension that a rank of the shard group holds: from first on. */
struct rows {
    uint64_t first, n;
};
struct rows member_rows(const struct member *member, uint64_t rank);

#endif
