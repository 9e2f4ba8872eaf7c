/*
 * Ranks that write down what they compute; see real_rig.h.
 *
 * They do so in their observer, right after the work, on the thread of its stream: every element
 * of a gradient has one rank that has it (the first replica's), and so has every parameter.
 */
#include "tests/real_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/member.h"
#include "tests/oracle_numbers.h"
#include "tests/tap.h"

struct watched {
    const struct real_ask *ask;
    struct real_numbers *numbers;
    struct seeded_values seeded;
    uint32_t rank; /* of the process */
};

/* ---- where numbers come from ---------------------------------------------------------------- */

static enum status start_param(void *context, uint32_t param, uint64_t first, uint64_t n,
                               float *out, struct err *err)
{
    const struct watched *watched = context;
    const struct model *model = watched->ask->program->plan->model;
    float *whole = malloc(model->params[param].numel * sizeof *whole);

    (void)err;
    if (!whole)
        err_out_of_memory(model->params[param].numel * sizeof *whole);
    oracle_start(model, param, whole);
    memcpy(out, whole + first, n * sizeof *out);
    free(whole);
    return STATUS_OK;
}

static void give_tokens(void *context, uint32_t step, uint32_t microbatch, uint64_t n, int64_t *ids,
                        int64_t *labels)
{
    const struct watched *watched = context;
    const struct plan *plan = watched->ask->program->plan;
    struct oracle_place place = {.step = step, .microbatch = microbatch, .rank = watched->rank};

    for (place.position = 0; place.position < n; place.position++) {
        ids[place.position] = (int64_t)oracle_token(plan, ORACLE_SEED_TOKENS, place);
        labels[place.position] = (int64_t)oracle_token(plan, ORACLE_SEED_LABELS, place);
    }
}

static void give_hidden(void *context, uint32_t step, uint32_t microbatch, uint64_t n, float *out)
{
    struct watched *watched = context;
    const struct values seeded = values_seeded(&watched->seeded);
    seeded.hidden(seeded.context, step, microbatch, n, out);
}

static enum status make_values(void *context, uint32_t rank, struct values *out, struct err *err)
{
    struct watched *watched = context;
    const struct plan *plan = watched->ask->program->plan;

    (void)err;
    watched->rank = rank;
    watched->seeded =
        (struct seeded_values){.plan = plan, .seed = watched->ask->seed, .rank = rank};
    *out = values_seeded(&watched->seeded);
    if (!watched->ask->seeded)
        *out = (struct values){
            .context = watched, .param = start_param, .tokens = give_tokens, .hidden = give_hidden};
    out->scaler = watched->ask->scaler;
    return STATUS_OK;
}

/* ---- what is written down ------------------------------------------------------------------- */

/* A shard's rows to their places in the whole tensor. */
static void put_shard(const struct watched *watched, const struct member *member,
                      const struct device_tensor *shard, float *whole)
{
    const struct param_layout *place = member->place;
    const struct rows rows =
        member_rows(member, watched->rank % watched->ask->program->plan->shard_ranks);
    const struct op_tensor from = {.at = shard->at, .n = shard->n, .dtype = shard->dtype};

    for (uint64_t b = 0; b < member->before && rows.n > 0; b++)
        host_widen(&from, b * place->chunk_rows * member->behind, rows.n * member->behind,
                   whole + (b * place->rows + rows.first) * member->behind);
}

static bool is_of_first_replica(const struct watched *watched)
{
    return watched->rank < watched->ask->program->plan->shard_ranks;
}

static void note_update(struct watched *watched, const struct submission *submission)
{
    const struct program *program = watched->ask->program;
    const struct plan *plan = program->plan;
    const struct update *update = submission->work->is.update.list;
    float **grads = watched->numbers->grads[submission->step - 1];

    for (uint32_t u = 0; u < plan->n_unit && is_of_first_replica(watched); u++)
        for (uint32_t i = 0; i < plan->units[u].n_param; i++) {
            const struct member member = unit_member(plan, program->layout, u, i);
            if (member.place->bucket != NO_BUCKET)
                put_shard(watched, &member, &update++->grad, grads[member.param]);
        }
}

static void note_op(struct watched *watched, const struct submission *submission)
{
    const struct op_call *call = submission->work->is.op;
    const struct plan *plan = watched->ask->program->plan;
    struct real_numbers *numbers = watched->numbers;
    const uint32_t microbatch = watched->ask->program->tasks[submission->task].microbatch;
    const uint64_t at = (uint64_t)microbatch * plan->world + watched->rank;
    const uint64_t step = submission->step - 1;

    if (call->pass == PASS_FORWARD && (call->kind == OP_CROSS_ENTROPY || call->kind == OP_MEAN)) {
        host_widen(&call->tensors[call->n_tensor - 1], 0, 1,
                   &numbers->losses[step * plan->options.accum * plan->world + at]);
        if (numbers->n_logits > 0)
            host_widen(&call->tensors[0], 0, numbers->n_logits,
                       numbers->logits + at * numbers->n_logits);
    }
    if (call->pass == PASS_WGRAD && call->kind == OP_EMBEDDING && numbers->n_d_input > 0)
        host_widen(&call->tensors[1], 0, numbers->n_d_input,
                   numbers->d_input + at * numbers->n_d_input);
}

static void observe(void *context, const struct submission *submission)
{
    struct watched *watched = context;

    if (submission->work->kind == WORK_UPDATE)
        note_update(watched, submission);
    else if (submission->work->kind == WORK_OP)
        note_op(watched, submission);
    if (watched->ask->observe)
        watched->ask->observe(watched->ask->observe_context, submission);
}

/* The only buffer of this role and unit. */
static uint32_t find_buffer(const struct program *program, enum buffer_role role, uint16_t unit)
{
    uint32_t b = 0;
    while (program->buffers[b].role != role || program->buffers[b].unit != unit)
        b++;
    return b;
}

static void note_params(struct watched *watched, struct executor *executor)
{
    const struct program *program = watched->ask->program;
    const struct plan *plan = program->plan;

    for (uint32_t u = 0; u < plan->n_unit && is_of_first_replica(watched); u++) {
        const uint32_t buffer = find_buffer(program, ROLE_SHARD, (uint16_t)u);
        for (uint32_t i = 0; i < plan->units[u].n_param; i++) {
            const struct member member = unit_member(plan, program->layout, u, i);
            const struct device_tensor shard = {.at = executor_member(executor, buffer, i),
                                                .n = member.place->shard_elements,
                                                .dtype = member.policy->storage};
            put_shard(watched, &member, &shard, watched->numbers->params[member.param]);
        }
    }
}

/* One behind the other, each whole on every rank. */
static void note_ignored(struct watched *watched, struct executor *executor)
{
    const struct program *program = watched->ask->program;
    const struct plan *plan = program->plan;
    char *at = NULL;

    for (uint32_t p = 0; p < plan->model->n_param && watched->rank == 0; p++) {
        const enum dtype dtype = (enum dtype)plan->policy[p].storage;
        const uint64_t n = plan->model->params[p].numel;
        if (plan->policy[p].managed)
            continue;
        if (!at)
            at = executor_member(executor, find_buffer(program, ROLE_IGNORED, NO_UNIT), 0);
        const struct op_tensor from = {.at = at, .n = n, .dtype = (uint8_t)dtype};
        host_widen(&from, 0, n, watched->numbers->params[p]);
        at += n * dtype_bytes(dtype);
    }
}

static enum status at_end(void *context, uint32_t rank, struct executor *executor, struct err *err)
{
    struct watched *watched = context;
    struct scaler_state scaler;
    const enum status status = executor_scaler(executor, &scaler, err);

    if (status != STATUS_OK)
        return status;
    note_params(watched, executor);
    note_ignored(watched, executor);
    watched->numbers->loss_scales[rank] = scaler.loss_scale;
    return STATUS_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

static float *cut(float **at, uint64_t n)
{
    float *piece = *at;
    *at += n;
    return piece;
}

/* at NULL: nothing is there yet, and only the size is found. */
static uint64_t lay_out(struct real_numbers *numbers, const struct plan *plan, float *at)
{
    float *const begin = at;
    const uint64_t calls = plan->world * plan->options.accum;
    const uint64_t tokens = plan->options.batch * plan->options.seq;

    for (uint32_t p = 0; p < numbers->n_param; p++) {
        const uint64_t numel = plan->model->params[p].numel;
        numbers->params[p] = cut(&at, numel);
        for (uint32_t s = 0; s < numbers->n_step; s++)
            numbers->grads[s][p] = cut(&at, numel);
    }
    numbers->losses = cut(&at, numbers->n_step * calls);
    numbers->n_logits = plan->model->dims.vocab * tokens;
    numbers->logits = cut(&at, numbers->n_logits * calls);
    numbers->n_d_input = plan->model->dims.vocab > 0 ? plan->model->dims.hidden * tokens : 0;
    numbers->d_input = cut(&at, numbers->n_d_input * calls);
    numbers->loss_scales = cut(&at, plan->world);
    return (uint64_t)(at - begin);
}

static void make_room(struct real_numbers *numbers, const struct real_ask *ask)
{
    const struct plan *plan = ask->program->plan;
    static float nowhere;

    *numbers = (struct real_numbers){.n_param = plan->model->n_param,
                                     .n_step = ask->steps,
                                     .ranks = (uint32_t)plan->world,
                                     .microbatches = (uint32_t)plan->options.accum};
    arena_init(&numbers->arena);
    numbers->params = arena_array(&numbers->arena, float *, numbers->n_param);
    for (uint32_t s = 0; s < ask->steps; s++)
        numbers->grads[s] = arena_array(&numbers->arena, float *, numbers->n_param);
    numbers->block_bytes = lay_out(numbers, plan, &nowhere) * sizeof(float);
    numbers->block =
        mmap(NULL, numbers->block_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (numbers->block == MAP_FAILED)
        tap_bail("no memory for the numbers of a run");
    lay_out(numbers, plan, numbers->block);
}

static void find_norms(struct real_numbers *numbers, const struct plan *plan)
{
    for (uint32_t s = 0; s < numbers->n_step; s++) {
        double sum = 0;
        for (uint32_t p = 0; p < numbers->n_param; p++)
            for (uint64_t i = 0; i < plan->model->params[p].numel; i++)
                sum += (double)numbers->grads[s][p][i] * (double)numbers->grads[s][p][i];
        numbers->norms[s] = sqrt(sum);
    }
}

enum status real_run(const struct real_ask *ask, struct real_numbers *out, struct err *err)
{
    const struct alloc_config config = alloc_config_default();
    struct watched watched = {.ask = ask, .numbers = out};
    struct placement *placement;

    make_room(out, ask);
    placement = arena_array(&out->arena, struct placement, 1);
    if (!ask->placement)
        place_program(ask->program, &config, &out->arena, placement);
    const struct run_job job = {.program = ask->program,
                                .placement = ask->placement ? ask->placement : placement,
                                .device = ask->device ? ask->device : &host_device_ops,
                                .ranks = out->ranks,
                                .steps = ask->steps,
                                .optimizer = ask->optimizer,
                                .max_norm = ask->max_norm,
                                .sums_microbatches = ask->sums_microbatches,
                                .timeout_ns =
                                    ask->timeout_ns > 0 ? ask->timeout_ns : INT64_C(60000000000),
                                .debug = ask->debug,
                                .alloc_bias_bytes = ask->alloc_bias_bytes,
                                .die_rank = ask->die_rank - 1,
                                .hang_rank = ask->hang_rank - 1,
                                .context = &watched,
                                .values = make_values,
                                .observe = observe,
                                .at_end = at_end};
    enum status status = run_log_new(out->ranks, ask->steps, ask->program->n_task, &out->log, err);
    if (status == STATUS_OK)
        status = run_forked(&job, out->log, err);
    find_norms(out, ask->program->plan);
    return status;
}

void real_release(struct real_numbers *numbers)
{
    run_log_free(numbers->log);
    munmap(numbers->block, numbers->block_bytes);
    arena_release(&numbers->arena);
}

bool real_equal(const struct real_numbers *a, const struct real_numbers *b)
{
    return a->block_bytes == b->block_bytes && memcmp(a->block, b->block, a->block_bytes) == 0;
}
