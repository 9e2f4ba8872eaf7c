/*
 * Where each parameter's bytes lie: its shard, and its place in the two communication buffers.
 *
 * Cut along dim 0 as torch.chunk does and padded: of d rows over W ranks each rank stores
 * c = ceil(d / W) rows, the last ranks short or empty. Both buffers are [rank][parameter], with no
 * alignment between parameters (packing "torch"). All counts are of elements, not bytes. Source:
 * spec FSDP2 section 2. Invariant: offset of parameter i = sum of shard_elements before it.
 */
#ifndef SRC_LAYOUT_H
#define SRC_LAYOUT_H

#include "src/plan.h"

struct param_layout {
    uint64_t numel;          /* of the whole parameter */
    uint64_t rows;           /* dim 0 */
    uint64_t row_elements;   /* numel / rows */
    uint64_t chunk_rows;     /* c, with padding */
    uint64_t shard_elements; /* P = c * row_elements */
    uint64_t offset;         /* of its shard in a rank's slice */
};

struct unit_layout {
    uint32_t param, n_param;  /* in layout.params, the unit's order */
    uint32_t shape;           /* units with equal parameters, in order, share this number */
    uint64_t shard_elements;  /* a rank's slice: sum of P */
    uint64_t padded_elements; /* W * shard_elements: the full message */
    uint64_t elements;        /* without padding */
    enum dtype storage_dtype; /* of all its parameters: behavior torch-2.11 needs one */
};

struct layout {
    struct param_layout *params;
    struct unit_layout *units;
    uint32_t n_shape;
};

/* STATUS_INPUT where a message passes 2^62 bytes. */
enum status layout_build(const struct plan *plan, struct arena *arena, struct layout *out,
                         struct err *err);

/* One parameter over world ranks; its offset is 0. */
struct param_layout param_layout_of(const struct param *param, uint64_t world);

/* Rows of a parameter that rank holds, without padding; 0 for an empty shard. */
uint64_t param_layout_rows(const struct param_layout *param, uint64_t rank);

#endif
