/*
 * Small native programs; see real_plans.h.
 */
#include "tests/real_plans.h"

#include <string.h>

#include "src/arch/arch.h"
#include "tests/asked.h"
#include "tests/tap.h"

/* Learned positions and biases are gpt2's alone, and so are fewer heads of keys a llama's. */
static struct dims dims_of(const char *family)
{
    const bool gpt2 = !strcmp(family, "gpt2"), llama = !strcmp(family, "llama");

    return (struct dims){.layers = 3,
                         .hidden = 32,
                         .intermediate = 48,
                         .heads = 4,
                         .kv_heads = llama ? 2 : 4,
                         .head_dim = 8,
                         .vocab = 64,
                         .positions = gpt2 ? 16 : 0,
                         .default_seq = 16,
                         .bias = gpt2,
                         .tied = gpt2};
}

void real_plan_init(struct made *made, const struct real_plan *plan)
{
    const struct dims dims = dims_of(plan->family);
    struct plan_options options;
    struct err err = {0};

    *made = (struct made){0};
    arena_init(&made->arena);
    const char *words = arena_printf(&made->arena, "--ops native %s", plan->words);
    made->model.arch = arch_by_name(plan->family);
    if (made->model.arch->build(&dims, &made->arena, &made->model, &err) != STATUS_OK ||
        asked_options(words, &made->arena, &options, &err) != STATUS_OK)
        tap_bail(err.text);
    made->model.name = plan->family;
    made->model.arch = arch_by_name(plan->family);
    made->model.dims = dims;
    make_finish(made, &options);
}
