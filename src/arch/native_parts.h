/*
 * Profile native: the words that its rows are written in, and the parts that several families share.
 *
 * Operators and the order of their operands: gpu/ops.h. Which values are rounded, and in which order
 * gradients of one value are summed: tests/oracle/README.md, so that a step of ours and one of
 * PyTorch differ by the order of sums alone. There are no casts, no copies and no temporaries. The
 * gradient of the residual stays where it is: the norm's is added to it.
 */
#ifndef SRC_ARCH_NATIVE_PARTS_H
#define SRC_ARCH_NATIVE_PARTS_H

#include "src/arch/block_parts.h"
#include "src/arch/body_tensors.h"

/* The parameter of which this is the gradient. */
#define PARAM(of) (BODY_PARAM + G_##of)
#define ABSENT BODY_ABSENT

/* A linear layer without a bias. */
#define PROJECT(out, in, x, of, y) LINEAR(out, in), ARGS(x, PARAM(of), ABSENT, y), BORN(y)
/* Gradients of a linear layer from in to out features: of its input, new or added, and weight. */
#define PROJECT_DGRAD(out, in, d_y, of, d_x) LINEAR_DGRAD(out, in), ARGS(d_y, PARAM(of), d_x)
#define NEW_DGRAD(out, in, d_y, of, d_x)                \
    {                                                   \
        PROJECT_DGRAD(out, in, d_y, of, d_x), BORN(d_x) \
    }
#define MORE_DGRAD(out, in, d_y, of, d_x)                  \
    {                                                      \
        PROJECT_DGRAD(out, in, d_y, of, d_x), CHANGES(d_x) \
    }
#define WGRAD(out, in, d_y, x, of)                                                           \
    {                                                                                        \
        RUN(MM), OF_WEIGHT, .m = DIM_##out, .n = DIM_##in, .k = DIM_T, ARGS(d_y, x, G_##of), \
                            BORN(G_##of)                                                     \
    }
#define BIAS_GRAD(d_y, of)                                   \
    {                                                        \
        RUN(SUM), OF_WEIGHT, ARGS(d_y, G_##of), BORN(G_##of) \
    }
/* The block's input and its branch. */
#define ADD_RESIDUAL                                                 \
    {                                                                \
        RUN(ADD), ARGS(IN, BRANCH, OUT), BORN(OUT), DIES(BRANCH, IN) \
    }

/* Of a block; the final one bears the gradient of its input. */
extern const struct body_norm native_rms, native_layer_norm;
extern const struct body_part native_swiglu_core;

/* Embedding, final norm, head and loss. */
enum status native_outer_bodies(const struct model *model, bool is_layer_norm,
                                struct body_builder *builder, struct err *err);

#endif
