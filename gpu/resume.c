/*
 * Reading checkpoints; see resume.h.
 */
#include "gpu/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/checkpoint_inner.h"
#include "gpu/ops.h"

static const char SOURCE[] = "the model of this run";

struct saved_file {
    const char *path;
    int fd;
    uint64_t bytes;
    struct tensor_list list; /* sorted */
};

/* What a callback reads of: a tensor that was checked. */
struct saved {
    const struct tensor *tensor;
    enum dtype dtype;
};

struct resume {
    struct arena arena;
    const struct plan *plan;
    struct checkpoint_state state;
    struct saved_file files[CHECKPOINT_FILE_N];
    struct saved *params; /* by parameter */
    struct saved (*moments)[CHECKPOINT_MOMENT_N];
    float *updates; /* by parameter */
};

/* ---- bytes --------------------------------------------------------------------------------- */

static enum status fail_read(const char *path, const char *why, struct err *err)
{
    return err_set(err, STATUS_INPUT, "cannot read '%s': %s", path, why);
}

static enum status read_at(const struct saved_file *file, void *to, uint64_t bytes,
                           uint64_t at_bytes, struct err *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n =
            pread(file->fd, (char *)to + done, bytes - done, (off_t)(at_bytes + done));
        if (n == 0)
            return fail_read(file->path, "it ends too early", err);
        if (n < 0 && errno != EINTR)
            return fail_read(file->path, strerror(errno), err);
        done += n > 0 ? (uint64_t)n : 0;
    }
    return STATUS_OK;
}

static enum status read_values(const struct saved_file *file, const struct saved *saved,
                               uint64_t first, uint64_t n, float *out, struct err *err)
{
    enum { CHUNK = 4096 };
    _Alignas(float) unsigned char raw[CHUNK * sizeof(float)];
    const uint64_t size = dtype_bytes(saved->dtype);
    enum status status = STATUS_OK;

    for (uint64_t i = 0; i < n && !status; i += CHUNK) {
        const uint64_t part = n - i < CHUNK ? n - i : CHUNK;
        const struct op_tensor tensor = {.at = raw, .n = part, .dtype = (uint8_t)saved->dtype};
        status = read_at(file, raw, part * size, saved->tensor->at_bytes + (first + i) * size, err);
        if (!status)
            host_widen(&tensor, 0, part, out + i);
    }
    return status;
}

/* ---- checks -------------------------------------------------------------------------------- */

static enum status open_file(struct resume *resume, enum checkpoint_file which, const char *dir,
                             struct err *err)
{
    struct saved_file *file = &resume->files[which];
    struct stat st;

    file->path = arena_printf(&resume->arena, "%s/%s", dir, checkpoint_file_name(which));
    enum status status = safetensors_read(file->path, &resume->arena, &file->list, err);
    if (status)
        return status;
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        return fail_read(file->path, strerror(errno), err);
    file->bytes = (uint64_t)st.st_size;
    return STATUS_OK;
}

/* Of a tensor with n elements. A header alone is a file too, but one without data. */
static enum status check_data(const struct saved_file *file, const struct tensor *tensor,
                              uint64_t n, struct saved *out, struct err *err)
{
    enum dtype dtype;

    if (!safetensors_dtype_of(tensor->stored, &dtype))
        return err_set(err, STATUS_INPUT,
                       "%s: tensor '%s' is %s; F32, BF16 and F16 are what a run can start from",
                       file->path, tensor->name, tensor->stored);
    const uint64_t end = tensor->at_bytes + n * dtype_bytes(dtype);
    if (end > file->bytes)
        return err_set(err, STATUS_INPUT,
                       "%s: tensor '%s' ends at byte %" PRIu64 ", the file has %" PRIu64,
                       file->path, tensor->name, end, file->bytes);
    *out = (struct saved){.tensor = tensor, .dtype = dtype};
    return STATUS_OK;
}

static enum status check_params(struct resume *resume, struct err *err)
{
    const struct saved_file *file = &resume->files[FILE_PARAMETERS];
    const struct model *model = resume->plan->model;
    enum status status = model_check_tensors(model, &file->list, SOURCE, &resume->arena, err);

    for (uint32_t i = 0; i < model->n_param && !status; i++)
        status = check_data(file, model_find_tensor(model, &file->list, &model->params[i]),
                            model->params[i].numel, &resume->params[i], err);
    return status;
}

static enum status read_updates(struct resume *resume, uint32_t i, struct err *err)
{
    const struct saved_file *file = &resume->files[FILE_OPTIMIZER];
    const struct saved *step = &resume->moments[i][MOMENT_STEP];
    enum status status = read_values(file, step, 0, 1, &resume->updates[i], err);

    if (!status && !(resume->updates[i] >= 0 && isfinite(resume->updates[i])))
        status = err_set(err, STATUS_INPUT, "%s: tensor '%s' does not hold a count of updates",
                         file->path, step->tensor->name);
    return status;
}

/* One of a parameter's. Adam counts in FP32. */
static enum status check_moment(struct resume *resume, uint32_t i, enum checkpoint_moment moment,
                                struct err *err)
{
    static const uint64_t one[] = {1};
    const struct saved_file *file = &resume->files[FILE_OPTIMIZER];
    const struct param *param = &resume->plan->model->params[i];
    const bool counts = moment == MOMENT_STEP;
    const char *name = checkpoint_moment_name(param, moment, &resume->arena);
    const struct tensor *tensor = tensor_list_find(&file->list, name);

    if (!tensor)
        return err_set(
            err, STATUS_INPUT,
            "%s: no tensor '%s', of a parameter that this run updates: freeze and ignore "
            "what the saved run did",
            file->path, name);
    enum status status = tensor_check_shape(tensor, counts ? 1 : param->n_dim,
                                            counts ? one : param->shape, SOURCE, err);
    if (!status)
        status =
            check_data(file, tensor, counts ? 1 : param->numel, &resume->moments[i][moment], err);
    return status;
}

/* Nothing of the file is passed over in silence. */
static enum status check_all_used(const struct resume *resume, const bool *used, struct err *err)
{
    const struct saved_file *file = &resume->files[FILE_OPTIMIZER];

    for (uint32_t t = 0; t < file->list.n; t++)
        if (!used[t])
            return err_set(err, STATUS_INPUT,
                           "%s: tensor '%s' is of no parameter that this run updates: freeze and "
                           "ignore what the saved run did",
                           file->path, file->list.at[t].name);
    return STATUS_OK;
}

static enum status check_moments(struct resume *resume, struct err *err)
{
    const struct tensor_list *list = &resume->files[FILE_OPTIMIZER].list;
    bool *used = arena_array(&resume->arena, bool, list->n);
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < resume->plan->model->n_param && !status; i++) {
        if (!checkpoint_is_updated(resume->plan, i))
            continue;
        for (int m = 0; m < CHECKPOINT_MOMENT_N && !status; m++) {
            status = check_moment(resume, i, (enum checkpoint_moment)m, err);
            if (!status)
                used[resume->moments[i][m].tensor - list->at] = true;
        }
        if (!status)
            status = read_updates(resume, i, err);
    }
    return status ? status : check_all_used(resume, used, err);
}

static enum status check_optimizer(const char *path, const struct checkpoint_state *state,
                                   bool adamw, struct err *err)
{
    if (state->adamw == adamw)
        return STATUS_OK;
    return err_set(err, STATUS_INPUT, "%s: it was trained with %s, this run has %s: resume with %s",
                   path, state->adamw ? "adamw" : "sgd", adamw ? "adamw" : "sgd",
                   state->adamw ? "--optimizer adamw" : "--optimizer sgd");
}

static enum status read_folder(struct resume *resume, const char *dir, bool adamw, struct err *err)
{
    const char *path = arena_printf(&resume->arena, "%s/%s", dir, CHECKPOINT_STATE_NAME);
    enum status status = checkpoint_state_read(path, &resume->state, err);

    if (!status)
        status = check_optimizer(path, &resume->state, adamw, err);
    if (!status)
        status = open_file(resume, FILE_PARAMETERS, dir, err);
    if (!status)
        status = check_params(resume, err);
    if (!status && adamw)
        status = open_file(resume, FILE_OPTIMIZER, dir, err);
    if (!status && adamw)
        status = check_moments(resume, err);
    return status;
}

enum status resume_open(const char *dir, const struct plan *plan, bool adamw, struct resume **out,
                        struct err *err)
{
    struct resume *resume = calloc(1, sizeof *resume);
    const size_t n = (size_t)plan->model->n_param + 1;

    if (!resume)
        err_out_of_memory(sizeof *resume);
    arena_init(&resume->arena);
    resume->plan = plan;
    resume->params = arena_array(&resume->arena, struct saved, n);
    resume->moments = arena_alloc(&resume->arena, n * sizeof *resume->moments);
    resume->updates = arena_array(&resume->arena, float, n);
    for (int f = 0; f < CHECKPOINT_FILE_N; f++)
        resume->files[f].fd = -1;
    const enum status status = read_folder(resume, dir, adamw, err);
    if (status)
        resume_free(resume);
    else
        *out = resume;
    return status;
}

void resume_free(struct resume *resume)
{
    if (!resume)
        return;
    for (int f = 0; f < CHECKPOINT_FILE_N; f++)
        if (resume->files[f].fd >= 0)
            close(resume->files[f].fd);
    arena_release(&resume->arena);
    free(resume);
}

const struct checkpoint_state *resume_state(const struct resume *resume)
{
    return &resume->state;
}

/* ---- values -------------------------------------------------------------------------------- */

static enum status resumed_param(void *context, uint32_t param, uint64_t first, uint64_t n,
                                 float *out, struct err *err)
{
    const struct resume *resume = ((const struct resumed_values *)context)->resume;
    return read_values(&resume->files[FILE_PARAMETERS], &resume->params[param], first, n, out, err);
}

static enum status resumed_moment(void *context, uint32_t param, unsigned which, uint64_t first,
                                  uint64_t n, float *out, struct err *err)
{
    const struct resume *resume = ((const struct resumed_values *)context)->resume;
    return read_values(&resume->files[FILE_OPTIMIZER],
                       &resume->moments[param][MOMENT_EXP_AVG + which], first, n, out, err);
}

static float resumed_updates(void *context, uint32_t param)
{
    return ((const struct resumed_values *)context)->resume->updates[param];
}

static void resumed_tokens(void *context, uint32_t step, uint32_t microbatch, uint64_t n,
                           int64_t *ids, int64_t *labels)
{
    const struct values *from = &((const struct resumed_values *)context)->tokens;
    from->tokens(from->context, step, microbatch, n, ids, labels);
}

static void resumed_hidden(void *context, uint32_t step, uint32_t microbatch, uint64_t n,
                           float *out)
{
    const struct values *from = &((const struct resumed_values *)context)->tokens;
    from->hidden(from->context, step, microbatch, n, out);
}

struct values values_resumed(struct resumed_values *context)
{
    const struct checkpoint_state *state = &context->resume->state;

    context->seeded.seed = state->seed;
    context->seeded.sequences = state->sequences;
    context->tokens = values_seeded(&context->seeded);
    return (struct values){.context = context,
                           .scaler = state->scaler,
                           .param = resumed_param,
                           .moment = state->adamw ? resumed_moment : NULL,
                           .updates = state->adamw ? resumed_updates : NULL,
                           .tokens = resumed_tokens,
                           .hidden = resumed_hidden};
}
