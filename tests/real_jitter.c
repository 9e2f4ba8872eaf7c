/*
 * Random delays on every stream and communicator, and freed memory that is written over, change no bit
 * of what a run computes: order and lifetimes are the program's, whatever the timing.
 *
 * Plans are those that use memory again soonest, and cross streams most. Seeds go round them.
 */
#include <string.h>

#include "tests/real_plans.h"
#include "tests/real_rig.h"
#include "tests/tap.h"

enum { SEEDS = 50, STEPS = 3 };

static const struct real_plan plans[] = {
    {"all is freed", "llama", "--gpus 2 --reshard yes --prefetch 2"},
    {"kept over two", "llama", "--gpus 4 --reshard 2"},
    {"HSDP", "llama", "--gpus 4 --replicas 2 --pack-stream rs"},
    {"reduced last", "kda", "--gpus 2 --accum 2 --sync last --param-dtype fp32"},
    {"recomputed", "llama", "--gpus 2 --ac full --prefetch 1 --reduce-inputs 2"},
    {"all knobs of reduction", "gpt2",
     "--gpus 3 --separate-reduce-comm yes --pack-stream rs --clip 1 --reduce-dtype bf16"},
    {"second mesh", "llama",
     "--gpus 2 --behavior unshard --second-mesh *mlp* --ac op --optimizer adamw-fused"},
};
enum { N_PLAN = sizeof plans / sizeof *plans };

static enum status run(const struct made *made, struct device_debug debug, struct real_numbers *out,
                       struct err *err)
{
    const struct real_ask ask = {
        .program = &made->program,
        .steps = STEPS,
        .seeded = true,
        .seed = 3,
        .max_norm = 1,
        .optimizer = {.adamw = made->plan.options.optimizer == OPTIMIZER_ADAMW,
                      .lr = 0.05,
                      .beta1 = 0.9,
                      .beta2 = 0.95,
                      .eps = 1e-8},
        .debug = debug};
    return real_run(&ask, out, err);
}

static bool repeats(const struct made *made, struct device_debug debug,
                    const struct real_numbers *plain)
{
    struct real_numbers got;
    struct err err = {0};
    const bool good = run(made, debug, &got, &err) == STATUS_OK && real_equal(&got, plain);

    if (!good)
        tap_note("jitter %llu, poison %d: %s", (unsigned long long)debug.jitter_seed,
                 (int)debug.poison, *err.text ? err.text : "other numbers");
    real_release(&got);
    return good;
}

static void check_plan(const struct real_plan *plan, uint64_t first, uint64_t seed)
{
    struct made made;
    struct real_numbers plain;
    struct err err = {0};
    uint32_t n_seed = 0, n_equal = 0;

    real_plan_init(&made, plan);
    ok(run(&made, (struct device_debug){0}, &plain, &err) == STATUS_OK && plain.norms[0] > 0,
       "%s: runs%s%s", plan->name, *err.text ? ": " : "", err.text);
    ok(repeats(&made, (struct device_debug){.poison = true}, &plain),
       "%s: nobody reads what was freed", plan->name);
    for (uint64_t i = first; i < SEEDS; i += N_PLAN, n_seed++)
        n_equal += repeats(
            &made, (struct device_debug){.poison = i % 3 > 0, .jitter_seed = seed + i}, &plain);
    is_int(n_equal, n_seed, "%s: delays change no bit", plan->name);
    real_release(&plain);
    make_release(&made);
}

int main(void)
{
    const uint64_t seed = 1 + tap_seed(1);

    for (uint32_t i = 0; i < N_PLAN; i++)
        check_plan(&plans[i], i, seed);
    return tap_done();
}
