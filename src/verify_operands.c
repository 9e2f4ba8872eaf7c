/*
 * Operands under the verifier: may an operator read what it names? See verify_inner.h.
 *
 * Once per pair, forward's tape and then backward's: a slot is used between its birth and its death,
 * and read once something wrote it; what a body leaves to others was written. Not here: whether
 * buffers at the border hold what bodies expect of them, which accesses of tasks say.
 */
#include "src/verify_inner.h"

enum slot_state { SLOT_DEAD, SLOT_BORN, SLOT_WRITTEN };

struct slots {
    const struct body_table *bodies;
    const struct body_pair *pair;
    uint8_t *state; /* enum slot_state */
};

static const char *check_slot(const struct slots *slots, const struct operand *operand)
{
    if (operand->id >= slots->pair->n_slot || slots->state[operand->id] == SLOT_DEAD)
        return "an operator uses a slot that is not allocated";
    if (operand->mode != OP_WRITE && slots->state[operand->id] != SLOT_WRITTEN)
        return "an operator reads a slot that nothing wrote";
    return NULL;
}

static const char *check_operand(const struct slots *slots, const struct operand *operand)
{
    switch ((enum operand_kind)operand->kind) {
    case OPERAND_SLOT:
        return check_slot(slots, operand);
    case OPERAND_PARAM:
        return operand->id < slots->pair->n_grad && operand->mode == OP_READ
                   ? NULL
                   : "an operator names a parameter that it has not";
    case OPERAND_LABELS:
        return slots->pair->kind == BODY_LOSS && operand->mode == OP_READ
                   ? NULL
                   : "an operator names labels outside of the loss";
    case OPERAND_NONE:
        break;
    }
    return NULL;
}

/* Reads come before writes, in whichever order they are named. */
static const char *pass_op(struct slots *slots, const struct op *op)
{
    const struct operand *operands = &slots->bodies->operands[op->operand];
    const char *wrong = NULL;

    if (op->n_operand == 0)
        return "an operator names no operands";
    for (uint32_t i = 0; i < op->n_operand && !wrong; i++)
        wrong = check_operand(slots, &operands[i]);
    for (uint32_t i = 0; i < op->n_operand && !wrong; i++)
        if (operands[i].kind == OPERAND_SLOT && operands[i].mode != OP_READ)
            slots->state[operands[i].id] = SLOT_WRITTEN;
    return wrong;
}

static const char *pass_body(struct slots *slots, const struct body *body)
{
    const struct tape *tape = &slots->bodies->tape[body->tape];
    const char *wrong = NULL;

    for (uint32_t i = 0; i < body->n_tape && !wrong; i++) {
        if (tape[i].act == TAPE_OP)
            wrong = pass_op(slots, &slots->bodies->ops[tape[i].id]);
        else
            slots->state[tape[i].id] = tape[i].act == TAPE_ALLOC ? SLOT_BORN : SLOT_DEAD;
    }
    for (uint32_t i = 0; i < slots->pair->n_slot && !wrong; i++)
        if (slots->state[i] == SLOT_BORN)
            wrong = "a slot is left behind that nothing wrote";
    return wrong;
}

/* A gradient that no tape of the pair bears is another's, to which this one adds. */
static void borrow_grads(struct slots *slots, const struct body *backward)
{
    const struct body_pair *pair = slots->pair;

    for (uint32_t i = SLOT_GRAD; i < SLOT_GRAD + pair->n_grad; i++)
        if (slots->bodies->slots[pair->slot + i].bytes > 0)
            slots->state[i] = SLOT_WRITTEN;
    for (uint32_t i = 0; i < backward->n_tape; i++) {
        const struct tape *tape = &slots->bodies->tape[backward->tape + i];
        if (tape->act == TAPE_ALLOC)
            slots->state[tape->id] = SLOT_DEAD;
    }
}

void verify_operands(const struct body_table *bodies, const struct body_pair *pair,
                     struct arena *arena, struct acts *acts)
{
    struct slots slots = {bodies, pair, arena_array(arena, uint8_t, pair->n_slot)};
    const struct body *backward = &bodies->bodies[pair->backward];

    slots.state[SLOT_IN] = SLOT_WRITTEN;
    acts[pair->forward].wrong = pass_body(&slots, &bodies->bodies[pair->forward]);
    slots.state[SLOT_OUT] = SLOT_DEAD; /* it may be gone */
    slots.state[SLOT_D_OUT] = pair->has_d_out ? SLOT_WRITTEN : SLOT_DEAD;
    borrow_grads(&slots, backward);
    acts[pair->backward].wrong = pass_body(&slots, backward);
}
