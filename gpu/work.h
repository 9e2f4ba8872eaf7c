/*
 * What a stream of a device is given to do: a task of the program, or one operator of a body, with
 * every address in it.
 *
 * Work is made once for a placed step (gpu/bind.h) and submitted at each launch, so that it is
 * constant from then on. It belongs to whoever bound it and outlives the device's last use. Nothing
 * here decides: order, addresses and factors are the program's and the placement's. Operands and the
 * state are the device's; lists and tables are the host's, and a device that cannot read them makes
 * copies of its own.
 */
#ifndef GPU_WORK_H
#define GPU_WORK_H

#include "gpu/ops.h"
#include "gpu/pack.h"
#include "src/program.h"

enum work_kind {
    WORK_NOTHING, /* a task that has nothing to move on this rank */
    WORK_FILL,    /* bytes of one value */
    WORK_GIVE,    /* from the host: what the caller's callback yields */
    WORK_COPY,    /* bytes of the device, as it copies them itself: what others are measured by */
    WORK_PACK,    /* one table or several */
    WORK_POST,    /* post-reduce, piece by piece */
    WORK_OP,
    WORK_COLLECTIVE,
    WORK_SQUARES, /* sum of squares of a list, or whether all is finite, to a number */
    WORK_SCALE,   /* a list in place, so that a norm is not passed */
    WORK_UPDATE,  /* the optimizer, and the count of gradients that are not finite */
    WORK_LOSS,    /* the step's loss to a number */
    WORK_VERDICT, /* whether the scaler found what is not finite: the step's optimizer stands still */
    WORK_STEP_END /* notes the loss, and makes the state ready for the next step */
};

struct work_fill {
    void *to;
    uint64_t bytes;
    uint8_t value;
};

/* fill writes the bytes of a buffer or member into host memory; called in stream order. */
struct work_give {
    void *to;
    uint64_t bytes;
    enum status (*fill)(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                        struct err *err);
    void *context;
    uint64_t what; /* the callback's */
};

struct work_copy {
    void *to;
    const void *from;
    uint64_t bytes;
};

struct work_pack {
    const struct pack_table *table;
    const void *from;
    void *to;
};

/* all_gather: recv has a slice for each rank, send is the rank's own (in place, where it lies
   there). reduce_scatter: send has a slice for each, recv is one. all_reduce: send and recv the
   whole. elements is a slice's, of an all_reduce the whole. emulated_ranks: rank 0 is alone, and a
   stand-in for a group of so many lasts for emulated_ns (gpu/stand_in.h); 0: it is real. */
struct work_collective {
    uint8_t kind, comm, dtype, reduction; /* enum task_kind, comm, dtype, reduction */
    double divisor;                       /* of REDUCE_PREMUL */
    uint64_t elements;
    const void *send;
    void *recv;
    uint32_t emulated_ranks;
    int64_t emulated_ns;
};

struct device_tensor {
    void *at;
    uint64_t n;
    uint8_t dtype;
};

/* With finite, in place of the sum: 1 where an element is not finite, else 0; and each is multiplied
   by 1 / the state's loss scale, as a scaler does. The sum itself is made in FP64 and rounded once. */
struct work_squares {
    const struct device_tensor *list;
    uint32_t n_list;
    bool finite;
    float *to;
};

/* squares, of all gradients: the factor is min(1, max_norm / (sqrt + 1e-6)). */
struct work_scale {
    const struct device_tensor *list;
    uint32_t n_list;
    const float *squares;
    float max_norm;
};

/* One parameter's shard. SGD has no moments and no step. All FP32 arithmetic, scalars FP64; left
   out where state->inf_found is not 0. Formulas: tests/oracle/README.md, "Optimizers". */
struct update {
    struct device_tensor param, grad, moment, variance;
    float *step; /* how often it was updated */
};
struct optimizer_options {
    bool adamw; /* else sgd */
    double lr, beta1, beta2, eps, weight_decay;
};
struct work_update {
    const struct update *list;
    uint32_t n_list;
    const struct optimizer_options *options;
};

/* What a step leaves to whoever asked for it. */
struct step_result {
    double loss;         /* this rank's, mean over its microbatches */
    uint64_t not_finite; /* elements of gradients that the optimizer read */
    bool skipped;        /* the scaler found what is not finite */
    bool ended;
};

struct work {
    uint8_t kind;
    uint32_t n; /* of PACK, POST, UPDATE …: how many stand behind the pointer */
    struct step_state *state;
    void *prepared; /* the device's own, while it is prepared */
    union {
        struct work_fill fill;
        struct work_give give;
        struct work_copy copy;
        const struct work_pack *packs;
        const struct post_reduce *posts;
        const struct op_call *op;
        struct work_collective collective;
        struct work_squares squares;
        struct work_scale scale;
        struct work_update update;
        float *loss;
        const float *verdict;
        struct step_result *results; /* by step */
    } is;
};

#endif
