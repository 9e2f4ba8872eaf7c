/*
 * Seconds of a unit's own tasks against products done by hand: bytes that a task moves, over the
 * bandwidth share of its kernel family, plus 3 us a launch (spec COST 3.1), on the H100.
 */
#include "sim/cost_formula.h"

#include "tests/tap.h"

/* A task's accesses, as a word a buffer: role and mode. */
struct use {
    uint8_t role, mode;
};

struct unit_case {
    const char *why;
    struct task task;
    struct use uses[4];
    struct unit_layout unit;
    enum behavior behavior;
    enum arrange arrange;
    enum optimizer optimizer;
    uint64_t shard_ranks;
    double us;
};

#define FP32_IN_BF16(n) \
    .n_cast = 1, .casts = {{.storage = DTYPE_FP32, .compute = DTYPE_BF16, .shard_elements = (n)}}
#define READ(role)               \
    {                            \
        ROLE_##role, ACCESS_READ \
    }
#define WRITE(role)               \
    {                             \
        ROLE_##role, ACCESS_WRITE \
    }
#define UPDATE(role)               \
    {                              \
        ROLE_##role, ACCESS_UPDATE \
    }
#define GRADS_OF(n, type, in)            \
    .buckets = {{.dtype = DTYPE_##in,    \
                 .storage = DTYPE_FP32,  \
                 .elements = (n),        \
                 .padded_elements = (n), \
                 .grad_bytes = (uint64_t)(n) * (type)}}

static const struct unit_case cases[] = {
    {"packing BF16 into FP32 is the published 0.1888 ms: 302.0 MB / (3.35 TB/s * 0.48) = 187.8 us",
     {.kind = TASK_PACK, .kernels = 1, .dtype = DTYPE_FP32},
     {READ(GRADS), WRITE(REDUCE_IN)},
     {GRADS_OF(50331648, 2, FP32)},
     .us = 190.8},
    {"packing FP32 into FP32: 402.7 MB / (3.35 TB/s * 0.62) = 193.9 us",
     {.kind = TASK_PACK, .kernels = 1, .dtype = DTYPE_FP32},
     {READ(GRADS), WRITE(REDUCE_IN)},
     {GRADS_OF(50331648, 4, FP32)},
     .us = 196.9},
    {"so is packing of what was accumulated in the reduce dtype",
     {.kind = TASK_PACK, .kernels = 1, .dtype = DTYPE_FP32},
     {READ(ACCUMULATED), WRITE(REDUCE_IN)},
     {GRADS_OF(50331648, 2, FP32)},
     .us = 196.9},
    {"packing BF16 into BF16: 201.3 MB / (3.35 TB/s * 0.60) = 100.2 us",
     {.kind = TASK_PACK, .kernels = 1, .dtype = DTYPE_BF16},
     {READ(GRADS), WRITE(REDUCE_IN)},
     {GRADS_OF(50331648, 2, BF16)},
     .us = 103.2},
    {"our kernel packs at 0.81 of the data sheet: 302.0 MB / 2.7135 TB/s = 111.3 us",
     {.kind = TASK_PACK, .kernels = 1, .dtype = DTYPE_FP32},
     {READ(GRADS), WRITE(REDUCE_IN)},
     {GRADS_OF(50331648, 2, FP32)},
     .behavior = BEHAVIOR_UNSHARD,
     .us = 114.3},
    {"a cast before packing: 302.0 MB / (3.35 TB/s * 0.55) = 163.9 us",
     {.kind = TASK_PRECAST, .kernels = 1, .dtype = DTYPE_FP32},
     {READ(GRADS), WRITE(PRECAST)},
     {.buckets = {{.dtype = DTYPE_FP32,
                   .elements = 50331648,
                   .precast_elements = 50331648,
                   .grad_bytes = 100663296}}},
     .arrange = ARRANGE_PRECAST,
     .us = 166.9},
    {"copy-in casts, then copies: 27.5 M shards, 10 bytes each / (3.35 TB/s * 0.55) = 149.3 us",
     {.kind = TASK_COPY_IN, .kernels = 2, .dtype = DTYPE_BF16, .elements = 27500000},
     {READ(SHARD), WRITE(GATHERED)},
     {.wire = DTYPE_BF16, FP32_IN_BF16(27500000)},
     .us = 155.3},
    {"shards in the right dtype are only copied: 110 MB",
     {.kind = TASK_COPY_IN, .kernels = 1, .dtype = DTYPE_BF16, .elements = 27500000},
     {READ(SHARD), WRITE(GATHERED)},
     {.wire = DTYPE_BF16},
     .us = 62.7},
    {"as bytes the second copy takes 1.06 times as long: (165 + 110 * 1.06) MB",
     {.kind = TASK_COPY_IN, .kernels = 3, .dtype = DTYPE_U8, .elements = 55000000},
     {READ(SHARD), WRITE(GATHERED)},
     {.wire = DTYPE_U8, FP32_IN_BF16(27500000)},
     .us = 161.8},
    {"what an integer reshard kept, of two ranks' slices, is copied twice: 220 MB",
     {.kind = TASK_COPY_IN, .kernels = 2, .dtype = DTYPE_BF16, .elements = 27500000},
     {READ(KEPT), WRITE(GATHERED)},
     {.wire = DTYPE_BF16, .slice_bytes = 27500000, FP32_IN_BF16(13750000)},
     .us = 125.4},
    {"copy-out reads and writes the whole unit: 880 MB / (3.35 TB/s * 0.70) = 375.3 us",
     {.kind = TASK_COPY_OUT, .kernels = 1, .dtype = DTYPE_BF16, .elements = 220000000},
     {READ(GATHERED), WRITE(FULL)},
     {.wire = DTYPE_BF16},
     .us = 378.3},
    {"a single rank casts each parameter instead: 1320 MB / (3.35 TB/s * 0.55) = 716.4 us",
     {.kind = TASK_COPY_OUT, .kernels = 9, .dtype = DTYPE_BF16, .elements = 220000000},
     {READ(SHARD), WRITE(FULL)},
     {.wire = DTYPE_BF16, .shard_bytes = 880000000, .full_bytes = 440000000},
     .shard_ranks = 1,
     .us = 743.4},
    {"fused AdamW moves 28 bytes an element: 28 GB / (3.35 TB/s * 0.8)",
     {.kind = TASK_OPTIMIZER, .dtype = DTYPE_FP32, .elements = 1000000000, .unit = NO_UNIT},
     {READ(GRAD_SHARD), UPDATE(SHARD)},
     .us = 10447.8},
    {"SGD moves 12",
     {.kind = TASK_OPTIMIZER, .dtype = DTYPE_FP32, .elements = 1000000000, .unit = NO_UNIT},
     {READ(GRAD_SHARD), UPDATE(SHARD)},
     .optimizer = OPTIMIZER_SGD,
     .us = 4477.6},
    {"adding a gradient moves 12",
     {.kind = TASK_POST_REDUCE, .dtype = DTYPE_FP32, .elements = 1000000000},
     {READ(REDUCE_OUT), UPDATE(GRAD_SHARD)},
     .us = 4477.6},
    {"a cast after the reduction reads 4 and writes 2",
     {.kind = TASK_POST_REDUCE, .dtype = DTYPE_BF16, .elements = 1000000000},
     {READ(REDUCE_OUT), WRITE(GRAD_SHARD)},
     {GRADS_OF(0, 2, FP32)},
     .us = 2238.8},
    {"a division in place moves 8",
     {.kind = TASK_POST_REDUCE, .dtype = DTYPE_FP32, .elements = 1000000000},
     {UPDATE(REDUCE_OUT)},
     .us = 2985.1},
    {"a single rank copies what it reduced",
     {.kind = TASK_POST_REDUCE, .dtype = DTYPE_FP32, .elements = 1000000000},
     {READ(REDUCE_IN), WRITE(GRAD_SHARD)},
     {GRADS_OF(0, 4, FP32)},
     .us = 2985.1},
};

static double seconds_of(const struct cost_rates *rates, const struct unit_case *c)
{
    struct plan plan = {.shard_ranks = c->shard_ranks ? c->shard_ranks : 8};
    const struct unit_layout *unit = &c->unit;
    struct layout layout = {.units = &unit};
    struct buffer buffers[4] = {{0}};
    struct access accesses[4] = {{0}};
    struct task task = c->task;
    struct program program = {
        .plan = &plan, .layout = &layout, .buffers = buffers, .accesses = accesses};

    plan.options.policy.behavior = c->behavior;
    plan.options.optimizer = c->optimizer;
    plan.options.arrange = c->arrange;
    for (; task.n_access < 4 && c->uses[task.n_access].mode; task.n_access++) {
        buffers[task.n_access].role = c->uses[task.n_access].role;
        accesses[task.n_access].buffer = task.n_access;
        accesses[task.n_access].mode = c->uses[task.n_access].mode & 3;
    }
    return cost_unit_task_s(rates, &program, &task);
}

int main(void)
{
    const size_t n = sizeof cases / sizeof *cases;
    struct arena arena;
    struct cluster h100;
    struct err err;

    arena_init(&arena);
    if (cluster_open("h100-sxm", &arena, &h100, &err))
        tap_bail(err.text);
    const struct cost_rates rates = cost_rates_at(&h100, SPREAD_MID);
    for (size_t i = 0; i < n; i++) {
        const double us = 1e6 * seconds_of(&rates, &cases[i]);
        is_near(us, cases[i].us, 2e-3, "%s", cases[i].why);
    }
    arena_release(&arena);
    return tap_done();
}
