/*
 * A program that is really run computes what PyTorch was recorded to compute, in every case that has
 * numbers: losses of each rank and microbatch, gradients and norm of two steps, parameters after
 * both, with SGD and with AdamW.
 *
 * The bounds are those of tests/reference_oracle.c, whose reference rounds where the modules do: FP32
 * to 1e-5 of a tensor's norm; BF16 the same, but where an element lies so near a tie that the order
 * of a sum decides, which is to the recordings' own order as much as to ours.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/text.h"
#include "tests/compare_numbers.h"
#include "tests/oracle_folder.h"
#include "tests/oracle_numbers.h"
#include "tests/oracle_project.h"
#include "tests/real_rig.h"
#include "tests/tap.h"

struct bounds {
    const char *cases;
    struct number_bound first[4]; /* gradients of the first step */
    struct number_bound after[4]; /* parameters after the second */
    double second_step;           /* losses and norm of it */
};
static const struct bounds all_bounds[] = {
    /* one element of a gradient near a tie, and what it moves in the second SGD step */
    {"*/llama*-accum*", {{"model.embed_tokens.weight", 1e-4}, {"*", 1e-5}}, {{"*", 1e-3}}, 1e-3},
    {"*/gloo-4/kda-*",
     {{"*", 1e-5}},
     {{"model.layers.1.self_attn.v_conv1d.weight", 1e-4}, {"*", 1e-5}},
     1e-5},
    {"*", {{"*", 1e-5}}, {{"*", 1e-5}}, 1e-5},
};

struct subject {
    const char *name;
    const struct bounds *bounds;
    const struct model *model;
    const struct oracle_numbers *oracle;
};

static uint32_t param_named(const struct model *model, const char *name)
{
    uint32_t p = 0;
    while (p < model->n_param && strcmp(model->params[p].name, name) != 0)
        p++;
    if (p == model->n_param)
        tap_bail("a recorded tensor is no parameter");
    return p;
}

static void check_tensors(const struct subject *of, const struct oracle_tensors *want,
                          float *const *got, const struct number_bound *bounds, const char *what)
{
    struct comparison comparison = comparison_of(bounds);

    for (uint32_t i = 0; i < want->n; i++) {
        const struct oracle_tensor *tensor = &want->at[i];
        const uint32_t p = param_named(of->model, tensor->name);
        comparison_add(&comparison, tensor->name,
                       numbers_floats(got[p], of->model->params[p].numel),
                       numbers_floats(tensor->values, tensor->n));
    }
    comparison_end(&comparison, "%s: %s", of->name, what);
}

static void check_step(const struct subject *of, const struct oracle_run *run,
                       const struct real_numbers *got, int step, const char *optimizer)
{
    const double bound = step == 0 ? 2e-6 : of->bounds->second_step;
    const uint64_t n = run->loss[step].n;
    double apart = 0;

    for (uint64_t i = 0; i < n; i++)
        apart = fmax(
            apart, fabs((double)got->losses[step * n + i] / (double)run->loss[step].values[i] - 1));
    ok(apart <= bound, "%s: losses of step %d of %s, error %.1e, at most %.0e", of->name, step,
       optimizer, apart, bound);
    is_near(got->norms[step], (double)run->norm[step], bound, "%s: norm of step %d of %s", of->name,
            step, optimizer);
}

static void check_run(const struct subject *of, const struct program *program, bool adamw)
{
    const struct oracle_run *run = adamw ? &of->oracle->adamw : &of->oracle->sgd;
    const char *name = adamw ? "AdamW" : "SGD";
    const struct real_ask ask = {.program = program,
                                 .steps = ORACLE_STEPS,
                                 .sums_microbatches = true,
                                 .optimizer = {.adamw = adamw,
                                               .lr = run->lr,
                                               .beta1 = run->beta1,
                                               .beta2 = run->beta2,
                                               .eps = run->eps,
                                               .weight_decay = run->weight_decay}};
    struct real_numbers got;
    struct err err = {0};
    char what[64];

    if (ok(real_run(&ask, &got, &err) == STATUS_OK, "%s: runs with %s%s%s", of->name, name,
           *err.text ? ": " : "", err.text)) {
        snprintf(what, sizeof what, "gradients of the first step, %s", name);
        check_tensors(of, &of->oracle->gradients, got.grads[0], of->bounds->first, what);
        for (int step = 0; step < ORACLE_STEPS; step++)
            check_step(of, run, &got, step, name);
        snprintf(what, sizeof what, "parameters after %s", name);
        check_tensors(of, &run->params, got.params, of->bounds->after, what);
    }
    real_release(&got);
}

static const struct bounds *bounds_of(const char *name)
{
    const struct bounds *bounds = all_bounds;
    while (!text_matches(bounds->cases, name))
        bounds++;
    return bounds;
}

static void check_case(const struct oracle_case *of, bool adamw)
{
    static const char *const optimizers[] = {"sgd", "adamw-fused"};
    const char *more[] = {"--ops", "native", "--optimizer", optimizers[adamw], NULL};
    struct oracle_numbers numbers;
    struct oracle_plan plan;
    struct arena arena;
    struct err err = {0};

    arena_init(&arena);
    if (oracle_numbers_read(of, &arena, &numbers, &err) != STATUS_OK)
        tap_bail(err.text);
    if (ok(oracle_plan_init_with(of, more, &plan, &err) == STATUS_OK, "%s: is a native program%s%s",
           of->name, *err.text ? ": " : "", err.text)) {
        const struct subject subject = {of->name, bounds_of(of->name), &plan.prepared.model,
                                        &numbers};
        check_run(&subject, &plan.prepared.program, adamw);
    }
    oracle_plan_release(&plan);
    arena_release(&arena);
}

static void check_file(const struct oracle_file *file, void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < file->n_case; i++)
        if (file->cases[i].has_numbers) {
            check_case(&file->cases[i], false);
            check_case(&file->cases[i], true);
        }
}

int main(void)
{
    oracle_folder_walk(check_file, NULL);
    return tap_done();
}
