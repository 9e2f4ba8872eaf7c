/*
 * The kernels of CUDA operators: which bodies an operator consists of, and how many items each has.
 * See cuda_ops.h; bodies: gpu/cuda_model_body.h, gpu/cuda_attention_body.h, gpu/cuda_kda_body.h.
 */
extern "C" {
#include "gpu/cuda_ops.h"
}
#include "gpu/cuda_attention_body.h"
#include "gpu/cuda_kda_body.h"
#include "gpu/cuda_launch.h"
#include "gpu/cuda_model_body.h"

typedef void item_fn(const struct cuda_op *op, uint64_t item);

template <item_fn *item>
static __global__ void op_kernel(uint64_t n, const __grid_constant__ struct cuda_op op)
{
    each_item(n, [&](uint64_t i) { item(&op, i); });
}

/* ---- items --------------------------------------------------------------------------------- */

template <int operand> static uint64_t elements(const struct cuda_op *op)
{
    return op->call.tensors[operand].n;
}

/* Of a row of the operand, of which each token has one. */
template <int operand> static uint64_t width(const struct cuda_op *op)
{
    return op->call.tensors[operand].n / op_tokens(op);
}

/* Rows of one head in an operand. */
static uint64_t head_rows(const struct cuda_op *op)
{
    return op->call.tensors[0].n / op->shape.head_dim;
}

static uint64_t one(const struct cuda_op *)
{
    return 1;
}

static uint64_t head_dim(const struct cuda_op *op)
{
    return op->shape.head_dim;
}

static uint64_t heads(const struct cuda_op *op)
{
    return op->shape.heads;
}

static uint64_t tokens(const struct cuda_op *op)
{
    return op_tokens(op);
}

static uint64_t lines(const struct cuda_op *op)
{
    return (op->call.tensors[0].n + OP_LINE - 1) / OP_LINE;
}

static uint64_t product_elements(const struct cuda_op *op)
{
    const struct op_product product = product_of(&op->call);
    return product.c->at ? product.m * product.n : 0;
}

static uint64_t turns(const struct cuda_op *op)
{
    return op->shape.rope_base > 0 ? op->shape.seq * (op->shape.head_dim / 2) : 0;
}

static uint64_t queries(const struct cuda_op *op)
{
    return op_tokens(op) * op->shape.heads;
}

static uint64_t keys(const struct cuda_op *op)
{
    return op_tokens(op) * op->shape.kv_heads;
}

static uint64_t sequence_heads(const struct cuda_op *op)
{
    return op->shape.batch * op->shape.heads;
}

static uint64_t state_columns(const struct cuda_op *op)
{
    return sequence_heads(op) * op->shape.head_dim;
}

/* ---- operators ----------------------------------------------------------------------------- */

/* Phases of an operator follow one another. */
struct phase {
    uint8_t kind, pass;
    void (*kernel)(uint64_t, struct cuda_op);
    uint64_t (*items)(const struct cuda_op *op);
};

#define PHASE(kind, pass, item, items)                 \
    {                                                  \
        OP_##kind, PASS_##pass, op_kernel<item>, items \
    }

static const struct phase phases[] = {
    PHASE(EMBEDDING, FORWARD, embedding_item, elements<2>),
    PHASE(EMBEDDING, WGRAD, embedding_clear_item, embedding_rows),
    PHASE(EMBEDDING, WGRAD, embedding_link_item, one),
    PHASE(EMBEDDING, WGRAD, embedding_wgrad_item, elements<2>),
    PHASE(POSITIONS, FORWARD, positions_item, elements<1>),
    PHASE(POSITIONS, WGRAD, positions_wgrad_item, elements<1>),
    PHASE(MM, FORWARD, product_item, product_elements),
    PHASE(MM, DGRAD, product_item, product_elements),
    PHASE(MM, WGRAD, product_item, product_elements),
    PHASE(SUM, WGRAD, bias_wgrad_item, elements<1>),
    PHASE(RMS, FORWARD, norm_item, tokens),
    PHASE(RMS, DGRAD, norm_dgrad_item, tokens),
    PHASE(RMS, WGRAD, norm_wgrad_item, width<0>),
    PHASE(LAYER_NORM, FORWARD, norm_item, tokens),
    PHASE(LAYER_NORM, DGRAD, norm_dgrad_item, tokens),
    PHASE(LAYER_NORM, WGRAD, norm_wgrad_item, width<0>),
    PHASE(SDPA, FORWARD, turn_item, turns),
    PHASE(SDPA, FORWARD, attention_item, queries),
    PHASE(SDPA, DGRAD, turn_item, turns),
    PHASE(SDPA, DGRAD, attention_delta_item, queries),
    PHASE(SDPA, DGRAD, attention_d_q_item, queries),
    PHASE(SDPA, DGRAD, attention_d_kv_item, keys),
    PHASE(SWIGLU, FORWARD, swiglu_item, elements<0>),
    PHASE(SWIGLU, DGRAD, swiglu_dgrad_item, elements<0>),
    PHASE(GELU, FORWARD, gelu_item, elements<0>),
    PHASE(GELU, DGRAD, gelu_dgrad_item, elements<0>),
    PHASE(ADD, FORWARD, add_item, elements<0>),
    PHASE(ADD, DGRAD, cast_item, elements<0>),
    PHASE(SHORT_CONV, FORWARD, short_conv_item, elements<0>),
    PHASE(SHORT_CONV, DGRAD, short_conv_dgrad_item, elements<0>),
    PHASE(SHORT_CONV, WGRAD, short_conv_wgrad_item, elements<3>),
    PHASE(L2_NORM, FORWARD, l2_norm_item, head_rows),
    PHASE(L2_NORM, DGRAD, l2_norm_dgrad_item, head_rows),
    PHASE(SIGMOID, FORWARD, sigmoid_item, elements<0>),
    PHASE(SIGMOID, DGRAD, sigmoid_dgrad_item, elements<0>),
    PHASE(DECAY, FORWARD, decay_item, elements<0>),
    PHASE(DECAY, DGRAD, decay_dgrad_item, elements<0>),
    PHASE(DECAY, WGRAD, decay_rates_wgrad_item, heads),
    PHASE(DECAY, WGRAD, decay_bias_wgrad_item, width<0>),
    PHASE(DELTA_RULE, FORWARD, delta_rule_item, state_columns),
    PHASE(DELTA_RULE, DGRAD, delta_rule_dgrad_item, sequence_heads),
    PHASE(GATED_RMS, FORWARD, gated_rms_item, head_rows),
    PHASE(GATED_RMS, DGRAD, gated_rms_dgrad_item, head_rows),
    PHASE(GATED_RMS, WGRAD, gated_rms_wgrad_item, head_dim),
    PHASE(CROSS_ENTROPY, FORWARD, cross_entropy_item, tokens),
    PHASE(CROSS_ENTROPY, FORWARD, cross_entropy_mean_item, one),
    PHASE(CROSS_ENTROPY, DGRAD, cross_entropy_dgrad_item, elements<0>),
    PHASE(MEAN, FORWARD, mean_line_item, lines),
    PHASE(MEAN, FORWARD, mean_item, one),
    PHASE(MEAN, DGRAD, mean_dgrad_item, elements<0>),
    PHASE(TO, FORWARD, cast_item, elements<0>),
    PHASE(TO, DGRAD, cast_item, elements<0>),
    PHASE(TO, WGRAD, cast_item, elements<0>),
};

static uint8_t pass_of(const struct op_call *call)
{
    return call->pass == PASS_RECOMPUTE ? (uint8_t)PASS_FORWARD : call->pass;
}

static bool is_of(const struct phase *phase, const struct op_call *call)
{
    return phase->kind == call->kind && phase->pass == pass_of(call);
}

uint64_t cuda_op_scratch_bytes(const struct op_call *call)
{
    const bool forward = pass_of(call) == PASS_FORWARD;
    const struct cuda_op op = {*call, *call->shape, NULL};
    const uint64_t turn_floats = op.shape.seq * op.shape.head_dim;

    switch (call->kind) {
    case OP_EMBEDDING:
        return forward ? 0 : (embedding_rows(&op) + op_tokens(&op)) * sizeof(uint32_t);
    case OP_SDPA:
        return (turn_floats + (forward ? 0 : queries(&op))) * sizeof(float);
    case OP_DELTA_RULE:
        return forward ? 0 : sequence_heads(&op) * delta_room(op.shape.head_dim) * sizeof(float);
    case OP_CROSS_ENTROPY:
        return op_tokens(&op) * sizeof(float);
    case OP_MEAN:
        return lines(&op) * sizeof(float);
    default:
        return 0;
    }
}

static enum status check_heads(const struct op_call *call, struct err *err)
{
    const bool keeps_rows = call->kind == OP_SDPA || call->kind == OP_DELTA_RULE;
    if (!keeps_rows || call->shape->head_dim <= CUDA_MAX_HEAD_DIM)
        return STATUS_OK;
    return err_set(err, STATUS_RUN, "device cuda has heads of at most %d numbers, these have %llu",
                   CUDA_MAX_HEAD_DIM, (unsigned long long)call->shape->head_dim);
}

enum status cuda_ops_load(struct CUstream_st *stream, struct err *err)
{
    const struct cuda_op none = {};
    enum status status = STATUS_OK;

    for (const struct phase &phase : phases)
        if (status == STATUS_OK)
            status = launch_some(phase.kernel, 0, op_kind_name((enum op_kind)phase.kind), stream,
                                 err, none);
    return status;
}

enum status cuda_op_run(const struct cuda_op *op, struct CUstream_st *stream, struct err *err)
{
    const struct op_call *call = &op->call;
    const char *name = op_kind_name((enum op_kind)call->kind);
    enum status status = check_heads(call, err);
    bool is_known = false;

    for (const struct phase &phase : phases) {
        if (status != STATUS_OK || !is_of(&phase, call))
            continue;
        is_known = true;
        status = launch_items(phase.kernel, phase.items(op), name, stream, err, *op);
    }
    if (status == STATUS_OK && !is_known)
        status = err_set(err, STATUS_RUN, "device cuda has no operator '%s' in this pass", name);
    return status;
}
