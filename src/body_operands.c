/*
 * What the operators of profile native compute with: from a row's list of operands to slots,
 * parameters and dtypes, and to the bytes that are moved. Not here: which rows run (body_autograd.c).
 */
#include <assert.h>

#include "src/body_walk.h"

enum { MAX_OPERANDS = (1 << 24) - 1 }; /* struct op counts to here */

static const struct param_policy *policy_of(const struct walk *walk, uint32_t grad)
{
    return &walk->builder->policy[walk_param_of(walk, grad)];
}

static struct operand param_operand(const struct walk *walk, uint32_t grad)
{
    return (struct operand){.kind = OPERAND_PARAM,
                            .mode = OP_READ,
                            .dtype = policy_of(walk, grad)->compute,
                            .id = grad - SLOT_GRAD};
}

static uint8_t tensor_dtype(const struct walk *walk, uint8_t tensor)
{
    const struct extent *size = &walk->builder->tensors[tensor].size;
    if (!size->fixed)
        return (uint8_t)walk->table->options.compute;
    return size->each == dtype_bytes(DTYPE_FP32) ? DTYPE_FP32 : DTYPE_U8;
}

static struct operand slot_operand(const struct walk *walk, uint32_t slot, uint8_t tensor,
                                   enum op_mode mode)
{
    struct operand operand = {.kind = OPERAND_SLOT, .mode = (uint8_t)mode, .id = slot};
    assert(slot != NO_SLOT); /* the table names what none of its rows has borne */
    if (slot < SLOT_GRAD || slot >= walk_first_inner_slot(walk)) {
        operand.dtype = tensor_dtype(walk, tensor);
        return operand;
    }
    const struct param_policy *policy = policy_of(walk, slot);
    operand.id = walk_uncast(walk, slot);
    operand.dtype = operand.id == slot ? policy->grad : policy->compute;
    return operand;
}

/* What is born and not wanted is not made (body_tape.c). */
static struct operand operand_of(struct walk *walk, const struct step *step, uint16_t arg)
{
    if (arg == BODY_ABSENT)
        return (struct operand){.kind = OPERAND_NONE};
    if (arg == BODY_LABELS)
        return (struct operand){.kind = OPERAND_LABELS, .mode = OP_READ, .dtype = DTYPE_U8};
    const struct cell *cell = walk_cell(walk, step->part, (uint8_t)arg);
    if (arg >= BODY_PARAM)
        return param_operand(walk, cell->slot);
    if (tensors_have(step->row->changes, arg))
        return slot_operand(walk, cell->slot, (uint8_t)arg, OP_UPDATE);
    if (!tensors_have(step->row->born, arg))
        return slot_operand(walk, cell->slot, (uint8_t)arg, OP_READ);
    if (walk->phase == BACKWARD && !cell->wanted)
        return (struct operand){.kind = OPERAND_NONE, .mode = OP_WRITE};
    return slot_operand(walk, cell->slot, (uint8_t)arg, OP_WRITE);
}

/* What is added to is read as well. Of products and attention prices know the sizes. */
static void add_moved(struct walk *walk, const struct operand *operand, struct op *op)
{
    const enum op_cost cost = op_kind_cost((enum op_kind)op->kind);
    if (operand->kind != OPERAND_SLOT || cost == COST_GEMM || cost == COST_ATTENTION)
        return;
    const uint64_t bytes = walk->table->slots[walk->pair.slot + operand->id].bytes;
    body_add(&walk->too_large, &op->bytes, bytes);
    if (operand->mode == OP_UPDATE)
        body_add(&walk->too_large, &op->bytes, bytes);
}

static void push_operand(struct walk *walk, const struct operand *operand, struct op *op)
{
    struct body_table *table = walk->table;
    table->operands = arena_grow(walk->builder->arena, table->operands, &walk->builder->cap_operand,
                                 table->n_operand + 1, sizeof *table->operands);
    if (op->n_operand++ == 0)
        op->operand = table->n_operand & MAX_OPERANDS;
    table->operands[table->n_operand++] = *operand;
    assert(table->n_operand <= MAX_OPERANDS);
}

void walk_name_operands(struct walk *walk, const struct step *step, struct op *op)
{
    for (const uint16_t *arg = step->row->args; *arg; arg++) {
        const struct operand operand = operand_of(walk, step, *arg);
        push_operand(walk, &operand, op);
        add_moved(walk, &operand, op);
    }
}

void walk_name_cast(struct walk *walk, uint32_t from, uint32_t grad, struct op *op)
{
    const struct param_policy *policy = policy_of(walk, grad);
    const struct operand operands[] = {
        {.kind = OPERAND_SLOT, .mode = OP_READ, .dtype = policy->compute, .id = from},
        {.kind = OPERAND_SLOT, .mode = OP_WRITE, .dtype = policy->grad, .id = grad},
    };
    if (walk->table->options.ops != OPS_NATIVE)
        return;
    push_operand(walk, &operands[0], op);
    push_operand(walk, &operands[1], op);
}
