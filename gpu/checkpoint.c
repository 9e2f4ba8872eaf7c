/*
 * The folder of a checkpoint from its first byte to its name; see checkpoint.h. What ranks write
 * into it is in checkpoint_rank.c.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/checkpoint_inner.h"

enum { FOLDER_MODE = 0777, FILE_MODE = 0666 }; /* less what umask takes */

const char *checkpoint_file_name(enum checkpoint_file file)
{
    static const char *const names[] = {
#define X(id, name) name,
        CHECKPOINT_FILES(X)
#undef X
    };
    return names[file];
}

const char *checkpoint_moment_name(const struct param *param, enum checkpoint_moment moment,
                                   struct arena *arena)
{
    static const char *const names[] = {
#define X(id, name) name,
        CHECKPOINT_MOMENTS(X)
#undef X
    };
    return arena_printf(arena, "%s.%s", param->name, names[moment]);
}

enum status checkpoint_fail_write(const char *path, struct err *err)
{
    return err_set(err, STATUS_INPUT, "cannot write '%s': %s", path, strerror(errno));
}

enum status checkpoint_write_at(int fd, const char *path, const void *from, uint64_t bytes,
                                uint64_t at_bytes, struct err *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n =
            pwrite(fd, (const char *)from + done, bytes - done, (off_t)(at_bytes + done));
        if (n < 0 && errno != EINTR)
            return checkpoint_fail_write(path, err);
        done += n > 0 ? (uint64_t)n : 0;
    }
    return STATUS_OK;
}

/* ---- what will be in it -------------------------------------------------------------------- */

static void add_tensor(struct checkpoint *checkpoint, enum checkpoint_file file,
                       const struct tensor *tensor)
{
    struct tensor_list *list = &checkpoint->files[file].list;

    list->at = arena_grow(&checkpoint->arena, list->at, &list->cap, list->n + 1, sizeof *list->at);
    list->at[list->n++] = *tensor;
}

static void add_moments(struct checkpoint *checkpoint, const struct param *param,
                        const struct tensor *whole)
{
    for (int m = 0; m < CHECKPOINT_MOMENT_N; m++) {
        struct tensor tensor = *whole;
        if (m == MOMENT_STEP)
            tensor =
                (struct tensor){.stored = safetensors_dtype(DTYPE_FP32), .n_dim = 1, .shape = {1}};
        tensor.name = checkpoint_moment_name(param, (enum checkpoint_moment)m, &checkpoint->arena);
        add_tensor(checkpoint, FILE_OPTIMIZER, &tensor);
    }
}

static void list_tensors(struct checkpoint *checkpoint)
{
    const struct plan *plan = checkpoint->setup.program->plan;

    for (uint32_t i = 0; i < plan->model->n_param; i++) {
        const struct param *param = &plan->model->params[i];
        struct tensor tensor = {.name = param->name,
                                .stored = safetensors_dtype((enum dtype)plan->policy[i].storage),
                                .n_dim = param->n_dim};
        memcpy(tensor.shape, param->shape, sizeof tensor.shape);
        add_tensor(checkpoint, FILE_PARAMETERS, &tensor);
        checkpoint->moments[i] = checkpoint->files[FILE_OPTIMIZER].list.n;
        if (checkpoint->setup.state.adamw && checkpoint_is_updated(plan, i))
            add_moments(checkpoint, param, &tensor);
    }
}

/* "out/" is the folder "out". */
static char *without_slashes(const char *dir, struct arena *arena)
{
    char *text = arena_strdup(arena, dir);

    for (size_t n = strlen(text); n > 1 && text[n - 1] == '/'; n--)
        text[n - 1] = '\0';
    return text;
}

struct checkpoint *checkpoint_new(const struct checkpoint_setup *setup)
{
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);

    if (!checkpoint)
        err_out_of_memory(sizeof *checkpoint);
    assert(setup->program->plan->options.system == SYSTEM_FSDP2);
    arena_init(&checkpoint->arena);
    checkpoint->setup = *setup;
    checkpoint->dir = without_slashes(setup->dir, &checkpoint->arena);
    checkpoint->partial = arena_printf(&checkpoint->arena, "%s.partial", checkpoint->dir);
    checkpoint->moments =
        arena_array(&checkpoint->arena, uint32_t, setup->program->plan->model->n_param + 1);
    list_tensors(checkpoint);
    for (int f = 0; f < CHECKPOINT_FILE_N; f++)
        if (checkpoint_has_file(checkpoint, f))
            checkpoint->files[f].head =
                safetensors_lay_out(&checkpoint->files[f].list, &checkpoint->arena);
    return checkpoint;
}

/* ---- create -------------------------------------------------------------------------------- */

/* At full size, with space for all of it, so that a full disk is found before time is spent. */
static enum status create_file(const char *path, const struct safetensors_head *head,
                               struct err *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);

    if (fd < 0)
        return checkpoint_fail_write(path, err);
    enum status status = checkpoint_write_at(fd, path, head->at, head->bytes, 0, err);
    if (!status) {
        errno = posix_fallocate(fd, 0, (off_t)head->file_bytes);
        status = errno ? checkpoint_fail_write(path, err) : STATUS_OK;
    }
    if (close(fd) != 0 && !status)
        status = checkpoint_fail_write(path, err);
    return status;
}

static void remove_partial(struct checkpoint *checkpoint)
{
    for (int f = 0; f < CHECKPOINT_FILE_N; f++)
        unlink(checkpoint_partial_path(checkpoint, checkpoint_file_name((enum checkpoint_file)f),
                                       &checkpoint->arena));
    unlink(checkpoint_partial_path(checkpoint, CHECKPOINT_STATE_NAME, &checkpoint->arena));
    rmdir(checkpoint->partial);
    checkpoint->created = false;
}

static enum status check_new(const struct checkpoint *checkpoint, struct err *err)
{
    struct stat st;

    if (*checkpoint->dir == '\0')
        return err_set(err, STATUS_INPUT, "cannot save to a folder without a name");
    if (checkpoint->setup.state.seed >= UINT64_C(1) << 53)
        return err_set(err, STATUS_INPUT,
                       "cannot save to '%s': seed %" PRIu64 " is past 2^53 - 1, which a checkpoint "
                       "cannot hold",
                       checkpoint->dir, checkpoint->setup.state.seed);
    if (lstat(checkpoint->dir, &st) == 0)
        return err_set(err, STATUS_INPUT,
                       "cannot save to '%s': it is there already; name another folder",
                       checkpoint->dir);
    if (lstat(checkpoint->partial, &st) == 0)
        return err_set(err, STATUS_INPUT,
                       "cannot save to '%s': '%s' is there, of a run that goes on or did not end; "
                       "remove it or name another folder",
                       checkpoint->dir, checkpoint->partial);
    return STATUS_OK;
}

enum status checkpoint_create(struct checkpoint *checkpoint, struct err *err)
{
    enum status status = check_new(checkpoint, err);

    if (status)
        return status;
    if (mkdir(checkpoint->partial, FOLDER_MODE) != 0)
        return checkpoint_fail_write(checkpoint->partial, err);
    checkpoint->created = true;
    for (int f = 0; f < CHECKPOINT_FILE_N && !status; f++)
        if (checkpoint_has_file(checkpoint, f))
            status = create_file(
                checkpoint_partial_path(checkpoint, checkpoint_file_name((enum checkpoint_file)f),
                                        &checkpoint->arena),
                &checkpoint->files[f].head, err);
    if (status)
        remove_partial(checkpoint);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------- */

static enum status sync_folder(const char *path, struct err *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = STATUS_OK;

    if (fd < 0 || fsync(fd) != 0)
        status = checkpoint_fail_write(path, err);
    if (fd >= 0)
        close(fd);
    return status;
}

static const char *parent_of(const char *dir, struct arena *arena)
{
    const char *slash = strrchr(dir, '/');

    if (!slash)
        return ".";
    return slash == dir ? "/" : arena_printf(arena, "%.*s", (int)(slash - dir), dir);
}

enum status checkpoint_commit(struct checkpoint *checkpoint, struct err *err)
{
    checkpoint->created = false;
    enum status status = sync_folder(checkpoint->partial, err);
    if (!status && rename(checkpoint->partial, checkpoint->dir) != 0)
        status = err_set(err, STATUS_INPUT, "cannot name '%s': %s; all that was saved is in '%s'",
                         checkpoint->dir, strerror(errno), checkpoint->partial);
    if (!status)
        status = sync_folder(parent_of(checkpoint->dir, &checkpoint->arena), err);
    return status;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    if (checkpoint->created)
        remove_partial(checkpoint);
    arena_release(&checkpoint->arena);
    free(checkpoint);
}
