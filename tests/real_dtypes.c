/*
 * Dtypes at the borders of units, as the work of a real run has them: parameters enter bodies in the
 * dtype of compute, gradients leave in that of autograd, wires carry what the layout says, reductions
 * what the policy says, and shards are updated in the dtype of storage.
 *
 * Looked at in the ranks' own processes, work by work, through the observer.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/member.h"
#include "tests/ranks_rig.h"
#include "tests/real_case.h"
#include "tests/tap.h"

/* What is looked at. X(ENUM, words) */
#define BORDERS(X)                       \
    X(ENTERS, "parameters enter bodies") \
    X(LEAVES, "gradients leave bodies")  \
    X(MOVES, "copies and packing")       \
    X(GATHERS, "all-gathers")            \
    X(REDUCES, "reductions")             \
    X(SUMS, "what follows a reduction")  \
    X(UPDATES, "shards are updated")

enum border {
#define X(id, words) BORDER_##id,
    BORDERS(X)
#undef X
        BORDER_N
};
static const char *const border_words[] = {
#define X(id, words) words,
    BORDERS(X)
#undef X
};

/* Shared by all ranks. */
struct seen {
    _Atomic uint32_t n[BORDER_N], n_wrong;
    char first_wrong[128];
};

struct watch {
    const struct program *program;
    struct seen *seen;
    uint32_t op; /* of the body that is running */
};

static void see(struct watch *watch, enum border border, bool right, const char *of)
{
    watch->seen->n[border]++;
    if (!right && watch->seen->n_wrong++ == 0)
        snprintf(watch->seen->first_wrong, sizeof watch->seen->first_wrong, "%s: %s",
                 border_words[border], of);
}

/* ---- bodies ----------------------------------------------------------------------------------- */

static uint32_t param_of(const struct program *program, const struct frame *frame, uint32_t id)
{
    const struct model *model = program->plan->model;
    const struct piece *piece = &model->pieces[program->plan->segments[frame->segment].piece];
    return model->piece_params[piece->param + id];
}

static void watch_operand(struct watch *watch, const struct task *task,
                          const struct operand *operand, const struct op_tensor *tensor)
{
    const struct program *program = watch->program;
    const struct frame *frame = &program->frames[task->frame];
    const struct body_pair *pair = &program->bodies->pairs[frame->pair];
    const bool is_grad = operand->kind == OPERAND_SLOT && operand->id >= SLOT_GRAD &&
                         operand->id < SLOT_GRAD + pair->n_grad;

    if (operand->kind != OPERAND_PARAM && !is_grad)
        return;
    const uint32_t p = param_of(program, frame, operand->id - (is_grad ? SLOT_GRAD : 0));
    const struct param_policy *policy = &program->plan->policy[p];
    const uint8_t whole = policy->managed ? policy->compute : policy->storage;
    see(watch, is_grad ? BORDER_LEAVES : BORDER_ENTERS,
        tensor->dtype == (is_grad ? policy->grad : whole), program->plan->model->params[p].name);
}

static void watch_op(struct watch *watch, const struct submission *submission)
{
    const struct program *program = watch->program;
    const struct task *task = &program->tasks[submission->task];
    const struct op_call *call = submission->work->is.op;

    watch->op =
        submission->parts & STAMP_START ? program->bodies->bodies[task->body].op : watch->op + 1;
    const struct op *op = &program->bodies->ops[watch->op];
    for (uint32_t i = 0; i < op->n_operand; i++)
        watch_operand(watch, task, &program->bodies->operands[op->operand + i], &call->tensors[i]);
}

/* ---- copies and packing: which pairs of dtypes ------------------------------------------------ */

static bool reads(const struct program *program, const struct task *task, enum buffer_role role)
{
    for (uint32_t i = 0; i < task->n_access; i++) {
        const struct access *access = &program->accesses[task->access + i];
        if (access->mode == ACCESS_READ && program->buffers[access->buffer].role == role)
            return true;
    }
    return false;
}

static uint64_t pair_of(uint8_t from, uint8_t to)
{
    return UINT64_C(1) << PACK_KIND(from, to);
}

/* Of one parameter of the unit in such a task; 0: none of it is moved. */
static uint64_t wanted_pair(const struct program *program, const struct task *task,
                            const struct member *member)
{
    const struct param_policy *policy = member->policy;
    const bool is_reduced = member->place->bucket == task->bucket;

    switch ((enum task_kind)task->kind) {
    case TASK_COPY_IN:
    case TASK_COPY_OUT:
        return pair_of(reads(program, task, ROLE_SHARD) ? policy->storage : policy->compute,
                       policy->compute);
    case TASK_KEEP:
        return pair_of(policy->compute, policy->compute);
    case TASK_PRECAST:
        return is_reduced && policy->grad != policy->reduce ? pair_of(policy->grad, policy->reduce)
                                                            : 0;
    default: /* a pack */
        if (!is_reduced)
            return 0;
        return pair_of(policy->has_grad && (reads(program, task, ROLE_ACCUMULATED) ||
                                            reads(program, task, ROLE_PRECAST))
                           ? policy->reduce
                           : policy->grad,
                       policy->reduce);
    }
}

static uint64_t pairs_seen(const struct work *work)
{
    uint64_t pairs = 0;

    for (uint32_t i = 0; i < work->n; i++) {
        const struct pack_table *table = work->is.packs[i].table;
        for (uint32_t t = 0; t < table->n_tile; t++)
            if (table->tiles[t].n > 0)
                pairs |= UINT64_C(1) << table->tiles[t].kind;
    }
    return pairs;
}

/* What a unit gives out, and what the next one makes of it. */
static void watch_cast(struct watch *watch, uint64_t pairs)
{
    const uint8_t compute = (uint8_t)watch->program->plan->param_dtype;
    const uint8_t out = (uint8_t)watch->program->plan->options.output_dtype;

    see(watch, BORDER_MOVES, pairs == pair_of(compute, out) || pairs == pair_of(out, compute),
        "output_dtype");
}

static void watch_pack(struct watch *watch, const struct submission *submission)
{
    const struct program *program = watch->program;
    const struct task *task = &program->tasks[submission->task];
    uint64_t wanted = 0;

    if (task->kind == TASK_ZERO_FILL)
        return;
    if (task->kind == TASK_CAST) {
        watch_cast(watch, pairs_seen(submission->work));
        return;
    }
    for (uint32_t i = 0; i < program->plan->units[task->unit].n_param; i++) {
        const struct member member = unit_member(program->plan, program->layout, task->unit, i);
        wanted |= wanted_pair(program, task, &member);
    }
    see(watch, BORDER_MOVES, pairs_seen(submission->work) == wanted,
        task_kind_name((enum task_kind)task->kind));
}

/* ---- collectives, sums, the optimizer --------------------------------------------------------- */

static void watch_collective(struct watch *watch, const struct submission *submission)
{
    const struct task *task = &watch->program->tasks[submission->task];
    const uint8_t dtype = submission->work->is.collective.dtype;

    if (task->unit == NO_UNIT) {
        see(watch, BORDER_REDUCES, dtype == DTYPE_FP32, "a scalar");
        return;
    }
    const struct unit_layout *unit = watch->program->layout->units[task->unit];
    const char *name = watch->program->plan->units[task->unit].name;
    if (task->kind == TASK_ALL_GATHER)
        see(watch, BORDER_GATHERS, dtype == unit->wire, name);
    else
        see(watch, BORDER_REDUCES,
            dtype == unit->buckets[task->bucket].dtype &&
                dtype == watch->program->plan->options.policy.reduce,
            name);
}

/* The dtype that a reduced gradient has in a buffer. */
static uint8_t role_dtype(const struct program *program, const struct buffer *buffer)
{
    const struct policy_options *policy = &program->plan->options.policy;
    return (uint8_t)(buffer->role == ROLE_GRAD_SHARD ? policy->storage : policy->reduce);
}

static void watch_post(struct watch *watch, const struct submission *submission)
{
    const struct program *program = watch->program;
    const struct task *task = &program->tasks[submission->task];
    const struct post_reduce *post = submission->work->is.posts;
    const struct access *last = &program->accesses[task->access + task->n_access - 1];

    if (post->n > 0 && program->buffers[last->buffer].role != ROLE_REDUCE_OUT)
        see(watch, BORDER_SUMS,
            post->to_dtype == role_dtype(program, &program->buffers[last->buffer]),
            task_kind_name((enum task_kind)task->kind));
}

static void watch_update(struct watch *watch, const struct submission *submission)
{
    const struct work_update *update = &submission->work->is.update;
    const uint8_t storage = (uint8_t)watch->program->plan->options.policy.storage;

    for (uint32_t i = 0; i < update->n_list; i++)
        see(watch, BORDER_UPDATES,
            update->list[i].param.dtype == storage && update->list[i].grad.dtype == storage, "");
}

static void look(void *context, const struct submission *submission)
{
    static void (*const looks[])(struct watch *, const struct submission *) = {
        [WORK_PACK] = watch_pack,     [WORK_POST] = watch_post,
        [WORK_OP] = watch_op,         [WORK_COLLECTIVE] = watch_collective,
        [WORK_UPDATE] = watch_update,
    };
    enum { N_LOOK = sizeof looks / sizeof *looks };
    const uint8_t kind = submission->work->kind;

    if (kind < N_LOOK && looks[kind])
        looks[kind](context, submission);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static const struct real_case cases[] = {
    {SMALL_KDA, .words = "--param-dtype bf16"},
    {SMALL_KDA, .words = "--param-dtype bf16 --reduce-dtype bf16 --accum 2 --sync last"},
    {SMALL_KDA, .words = "--param-dtype bf16 --arrange precast --accum 2"},
    {SMALL_KDA, .words = "--param-dtype bf16 --arrange by-dtype --gpus 3"},
    {SMALL_KDA, .words = "--param-dtype bf16 --ac full --reshard 2"},
    {SMALL_KDA, .words = "--param-dtype bf16 --gpus 1"},
    {SMALL_KDA, .words = "--param-dtype bf16 --ignore *dt_bias --replicas 2"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --behavior torch-2.15 --gpus 2"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --reduce-dtype bf16 --accum 2 --sync last"},
    {SMALL_LLAMA, .words = "--param-dtype fp16 --scaler yes --clip 1 --gpus 2", .max_norm = 1},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --storage-dtype bf16 --optimizer adamw-fused"},
    {SMALL_LLAMA, .words = "--param-dtype bf16 --output-dtype fp32 --gpus 3"},
    {SMALL_GPT2, .words = "--param-dtype bf16 --keep-fp32 *bias --freeze *c_fc*"},
    {SMALL_TIED, .words = "--param-dtype bf16 --unused zero --accum 2", .unused = "*up_proj*"},
};

/* On one rank nothing is gathered or reduced. */
static bool saw_all(const struct seen *seen, bool alone)
{
    for (int b = 0; b < BORDER_N; b++)
        if (seen->n[b] == 0 && !(alone && (b == BORDER_GATHERS || b == BORDER_REDUCES)) &&
            b != BORDER_SUMS)
            return false;
    return true;
}

static void check_case(const struct real_case *of)
{
    struct seen *seen = ranks_memory(sizeof *seen);
    struct real_numbers got;
    struct made made;

    real_case_make(of, &made);
    struct watch watch = {.program = &made.program, .seen = seen};
    if (real_case_run_watched(of, &made, look, &watch, &got)) {
        ok(seen->n_wrong == 0, "%s %s: dtypes at borders%s%s", small_name(of->small), of->words,
           seen->n_wrong ? ", not of " : "", seen->first_wrong);
        ok(saw_all(seen, made.plan.world == 1),
           "all of them are seen: %u parameters, %u gradients, %u copies, %u sums", seen->n[0],
           seen->n[1], seen->n[2], seen->n[BORDER_SUMS]);
    }
    real_release(&got);
    make_release(&made);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    return tap_done();
}
