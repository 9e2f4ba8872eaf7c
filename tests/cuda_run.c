/*
 * The CUDA device runs whole programs, on a CUDA of the host's (tests/fake_cuda.h): losses, gradients
 * and parameters of two steps are those of the host device.
 *
 * To the last bit, where NCCL's average has the host's rounding: with a power of two ranks, or one.
 * Else within a bound.
 */
#include <math.h>

#include "tests/fake_cuda.h"
#include "tests/real_case.h"
#include "tests/tap.h"

struct cuda_case {
    enum small small;
    const char *words;
    double bound; /* of any tensor, norm-wise; 0: equal bits */
    float max_norm, loss_scale;
};

static const struct cuda_case cases[] = {
    {.small = SMALL_LLAMA, .words = "--gpus 1"},
    {.small = SMALL_LLAMA, .words = "--gpus 1 --param-dtype bf16 --optimizer adamw-fused"},
    {.small = SMALL_TIED, .words = "--gpus 1 --param-dtype bf16 --accum 2"},
    {.small = SMALL_GPT2, .words = "--gpus 1 --param-dtype bf16 --clip 1", .max_norm = 0.1f},
    {.small = SMALL_KDA, .words = "--gpus 1 --param-dtype bf16"},
    {.small = SMALL_FLAT, .words = "--gpus 1 --ac full"},
    {.small = SMALL_BLOCKS, .words = "--gpus 1"},
    {.small = SMALL_TINY, .words = "--gpus 1 --param-dtype bf16"},
    {.small = SMALL_LLAMA, .words = "--gpus 1 --param-dtype fp16 --scaler yes", .loss_scale = 1024},
    {.small = SMALL_LLAMA, .words = "--gpus 2 --param-dtype bf16"},
    {.small = SMALL_GPT2, .words = "--gpus 2 --param-dtype bf16 --accum 2 --optimizer adamw-fused"},
    {.small = SMALL_KDA, .words = "--gpus 2 --param-dtype bf16 --reduce-dtype bf16 --prefetch 2"},
    {.small = SMALL_KDA, .words = "--replicas 2 --param-dtype bf16"},
    {.small = SMALL_LLAMA, .words = "--gpus 2 --separate-reduce-comm yes"},
    {.small = SMALL_KDA, .words = "--gpus 3", .bound = 1e-5},
    {.small = SMALL_LLAMA, .words = "--gpus 3 --param-dtype bf16", .bound = 1e-6},
};

/* Norm-wise. */
static double apart(const float *got, const float *want, uint64_t n)
{
    double error = 0, size = 0;

    for (uint64_t i = 0; i < n; i++) {
        error += pow((double)got[i] - (double)want[i], 2);
        size += (double)want[i] * (double)want[i];
    }
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

/* The most of any tensor, or of all losses. */
static double numbers_apart(const struct model *model, const struct real_numbers *got,
                            const struct real_numbers *want)
{
    double most =
        apart(got->losses, want->losses, (uint64_t)want->n_step * want->microbatches * want->ranks);

    for (uint32_t p = 0; p < want->n_param; p++) {
        const uint64_t n = model->params[p].numel;
        most = fmax(most, apart(got->params[p], want->params[p], n));
        for (uint32_t s = 0; s < want->n_step; s++)
            most = fmax(most, apart(got->grads[s][p], want->grads[s][p], n));
    }
    return most;
}

static bool run(const struct cuda_case *of, const struct made *made,
                const struct device_ops *device, struct real_numbers *out)
{
    const struct real_case real = {.small = of->small,
                                   .words = of->words,
                                   .max_norm = of->max_norm,
                                   .loss_scale = of->loss_scale,
                                   .device = device};
    return real_case_run(&real, made, out);
}

/* Reserved bytes, as the device has them, on every rank at every check. */
static bool memory_agrees(const struct real_numbers *numbers)
{
    bool agrees = true;

    for (uint32_t r = 0; r < numbers->ranks; r++) {
        const struct rank_log *rank = &numbers->log->rank[r];
        agrees &= rank->n_check > 0;
        for (uint32_t i = 0; i < rank->n_check; i++)
            agrees &= rank->checks[i].reserved_bytes == rank->checks[i].mapped_bytes;
    }
    return agrees;
}

static void check(const struct cuda_case *of)
{
    const struct real_case real = {.small = of->small, .words = of->words};
    struct real_numbers host, cuda;
    struct made made;

    real_case_make(&real, &made);
    fake_cuda_init(&(struct fake_setup){.n_device = 8, .driver = 13000});
    fake_nccl_share((uint32_t)made.plan.world);
    if (run(of, &made, &host_device_ops, &host) && run(of, &made, &cuda_device_ops, &cuda)) {
        const double apart = numbers_apart(&made.model, &cuda, &host);
        ok(of->bound > 0 ? apart <= of->bound : real_equal(&host, &cuda),
           "%s %s: as on the host, apart %.1e", small_name(of->small), of->words, apart);
        ok(memory_agrees(&cuda), "and the device has mapped what was reserved");
    }
    real_release(&host);
    real_release(&cuda);
    fake_nccl_unshare();
    make_release(&made);
}

int main(void)
{
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
    return tap_done();
}
