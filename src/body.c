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

bool body_blocks_compile(const struct model *model, enum ops_profile ops)
{
    return ops == OPS_TORCH_COMPILE && model->arch->blocks_compile;
}

/* The product of n factors; false where it does not fit. */
static bool multiply(const uint64_t *factors, size_t n, uint64_t *out)
{
    uint64_t product = 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(product, factors[i], &product))
            return false;
    *out = product;
    return true;
}

/*
 * The chunked delta rule, per head and chunk of C tokens, with keys and values of d elements:
 *
 *     A_qk = q kT, A_kk = k kT        4 C^2 d
 *     (1 + A_kk)^-1 by substitution   2 C^3 / 3
 *     w = A_kk k, u = A_kk v          4 C^2 d
 *     v' = u - w S                    2 C d^2
 *     o = q S + A_qk v'               2 C d^2 + 2 C^2 d
 *     S = S + kT v'                   2 C d^2
 *
 * which is 10 C^2 d + 6 C d^2 + 2 C^3 / 3. Backward makes w, u, v' and S again, then takes two
 * products for each one, and 4 C^3 for those of the inverse: 24 C^2 d + 16 C d^2 + 4 C^3. Here it
 * is per token, a part of a chunk counted as a part.
 */
static bool delta_rule_flops(const struct op *op, bool backward, uint64_t *out)
{
    const uint64_t c = DELTA_CHUNK, by_d = backward ? 24 * c : 10 * c, by_d2 = backward ? 16 : 6;
    uint64_t of_token, by_width;

    if (__builtin_mul_overflow(by_d2, op->k, &by_width) ||
        __builtin_add_overflow(by_width, by_d, &by_width) ||
        __builtin_mul_overflow(by_width, op->k, &of_token) ||
        __builtin_add_overflow(of_token, backward ? 4 * c * c : 2 * c * c / 3, &of_token))
        return false;
    return multiply((const uint64_t[]){of_token, op->m, op->n}, 3, out);
}

/* Attention: half of the score matrix is masked away; backward is 2.5 times forward (COST 2). */
bool op_flops(const struct op *op, uint64_t *out)
{
    const bool backward = op->pass == PASS_DGRAD || op->pass == PASS_WGRAD;

    switch (op_kind_cost((enum op_kind)op->kind)) {
    case COST_GEMM:
        return multiply((const uint64_t[]){2, op->m, op->n, op->k}, 4, out);
    case COST_ATTENTION:
        return multiply((const uint64_t[]){backward ? 5 : 2, op->m, op->n, op->n, op->k}, 5, out);
    case COST_DELTA_RULE:
        return delta_rule_flops(op, backward, out);
    case COST_MEMORY:
        break;
    }
    *out = 0;
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
        .of_metric = NO_PAIR,
    };
    for (uint32_t i = 0; i < model->n_piece; i++)
        table.of_piece[i] = table.of_block[i] = NO_PAIR;

    struct body_builder builder;
    enum status status = body_builder_init(&builder, model, policy, arena, &table, err);
    if (!status)
        status = (options->ops == OPS_NATIVE ? model->arch->native_bodies
                                             : model->arch->bodies)(model, &builder, err);
    if (!status)
        *out = table;
    return status;
}
