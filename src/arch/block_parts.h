/*
 * Parts of blocks that several families have, and how a family's own become a block.
 *
 * A core is a part without its norm and its residual: in one list of forward it reads NORMED and
 * leaves OUT, in a few of backward it reads D_OUT and leaves D_NORMED.
 */
#ifndef SRC_ARCH_BLOCK_PARTS_H
#define SRC_ARCH_BLOCK_PARTS_H

#include "src/body_builder.h"

/* residual: in backward, the branch's gradient joins that of the residual. */
struct body_norm {
    struct body_rows forward, backward, residual;
};
extern const struct body_norm rms_norms[NORM_KIND_N];
extern const struct body_norm layer_norm;

/* down(silu(gate(x)) * up(x)) in eager PyTorch. */
extern const struct body_part swiglu_core;
/* Cores' input and output in eager PyTorch, where the residual's gradient is summed in place. */
#define EAGER_RESIDUAL        \
    {                         \
        IN, OUT, D_OUT, D_OUT \
    }
/* A checkpointed region holds its input until its last node has run. */
extern const struct body_row eager_region_end[1];
#define EAGER_REGION_END                                                               \
    {                                                                                  \
        [AC_FULL] = BODY_ROWS(eager_region_end), [AC_OP] = BODY_ROWS(eager_region_end) \
    }
/* Casts that are none where compute is in FP32: of the norms. */
#define NORM_CASTS                                             \
    {X32, IN, WHEN_UNCAST}, {UNWEIGHTED, SCALED, WHEN_UNCAST}, \
        {D_SCALED, D_UNWEIGHTED, WHEN_UNCAST},                 \
    {                                                          \
        D_X32, D_BRANCH, WHEN_UNCAST                           \
    }
extern const struct body_same norm_same[];

/* The core between its norm and its residual. */
struct body_part block_part(const struct body_part *core, const struct body_norm *norm);

/* Appends the pairs of blocks, checkpointed or not, and those of halves of blocks that are not. */
enum status block_bodies(struct body_builder *builder, const struct body_part *attention,
                         const struct body_part *mlp, uint8_t stopped_at, struct err *err);

#endif
