/*
 * Cases made and run; see real_case.h.
 */
#include "tests/real_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asked.h"
#include "tests/tap.h"

const char *small_name(enum small small)
{
    static const char *const names[] = {
#define X(id, name) name,
        SMALLS(X)
#undef X
    };
    return names[small];
}

static const struct {
    const char *family;
    struct dims dims;
} smalls[] = {
    [SMALL_LLAMA] = {"llama",
                     {.layers = 2,
                      .hidden = 18,
                      .intermediate = 10,
                      .heads = 3,
                      .kv_heads = 1,
                      .head_dim = 6,
                      .vocab = 29,
                      .default_seq = 7}},
    [SMALL_TIED] = {"llama",
                    {.layers = 2,
                     .hidden = 9,
                     .intermediate = 7,
                     .heads = 3,
                     .kv_heads = 3,
                     .head_dim = 2,
                     .vocab = 23,
                     .default_seq = 7,
                     .tied = true}},
    [SMALL_GPT2] = {"gpt2",
                    {.layers = 2,
                     .hidden = 15,
                     .intermediate = 22,
                     .heads = 3,
                     .kv_heads = 3,
                     .head_dim = 5,
                     .vocab = 29,
                     .positions = 11,
                     .default_seq = 7,
                     .tied = true,
                     .bias = true}},
    [SMALL_KDA] = {"kda",
                   {.layers = 2,
                    .hidden = 13,
                    .intermediate = 10,
                    .heads = 3,
                    .kv_heads = 3,
                    .head_dim = 5,
                    .vocab = 31,
                    .default_seq = 6}},
    [SMALL_FLAT] = {"kda",
                    {.layers = 2,
                     .hidden = 13,
                     .intermediate = 10,
                     .heads = 1,
                     .kv_heads = 1,
                     .head_dim = 8,
                     .vocab = 29,
                     .default_seq = 5,
                     .flat = true}},
    [SMALL_BLOCKS] = {"kda",
                      {.layers = 3,
                       .hidden = 11,
                       .intermediate = 10,
                       .heads = 2,
                       .kv_heads = 2,
                       .head_dim = 4,
                       .default_seq = 7}},
    [SMALL_TINY] = {"kda",
                    {.layers = 2,
                     .hidden = 64,
                     .intermediate = 160,
                     .heads = 2,
                     .kv_heads = 2,
                     .head_dim = 32,
                     .vocab = 256,
                     .default_seq = 64}},
};

void real_case_make(const struct real_case *of, struct made *out)
{
    char words[2048];

    snprintf(words, sizeof words,
             "--ops native --behavior unshard --param-dtype fp32 --optimizer sgd %s", of->words);
    asked_init_family(out, smalls[of->small].family, &smalls[of->small].dims, words, of->unused);
}

struct optimizer_options real_case_optimizer(const struct made *made)
{
    const bool adamw = made->plan.options.optimizer == OPTIMIZER_ADAMW;

    return (struct optimizer_options){.adamw = adamw,
                                      .lr = adamw ? 0.01 : CASE_SGD_LR,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .eps = 1e-3,
                                      .weight_decay = 0.1};
}

/* A rank's loss of a step is the mean of its microbatches'. */
static bool logs_losses(const struct real_numbers *numbers)
{
    for (uint32_t step = 0; step < numbers->n_step; step++)
        for (uint32_t rank = 0; rank < numbers->ranks; rank++) {
            double mean = 0;
            for (uint32_t m = 0; m < numbers->microbatches; m++)
                mean += (double)numbers
                            ->losses[(step * numbers->microbatches + m) * numbers->ranks + rank] /
                        numbers->microbatches;
            if (fabs(numbers->log->rank[rank].results[step + 1].loss - mean) > 1e-6 * fabs(mean))
                return false;
        }
    return true;
}

bool real_case_run(const struct real_case *of, const struct made *made, struct real_numbers *out)
{
    return real_case_run_watched(of, made, NULL, NULL, out);
}

bool real_case_run_watched(const struct real_case *of, const struct made *made,
                           device_observer *observe, void *context, struct real_numbers *out)
{
    const struct real_ask ask = {.program = &made->program,
                                 .device = of->device,
                                 .steps = CASE_STEPS,
                                 .sums_microbatches = !of->averages,
                                 .max_norm = of->max_norm,
                                 .scaler.loss_scale = of->loss_scale,
                                 .observe = observe,
                                 .observe_context = context,
                                 .optimizer = real_case_optimizer(made)};
    struct err err = {0};

    if (real_run(&ask, out, &err) != STATUS_OK)
        return ok(false, "%s %s: runs: %s", small_name(of->small), of->words, err.text);
    if (!logs_losses(out))
        ok(false, "%s %s: the log has the losses", small_name(of->small), of->words);
    return true;
}
