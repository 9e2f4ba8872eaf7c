/*
 * Embedding, final norm, head and loss as tables of lifetimes (src/body_builder.h tells how to read
 * them).
 *
 * Orders and lifetimes: spec MEMORY 2.4 and 4. Bytes moved: spec COST 3. Of learned positions and
 * of a tied weight the specs say nothing: the former are counted as an embedding of S rows, and the
 * gradients of the latter are summed as autograd does it, in place into the head's, the first.
 */
#include "src/arch/outer_bodies.h"

#include "src/arch/body_tensors.h"

const struct body_tensor body_tensors[TENSOR_N] = {
#define X(id, each, a, b, name) \
    [id] = {{(each), DIM_##a, DIM_##b, (each) != 2}, id >= LOGITS && id <= D_LOGITS32, (name)},
    TENSORS(X)
#undef X
};

static const struct body_row tokens_alone[] = {
    {RUN(EMBEDDING), MOVES(PER_TOKEN(12, H)), BORN(OUT)},
};
static const struct body_row tokens_and_positions[] = {
    {RUN(EMBEDDING), MOVES(PER_TOKEN(12, H)), BORN(TOKEN_ROWS)},
    {RUN(EMBEDDING), MOVES({12, DIM_S, DIM_H, false}), BORN(POSITION_ROWS)},
    {RUN(ADD), MOVES(PER_TOKEN(6, H)), BORN(OUT), DIES(TOKEN_ROWS, POSITION_ROWS)},
};

/* The sum's gradient is that of the rows of one sequence; of several it is summed over them. */
static const struct body_same embedding_same[] = {{D_POSITION_ROWS, D_OUT, WHEN_SINGLE},
                                                  {NO_TENSOR, NO_TENSOR, 0}};
static const struct body_row positions_backward[] = {
    {RUN(SUM), .when = WHEN_BATCHED, MOVES(PER_TOKEN(2, H), {2, DIM_S, DIM_H, false}),
     BORN(D_POSITION_ROWS), USES(D_OUT)},
    {RUN(EMBEDDING), MOVES({8, DIM_S, DIM_H, false}, {6, DIM_P, DIM_H, false}),
     BORN(SORTED_POSITIONS, SORTED_POSITIONS_FROM, G_POSITIONS),
     DIES(SORTED_POSITIONS, SORTED_POSITIONS_FROM, D_POSITION_ROWS)},
};
static const struct body_row tokens_backward[] = {
    {RUN(EMBEDDING), MOVES(PER_TOKEN(8, H), {6, DIM_V, DIM_H, false}),
     BORN(SORTED_IDS, SORTED_FROM, G_VOCAB), DIES(SORTED_IDS, SORTED_FROM, D_OUT)},
};
static const struct body_row tied_tokens_backward[] = {
    {RUN(EMBEDDING), MOVES(PER_TOKEN(8, H), {6, DIM_V, DIM_H, false}),
     BORN(SORTED_IDS, SORTED_FROM, D_TABLE), DIES(SORTED_IDS, SORTED_FROM, D_OUT)},
    {RUN(ADD), MOVES({6, DIM_V, DIM_H, false}), CHANGES(G_VOCAB), DIES(D_TABLE)},
};

static const struct body_row head[] = {
    {LINEAR(V, H), BORN(LOGITS), DIES(IN)},
};
static const struct body_row head_backward[] = {
    {LINEAR_DGRAD(V, H), BORN(D_IN), USES(D_LOGITS)},
    {LINEAR_WGRAD(V, H), BORN(G_VOCAB), DIES(IN, D_LOGITS)},
};

/* Variant A of MEMORY 4: the logits are cast inside the loss and gone before backward. */
static const struct body_row loss[] = {
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, V)), BORN(LOGITS32)},
    {RUN(LOG_SOFTMAX), MOVES(FP32_PER_TOKEN(8, V)), BORN(LOG_PROBS)},
    {RUN(NLL), DIES(LOGITS32, LOGITS, LOG_PROBS)},
};
static const struct body_row loss_backward[] = {
    {RUN(NLL), MOVES(FP32_PER_TOKEN(4, V)), BORN(D_LOG_PROBS)},
    {RUN(LOG_SOFTMAX), MOVES(FP32_PER_TOKEN(12, V)), BORN(D_LOGITS32),
     DIES(LOG_PROBS, D_LOG_PROBS)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, V)), BORN(D_LOGITS), DIES(D_LOGITS32)},
};

/* B: they are cast in the model, and the caller holds on to what it got. */
static const struct body_row model_cast_loss[] = {
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, V)), BORN(LOGITS32), DIES(LOGITS)},
    {RUN(LOG_SOFTMAX), MOVES(FP32_PER_TOKEN(8, V)), BORN(LOG_PROBS)},
    {RUN(NLL), DIES(LOGITS32, LOG_PROBS)},
};
static const struct body_row model_cast_loss_backward[] = {
    {RUN(NLL), MOVES(FP32_PER_TOKEN(4, V)), BORN(D_LOG_PROBS)},
    {RUN(LOG_SOFTMAX), MOVES(FP32_PER_TOKEN(12, V)), BORN(D_LOGITS32), USES(LOGITS32),
     DIES(LOG_PROBS, D_LOG_PROBS)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, V)), BORN(D_LOGITS), USES(LOGITS32),
     DIES(D_LOGITS32)},
};

/* C: all of it in the dtype of the logits, which the caller holds on to. */
static const struct body_row bf16_loss[] = {
    {RUN(LOG_SOFTMAX), MOVES(PER_TOKEN(4, V)), BORN(LOG_PROBS16)},
    {RUN(NLL), DIES(LOGITS, LOG_PROBS16)},
};
static const struct body_row bf16_loss_backward[] = {
    {RUN(NLL), MOVES(PER_TOKEN(2, V)), BORN(D_LOG_PROBS16)},
    {RUN(LOG_SOFTMAX), MOVES(PER_TOKEN(6, V)), BORN(D_LOGITS), USES(LOGITS),
     DIES(LOG_PROBS16, D_LOG_PROBS16)},
};

/* D: one kernel each way, which reads the logits again in backward. */
static const struct body_row one_kernel_loss[] = {
    {RUN(CROSS_ENTROPY), MOVES(PER_TOKEN(2, V)), BORN(ROW_LSE), DIES(LOGITS, ROW_LSE)},
};
static const struct body_row one_kernel_loss_backward[] = {
    {RUN(CROSS_ENTROPY), MOVES(PER_TOKEN(6, V)), BORN(D_LOGITS), DIES(LOGITS, ROW_LSE)},
};

/*
 * Of a metric: a cross entropy under autocast, of logits that stay. It asks log_softmax for the
 * dtype of the logits, which autocast then leaves alone, and nll_loss for nothing, whose input it
 * casts.
 */
static const struct body_row metric[] = {
    {RUN(LOG_SOFTMAX), MOVES(PER_TOKEN(4, V)), BORN(LOG_PROBS16)},
    {RUN(TO), .when = WHEN_CAST, MOVES(PER_TOKEN(6, V)), BORN(LOG_PROBS)},
    {RUN(NLL), DIES(LOG_PROBS, LOG_PROBS16)},
};
static const struct body_same metric_same[] = {{LOG_PROBS, LOG_PROBS16, WHEN_UNCAST},
                                               {NO_TENSOR, NO_TENSOR, 0}};

static const struct body_same loss_same[] = {{LOGITS32, LOGITS, WHEN_UNCAST},
                                             {D_LOGITS32, D_LOGITS, WHEN_UNCAST},
                                             {NO_TENSOR, NO_TENSOR, 0}};

/* [tied][learned positions] */
static const struct body_part embedding_parts[2][2] = {
    {{.forward = {BODY_ROWS(tokens_alone)},
      .backward = {BODY_ROWS(tokens_backward)},
      .boundary = {IDS, OUT, D_OUT, NO_TENSOR},
      .grads = {G_VOCAB}},
     {.forward = {BODY_ROWS(tokens_and_positions)},
      .backward = {BODY_ROWS(positions_backward), BODY_ROWS(tokens_backward)},
      .boundary = {IDS, OUT, D_OUT, NO_TENSOR},
      .grads = {G_VOCAB, G_POSITIONS},
      .same = embedding_same}},
    {{.forward = {BODY_ROWS(tokens_alone)},
      .backward = {BODY_ROWS(tied_tokens_backward)},
      .boundary = {IDS, OUT, D_OUT, NO_TENSOR},
      .grads = {G_VOCAB}},
     {.forward = {BODY_ROWS(tokens_and_positions)},
      .backward = {BODY_ROWS(positions_backward), BODY_ROWS(tied_tokens_backward)},
      .boundary = {IDS, OUT, D_OUT, NO_TENSOR},
      .grads = {G_VOCAB, G_POSITIONS},
      .same = embedding_same}},
};

static const struct body_part head_part = {
    .forward = {BODY_ROWS(head)},
    .backward = {BODY_ROWS(head_backward)},
    .boundary = {IN, LOGITS, D_LOGITS, D_IN},
    .grads = {G_VOCAB},
};

/* The mean of hidden states: its backward spreads the loss's own gradient, one number. */
static const struct body_row mean[] = {
    {RUN(MEAN), MOVES(PER_TOKEN(2, H)), BORN(NUMBER), DIES(IN, NUMBER)},
};
static const struct body_row mean_backward[] = {
    {RUN(MEAN), MOVES(PER_TOKEN(2, H)), BORN(D_IN), DIES(NUMBER)},
};
static const struct body_part mean_part = {
    .forward = {BODY_ROWS(mean)},
    .backward = {BODY_ROWS(mean_backward)},
    .boundary = {IN, NO_TENSOR, NO_TENSOR, D_IN},
};

#define LOSS_PART(rows, backward_rows)                                           \
    {                                                                            \
        .forward = {BODY_ROWS(rows)}, .backward = {BODY_ROWS(backward_rows)},    \
        .boundary = {LOGITS, NO_TENSOR, NO_TENSOR, D_LOGITS}, .same = loss_same, \
    }
static const struct body_part loss_parts[LOSS_N] = {
    [LOSS_EAGER] = LOSS_PART(loss, loss_backward),
    [LOSS_EAGER_MODEL] = LOSS_PART(model_cast_loss, model_cast_loss_backward),
    [LOSS_EAGER_BF16] = LOSS_PART(bf16_loss, bf16_loss_backward),
    [LOSS_FUSED] = LOSS_PART(one_kernel_loss, one_kernel_loss_backward),
    [LOSS_COMPILED] = LOSS_PART(one_kernel_loss, one_kernel_loss_backward),
};

static const struct body_part metric_part = {
    .forward = {BODY_ROWS(metric)},
    .boundary = {LOGITS, NO_TENSOR, NO_TENSOR, NO_TENSOR},
    .same = metric_same,
};

/* The caller's variable holds the input until the final norm returns. */
static const struct body_row final_norm_end[] = {ENDS(IN)};

static struct body_part final_norm_part(const struct body_norm *norm, bool biased)
{
    return (struct body_part){
        .forward = {norm->forward, BODY_ROWS(final_norm_end)},
        .backward = {norm->backward},
        .boundary = {IN, NORMED, D_NORMED, D_BRANCH},
        .grads = {G_NORM, biased ? G_NORM_BIAS : NO_TENSOR},
        .same = norm_same,
    };
}

/* A recipe of a kind that the model has no piece of adds nothing. */
enum status outer_bodies(const struct model *model, const struct body_norm *norm, bool biased,
                         struct body_builder *builder, struct err *err)
{
    const struct dims *dims = &model->dims;
    const struct body_part *embedding = &embedding_parts[dims->tied][dims->positions > 0];
    const struct body_part *of_loss =
        dims->vocab > 0 ? &loss_parts[builder->table->options.loss] : &mean_part;
    const struct body_part final_norm = final_norm_part(norm, biased);
    const bool has_metrics = builder->table->options.train_metrics > 0;
    const struct body_recipe recipes[] = {
        {.kind = BODY_EMBEDDING, .parts = {embedding}, .n_part = 1},
        {.kind = BODY_NORM, .parts = {&final_norm}, .n_part = 1},
        {.kind = BODY_HEAD, .parts = {&head_part}, .n_part = 1},
        {.kind = BODY_LOSS, .parts = {of_loss}, .n_part = 1, .in_outlives = has_metrics},
    };
    const struct body_recipe of_metric = {
        .kind = BODY_METRIC, .parts = {&metric_part}, .n_part = 1, .in_outlives = true};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes && !status; i++)
        status = body_builder_add(builder, &recipes[i], err);
    if (!status && has_metrics)
        status = body_builder_add(builder, &of_metric, err);
    return status;
}
