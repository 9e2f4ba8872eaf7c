/*
 * Bodies of profile native: operands are those that gpu/ops.h lists, gradients are summed in the
 * order of tests/oracle/README.md, tensors have their sizes, and the verifier finds what was planted.
 */
#include <string.h>

#include "src/arch/arch.h"
#include "src/text.h"
#include "src/verify_inner.h"
#include "tests/asked.h"
#include "tests/body_make.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static struct arena arena;

static const struct dims flat_kda = {.layers = 2,
                                     .hidden = 64,
                                     .intermediate = 160,
                                     .heads = 2,
                                     .kv_heads = 2,
                                     .head_dim = 32,
                                     .flat = true};
static const struct family {
    const struct arch *arch;
    const struct dims *dims;
} families[] = {
    {&arch_llama, &small_llama},
    {&arch_gpt2, &small_gpt},
    {&arch_kda, &small_kda},
    {&arch_kda, &flat_kda},
};
enum { BATCH = 2, SEQ = 65, T = BATCH * SEQ };

static struct body_table bodies(const struct family *family, enum behavior behavior,
                                enum checkpointing ac)
{
    const struct body_options options = {
        .batch = BATCH, .seq = SEQ, .compute = DTYPE_BF16, .ops = OPS_NATIVE, .ac = ac};
    const struct model model = model_of(family->arch, family->dims, &arena);
    struct policy_options of_policy = policy_options_default();
    struct param_policy *policy;
    struct err err = {0};

    of_policy.behavior = behavior;
    if (policy_resolve(&model, &of_policy, &arena, &policy, &err))
        tap_bail(err.text);
    return bodies_with(&model, policy, &options, &arena);
}

/* ---- operands ----------------------------------------------------------------------------- */

/* x: in the dtype of compute, f: FP32; = is written, + is added to, - is absent. */
static const struct signature {
    enum op_kind kind;
    enum op_pass pass;
    const char *operands;
} signatures[] = {
    {OP_EMBEDDING, PASS_FORWARD, "ids param =x"},
    {OP_EMBEDDING, PASS_WGRAD, "ids x =grad"},
    {OP_EMBEDDING, PASS_WGRAD, "ids x +grad"},
    {OP_POSITIONS, PASS_FORWARD, "param +x"},
    {OP_POSITIONS, PASS_WGRAD, "x =grad"},
    {OP_MM, PASS_FORWARD, "x param - =x"},
    {OP_MM, PASS_FORWARD, "x param param =x"},
    {OP_MM, PASS_DGRAD, "x param =x"},
    {OP_MM, PASS_DGRAD, "x param +x"},
    {OP_MM, PASS_WGRAD, "x x =grad"},
    {OP_SUM, PASS_WGRAD, "x =grad"},
    {OP_RMS, PASS_FORWARD, "x param =x =f"},
    {OP_RMS, PASS_DGRAD, "x param f x =x"},
    {OP_RMS, PASS_DGRAD, "x param f x +x"},
    {OP_RMS, PASS_WGRAD, "x f x =grad"},
    {OP_LAYER_NORM, PASS_FORWARD, "x param param =x =f =f"},
    {OP_LAYER_NORM, PASS_DGRAD, "x param f f x =x"},
    {OP_LAYER_NORM, PASS_DGRAD, "x param f f x +x"},
    {OP_LAYER_NORM, PASS_WGRAD, "x f f x =grad =grad"},
    {OP_SDPA, PASS_FORWARD, "x x x =x =f"},
    {OP_SDPA, PASS_FORWARD, "x - - =x =f"},
    {OP_SDPA, PASS_DGRAD, "x x x x f x =x =x =x"},
    {OP_SDPA, PASS_DGRAD, "x - - x f x =x - -"},
    {OP_SWIGLU, PASS_FORWARD, "x x =x"},
    {OP_SWIGLU, PASS_DGRAD, "x x x =x =x"},
    {OP_GELU, PASS_FORWARD, "x =x"},
    {OP_GELU, PASS_DGRAD, "x x =x"},
    {OP_ADD, PASS_FORWARD, "x x =x"},
    {OP_SHORT_CONV, PASS_FORWARD, "x param =x"},
    {OP_SHORT_CONV, PASS_DGRAD, "x param x =x"},
    {OP_SHORT_CONV, PASS_WGRAD, "x param x =grad"},
    {OP_L2_NORM, PASS_FORWARD, "x =f =f"},
    {OP_L2_NORM, PASS_DGRAD, "f f f =x"},
    {OP_SIGMOID, PASS_FORWARD, "x =f"},
    {OP_SIGMOID, PASS_DGRAD, "f f =x"},
    {OP_DECAY, PASS_FORWARD, "x param param =f"},
    {OP_DECAY, PASS_DGRAD, "x param param f =x"},
    {OP_DECAY, PASS_WGRAD, "x param param f =grad =grad"},
    {OP_DELTA_RULE, PASS_FORWARD, "f f x f f =f =f"},
    {OP_DELTA_RULE, PASS_DGRAD, "f f x f f f f =f =f =x =f =f"},
    {OP_GATED_RMS, PASS_FORWARD, "f param x =x =f"},
    {OP_GATED_RMS, PASS_DGRAD, "f param x f x =f =x"},
    {OP_GATED_RMS, PASS_WGRAD, "f x f x =grad"},
    {OP_CROSS_ENTROPY, PASS_FORWARD, "x labels =f =f"},
    {OP_CROSS_ENTROPY, PASS_DGRAD, "x labels f =x"},
    {OP_MEAN, PASS_FORWARD, "x =f"},
    {OP_MEAN, PASS_DGRAD, "=x"},
    {OP_TO, PASS_WGRAD, "x =grad"},
};

/* What a weight's row yields is a gradient, or becomes one when it is cast. */
static const char *word_of(const struct op *op, const struct operand *operand)
{
    if (operand->kind == OPERAND_NONE)
        return "-";
    if (operand->kind == OPERAND_PARAM)
        return "param";
    if (operand->kind == OPERAND_LABELS)
        return "labels";
    if (op->pass == PASS_WGRAD && operand->mode != OP_READ)
        return "grad";
    return operand->dtype == DTYPE_U8 ? "ids" : operand->dtype == DTYPE_FP32 ? "f" : "x";
}

static const struct signature *find_signature(const struct body_table *table, const struct op *op)
{
    static const char *const modes[] = {[OP_READ] = "", [OP_WRITE] = "=", [OP_UPDATE] = "+"};
    const enum op_pass pass = op->pass == PASS_RECOMPUTE ? PASS_FORWARD : (enum op_pass)op->pass;
    const struct signature *found = NULL;
    struct text text;

    text_init(&text);
    for (uint32_t i = 0; i < op->n_operand; i++) {
        const struct operand *operand = &table->operands[op->operand + i];
        text_add(&text, "%s%s%s", i ? " " : "", modes[operand->mode], word_of(op, operand));
    }
    for (size_t i = 0; i < LENGTH(signatures) && op->n_operand > 0; i++)
        if (signatures[i].kind == op->kind && signatures[i].pass == pass &&
            !strcmp(signatures[i].operands, text.at))
            found = &signatures[i];
    if (!found)
        tap_note("%s, pass %u: %s", op_kind_name(op->kind), op->pass, text.at);
    text_release(&text);
    return found;
}

static void test_operands(void)
{
    static const enum behavior behaviors[] = {BEHAVIOR_UNSHARD, BEHAVIOR_TORCH_2_15};
    bool seen[LENGTH(signatures)] = {false};
    uint32_t n_unknown = 0, n_seen = 0;

    for (size_t round = 0; round < LENGTH(families) * LENGTH(behaviors) * AC_N; round++) {
        const struct body_table table =
            bodies(&families[round / AC_N / LENGTH(behaviors)],
                   behaviors[round / AC_N % LENGTH(behaviors)], (enum checkpointing)(round % AC_N));
        for (uint32_t i = 0; i < table.n_op; i++) {
            const struct signature *signature = find_signature(&table, &table.ops[i]);
            n_unknown += !signature;
            if (signature)
                seen[signature - signatures] = true;
        }
        arena_reset(&arena);
    }
    is_int(n_unknown, 0, "operators name their operands as gpu/ops.h lists them");
    for (size_t i = 0; i < LENGTH(signatures); i++)
        n_seen += seen[i];
    is_int(n_seen, LENGTH(signatures), "and each of these occurs");
}

/* ---- sums --------------------------------------------------------------------------------- */

/* The slot that the last norm of a backward body differentiates. */
static uint32_t d_normed_of(const struct body_table *table, const struct body *body)
{
    for (uint32_t i = body->n_op; i-- > 0;) {
        const struct op *op = &table->ops[body->op + i];
        if ((op->kind == OP_RMS || op->kind == OP_LAYER_NORM) && op->pass == PASS_DGRAD)
            return table->operands[op->operand + op->n_operand - 2].id;
    }
    tap_bail("a body without a norm");
}

/* "v_proj k_proj q_proj": the modules whose products make that gradient, in order. */
static void write_summands(const struct body_table *table, const struct model *model,
                           const struct body_pair *pair, struct text *out)
{
    const struct body *body = &table->bodies[pair->backward];
    const uint32_t sum = d_normed_of(table, body);

    for (uint32_t i = 0; i < body->n_op; i++) {
        const struct op *op = &table->ops[body->op + i];
        const struct operand *at = &table->operands[op->operand];
        if (op->kind != OP_MM || op->pass != PASS_DGRAD || at[2].id != sum)
            continue;
        const uint32_t param = model->piece_params[model->pieces[pair->piece].param + at[1].id];
        const char *path = model->modules[model->params[param].module].path;
        text_add(out, "%s%s%s", out->length ? " " : "", at[2].mode == OP_UPDATE ? "+" : "",
                 strrchr(path, '.') + 1);
    }
}

static void test_sums(void)
{
    static const struct {
        size_t family;
        enum body_kind kind;
        const char *summands;
    } sums[] = {
        {0, BODY_ATTENTION, "v_proj +k_proj +q_proj"},
        {0, BODY_MLP, "up_proj +gate_proj"},
        {1, BODY_ATTENTION, "c_attn"},
        {1, BODY_MLP, "c_fc"},
        {2, BODY_ATTENTION, "g_a_proj +b_proj +f_a_proj +v_proj +k_proj +q_proj"},
        {2, BODY_MLP, "up_proj +gate_proj"},
    };
    for (size_t i = 0; i < LENGTH(sums); i++) {
        const struct family *family = &families[sums[i].family];
        const struct model model = model_of(family->arch, family->dims, &arena);
        const struct body_table table = bodies(family, BEHAVIOR_UNSHARD, AC_NONE);
        struct text text;
        text_init(&text);
        write_summands(&table, &model, pair_of(&table, sums[i].kind), &text);
        is_str(text.at, sums[i].summands, "%s: the normed input's gradient is summed in this order",
               family->arch->name);
        text_release(&text);
    }
    arena_reset(&arena);
}

/* ---- sizes -------------------------------------------------------------------------------- */

static const struct op *find_op(const struct body_table *table, enum op_kind kind,
                                enum op_pass pass)
{
    for (uint32_t i = 0; i < table->n_op; i++)
        if (table->ops[i].kind == kind && table->ops[i].pass == pass)
            return &table->ops[i];
    tap_bail("an operator is missing");
}

static uint64_t operand_bytes(const struct body_table *table, enum body_kind kind,
                              const struct op *op, uint32_t i)
{
    return slot_of(table, kind, table->operands[op->operand + i].id)->bytes;
}

/* Two chunks for each sequence of 65 tokens; weights are [out, in]. */
static void test_sizes(void)
{
    const struct body_table kda = bodies(&families[2], BEHAVIOR_UNSHARD, AC_NONE);
    const struct op *delta = find_op(&kda, OP_DELTA_RULE, PASS_FORWARD);
    is_int(operand_bytes(&kda, BODY_BLOCK, delta, 6), BATCH * 2 * 2 * 32 * 32 * 4,
           "a state for each chunk begun, head and pair of features");
    is_int(delta->bytes, T * 64 * (4 * 4 + 2) + T * 2 * 4 + BATCH * 2 * 2 * 32 * 32 * 4,
           "the recurrence moves what it reads and writes, once");
    const struct op *loss = find_op(&kda, OP_CROSS_ENTROPY, PASS_FORWARD);
    is_int(operand_bytes(&kda, BODY_LOSS, loss, 2), 4 * T, "the loss keeps a sum for each token");
    is_int(operand_bytes(&kda, BODY_LOSS, loss, 3), 4, "and is one number");

    const struct body_table llama = bodies(&families[0], BEHAVIOR_UNSHARD, AC_NONE);
    const struct op *norm = find_op(&llama, OP_RMS, PASS_DGRAD);
    is_int(norm->bytes, T * 64 * 2 * 4 + 4 * T, "what is added to is read and written");
    const struct op *forward = find_op(&llama, OP_MM, PASS_FORWARD);
    const struct op *wgrad = find_op(&llama, OP_MM, PASS_WGRAD);
    ok(forward->m == T && forward->n == 64 && forward->k == 64 && wgrad->k == T,
       "products say their sizes");
    arena_reset(&arena);
}

/* ---- verifier ----------------------------------------------------------------------------- */

static const char *fault_of(const struct body_table *table)
{
    struct acts *acts = arena_array(&arena, struct acts, table->n_body);
    const char *wrong = NULL;

    for (uint32_t p = 0; p < table->n_pair; p++)
        verify_operands(table, &table->pairs[p], &arena, acts);
    for (uint32_t b = 0; b < table->n_body && !wrong; b++)
        wrong = acts[b].wrong;
    return wrong;
}

#define DEAD "an operator uses a slot that is not allocated"
#define UNWRITTEN "an operator reads a slot that nothing wrote"

/* Operand i of llama's first such operator becomes something else. */
static const struct plant {
    const char *what;
    enum op_kind kind;
    enum op_pass pass;
    uint32_t operand;
    struct operand is;
    const char *wrong;
} plants[] = {
    {"a result is read",
     OP_RMS,
     PASS_FORWARD,
     2,
     {OPERAND_SLOT, OP_READ, 0, UINT32_MAX},
     UNWRITTEN},
    {"a result is added to",
     OP_SWIGLU,
     PASS_FORWARD,
     2,
     {OPERAND_SLOT, OP_UPDATE, 0, UINT32_MAX},
     UNWRITTEN},
    {"a gradient is not written",
     OP_MM,
     PASS_WGRAD,
     2,
     {OPERAND_NONE, OP_WRITE, 0, 0},
     "a slot is left behind that nothing wrote"},
    {"backward reads the output",
     OP_RMS,
     PASS_WGRAD,
     0,
     {OPERAND_SLOT, OP_READ, 0, SLOT_OUT},
     DEAD},
    {"forward reads a gradient",
     OP_ADD,
     PASS_FORWARD,
     0,
     {OPERAND_SLOT, OP_READ, 0, SLOT_D_OUT},
     DEAD},
    {"a slot is not the pair's", OP_SDPA, PASS_DGRAD, 3, {OPERAND_SLOT, OP_READ, 0, 100000}, DEAD},
    {"a parameter is not the pair's",
     OP_MM,
     PASS_FORWARD,
     1,
     {OPERAND_PARAM, OP_READ, 0, 99},
     "an operator names a parameter that it has not"},
    {"a parameter is written",
     OP_MM,
     PASS_DGRAD,
     1,
     {OPERAND_PARAM, OP_WRITE, 0, 0},
     "an operator names a parameter that it has not"},
    {"labels are read in a block",
     OP_ADD,
     PASS_FORWARD,
     1,
     {OPERAND_LABELS, OP_READ, 0, 0},
     "an operator names labels outside of the loss"},
};

/* id UINT32_MAX: the one that it was. */
static void plant(struct body_table *table, const struct plant *plant)
{
    const struct op *op = find_op(table, plant->kind, plant->pass);
    struct operand *operand = &table->operands[op->operand + plant->operand];
    const uint32_t id = operand->id;

    *operand = plant->is;
    if (plant->is.id == UINT32_MAX)
        operand->id = id;
}

static void test_planted(void)
{
    for (size_t i = 0; i < LENGTH(plants); i++) {
        struct body_table table = bodies(&families[0], BEHAVIOR_UNSHARD, AC_NONE);
        plant(&table, &plants[i]);
        const char *wrong = fault_of(&table);
        is_str(wrong ? wrong : "nothing", plants[i].wrong, "%s: found", plants[i].what);
    }
    struct body_table table = bodies(&families[0], BEHAVIOR_UNSHARD, AC_NONE);
    table.ops[3].n_operand = 0;
    is_str(fault_of(&table), "an operator names no operands",
           "an operator without operands: found");
    arena_reset(&arena);
}

/* Two operators of a tape change places, or one comes too late for what it reads. */
static void test_order(void)
{
    uint32_t n_found = 0, n_swapped = 0;
    struct body_table table = bodies(&families[2], BEHAVIOR_UNSHARD, AC_FULL);

    for (uint32_t i = 0; i + 1 < table.n_tape; i++) {
        struct tape *at = &table.tape[i], first = at[0];
        if (at[0].act != TAPE_ALLOC || at[1].act != TAPE_OP)
            continue;
        at[0] = at[1];
        at[1] = first;
        n_found += fault_of(&table) != NULL;
        n_swapped++;
        at[1] = at[0];
        at[0] = first;
    }
    ok(n_swapped > 50, "operators are moved before the birth of what they write");
    is_int(n_found, n_swapped, "each time it is found");
    arena_reset(&arena);
}

/* A frozen parameter leaves out what autograd leaves out, and nobody reads it. */
static void test_frozen(void)
{
    uint64_t state = tap_seed(20261130);
    uint32_t n_wrong = 0;

    for (int round = 0; round < 600; round++) {
        const struct family *family = &families[tap_below(&state, LENGTH(families))];
        const struct model model = model_of(family->arch, family->dims, &arena);
        struct param_policy *policy = arena_array(&arena, struct param_policy, model.n_param);
        const struct body_options options = {.batch = 1 + tap_below(&state, 2),
                                             .seq = 1 + tap_below(&state, 70),
                                             .compute =
                                                 tap_below(&state, 2) ? DTYPE_BF16 : DTYPE_FP32,
                                             .ops = OPS_NATIVE,
                                             .ac = (enum checkpointing)tap_below(&state, AC_N),
                                             .ac_every = tap_below(&state, 3)};
        const uint64_t of_8 = tap_below(&state, 9);
        memcpy(policy, default_policy(&model, &arena), model.n_param * sizeof *policy);
        for (uint32_t i = 0; i < model.n_param; i++)
            policy[i].has_grad &= tap_below(&state, 8) < of_8;
        const struct body_table table = bodies_with(&model, policy, &options, &arena);
        const char *wrong = fault_of(&table);
        if (wrong)
            tap_note("round %d, %s: %s", round, family->arch->name, wrong);
        n_wrong += wrong != NULL;
        arena_reset(&arena);
    }
    is_int(n_wrong, 0, "whatever is frozen, what is read was written");
}

static void test_program(void)
{
    struct made made;
    struct fault fault;
    struct err err = {0};

    asked_init(&made, "--units block --ops native", NULL);
    is_int(verify_program(&made.program, &made.arena, &fault, &err), STATUS_OK,
           "a program of native bodies is safe");
    plant(&made.bodies, &plants[2]);
    is_int(verify_program(&made.program, &made.arena, &fault, &err), STATUS_RUN,
           "with a gradient that nobody writes it is not");
    ok(fault.kind == FAULT_BODY && made.program.tasks[fault.second].kind == TASK_BACKWARD,
       "and the body is named");
    tap_note("%s", err.text);
    make_release(&made);
}

int main(void)
{
    test_operands();
    test_sums();
    test_sizes();
    test_planted();
    test_order();
    test_frozen();
    test_program();
    arena_release(&arena);
    return tap_done();
}
