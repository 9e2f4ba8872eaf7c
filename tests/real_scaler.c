/*
 * A loss scaler in a real run: a scale under which gradients overflow leaves out the step on every
 * rank, whichever of them has the infinity, and is halved; a step that is not left out is an
 * ordinary one.
 */
#include <math.h>
#include <stdio.h>

#include "tests/oracle_numbers.h"
#include "tests/real_case.h"
#include "tests/tap.h"

static const struct layout_case {
    enum small small;
    const char *words;
} layouts[] = {
    {SMALL_LLAMA, "--param-dtype fp16 --reduce-dtype fp16 --scaler yes"},
    {SMALL_LLAMA, "--param-dtype fp16 --scaler yes --replicas 2"},
    {SMALL_KDA, "--param-dtype fp16 --scaler yes --gpus 3"},
    {SMALL_GPT2, "--param-dtype fp16 --scaler yes --gpus 1"},
};

static bool is_skipped(const struct real_numbers *got, uint32_t rank, uint32_t step)
{
    return got->log->rank[rank].results[step + 1].skipped;
}

static bool ranks_agree(const struct real_numbers *got)
{
    for (uint32_t rank = 0; rank < got->ranks; rank++)
        for (uint32_t step = 0; step < CASE_STEPS; step++)
            if (is_skipped(got, rank, step) != is_skipped(got, 0, step) ||
                got->loss_scales[rank] != got->loss_scales[0])
                return false;
    return true;
}

/* What the steps that were not left out make of the start, element by element, in FP32. */
static uint64_t wrong_params(const struct made *made, const struct real_numbers *got)
{
    uint64_t n_wrong = 0;
    struct arena arena;

    arena_init(&arena);
    for (uint32_t p = 0; p < made->model.n_param; p++) {
        const uint64_t n = made->model.params[p].numel;
        float *want = arena_array(&arena, float, n);
        oracle_start(&made->model, p, want);
        for (uint64_t k = 0; k < n; k++) {
            for (uint32_t step = 0; step < CASE_STEPS; step++)
                if (!is_skipped(got, 0, step))
                    want[k] -= (float)CASE_SGD_LR * got->grads[step][p][k];
            n_wrong += want[k] != got->params[p][k];
        }
    }
    arena_release(&arena);
    return n_wrong;
}

static uint64_t count_infinite(const struct made *made, const struct real_numbers *got)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < made->model.n_param; p++)
        for (uint64_t k = 0; k < made->model.params[p].numel; k++)
            n += !isfinite(got->grads[0][p][k]);
    return n;
}

/* What the ranks of the first replica counted themselves. */
static uint64_t logged_infinite(const struct made *made, const struct real_numbers *got)
{
    uint64_t n = 0;

    for (uint32_t rank = 0; rank < made->plan.shard_ranks; rank++)
        n += got->log->rank[rank].results[1].not_finite;
    return n;
}

/* How many of the two steps are left out under this scale; -1: the run ended otherwise than well. */
static int check_scale(const struct layout_case *of, int exponent, bool *met_few)
{
    const struct real_case at = {
        .small = of->small, .words = of->words, .loss_scale = (float)ldexp(1, exponent)};
    struct real_numbers got;
    struct made made;
    int n_skipped = -1;

    real_case_make(&at, &made);
    if (real_case_run(&at, &made, &got)) {
        n_skipped = is_skipped(&got, 0, 0) + is_skipped(&got, 0, 1);
        const uint64_t n_infinite = count_infinite(&made, &got);
        *met_few |= n_infinite > 0 && n_infinite < 20;
        ok(ranks_agree(&got) && is_skipped(&got, 0, 0) == (n_infinite > 0) &&
               logged_infinite(&made, &got) == n_infinite &&
               got.loss_scales[0] == (float)ldexp(1, exponent - n_skipped) &&
               wrong_params(&made, &got) == 0,
           "%s %s: of a scale of 2^%d %d steps are left out, on all ranks, for %u infinities",
           small_name(of->small), of->words, exponent, n_skipped, (unsigned)n_infinite);
    }
    real_release(&got);
    make_release(&made);
    return n_skipped;
}

static void check_layout(const struct layout_case *of, bool *met_few)
{
    ok(check_scale(of, 4, met_few) == 0, "a small scale is kept");
    for (int exponent = 12; exponent < 18; exponent++)
        check_scale(of, exponent, met_few);
    ok(check_scale(of, 100, met_few) == 2, "a planted overflow leaves out every step");
}

int main(void)
{
    bool met_few = false;

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        check_layout(&layouts[i], &met_few);
    ok(met_few, "under some scale few elements overflow, so that most ranks have none");
    return tap_done();
}
