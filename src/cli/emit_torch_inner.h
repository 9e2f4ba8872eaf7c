/*
 * The parts of emit_torch(): what the code is made from. Internal to src/cli/emit_*.c.
 */
#ifndef SRC_CLI_EMIT_TORCH_INNER_H
#define SRC_CLI_EMIT_TORCH_INNER_H

#include "src/cli/emit_python.h"
#include "src/cli/emit_torch.h"
#include "src/plan_calls.h"

/* A call of fully_shard, but for the root's. */
struct emit_call {
    uint32_t unit; /* the first of its groups */
    struct unit_modules modules;
};

struct emit {
    const struct prepared *prepared;
    const struct plan *plan;
    const struct plan_row *row;
    const struct options *options;
    struct arena *arena;
    struct text *out, *warnings;
    struct emit_call *calls; /* in the order of forward */
    uint32_t n_call;
};

/* emit_lists.c: parameters by name, each list a generator that yields them. */
enum emit_list {
    EMIT_KEPT,     /* computes in FP32 where the policy's dtype is another one */
    EMIT_FROZEN,   /* not trained */
    EMIT_IGNORED,  /* of no unit */
    EMIT_SHARD_ON, /* cut along another dimension than 0, or on the second mesh */
    EMIT_LIST_N
};
bool emit_has(const struct emit *emit, enum emit_list list);
/* Whether the FP32 parameters are in units of other dtypes, so that a function tells them apart. */
bool emit_overrides(const struct emit *emit);
/* Whether a unit computes in FP32 as a whole, where the policy's dtype is another one. */
bool emit_is_fp32(const struct emit *emit, uint32_t unit);
bool emit_any_fp32(const struct emit *emit);
void emit_lists(const struct emit *emit);

/* emit_limits.c: what the code does not say, as comments and as warnings. */
void emit_limits(const struct emit *emit);

/* emit_blocks.c: checkpointing. */
void emit_blocks(const struct emit *emit);
bool emit_checkpoints(const struct emit *emit);

/* emit_apply.c */
void emit_apply(const struct emit *emit);

const char *emit_dtype(enum dtype dtype); /* "torch.bfloat16" */

#endif
