/*
 * What each kind of work is on a CUDA device: one function a kind, which only enqueues.
 *
 * Arithmetic is elsewhere: gpu/cuda_pack.h, gpu/cuda_ops.h, gpu/cuda_step.h, gpu/cuda_product.c,
 * gpu/cuda_nccl.c. What work needs on the device is put there once, when it is prepared.
 *
 * Invariant: scratch is used by stream C alone, one work after the other.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/bell.h"
#include "gpu/cuda_inner.h"
#include "gpu/cuda_stand_in.h"
#include "gpu/cuda_step.h"

/* ---- preparing ----------------------------------------------------------------------------- */

/* What was submitted may still use the old one. */
static enum status need_scratch(struct cuda_device *device, uint64_t bytes, struct err *err)
{
    enum status status = STATUS_OK;

    if (bytes <= device->scratch_bytes)
        return STATUS_OK;
    if (device->scratch) {
        status = CUDA_CALL(err, cudaEventRecord, device->drained, device->streams[STREAM_C]);
        if (status == STATUS_OK)
            status = cuda_join(device, device->drained, stream_name(STREAM_C), err);
        if (status == STATUS_OK)
            status = cuda_outside_give(&device->outside, &device->scratch, err);
        device->scratch_bytes = 0;
    }
    if (status == STATUS_OK)
        status = cuda_outside_take(&device->outside, bytes, &device->scratch, err);
    if (status == STATUS_OK)
        device->scratch_bytes = bytes;
    return status;
}

/* The table with its tiles and rows on the device. */
static enum status put_table(struct cuda_device *device, struct pack_table *table, struct err *err)
{
    void *tiles = NULL, *rows = NULL;
    enum status status = STATUS_OK;

    if (table->n_tile > 0)
        status = cuda_tables_put(&device->tables, table->tiles,
                                 table->n_tile * sizeof(*table->tiles), &tiles, err);
    if (status == STATUS_OK && table->n_rows > 0)
        status = cuda_tables_put(&device->tables, table->rows, table->n_rows * sizeof(*table->rows),
                                 &rows, err);
    table->tiles = tiles;
    table->rows = rows;
    return status;
}

/* Kept beside the work: [n] of struct pack_table, or of struct pack_posts. */
static void *keep(struct cuda_device *device, size_t bytes)
{
    return arena_alloc(&device->kept, bytes);
}

static enum status prepare_packs(struct cuda_device *device, struct work *work, struct err *err)
{
    struct pack_table *tables = keep(device, work->n * sizeof(*tables));
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < work->n && status == STATUS_OK; i++) {
        tables[i] = *work->is.packs[i].table;
        status = put_table(device, &tables[i], err);
    }
    work->prepared = tables;
    return status;
}

static enum status prepare_posts(struct cuda_device *device, struct work *work, struct err *err)
{
    struct pack_posts *posts = keep(device, work->n * sizeof(*posts));
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < work->n && status == STATUS_OK; i++) {
        pack_posts_build(&work->is.posts[i], 1, &device->kept, &posts[i]);
        status = put_table(device, &posts[i].table, err);
    }
    work->prepared = posts;
    return status;
}

/* What a kernel is given of an operator, and the library's product where it has one. */
struct prepared_op {
    struct cuda_op op;
    struct cuda_product *product;
};

static enum status prepare_op(struct cuda_device *device, struct work *work, struct err *err)
{
    const struct op_call *call = work->is.op;
    struct prepared_op *prepared = keep(device, sizeof(*prepared));
    enum status status = STATUS_OK;

    prepared->op = (struct cuda_op){.call = *call, .shape = *call->shape};
    if (call->kind == OP_MM)
        status = cuda_products_prepare(device->products, call, &prepared->product, err);
    work->prepared = prepared;
    if (status != STATUS_OK)
        return status;
    return need_scratch(
        device, prepared->product ? cuda_product_scratch_bytes(call) : cuda_op_scratch_bytes(call),
        err);
}

enum status cuda_prepare(struct cuda_device *device, struct work *work, struct err *err)
{
    switch ((enum work_kind)work->kind) {
    case WORK_PACK:
        return prepare_packs(device, work, err);
    case WORK_POST:
        return prepare_posts(device, work, err);
    case WORK_OP:
        return prepare_op(device, work, err);
    case WORK_SQUARES:
        return need_scratch(device, cuda_squares_scratch_bytes(&work->is.squares), err);
    case WORK_UPDATE:
        return need_scratch(device, cuda_update_scratch_bytes(&work->is.update), err);
    default:
        return STATUS_OK;
    }
}

/* ---- results ------------------------------------------------------------------------------- */

enum status cuda_results_collect(struct cuda_device *device, struct err *err)
{
    for (; device->n_result > 0; device->n_result--) {
        const struct cuda_result *result = &device->pending[device->first_result];
        const cudaError_t error = cudaEventQuery(result->written);
        if (error != cudaSuccess)
            return error == cudaErrorNotReady ? STATUS_OK
                                              : cuda_status(error, "cudaEventQuery", err);
        *result->to = *result->from;
        device->first_result = (device->first_result + 1) % CUDA_RESULTS;
    }
    return STATUS_OK;
}

/* Waits for the oldest where all are on their way. */
static enum status next_result(struct cuda_device *device, struct cuda_result **out,
                               struct err *err)
{
    enum status status = STATUS_OK;

    if (device->n_result == CUDA_RESULTS)
        status = cuda_join(device, device->pending[device->first_result].written,
                           stream_name(STREAM_C), err);
    if (status == STATUS_OK)
        status = cuda_results_collect(device, err);
    if (status != STATUS_OK)
        return status;
    const uint32_t slot = (device->first_result + device->n_result) % CUDA_RESULTS;
    *out = &device->pending[slot];
    (*out)->from = &device->results[slot];
    return STATUS_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef enum status run_work(struct cuda_device *device, enum stream number,
                             const struct submission *submission, struct err *err);

static enum status run_nothing(struct cuda_device *device, enum stream number,
                               const struct submission *submission, struct err *err)
{
    (void)device, (void)number, (void)submission, (void)err;
    return STATUS_OK;
}

static enum status run_fill(struct cuda_device *device, enum stream number,
                            const struct submission *submission, struct err *err)
{
    const struct work_fill *fill = &submission->work->is.fill;
    return CUDA_CALL(err, cudaMemsetAsync, fill->to, fill->value, fill->bytes,
                     device->streams[number]);
}

/* A buffer that nobody copies from any more, large enough. */
static enum status take_stage(struct cuda_device *device, uint64_t bytes, struct cuda_stage **out,
                              struct err *err)
{
    struct cuda_stage *stage = &device->stages[device->next_stage];
    enum status status = STATUS_OK;

    device->next_stage = (device->next_stage + 1) % CUDA_STAGES;
    if (stage->at)
        status = cuda_join(device, stage->used, "of copies", err);
    if (status == STATUS_OK && stage->bytes < bytes) {
        if (stage->at)
            status = CUDA_CALL(err, cudaFreeHost, stage->at);
        stage->at = NULL;
        stage->bytes = 0;
        if (status == STATUS_OK)
            status = CUDA_CALL(err, cudaMallocHost, &stage->at, bytes);
        stage->bytes = status == STATUS_OK ? bytes : 0;
    }
    *out = stage;
    return status;
}

enum status cuda_give(struct cuda_device *device, const struct work_give *give, void *to,
                      uint32_t step, cudaStream_t stream, struct err *err)
{
    struct cuda_stage *stage = NULL;
    enum status status = take_stage(device, give->bytes, &stage, err);

    if (status == STATUS_OK)
        status = give->fill(give->context, step, give->what, stage->at, give->bytes, err);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaMemcpyAsync, to, stage->at, give->bytes, cudaMemcpyHostToDevice,
                           stream);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaEventRecord, stage->used, stream);
    return status;
}

static enum status run_give(struct cuda_device *device, enum stream number,
                            const struct submission *submission, struct err *err)
{
    const struct work_give *give = &submission->work->is.give;
    const cudaStream_t stream = device->streams[number];

    return device->graphs.captures
               ? cuda_graph_give(device, give, stream, err)
               : cuda_give(device, give, give->to, submission->step, stream, err);
}

static enum status run_copy(struct cuda_device *device, enum stream number,
                            const struct submission *submission, struct err *err)
{
    const struct work_copy *copy = &submission->work->is.copy;
    return CUDA_CALL(err, cudaMemcpyAsync, copy->to, copy->from, copy->bytes,
                     cudaMemcpyDeviceToDevice, device->streams[number]);
}

static enum status run_pack(struct cuda_device *device, enum stream number,
                            const struct submission *submission, struct err *err)
{
    const struct work *work = submission->work;
    const struct pack_table *tables = work->prepared;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < work->n && status == STATUS_OK; i++)
        status = cuda_pack(&tables[i], work->is.packs[i].from, work->is.packs[i].to, &device->grid,
                           device->streams[number], err);
    return status;
}

static enum status run_post(struct cuda_device *device, enum stream number,
                            const struct submission *submission, struct err *err)
{
    const struct pack_posts *posts = submission->work->prepared;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < submission->work->n && status == STATUS_OK; i++)
        status = cuda_post_reduce(&posts[i], &device->grid, device->streams[number], err);
    return status;
}

static enum status run_op(struct cuda_device *device, enum stream number,
                          const struct submission *submission, struct err *err)
{
    const struct prepared_op *prepared = submission->work->prepared;
    struct cuda_op op = prepared->op;

    assert(number == STREAM_C);
    op.scratch = device->scratch;
    if (prepared->product)
        return cuda_products_run(device->products, prepared->product, &op, device->streams[number],
                                 err);
    return cuda_op_run(&op, device->streams[number], err);
}

/* Stand-ins of one communicator run one after the other, whatever streams they are on. */
static enum status emulate(struct cuda_device *device, const struct work_collective *collective,
                           cudaStream_t stream, struct err *err)
{
    const struct stand_in in = stand_in_of(collective);
    cudaEvent_t *event = &device->emulated[collective->comm];
    enum status status = STATUS_OK;

    if (!*event)
        status = CUDA_CALL(err, cudaEventCreateWithFlags, event, cudaEventDisableTiming);
    if (status == STATUS_OK && device->follows[collective->comm])
        status = CUDA_CALL(err, cudaStreamWaitEvent, stream, *event, 0);
    if (status == STATUS_OK)
        status = cuda_stand_in(&in, stream, err);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaEventRecord, *event, stream);
    device->follows[collective->comm] = true;
    return status;
}

static enum status run_collective(struct cuda_device *device, enum stream number,
                                  const struct submission *submission, struct err *err)
{
    const struct work_collective *collective = &submission->work->is.collective;

    if (collective->emulated_ranks > 0)
        return emulate(device, collective, device->streams[number], err);
    return cuda_comms_run(device->comms, collective, device->streams[number], err);
}

static enum status run_squares(struct cuda_device *device, enum stream number,
                               const struct submission *submission, struct err *err)
{
    assert(number == STREAM_C);
    return cuda_squares(&submission->work->is.squares, submission->work->state, device->scratch,
                        device->streams[number], err);
}

static enum status run_scale(struct cuda_device *device, enum stream number,
                             const struct submission *submission, struct err *err)
{
    return cuda_scale(&submission->work->is.scale, device->streams[number], err);
}

static enum status run_update(struct cuda_device *device, enum stream number,
                              const struct submission *submission, struct err *err)
{
    assert(number == STREAM_C);
    return cuda_update(&submission->work->is.update, submission->work->state, device->scratch,
                       device->streams[number], err);
}

static enum status run_loss(struct cuda_device *device, enum stream number,
                            const struct submission *submission, struct err *err)
{
    return cuda_loss(submission->work->is.loss, submission->work->state, device->streams[number],
                     err);
}

static enum status run_verdict(struct cuda_device *device, enum stream number,
                               const struct submission *submission, struct err *err)
{
    return cuda_verdict(submission->work->is.verdict, submission->work->state,
                        device->streams[number], err);
}

static enum status run_step_end(struct cuda_device *device, enum stream number,
                                const struct submission *submission, struct err *err)
{
    const struct work *work = submission->work;
    const cudaStream_t stream = device->streams[number];
    struct cuda_result *result = NULL;
    enum status status = next_result(device, &result, err);

    if (status == STATUS_OK)
        status = cuda_step_end(work->state, result->from, stream, err);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaEventRecord, result->written, stream);
    if (status != STATUS_OK)
        return status;
    result->to = &work->is.results[submission->step];
    device->n_result++;
    return STATUS_OK;
}

/* Up to 200 us, as on the host. */
static enum status jitter(struct cuda_device *device, enum stream number, struct err *err)
{
    uint64_t bits = device->setup.debug.jitter_seed;

    if (bits == 0)
        return STATUS_OK;
    bits = bits * 0x9e3779b97f4a7c15u + device->n_submitted++;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return cuda_delay((bits ^ (bits >> 31)) % 200000, device->streams[number], err);
}

enum status cuda_work_run(struct cuda_device *device, enum stream number,
                          const struct submission *submission, struct err *err)
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
    const enum status status = jitter(device, number, err);

    assert(submission->work->kind < sizeof(runs) / sizeof(runs[0]));
    return status != STATUS_OK ? status
                               : runs[submission->work->kind](device, number, submission, err);
}
