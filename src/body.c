/*
 * Bodies: their names, their summaries, and the table of all that a model can need.
 *
 * The operators themselves are the family's (src/arch/). A summary is always computed from the tape
 * and never stored by hand, so that it cannot disagree with it.
 */
#include "src/body.h"

#include "src/arch/arch.h"
#include "src/body_builder.h"

const char *op_kind_name(enum op_kind kind)
{
    static const char *const names[] = {
#define X(id, name, cost) name,
        OP_KINDS(X)
#undef X
    };
    return names[kind];
}

enum op_cost op_kind_cost(enum op_kind kind)
{
    static const uint8_t costs[] = {
#define X(id, name, cost) COST_##cost,
        OP_KINDS(X)
#undef X
    };
    return (enum op_cost)costs[kind];
}

const char *memory_class_name(enum memory_class memory_class)
{
    static const char *const names[] = {
#define X(id, name) name,
        MEMORY_CLASSES(X)
#undef X
    };
    return names[memory_class];
}

/* Attention: half of the score matrix is masked away; backward is 2.5 times forward (COST 2). */
bool op_flops(const struct op *op, uint64_t *out)
{
    enum op_cost cost = op_kind_cost((enum op_kind)op->kind);
    bool backward = op->pass == PASS_DGRAD || op->pass == PASS_WGRAD;
    uint64_t flops = 0;
    if (cost != COST_MEMORY) {
        flops = cost == COST_ATTENTION && backward ? 5 : 2;
        if (__builtin_mul_overflow(flops, op->m, &flops) ||
            __builtin_mul_overflow(flops, op->n, &flops) ||
            __builtin_mul_overflow(flops, op->k, &flops) ||
            (cost == COST_ATTENTION && __builtin_mul_overflow(flops, op->n, &flops)))
            return false;
    }
    *out = flops;
    return true;
}

void body_summarize(const struct body_table *table, const struct body_pair *pair, struct body *body)
{
    int64_t live_bytes = 0, peak_bytes = 0;
    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *entry = &table->tape[body->tape + i];
        if (entry->act == TAPE_OP)
            continue;
        int64_t bytes = (int64_t)table->slots[pair->slot + entry->id].bytes;
        live_bytes += entry->act == TAPE_ALLOC ? bytes : -bytes;
        if (live_bytes > peak_bytes)
            peak_bytes = live_bytes;
    }
    body->net_bytes = live_bytes;
    body->rise_bytes = (uint64_t)peak_bytes;

    body->flops = 0;
    body->kernels = 0;
    body->uses_gemm = false;
    for (uint32_t i = 0; i < body->n_op; i++) {
        const struct op *op = &table->ops[body->op + i];
        uint64_t flops = 0;
        op_flops(op, &flops); /* in range: the builder refuses what is not */
        body->flops += flops;
        body->kernels += op->kernels;
        body->uses_gemm |= op_kind_cost((enum op_kind)op->kind) == COST_GEMM;
    }
}

bool body_piece_starts_block(const struct model *model, uint32_t piece)
{
    const struct piece *p = &model->pieces[piece];
    return p->kind == BODY_ATTENTION && piece + 1 < model->n_piece && p[1].kind == BODY_MLP &&
           p[1].layer == p->layer;
}

enum status body_table_build(const struct model *model, const struct param_policy *policy,
                             const struct body_options *options, struct arena *arena,
                             struct body_table *out, struct err *err)
{
    struct body_table table = {
        .options = *options,
        .of_piece = arena_array(arena, uint32_t, model->n_piece),
        .of_block = arena_array(arena, uint32_t, model->n_piece),
        .of_loss = NO_PAIR,
    };
    for (uint32_t i = 0; i < model->n_piece; i++)
        table.of_piece[i] = table.of_block[i] = NO_PAIR;

    struct body_builder builder;
    enum status status = body_builder_init(&builder, model, policy, arena, &table, err);
    if (!status)
        status = model->arch->bodies(model, &builder, err);
    if (!status)
        *out = table;
    return status;
}
