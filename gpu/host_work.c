/*
 * What each kind of work does on the host: one function a kind, called on a queue's thread.
 *
 * Arithmetic is elsewhere: packing in gpu/host_pack.c, operators in gpu/host_ops.c, reductions in
 * gpu/reduce_ranks.c, optimizers in gpu/host_update.c. Invariant: nothing is kept between two calls but
 * what the work itself names.
 */
#include <assert.h>
#include <string.h>

#include "gpu/host_inner.h"
#include "gpu/step_body.h"

typedef enum status run_work(struct host_queue *queue, const struct submission *submission,
                             struct err *err);

static enum status run_nothing(struct host_queue *queue, const struct submission *submission,
                               struct err *err)
{
    (void)queue, (void)submission, (void)err;
    return STATUS_OK;
}

static enum status run_fill(struct host_queue *queue, const struct submission *submission,
                            struct err *err)
{
    const struct work_fill *fill = &submission->work->is.fill;
    (void)queue, (void)err;
    memset(fill->to, fill->value, fill->bytes);
    return STATUS_OK;
}

static enum status run_give(struct host_queue *queue, const struct submission *submission,
                            struct err *err)
{
    const struct work_give *give = &submission->work->is.give;
    (void)queue;
    return give->fill(give->context, submission->step, give->what, give->to, give->bytes, err);
}

static enum status run_copy(struct host_queue *queue, const struct submission *submission,
                            struct err *err)
{
    const struct work_copy *copy = &submission->work->is.copy;
    (void)queue, (void)err;
    memcpy(copy->to, copy->from, copy->bytes);
    return STATUS_OK;
}

static enum status run_pack(struct host_queue *queue, const struct submission *submission,
                            struct err *err)
{
    const struct work *work = submission->work;
    (void)queue, (void)err;
    for (uint32_t i = 0; i < work->n; i++)
        host_pack(work->is.packs[i].table, work->is.packs[i].from, work->is.packs[i].to);
    return STATUS_OK;
}

static enum status run_post(struct host_queue *queue, const struct submission *submission,
                            struct err *err)
{
    const struct work *work = submission->work;
    (void)queue, (void)err;
    for (uint32_t i = 0; i < work->n; i++)
        host_post_reduce(&work->is.posts[i]);
    return STATUS_OK;
}

static enum status run_op(struct host_queue *queue, const struct submission *submission,
                          struct err *err)
{
    const struct op_call *call = submission->work->is.op;
    host_op *op = host_op_find((enum op_kind)call->kind, (enum op_pass)call->pass);
    (void)queue;
    if (!op)
        return err_set(err, STATUS_RUN, "the host has no operator '%s' in this pass",
                       op_kind_name((enum op_kind)call->kind));
    op(call);
    return STATUS_OK;
}

static enum status run_collective(struct host_queue *queue, const struct submission *submission,
                                  struct err *err)
{
    return host_collective(queue, &submission->work->is.collective, err);
}

static enum status run_squares(struct host_queue *queue, const struct submission *submission,
                               struct err *err)
{
    (void)queue, (void)err;
    host_squares(&submission->work->is.squares, submission->work->state);
    return STATUS_OK;
}

static enum status run_scale(struct host_queue *queue, const struct submission *submission,
                             struct err *err)
{
    (void)queue, (void)err;
    host_scale(&submission->work->is.scale);
    return STATUS_OK;
}

/* A scaler that found infinities leaves out the step, but not the count of them. */
static enum status run_update(struct host_queue *queue, const struct submission *submission,
                              struct err *err)
{
    const struct work *work = submission->work;
    (void)queue, (void)err;
    if (work->state)
        work->state->not_finite += host_not_finite(&work->is.update);
    if (!work->state || work->state->inf_found == 0)
        host_update(&work->is.update);
    return STATUS_OK;
}

static enum status run_loss(struct host_queue *queue, const struct submission *submission,
                            struct err *err)
{
    const struct work *work = submission->work;
    (void)queue, (void)err;
    *work->is.loss = (float)work->state->loss;
    return STATUS_OK;
}

static enum status run_verdict(struct host_queue *queue, const struct submission *submission,
                               struct err *err)
{
    const struct work *work = submission->work;
    (void)queue, (void)err;
    work->state->inf_found = *work->is.verdict != 0;
    return STATUS_OK;
}

static enum status run_step_end(struct host_queue *queue, const struct submission *submission,
                                struct err *err)
{
    const struct work *work = submission->work;
    (void)queue, (void)err;
    step_end(work->state, &work->is.results[submission->step]);
    return STATUS_OK;
}

enum status host_work_run(struct host_queue *queue, const struct submission *submission,
                          struct err *err)
{
    static run_work *const runs[] = {
        [WORK_NOTHING] = run_nothing, [WORK_FILL] = run_fill,
        [WORK_GIVE] = run_give,       [WORK_COPY] = run_copy,
        [WORK_PACK] = run_pack,       [WORK_POST] = run_post,
        [WORK_OP] = run_op,           [WORK_COLLECTIVE] = run_collective,
        [WORK_SQUARES] = run_squares, [WORK_SCALE] = run_scale,
        [WORK_UPDATE] = run_update,   [WORK_LOSS] = run_loss,
        [WORK_VERDICT] = run_verdict, [WORK_STEP_END] = run_step_end,
    };
    assert(submission->work->kind < sizeof(runs) / sizeof(runs[0]));
    return runs[submission->work->kind](queue, submission, err);
}
