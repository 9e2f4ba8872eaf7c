/*
 * The kernels at the end of a step; see cuda_step.h. Tensors go through FP32 element by element and
 * are rounded once, when they are stored.
 */
extern "C" {
#include "gpu/cuda_step.h"
}
#include "gpu/cuda_item.h"
#include "gpu/cuda_launch.h"
#include "gpu/step_body.h"

/* Elements whose squares one item adds up. */
enum { PIECE = 1024 };

static struct op_tensor tensor_of(const struct device_tensor *of)
{
    const struct op_tensor tensor = {of->at, of->n, of->dtype, OP_WRITE};
    return tensor;
}

static uint64_t pieces_of(const struct device_tensor *of)
{
    return (of->n + PIECE - 1) / PIECE;
}

/* ---- norms and scaling --------------------------------------------------------------------- */

static __global__ void squares_kernel(uint64_t n, struct op_tensor of, double *out)
{
    each_item(n, [&](uint64_t piece) {
        double sum = 0;
        for (uint64_t i = piece * PIECE; i < op_min((piece + 1) * PIECE, of.n); i++)
            sum += (double)load(&of, i) * load(&of, i);
        out[piece] = sum;
    });
}

static __global__ void total_kernel(uint64_t n, const double *parts, uint64_t n_part, float *to)
{
    each_item(n, [&](uint64_t) {
        double sum = 0;
        for (uint64_t i = 0; i < n_part; i++)
            sum += parts[i];
        *to = (float)sum;
    });
}

static __global__ void clear_kernel(uint64_t n, float *to)
{
    each_item(n, [&](uint64_t i) { to[i] = 0; });
}

/* Every thread that finds something writes the same. */
static __global__ void unscale_kernel(uint64_t n, struct op_tensor of,
                                      const struct step_state *state, float *found)
{
    each_item(n, [&](uint64_t i) {
        const float value = load(&of, i);
        if (!isfinite(value))
            *found = 1;
        put(&of, i, value * (1 / state->loss_scale));
    });
}

static __global__ void clip_kernel(uint64_t n, struct op_tensor of, const float *squares,
                                   float max_norm)
{
    each_item(n, [&](uint64_t i) { put(&of, i, load(&of, i) * clip_factor(*squares, max_norm)); });
}

uint64_t cuda_squares_scratch_bytes(const struct work_squares *squares)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < squares->n_list; i++)
        n += pieces_of(&squares->list[i]);
    return squares->finite ? 0 : n * sizeof(double);
}

static enum status unscale(const struct work_squares *squares, const struct step_state *state,
                           struct CUstream_st *stream, struct err *err)
{
    enum status status = launch_items(clear_kernel, 1, "unscale", stream, err, squares->to);
    for (uint32_t i = 0; i < squares->n_list && status == STATUS_OK; i++)
        status = launch_items(unscale_kernel, squares->list[i].n, "unscale", stream, err,
                              tensor_of(&squares->list[i]), state, squares->to);
    return status;
}

enum status cuda_squares(const struct work_squares *squares, const struct step_state *state,
                         void *scratch, struct CUstream_st *stream, struct err *err)
{
    double *parts = (double *)scratch;
    uint64_t n = 0;
    enum status status = STATUS_OK;

    if (squares->finite)
        return unscale(squares, state, stream, err);
    for (uint32_t i = 0; i < squares->n_list && status == STATUS_OK; i++) {
        const uint64_t pieces = pieces_of(&squares->list[i]);
        status = launch_items(squares_kernel, pieces, "grad_norm", stream, err,
                              tensor_of(&squares->list[i]), parts + n);
        n += pieces;
    }
    if (status == STATUS_OK)
        status = launch_items(total_kernel, 1, "grad_norm", stream, err, (const double *)parts, n,
                              squares->to);
    return status;
}

enum status cuda_scale(const struct work_scale *scale, struct CUstream_st *stream, struct err *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < scale->n_list && status == STATUS_OK; i++)
        status = launch_items(clip_kernel, scale->list[i].n, "clip", stream, err,
                              tensor_of(&scale->list[i]), scale->squares, scale->max_norm);
    return status;
}

/* ---- optimizers ---------------------------------------------------------------------------- */

struct update_tensors {
    struct op_tensor param, grad, moment, variance;
};

static struct update_tensors tensors_of(const struct update *update)
{
    const struct update_tensors tensors = {tensor_of(&update->param), tensor_of(&update->grad),
                                           tensor_of(&update->moment),
                                           tensor_of(&update->variance)};
    return tensors;
}

/* An item a piece, so that few threads add to one number. */
static __global__ void not_finite_kernel(uint64_t n, struct op_tensor of, struct step_state *state)
{
    each_item(n, [&](uint64_t piece) {
        unsigned long long count = 0;
        for (uint64_t i = piece * PIECE; i < op_min((piece + 1) * PIECE, of.n); i++)
            count += !isfinite(load(&of, i));
        if (count > 0)
            atomicAdd((unsigned long long *)&state->not_finite, count);
    });
}

static __global__ void sgd_kernel(uint64_t n, struct update_tensors of,
                                  struct optimizer_options options, const struct step_state *state)
{
    if (state->inf_found)
        return;
    each_item(n, [&](uint64_t i) {
        put(&of.param, i, sgd_element(&options, load(&of.param, i), load(&of.grad, i)));
    });
}

/* Of one tensor: counts the step and finds its scalars. */
static __global__ void adamw_step_kernel(uint64_t n, float *step, struct optimizer_options options,
                                         const struct step_state *state, struct adamw *out)
{
    if (state->inf_found)
        return;
    each_item(n, [&](uint64_t) {
        *step += 1;
        *out = adamw_of(&options, (double)*step);
    });
}

static __global__ void adamw_kernel(uint64_t n, struct update_tensors of, const struct adamw *by,
                                    const struct step_state *state)
{
    if (state->inf_found)
        return;
    each_item(n, [&](uint64_t i) {
        float param = load(&of.param, i), moment = load(&of.moment, i);
        float variance = load(&of.variance, i);
        adamw_element(by, load(&of.grad, i), &param, &moment, &variance);
        put(&of.param, i, param);
        put(&of.moment, i, moment);
        put(&of.variance, i, variance);
    });
}

uint64_t cuda_update_scratch_bytes(const struct work_update *update)
{
    return update->options->adamw ? update->n_list * sizeof(struct adamw) : 0;
}

static enum status update_one(const struct update *update, const struct optimizer_options *options,
                              const struct step_state *state, struct adamw *by,
                              struct CUstream_st *stream, struct err *err)
{
    const struct update_tensors tensors = tensors_of(update);
    if (!options->adamw)
        return launch_items(sgd_kernel, update->param.n, "sgd", stream, err, tensors, *options,
                            state);
    const enum status status =
        launch_items(adamw_step_kernel, 1, "adamw", stream, err, update->step, *options, state, by);
    return status != STATUS_OK ? status
                               : launch_items(adamw_kernel, update->param.n, "adamw", stream, err,
                                              tensors, (const struct adamw *)by, state);
}

enum status cuda_update(const struct work_update *update, struct step_state *state, void *scratch,
                        struct CUstream_st *stream, struct err *err)
{
    struct adamw *by = (struct adamw *)scratch;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < update->n_list && status == STATUS_OK; i++) {
        const struct update *of = &update->list[i];
        status = launch_items(not_finite_kernel, pieces_of(&of->grad), "optimizer", stream, err,
                              tensor_of(&of->grad), state);
        if (status == STATUS_OK)
            status = update_one(of, update->options, state, by + i, stream, err);
    }
    return status;
}

/* ---- the state ----------------------------------------------------------------------------- */

static __global__ void loss_kernel(uint64_t n, float *to, const struct step_state *state)
{
    each_item(n, [&](uint64_t) { *to = (float)state->loss; });
}

static __global__ void verdict_kernel(uint64_t n, const float *verdict, struct step_state *state)
{
    each_item(n, [&](uint64_t) { state->inf_found = *verdict != 0; });
}

static __global__ void step_end_kernel(uint64_t n, struct step_state *state,
                                       struct step_result *result)
{
    each_item(n, [&](uint64_t) { step_end(state, result); });
}

enum status cuda_loss(float *to, const struct step_state *state, struct CUstream_st *stream,
                      struct err *err)
{
    return launch_items(loss_kernel, 1, "loss", stream, err, to, state);
}

enum status cuda_verdict(const float *verdict, struct step_state *state, struct CUstream_st *stream,
                         struct err *err)
{
    return launch_items(verdict_kernel, 1, "verdict", stream, err, verdict, state);
}

enum status cuda_step_end(struct step_state *state, struct step_result *result,
                          struct CUstream_st *stream, struct err *err)
{
    return launch_items(step_end_kernel, 1, "step_end", stream, err, state, result);
}

/* ---- debugging ----------------------------------------------------------------------------- */

static __global__ void delay_kernel(uint64_t n, uint64_t ns)
{
#ifdef __CUDA_ARCH__
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    for (now = start; now - start < ns * n; __nanosleep(1000))
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
#else
    (void)n, (void)ns;
#endif
}

enum status cuda_delay(uint64_t ns, struct CUstream_st *stream, struct err *err)
{
    return launch_items(delay_kernel, 1, "delay", stream, err, ns);
}
