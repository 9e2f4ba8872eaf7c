/*
 * Modules and parameters from a table: what the families share when they build a model.
 *
 * A table lists the parameters of one block, or of the model around the blocks, in registration
 * order, each with the path of its module. The widths of all shapes come from the sizes alone, so
 * that a table holds no number. A parameter that the sizes do without is passed over.
 */
#ifndef SRC_ARCH_BLOCK_H
#define SRC_ARCH_BLOCK_H

#include "src/model.h"

enum width {
    W_END, /* ends a shape */
    W_ONE,
    W_HIDDEN,
    W_INTERMEDIATE,
    W_TWO_INTERMEDIATE, /* gate and up in one matrix */
    W_QUERY,
    W_KEY_VALUE,
    W_QKV,
    W_HEADS,
    W_HEAD_DIM,
    W_SHORT_CONV,
    W_VOCAB,
    W_POSITIONS,
    WIDTH_N
};
enum { BLOCK_MAX_PARAMS = 32, BLOCK_MAX_SHAPE = 4, SHORT_CONV_TAPS = 4 };

/* Several together: all hold. */
enum block_flag {
    BLOCK_BIAS = 1,    /* only where the sizes have biases */
    BLOCK_NORM = 2,    /* after all others of its piece in the order of grad slots */
    BLOCK_FP32 = 4,    /* computes in FP32 */
    BLOCK_IF_FLAT = 8, /* only in a flat model */
    BLOCK_UNLESS_FLAT = 16,
    BLOCK_IF_POSITIONS = 32, /* only where positions are learned */
    BLOCK_UNUSED = 64,       /* what is computed with it goes nowhere */
};

struct block_param {
    const char *module; /* "self_attn.q_proj", below the block; "" is the block itself */
    const char *name;   /* "weight" */
    uint8_t shape[BLOCK_MAX_SHAPE]; /* enum width */
    uint8_t piece;                  /* enum body_kind */
    uint8_t flags;
};

struct block_params {
    const struct block_param *at;
    size_t n;
};
#define BLOCK_PARAMS(array)                      \
    {                                            \
        (array), sizeof(array) / sizeof *(array) \
    }

/*
 * The modules of a decoder: embedding, blocks and norm below one module, then the head. Without a
 * vocabulary the blocks are all that there is.
 */
struct decoder {
    const char *module; /* "model"; NULL: the model itself */
    const char *blocks; /* "layers", below it */
    const char *head;   /* "lm_head", beside it */
    struct block_params embedding, block, norm;
};
enum status decoder_build(const struct decoder *decoder, const struct dims *dims,
                          struct arena *arena, struct model *out, struct err *err);

#endif
