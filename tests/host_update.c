/*
 * Optimizers, norms, clipping and the scaler on the host device, against the formulas in double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device_rig.h"
#include "tests/slow_cast.h"
#include "tests/tap.h"

enum { MAX_N = 3000, MAX_LIST = 4 };

/* A tensor on the device, and its numbers as they are to be. */
struct pair {
    struct device_tensor tensor;
    double want[MAX_N];
};

static double random_number(uint64_t *state)
{
    return (double)(int64_t)(tap_random(state) >> 40) / (1 << 20) - 8;
}

static struct pair *pair_new(enum dtype dtype, uint64_t n, double scale, uint64_t *state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    pair->tensor = (struct device_tensor){calloc(n + 1, sizeof(float)), n, (uint8_t)dtype};
    for (uint64_t i = 0; i < n; i++) {
        char *at = (char *)pair->tensor.at + i * dtype_bytes(dtype);
        slow_write(dtype, scale * random_number(state), at);
        pair->want[i] = slow_read(dtype, at);
    }
    return pair;
}

static void pair_free(struct pair *pair)
{
    free(pair->tensor.at);
    free(pair);
}

static double got(const struct pair *pair, uint64_t i)
{
    const enum dtype dtype = (enum dtype)pair->tensor.dtype;
    return slow_read(dtype, (const char *)pair->tensor.at + i * dtype_bytes(dtype));
}

/* Norm of the difference by the norm of what is to be. */
static double error_of(const struct pair *pair)
{
    double difference = 0, norm = 0;
    for (uint64_t i = 0; i < pair->tensor.n; i++) {
        difference += pow(got(pair, i) - pair->want[i], 2);
        norm += pow(pair->want[i], 2);
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

static enum status no_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)what, (void)err;
    return STATUS_OK;
}

static void run_work(const struct work *work)
{
    struct device_rig rig;
    struct err err = {0};
    device_rig_init(&rig, no_call, NULL);
    device_rig_open(&rig);
    rig_try(&rig, STREAM_C, work, 0, NULL, &err);
    rig_drain(&rig);
    device_rig_release(&rig);
}

/* What a tensor of the dtype holds of a number. */
static double as_stored(uint8_t dtype, double value)
{
    char bytes[4];
    if (dtype == DTYPE_FP32)
        return value;
    slow_write((enum dtype)dtype, value, bytes);
    return slow_read((enum dtype)dtype, bytes);
}

/* tests/oracle/README.md, "Optimizers". */
static void want_adamw(struct pair *param, const struct pair *grad, struct pair *moment,
                       struct pair *variance, const struct optimizer_options *by, int t)
{
    for (uint64_t i = 0; i < param->tensor.n; i++) {
        const double g = grad->want[i];
        double p = param->want[i], m = moment->want[i], v = variance->want[i];
        p *= 1 - by->lr * by->weight_decay;
        m += (1 - by->beta1) * (g - m);
        v = by->beta2 * v + (1 - by->beta2) * g * g;
        p -= by->lr / (1 - pow(by->beta1, t)) * m /
             (sqrt(v) / sqrt(1 - pow(by->beta2, t)) + by->eps);
        param->want[i] = as_stored(param->tensor.dtype, p);
        moment->want[i] = as_stored(moment->tensor.dtype, m);
        variance->want[i] = as_stored(variance->tensor.dtype, v);
    }
}

/* FP32: a handful of roundings, 2^-24 each, a step. BF16: numbers of few bits are often near a tie,
   where FP32 rounds the other way than double: 2^-8 of an element, of every sixth at most. */
static void test_adamw(enum dtype param_dtype, enum dtype state_dtype, uint64_t n, double bound)
{
    static const struct optimizer_options options = {true, 1e-2, 0.9, 0.95, 1e-3, 0.1};
    uint64_t state = 71 + n;
    struct pair *param = pair_new(param_dtype, n, 1, &state);
    struct pair *moment = pair_new(state_dtype, n, 0, &state);
    struct pair *variance = pair_new(state_dtype, n, 0, &state);
    float steps = 0;
    double error = 0;

    for (int t = 1; t <= 5; t++) {
        struct pair *grad = pair_new(param_dtype, n, 0.1, &state);
        const struct update update = {param->tensor, grad->tensor, moment->tensor, variance->tensor,
                                      &steps};
        const struct work work = {.kind = WORK_UPDATE, .is.update = {&update, 1, &options}};
        run_work(&work);
        want_adamw(param, grad, moment, variance, &options, t);
        error = fmax(error, fmax(error_of(param), fmax(error_of(moment), error_of(variance))));
        pair_free(grad);
    }
    ok(error <= bound && steps == 5, "AdamW of %llu x %s, states %s: error %.1e, bound %.1e",
       (unsigned long long)n, dtype_name(param_dtype), dtype_name(state_dtype), error, bound);
    pair_free(param);
    pair_free(moment);
    pair_free(variance);
}

static void test_sgd(enum dtype dtype)
{
    static const struct optimizer_options options = {.lr = 0.1};
    uint64_t state = 72;
    struct pair *param = pair_new(dtype, 2500, 1, &state), *grad = pair_new(dtype, 2500, 1, &state);
    const struct update update = {.param = param->tensor, .grad = grad->tensor};
    struct step_state step = {.inf_found = 1};
    struct work work = {.kind = WORK_UPDATE, .state = &step, .is.update = {&update, 1, &options}};

    run_work(&work);
    is_near(error_of(param) + 1, 1, 0, "a step with infinities found is left out");
    step.inf_found = 0;
    run_work(&work);
    for (uint64_t i = 0; i < 2500; i++)
        param->want[i] = as_stored(
            (uint8_t)dtype, slow_fp32(param->want[i] - slow_fp32(slow_fp32(0.1) * grad->want[i])));
    ok(error_of(param) == 0, "SGD of %s to the last bit", dtype_name(dtype));
    pair_free(param);
    pair_free(grad);
}

/* A list of all dtypes, with one tensor that is empty. */
static void list_new(struct pair *pairs[MAX_LIST], struct device_tensor list[MAX_LIST],
                     double scale)
{
    static const uint64_t sizes[MAX_LIST] = {2049, 0, 1000, 7};
    static const enum dtype dtypes[MAX_LIST] = {DTYPE_FP32, DTYPE_BF16, DTYPE_BF16, DTYPE_FP16};
    uint64_t state = 73;
    for (int i = 0; i < MAX_LIST; i++) {
        pairs[i] = pair_new(dtypes[i], sizes[i], scale, &state);
        list[i] = pairs[i]->tensor;
    }
}

static void list_free(struct pair *pairs[MAX_LIST])
{
    for (int i = 0; i < MAX_LIST; i++)
        pair_free(pairs[i]);
}

/* Each is what it was times factor, which is FP32, rounded to FP32 and to its dtype. */
static bool is_scaled(struct pair *pairs[MAX_LIST], double factor)
{
    double error = 0;
    for (int k = 0; k < MAX_LIST; k++) {
        for (uint64_t i = 0; i < pairs[k]->tensor.n; i++)
            pairs[k]->want[i] =
                as_stored(pairs[k]->tensor.dtype, slow_fp32(pairs[k]->want[i] * factor));
        error += error_of(pairs[k]);
    }
    return error == 0;
}

static void test_clip(double max_norm)
{
    struct pair *pairs[MAX_LIST];
    struct device_tensor list[MAX_LIST];
    float squares = -1;
    double sum = 0;

    list_new(pairs, list, 1);
    for (int k = 0; k < MAX_LIST; k++) {
        for (uint64_t i = 0; i < pairs[k]->tensor.n; i++)
            sum += pow(pairs[k]->want[i], 2);
    }
    const struct work norm = {.kind = WORK_SQUARES,
                              .is.squares = {list, MAX_LIST, false, &squares}};
    run_work(&norm);
    is_near(squares, sum, 1e-7, "the sum of squares of a list of all dtypes");

    const struct work clip = {.kind = WORK_SCALE,
                              .is.scale = {list, MAX_LIST, &squares, (float)max_norm}};
    run_work(&clip);
    const float factor = fminf(1, (float)max_norm / (sqrtf(squares) + 1e-6f));
    ok(is_scaled(pairs, factor), "gradients of norm %.1f are clipped to %.0f", sqrt(sum), max_norm);
    list_free(pairs);
}

static void test_scaler(double bad, double want)
{
    struct pair *pairs[MAX_LIST];
    struct device_tensor list[MAX_LIST];
    float found = -1;

    list_new(pairs, list, 1);
    if (bad != 0)
        slow_write(DTYPE_BF16, bad, (char *)list[2].at + 2 * 999);
    struct step_state state = {.loss_scale = 1024};
    const struct work work = {
        .kind = WORK_SQUARES, .state = &state, .is.squares = {list, MAX_LIST, true, &found}};
    run_work(&work);
    is_near(found, want, 0, "the scaler finds %g", bad);
    if (bad == 0)
        ok(is_scaled(pairs, 1.0 / 1024), "and divides by the scale");
    list_free(pairs);
}

static void test_loss(void)
{
    struct step_state state = {.loss = 2.25};
    float loss = 0;
    const struct work work = {.kind = WORK_LOSS, .state = &state, .is.loss = &loss};
    run_work(&work);
    is_near(loss, 2.25, 0, "the step's loss becomes a number");
}

/* torch's GradScaler: half of it at once, twice of it after 2000 steps without infinities. */
static void test_step_end(void)
{
    struct step_state state = {.loss = 3,
                               .not_finite = 5,
                               .loss_scale = 8,
                               .loss_factor = 0.5f,
                               .grad_scale = 4,
                               .microbatches = 2,
                               .scales = true};
    struct step_result results[2] = {{0}};
    const float found = 1;
    const struct work verdict = {.kind = WORK_VERDICT, .state = &state, .is.verdict = &found};
    const struct work end = {.kind = WORK_STEP_END, .state = &state, .is.results = results};

    run_work(&verdict);
    run_work(&end);
    ok(results[0].ended && results[0].skipped && results[0].loss == 3 && results[0].not_finite == 5,
       "a step's end is noted");
    ok(state.loss == 0 && state.not_finite == 0 && !state.inf_found,
       "and the state is ready for the next");
    ok(state.loss_scale == 4 && state.grad_scale == 2, "infinities halve the loss scale");
    for (int i = 0; i < 1999; i++)
        run_work(&end);
    ok(state.loss_scale == 4, "1999 steps without do not change it");
    run_work(&end);
    ok(state.loss_scale == 8 && state.grad_scale == 4, "after 2000 it is doubled");
    state.scales = false;
    state.inf_found = true;
    run_work(&end);
    ok(state.loss_scale == 8, "without a scaler it stays");
}

int main(void)
{
    test_step_end();
    test_adamw(DTYPE_FP32, DTYPE_FP32, 1, 1e-6);
    test_adamw(DTYPE_FP32, DTYPE_FP32, 1023, 1e-6);
    test_adamw(DTYPE_FP32, DTYPE_FP32, 1024, 1e-6);
    test_adamw(DTYPE_FP32, DTYPE_FP32, MAX_N, 1e-6);
    test_adamw(DTYPE_BF16, DTYPE_FP32, MAX_N, 1e-4);
    test_adamw(DTYPE_BF16, DTYPE_BF16, MAX_N, 1.6e-3);
    test_sgd(DTYPE_FP32);
    test_sgd(DTYPE_BF16);
    test_clip(10);
    test_clip(1000000);
    test_scaler(0, 0);
    test_scaler(INFINITY, 1);
    test_scaler((double)NAN, 1);
    test_loss();
    return tap_done();
}
