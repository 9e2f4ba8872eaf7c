/*
 * Recorded numbers are whole and follow the rules of tests/oracle/README.md: each trained parameter
 * once, norms that are those of the gradients, starts and tokens of the generator. What the numbers
 * are is for the run with real tensors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/oracle_folder.h"
#include "tests/oracle_numbers.h"
#include "tests/oracle_project.h"
#include "tests/tap.h"

static double norm_of(const struct oracle_tensors *tensors)
{
    double sum = 0;
    for (uint32_t i = 0; i < tensors->n; i++)
        for (uint64_t k = 0; k < tensors->at[i].n; k++)
            sum += (double)tensors->at[i].values[k] * (double)tensors->at[i].values[k];
    return sqrt(sum);
}

static bool has_param(const struct oracle_tensors *tensors, const struct param *param)
{
    const struct oracle_tensor *tensor = oracle_tensor_find(tensors, param->name);
    return tensor && tensor->n == param->numel;
}

/* Names are unique in a document, so that equal counts mean that each is there once. */
static bool are_whole(const struct oracle_numbers *numbers, const struct plan *plan)
{
    uint32_t n_grad = 0;

    for (uint32_t i = 0; i < plan->model->n_param; i++) {
        const struct param *param = &plan->model->params[i];
        n_grad += plan->policy[i].has_grad;
        if (!has_param(&numbers->sgd.params, param) || !has_param(&numbers->adamw.params, param) ||
            (plan->policy[i].has_grad && !has_param(&numbers->gradients, param)))
            return false;
    }
    return numbers->gradients.n == n_grad && numbers->sgd.params.n == plan->model->n_param &&
           numbers->adamw.params.n == plan->model->n_param;
}

/* A step of AdamW moves an element by the learning rate at most, decay aside; rounding adds to it. */
static bool is_near_start(const struct oracle_run *adamw, const struct plan *plan, uint32_t param)
{
    const struct oracle_tensor *end =
        oracle_tensor_find(&adamw->params, plan->model->params[param].name);
    const double kept = pow(1 - adamw->lr * adamw->weight_decay, ORACLE_STEPS);
    float *start = malloc(end->n * sizeof *start);
    bool near = start;

    if (start)
        oracle_start(plan->model, param, start);
    for (uint64_t i = 0; i < end->n && near; i++)
        near = fabs((double)end->values[i] - kept * (double)start[i]) <=
               ORACLE_STEPS * adamw->lr * 1.001;
    free(start);
    return near;
}

static bool is_drawn(const struct plan *plan, uint64_t token)
{
    struct oracle_place place = {0};

    for (place.microbatch = 0; place.microbatch < plan->options.accum; place.microbatch++)
        for (place.rank = 0; place.rank < plan->world; place.rank++)
            for (place.position = 0; place.position < plan->options.batch * plan->options.seq;
                 place.position++)
                if (oracle_token(plan, ORACLE_SEED_TOKENS, place) == token)
                    return true;
    return false;
}

/* An embedding has a gradient in the rows of the tokens that were in the step, and in no other. */
static bool has_rows_of_tokens(const struct oracle_numbers *numbers, const struct plan *plan)
{
    const struct param *weight = &plan->model->params[0];
    const struct oracle_tensor *grad = oracle_tensor_find(&numbers->gradients, weight->name);
    const uint64_t columns = weight->shape[1];

    for (uint64_t row = 0; row < weight->shape[0]; row++) {
        bool any = false;
        for (uint64_t i = 0; i < columns; i++)
            any |= grad->values[row * columns + i] != 0;
        if (any != is_drawn(plan, row))
            return false;
    }
    return true;
}

static void check_run(const struct oracle_case *of, const struct oracle_run *run,
                      const struct plan *plan)
{
    for (int step = 0; step < ORACLE_STEPS; step++)
        is_int(run->loss[step].n, plan->options.accum * plan->world,
               "%s: step %d has a loss for each microbatch and rank", of->name, step);
}

static void check_against_plan(const struct oracle_case *of, const struct oracle_numbers *numbers,
                               const struct plan *plan)
{
    uint32_t near = 0;

    check_run(of, &numbers->sgd, plan);
    check_run(of, &numbers->adamw, plan);
    if (!ok(are_whole(numbers, plan), "%s: each parameter is there once, and whole", of->name))
        return;
    while (near < plan->model->n_param && is_near_start(&numbers->adamw, plan, near))
        near++;
    is_int(near, plan->model->n_param, "%s: parameters start where the rule says", of->name);
    if (!plan->model->dims.tied)
        ok(has_rows_of_tokens(numbers, plan), "%s: the tokens are those of the rule", of->name);
}

static void check_numbers(const struct oracle_case *of)
{
    struct oracle_numbers numbers;
    struct oracle_plan plan;
    struct arena arena;
    struct err err = {0};

    arena_init(&arena);
    if (!ok(oracle_numbers_read(of, &arena, &numbers, &err) == STATUS_OK, "%s: numbers", of->name))
        tap_bail(err.text);
    is_near(numbers.sgd.norm[0], norm_of(&numbers.gradients), 1e-6,
            "%s: the norm is that of the gradients", of->name);
    is_near(numbers.adamw.norm[0], numbers.sgd.norm[0], 0, "%s: both start alike", of->name);
    if (oracle_plan_init(of, &plan, &err) == STATUS_OK)
        check_against_plan(of, &numbers, &plan.prepared.plan);
    oracle_plan_release(&plan);
    arena_release(&arena);
}

static void check_file(const struct oracle_file *file, void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < file->n_case; i++)
        if (file->cases[i].has_numbers)
            check_numbers(&file->cases[i]);
}

int main(void)
{
    is_int(oracle_draw(0, 0) >> 32, 0xe220a839, "the generator is splitmix64");
    oracle_folder_walk(check_file, NULL);
    return tap_done();
}
