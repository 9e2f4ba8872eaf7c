/*
 * Where each parameter's bytes lie: its shard, and its place in the communication buffers.
 *
 * Cut as torch.chunk does and padded: of d indices along the sharded dimension over W ranks each
 * rank stores c = ceil(d / W), the last ranks short or empty. A unit has one all-gather buffer, in
 * bytes, and a reduce-scatter buffer for each reduce dtype among its gradients, in elements. Both
 * are [rank][parameter]. Packing "torch" has no alignment between parameters; packing "aligned",
 * that of behavior unshard, begins each on 16 bytes. Source: spec FSDP2 section 2.
 *
 * FSDP1 lays a unit's parameters one after the other into one flat parameter, each on 16 bytes with
 * use_orig_params, pads it to W and cuts that. Then offsets are those in the flat parameter, no
 * parameter has a shard of its own, and gathered, full and reduced are of one size. What the optimizer
 * sees is the flat parameter, or with use_orig_params what a shard has of each. Source: spec FSDP2 7.4;
 * FlatParamHandle in PyTorch's _flat_param.py.
 *
 * Invariants: places grow in the order of parameters and do not overlap; a unit's slice ends with
 * its last parameter's place, rounded up as the packing says.
 */
#ifndef SRC_LAYOUT_H
#define SRC_LAYOUT_H

#include "src/plan.h"

#define NO_BUCKET UINT8_MAX

struct param_layout {
    uint64_t numel;               /* of the whole parameter */
    uint64_t rows;                /* indices of the sharded dimension */
    uint64_t row_elements;        /* numel / rows */
    uint64_t chunk_rows;          /* c, with padding */
    uint64_t shard_elements;      /* P = c * row_elements */
    uint64_t gather_offset_bytes; /* of its shard in a rank's slice of the all-gather */
    uint64_t reduce_offset;       /* in elements, in a rank's slice of its bucket */
    uint8_t shard_dim;
    uint8_t bucket; /* NO_BUCKET: nothing of it is reduced */
};

/* One reduce-scatter of a unit: the gradients that are reduced in one dtype. */
struct bucket {
    uint8_t dtype; /* enum dtype */
    uint32_t n_param;
    uint64_t elements;             /* of its gradients, without padding */
    uint64_t shard_elements;       /* a rank's slice */
    uint64_t padded_elements;      /* W * shard_elements: the full message */
    uint64_t grad_bytes;           /* what packing reads: gradients in their own dtypes */
    uint64_t crosswise_grad_bytes; /* of these, gradients cut along another dimension than 0 */
    uint64_t precast_elements;     /* gradients in another dtype than this one */
    uint32_t n_crosswise, n_precast;
    uint8_t storage;     /* dtype of its shards */
    uint8_t grad_dtypes; /* a bit for each dtype among its gradients */
};

/* Parameters of one (storage, compute) pair: one foreach copy stages them all. */
struct cast_group {
    uint8_t storage, compute; /* enum dtype; equal where nothing is cast */
    bool staged; /* cast to, or gathered in, a flat temporary before they go into the slice */
    uint32_t n_param;
    uint64_t shard_elements;
};
enum { MAX_CAST_GROUPS = DTYPE_N, MAX_BUCKETS = DTYPE_N };

struct unit_layout {
    uint32_t param, n_param;  /* in layout.params, the unit's order */
    uint32_t shape;           /* units with equal parameters, in order, share this number */
    uint64_t elements;        /* of all parameters, without padding */
    uint64_t shard_elements;  /* sum of P */
    uint64_t padded_elements; /* W times that */
    uint64_t shard_bytes;     /* a rank's shards in the dtypes of storage */
    uint64_t slice_bytes;     /* a rank's slice of the all-gather */
    uint64_t full_bytes;      /* the unsharded parameters, with the padding of shards */
    uint64_t staged_bytes; /* of a rank's shards that copy-in first casts or stages, as computed */
    uint8_t wire;          /* dtype of the all-gather: U8 where parameters differ in compute */
    uint8_t n_cast, n_bucket;
    struct cast_group casts[MAX_CAST_GROUPS];
    struct bucket buckets[MAX_BUCKETS];
    uint32_t n_crosswise;     /* parameters cut along another dimension than 0 */
    uint64_t crosswise_bytes; /* of these, unsharded, in the dtypes of compute */
    uint32_t n_trained;       /* parameters that have a gradient */
    uint32_t n_updated; /* these, and what is reduced as zeros; FSDP1: tensors of the flat one */
    uint64_t updated_elements; /* of a rank's shards of all that */
    uint64_t grad_bytes;       /* their unsharded gradients, as autograd yields them */
};

struct layout {
    struct param_layout *params;
    const struct unit_layout **units; /* by unit; units of one shape share one */
    uint32_t n_shape;
};

/* STATUS_INPUT where a message passes 2^62 bytes. */
enum status layout_build(const struct plan *plan, struct arena *arena, struct layout *out,
                         struct err *err);

/* One parameter, cut along dim over world ranks; its offsets are 0. */
struct param_layout param_layout_of(const struct param *param, uint8_t dim, uint64_t world);

/* Indices of the sharded dimension that rank holds, without padding; 0 for an empty shard. */
uint64_t param_layout_rows(const struct param_layout *param, uint64_t rank);

/* Elements of a parameter in a rank's shard of the flat one that it lies in; FSDP1 alone has these. */
uint64_t param_layout_piece(const struct param_layout *param, const struct unit_layout *unit,
                            uint64_t rank);

/* The message of an all-gather, in elements of its wire dtype. */
static inline uint64_t unit_gather_elements(const struct plan *plan, const struct unit_layout *unit)
{
    return plan->shard_ranks * unit->slice_bytes / dtype_bytes((enum dtype)unit->wire);
}

#endif
