/*
 * Tapes of profile native as text: what a step of llama-tiny and kda-tiny reads, writes, bears and
 * lets go of, one line for each.
 *
 * A slot is "%7:bf16", or its name at the border; a parameter goes by its module's name. "=": written,
 * "+": added to, "-": absent. Births and deaths have their bytes.
 */
#include <string.h>

#include "src/text.h"
#include "tests/body_make.h"
#include "tests/tap.h"

struct tape_printer {
    const struct body_table *table;
    const struct model *model;
    const struct body_pair *pair;
    struct text *out;
};

static void print_slot(const struct tape_printer *p, uint32_t slot)
{
    static const char *const boundary[] = {"in", "out", "d_out", "d_in"};
    if (slot < SLOT_GRAD)
        text_add(p->out, "%s", boundary[slot]);
    else if (slot < SLOT_GRAD + p->pair->n_grad)
        text_add(p->out, "grad%u", slot - SLOT_GRAD);
    else
        text_add(p->out, "%%%u", slot);
}

static void print_param(const struct tape_printer *p, uint32_t i)
{
    const struct piece *piece = &p->model->pieces[p->pair->piece];
    const struct param *param = &p->model->params[p->model->piece_params[piece->param + i]];
    const char *dot = strrchr(param->name, '.');
    const char *name = dot + 1;

    if (!strcmp(name, "weight")) /* the module's name says more */
        for (name = dot; name > param->name && name[-1] != '.';)
            name--;
    text_add(p->out, "%s", name);
}

static void print_operand(const struct tape_printer *p, const struct operand *operand)
{
    static const char *const modes[] = {[OP_READ] = "", [OP_WRITE] = "=", [OP_UPDATE] = "+"};

    text_add(p->out, " %s", operand->kind == OPERAND_NONE ? "-" : modes[operand->mode]);
    if (operand->kind == OPERAND_LABELS)
        text_add(p->out, "labels");
    if (operand->kind == OPERAND_PARAM)
        print_param(p, operand->id);
    if (operand->kind == OPERAND_SLOT)
        print_slot(p, operand->id);
    if (operand->kind != OPERAND_NONE)
        text_add(p->out, ":%s", dtype_name((enum dtype)operand->dtype));
}

static void print_op(const struct tape_printer *p, const struct op *op)
{
    static const char *const passes[] = {[PASS_FORWARD] = "forward",
                                         [PASS_RECOMPUTE] = "recompute",
                                         [PASS_DGRAD] = "dgrad",
                                         [PASS_WGRAD] = "wgrad"};

    text_add(p->out, "    %s %s", op_kind_name((enum op_kind)op->kind), passes[op->pass]);
    for (uint32_t i = 0; i < op->n_operand; i++)
        print_operand(p, &p->table->operands[op->operand + i]);
    text_add(p->out, "\n");
}

static void print_body(const struct tape_printer *p, bool backward)
{
    const struct body *body = &p->table->bodies[backward ? p->pair->backward : p->pair->forward];

    text_add(p->out, "%s %s\n", backward ? "backward" : "forward",
             body_kind_name((enum body_kind)p->pair->kind));
    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &p->table->tape[body->tape + i];
        if (tape->act == TAPE_OP) {
            print_op(p, &p->table->ops[tape->id]);
            continue;
        }
        text_add(p->out, "  %s ", tape->act == TAPE_ALLOC ? "+" : "-");
        print_slot(p, tape->id);
        text_add(p->out, " %llu\n",
                 (unsigned long long)p->table->slots[p->pair->slot + tape->id].bytes);
    }
}

static void test_tapes(const char *name, enum checkpointing ac, const char *golden)
{
    const struct body_options options = {
        .batch = 1, .seq = 64, .compute = DTYPE_BF16, .ops = OPS_NATIVE, .ac = ac};
    struct arena arena;
    struct model model;
    struct err err = {0};
    struct text text;

    arena_init(&arena);
    if (model_open(name, 0, &arena, &model, &err))
        tap_bail(err.text);
    const struct body_table table =
        bodies_with(&model, default_policy(&model, &arena), &options, &arena);
    text_init(&text);
    for (uint32_t i = 0; i < table.n_pair; i++) {
        const struct tape_printer p = {&table, &model, &table.pairs[i], &text};
        if (p.pair->kind == BODY_ATTENTION || p.pair->kind == BODY_MLP) /* the block has both */
            continue;
        print_body(&p, false);
        print_body(&p, true);
    }
    is_golden(text.at, golden);
    text_release(&text);
    arena_release(&arena);
}

int main(void)
{
    test_tapes("llama-tiny", AC_NONE, "native-llama-tiny.txt");
    test_tapes("kda-tiny", AC_NONE, "native-kda-tiny.txt");
    test_tapes("gpt-tiny", AC_FULL, "native-gpt-tiny-full.txt");
    return tap_done();
}
