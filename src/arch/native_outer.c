/*
 * Profile native: embedding, final norm, head and loss; see native_parts.h.
 *
 * Rows of tables that are looked up are counted by what is read, not by the size of the table. The
 * loss stays to the end of its backward, which needs the logits as they are.
 */
#include "src/arch/native_parts.h"

/* ---- embedding ---------------------------------------------------------------------------- */

static const struct body_row tokens[] = {
    {RUN(EMBEDDING), MOVES(PER_TOKEN(2, H)), ARGS(IDS, PARAM(VOCAB), OUT), BORN(OUT)},
};
static const struct body_row positions[] = {
    {RUN(POSITIONS), MOVES({2, DIM_S, DIM_H, false}), ARGS(PARAM(POSITIONS), OUT), CHANGES(OUT)},
};
static const struct body_row positions_backward[] = {
    {RUN(POSITIONS), OF_WEIGHT, ARGS(D_OUT, G_POSITIONS), BORN(G_POSITIONS)},
};
/* The gradient of a tied weight is the head's, who was first. */
static const struct body_row tokens_backward[2][1] = {
    {{RUN(EMBEDDING), OF_WEIGHT, ARGS(IDS, D_OUT, G_VOCAB), BORN(G_VOCAB)}},
    {{RUN(EMBEDDING), OF_WEIGHT, ARGS(IDS, D_OUT, G_VOCAB), CHANGES(G_VOCAB)}},
};

static struct body_part embedding_part(const struct dims *dims)
{
    struct body_part part = {
        .forward = {BODY_ROWS(tokens)},
        .backward = {BODY_ROWS(tokens_backward[dims->tied])},
        .boundary = {IDS, OUT, D_OUT, NO_TENSOR},
        .grads = {G_VOCAB, dims->positions > 0 ? G_POSITIONS : NO_TENSOR},
    };
    if (dims->positions > 0) {
        part.forward[1] = (struct body_rows)BODY_ROWS(positions);
        part.backward[1] = (struct body_rows)BODY_ROWS(positions_backward);
    }
    return part;
}

/* ---- final norm, head --------------------------------------------------------------------- */

static const struct body_row rms_backward[] = {
    {RUN(RMS), OF_WEIGHT, ARGS(IN, RSTD, D_NORMED, G_NORM), BORN(G_NORM)},
    {RUN(RMS), ARGS(IN, PARAM(NORM), RSTD, D_NORMED, D_IN), BORN(D_IN)},
};
static const struct body_row layer_norm_backward[] = {
    {RUN(LAYER_NORM), OF_WEIGHT, ARGS(IN, MEAN, RSTD, D_NORMED, G_NORM, G_NORM_BIAS),
     BORN(G_NORM, G_NORM_BIAS)},
    {RUN(LAYER_NORM), ARGS(IN, PARAM(NORM), MEAN, RSTD, D_NORMED, D_IN), BORN(D_IN)},
};
static const struct body_row norm_end[] = {ENDS(IN)};

static struct body_part norm_part(bool is_layer_norm)
{
    const struct body_norm *norm = is_layer_norm ? &native_layer_norm : &native_rms;
    struct body_part part = {
        .forward = {norm->forward, BODY_ROWS(norm_end)},
        .backward = {BODY_ROWS(rms_backward)},
        .boundary = {IN, NORMED, D_NORMED, D_IN},
        .grads = {G_NORM, is_layer_norm ? G_NORM_BIAS : NO_TENSOR},
    };
    if (is_layer_norm)
        part.backward[0] = (struct body_rows)BODY_ROWS(layer_norm_backward);
    return part;
}

static const struct body_row head[] = {
    {PROJECT(V, H, IN, VOCAB, LOGITS), DIES(IN)},
};
static const struct body_row head_backward[] = {
    NEW_DGRAD(V, H, D_LOGITS, VOCAB, D_IN),
    WGRAD(V, H, D_LOGITS, IN, VOCAB),
};
static const struct body_part head_part = {
    .forward = {BODY_ROWS(head)},
    .backward = {BODY_ROWS(head_backward)},
    .boundary = {IN, LOGITS, D_LOGITS, D_IN},
    .grads = {G_VOCAB},
};

/* ---- loss --------------------------------------------------------------------------------- */

static const struct body_row cross_entropy[] = {
    {RUN(CROSS_ENTROPY), ARGS(LOGITS, BODY_LABELS, LOG_SUMS, LOSS), BORN(LOG_SUMS, LOSS),
     DIES(LOGITS, LOG_SUMS, LOSS)},
};
static const struct body_row cross_entropy_backward[] = {
    {RUN(CROSS_ENTROPY), ARGS(LOGITS, BODY_LABELS, LOG_SUMS, D_LOGITS), USES(LOSS), BORN(D_LOGITS)},
};
static const struct body_part cross_entropy_part = {
    .forward = {BODY_ROWS(cross_entropy)},
    .backward = {BODY_ROWS(cross_entropy_backward)},
    .boundary = {LOGITS, NO_TENSOR, NO_TENSOR, D_LOGITS},
};

static const struct body_row mean[] = {
    {RUN(MEAN), ARGS(IN, LOSS), BORN(LOSS), DIES(IN, LOSS)},
};
static const struct body_row mean_backward[] = {
    {RUN(MEAN), ARGS(D_IN), USES(LOSS), BORN(D_IN)},
};
static const struct body_part mean_part = {
    .forward = {BODY_ROWS(mean)},
    .backward = {BODY_ROWS(mean_backward)},
    .boundary = {IN, NO_TENSOR, NO_TENSOR, D_IN},
};

/* A recipe of a kind that the model has no piece of adds nothing. */
enum status native_outer_bodies(const struct model *model, bool is_layer_norm,
                                struct body_builder *builder, struct err *err)
{
    const struct body_part embedding = embedding_part(&model->dims);
    const struct body_part norm = norm_part(is_layer_norm);
    const struct body_part *loss = model->dims.vocab > 0 ? &cross_entropy_part : &mean_part;
    const struct body_recipe recipes[] = {
        {.kind = BODY_EMBEDDING, .parts = {&embedding}, .n_part = 1},
        {.kind = BODY_NORM, .parts = {&norm}, .n_part = 1},
        {.kind = BODY_HEAD, .parts = {&head_part}, .n_part = 1},
        {.kind = BODY_LOSS, .parts = {loss}, .n_part = 1},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes && !status; i++)
        status = body_builder_add(builder, &recipes[i], err);
    return status;
}
