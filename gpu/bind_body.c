/*
 * One operator of a body: its operands with addresses. Which tensor an operand is the tape says
 * (src/body.h); slots are found through the task's frame, parameters through its accesses.
 */
#include "gpu/bind_inner.h"

#include "src/arch/arch.h"

static const struct segment *segment_of(const struct binding *of)
{
    const struct frame *frame = &of->bind->program->frames[of->task->frame];
    return frame->segment == NO_SEGMENT ? NULL : &of->bind->plan->segments[frame->segment];
}

/* The unsharded parameters of a unit, among what the task reads; NO_BUFFER: the unit is another. */
static uint32_t full_of(const struct binding *of, uint16_t unit)
{
    uint32_t buffer;
    for (uint32_t i = 0; (buffer = binding_find(of, ROLE_FULL, i)) != NO_BUFFER; i++)
        if (binding_buffer(of, buffer)->unit == unit)
            break;
    return buffer;
}

/* Ignored parameters are whole on each rank and in no unit. */
static char *ignored_at(const struct binding *of, uint64_t offset)
{
    const struct program *program = of->bind->program;
    uint32_t b = 0;
    while (program->buffers[b].role != ROLE_IGNORED)
        b++;
    return binding_member(of, b, 0) + offset;
}

static struct op_tensor param_tensor(const struct binding *of, const struct operand *operand)
{
    const struct model *model = of->bind->plan->model;
    const struct piece *piece = &model->pieces[segment_of(of)->piece];
    const uint32_t param = model->piece_params[piece->param + operand->id];
    const struct param_home *home = &of->bind->homes[param];
    struct op_tensor out = {
        .n = model->params[param].numel, .dtype = operand->dtype, .mode = operand->mode};

    if (home->unit == NO_UNIT) {
        out.at = ignored_at(of, home->ignored_at);
        out.dtype = of->bind->plan->policy[param].storage;
    } else {
        out.at = binding_member(of, full_of(of, home->unit), home->member);
    }
    return out;
}

static struct op_tensor slot_tensor(const struct binding *of, const struct operand *operand)
{
    const struct program *program = of->bind->program;
    const struct frame *frame = &program->frames[of->task->frame];
    const struct body_pair *pair = &program->bodies->pairs[frame->pair];
    const uint64_t bytes = program->bodies->slots[pair->slot + operand->id].bytes;
    const bool of_ids = operand->dtype == DTYPE_U8;
    const uint32_t id = expand_slot_id(program, frame, operand->id);

    return (struct op_tensor){
        .at = bind_address(of->bind, of->launch->step, id),
        .n = bytes / (of_ids ? sizeof(int64_t) : dtype_bytes((enum dtype)operand->dtype)),
        .dtype = operand->dtype,
        .mode = operand->mode};
}

/* Behind the ids, as many. */
static struct op_tensor labels_tensor(const struct binding *of)
{
    const uint32_t input = binding_find(of, ROLE_INPUT, 0);
    const uint64_t half = binding_buffer(of, input)->bytes / 2;

    return (struct op_tensor){.at = binding_member(of, input, 0) + half,
                              .n = half / sizeof(int64_t),
                              .dtype = DTYPE_U8,
                              .mode = OP_READ};
}

static struct op_tensor tensor_of(const struct binding *of, const struct operand *operand)
{
    switch ((enum operand_kind)operand->kind) {
    case OPERAND_SLOT:
        return slot_tensor(of, operand);
    case OPERAND_PARAM:
        return param_tensor(of, operand);
    case OPERAND_LABELS:
        return labels_tensor(of);
    default:
        return (struct op_tensor){.at = NULL};
    }
}

/* That of the thread whose body it is: the other thread's may not be there yet. */
static void find_workspace(const struct binding *of, struct op_call *call)
{
    const uint32_t workspace = binding_find(of, ROLE_WORKSPACE, 0);

    if (workspace == NO_BUFFER)
        return;
    call->workspace = binding_member(of, workspace, 0);
    call->workspace_bytes = binding_buffer(of, workspace)->bytes;
}

/* Of a family whose layers are [in, out], those of blocks. */
static bool is_weight_in_first(const struct binding *of)
{
    const struct segment *segment = segment_of(of);
    return of->bind->plan->model->arch->weights_in_first && segment && segment->kind != BODY_HEAD;
}

enum status bind_operator(struct binding *to, struct err *err)
{
    const struct body_table *bodies = to->bind->program->bodies;
    const struct op *op = &bodies->ops[to->launch->body_op];
    struct op_call *call = arena_array(&to->bind->arena, struct op_call, 1);

    *call = (struct op_call){.kind = op->kind,
                             .pass = op->pass,
                             .n_tensor = (uint8_t)op->n_operand,
                             .weight_in_first = is_weight_in_first(to),
                             .m = op->m,
                             .n = op->n,
                             .k = op->k,
                             .shape = &to->bind->shape,
                             .state = to->bind->setup.state};
    if (op->n_operand == 0)
        return err_set(err, STATUS_RUN, "operator %s says not what it reads, plan with ops native",
                       op_kind_name((enum op_kind)op->kind));
    for (uint32_t i = 0; i < op->n_operand; i++)
        call->tensors[i] = tensor_of(to, &bodies->operands[op->operand + i]);
    if (call->kind == OP_MM)
        find_workspace(to, call);
    binding_add(to, WORK_OP)->is.op = call;
    return STATUS_OK;
}
