/*
 * What one rank writes of a checkpoint: its rows, straight from where they lie; see checkpoint.h.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "gpu/checkpoint_inner.h"
#include "gpu/member.h"

enum { PIECE_BYTES = 1 << 20 };

struct writer {
    const struct checkpoint *checkpoint;
    const struct checkpoint_memory *memory;
    uint32_t rank;
    struct arena arena;
    char *piece; /* PIECE_BYTES */
    struct {
        const char *path;
        int fd;
    } files[CHECKPOINT_FILE_N];
};

/* From the rank's memory, which may be a device's, piece by piece. */
static enum status write_bytes(const struct writer *to, enum checkpoint_file file, const char *from,
                               uint64_t bytes, uint64_t at_bytes, struct err *err)
{
    enum status status = STATUS_OK;

    for (uint64_t done = 0, n; done < bytes && !status; done += n) {
        n = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        status = to->memory->read(to->memory->context, to->piece, from + done, n, err);
        if (!status)
            status = checkpoint_write_at(to->files[file].fd, to->files[file].path, to->piece, n,
                                         at_bytes + done, err);
    }
    return status;
}

static uint32_t find_buffer(const struct program *program, enum buffer_role role, uint32_t unit)
{
    for (uint32_t b = 0; b < program->n_buffer; b++)
        if (program->buffers[b].role == role && program->buffers[b].unit == unit)
            return b;
    return NO_BUFFER;
}

/* ---- shards -------------------------------------------------------------------------------- */

static enum status write_shard(const struct writer *to, enum checkpoint_file file,
                               const struct member *member, const struct tensor *tensor,
                               const char *from, struct err *err)
{
    const struct rows rows = member_rows(member, to->rank);
    const uint64_t row_bytes = member->behind * dtype_bytes((enum dtype)member->policy->storage);
    const uint64_t chunk_bytes = member->place->chunk_rows * row_bytes;
    enum status status = STATUS_OK;

    for (uint64_t b = 0; b < member->before && rows.n > 0 && !status; b++)
        status =
            write_bytes(to, file, from + b * chunk_bytes, rows.n * row_bytes,
                        tensor->at_bytes + (b * member->place->rows + rows.first) * row_bytes, err);
    return status;
}

/* The counter is the same on all ranks. first: the buffer's member that it is. */
static enum status write_moments(const struct writer *to, const struct member *member,
                                 uint32_t states, uint32_t first, struct err *err)
{
    const struct checkpoint_memory *memory = to->memory;
    const struct tensor *tensors =
        &to->checkpoint->files[FILE_OPTIMIZER].list.at[to->checkpoint->moments[member->param]];
    enum status status = STATUS_OK;

    assert(states != NO_BUFFER);
    if (to->rank == 0)
        status = write_bytes(to, FILE_OPTIMIZER,
                             memory->member(memory->context, states, first + MOMENT_STEP),
                             dtype_bytes(DTYPE_FP32), tensors[MOMENT_STEP].at_bytes, err);
    for (int m = MOMENT_EXP_AVG; m < CHECKPOINT_MOMENT_N && !status; m++)
        status = write_shard(to, FILE_OPTIMIZER, member, &tensors[m],
                             memory->member(memory->context, states, first + (uint32_t)m), err);
    return status;
}

static enum status write_unit(const struct writer *to, uint32_t unit, struct err *err)
{
    const struct checkpoint *checkpoint = to->checkpoint;
    const struct program *program = checkpoint->setup.program;
    const struct plan *plan = program->plan;
    const uint32_t shard = find_buffer(program, ROLE_SHARD, unit);
    const uint32_t states = find_buffer(program, ROLE_STATE, unit);
    uint32_t nth = 0;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < plan->units[unit].n_param && !status; i++) {
        const struct member member = unit_member(plan, program->layout, unit, i);
        status = write_shard(to, FILE_PARAMETERS, &member,
                             &checkpoint->files[FILE_PARAMETERS].list.at[member.param],
                             to->memory->member(to->memory->context, shard, i), err);
        if (!status && checkpoint->setup.state.adamw && member.place->bucket != NO_BUCKET)
            status = write_moments(to, &member, states, CHECKPOINT_MOMENT_N * nth++, err);
    }
    return status;
}

/* ---- what all ranks have in common --------------------------------------------------------- */

/* Whole, one behind the other, in the order of the model. */
static enum status write_ignored(const struct writer *to, struct err *err)
{
    const struct program *program = to->checkpoint->setup.program;
    const struct plan *plan = program->plan;
    const uint32_t buffer = find_buffer(program, ROLE_IGNORED, NO_UNIT);
    const char *from =
        buffer == NO_BUFFER ? NULL : to->memory->member(to->memory->context, buffer, 0);
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < plan->model->n_param && !status; i++) {
        if (plan->policy[i].managed)
            continue;
        const uint64_t bytes =
            plan->model->params[i].numel * dtype_bytes((enum dtype)plan->policy[i].storage);
        status = write_bytes(to, FILE_PARAMETERS, from, bytes,
                             to->checkpoint->files[FILE_PARAMETERS].list.at[i].at_bytes, err);
        from += bytes;
    }
    return status;
}

static enum status close_written(int fd, const char *path, enum status status, struct err *err)
{
    if (!status && fsync(fd) != 0)
        status = checkpoint_fail_write(path, err);
    if (close(fd) != 0 && !status)
        status = checkpoint_fail_write(path, err);
    return status;
}

static enum status write_state(struct writer *to, struct err *err)
{
    struct checkpoint_state state = to->checkpoint->setup.state;
    const char *path = checkpoint_partial_path(to->checkpoint, CHECKPOINT_STATE_NAME, &to->arena);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct text text;

    if (fd < 0)
        return checkpoint_fail_write(path, err);
    state.scaler = to->memory->scaler;
    text_init(&text);
    checkpoint_state_print(&state, to->checkpoint->setup.program->plan->model->name, &text);
    const enum status status = checkpoint_write_at(fd, path, text.at, text.length, 0, err);
    text_release(&text);
    return close_written(fd, path, status, err);
}

/* ---- a rank -------------------------------------------------------------------------------- */

static enum status open_files(struct writer *to, struct err *err)
{
    for (int f = 0; f < CHECKPOINT_FILE_N; f++) {
        if (!checkpoint_has_file(to->checkpoint, f))
            continue;
        to->files[f].path = checkpoint_partial_path(
            to->checkpoint, checkpoint_file_name((enum checkpoint_file)f), &to->arena);
        to->files[f].fd = open(to->files[f].path, O_WRONLY | O_CLOEXEC);
        if (to->files[f].fd < 0)
            return checkpoint_fail_write(to->files[f].path, err);
    }
    return STATUS_OK;
}

static enum status write_all(struct writer *to, struct err *err)
{
    const struct plan *plan = to->checkpoint->setup.program->plan;
    enum status status = open_files(to, err);

    for (uint32_t u = 0; u < plan->n_unit && !status; u++)
        status = write_unit(to, u, err);
    if (!status && to->rank == 0)
        status = write_ignored(to, err);
    return status;
}

enum status checkpoint_write_memory(const struct checkpoint *checkpoint, uint32_t rank,
                                    const struct checkpoint_memory *memory, struct err *err)
{
    struct writer to = {.checkpoint = checkpoint, .memory = memory, .rank = rank};

    if (rank >= checkpoint->setup.program->plan->shard_ranks)
        return STATUS_OK;
    arena_init(&to.arena);
    to.piece = arena_take(&to.arena, PIECE_BYTES);
    for (int f = 0; f < CHECKPOINT_FILE_N; f++)
        to.files[f].fd = -1;
    enum status status = write_all(&to, err);
    for (int f = 0; f < CHECKPOINT_FILE_N; f++)
        if (to.files[f].fd >= 0)
            status = close_written(to.files[f].fd, to.files[f].path, status, err);
    if (!status && rank == 0)
        status = write_state(&to, err);
    arena_release(&to.arena);
    return status;
}
