/*
 * The CUDA device's stand-in in the host's place: tests/stand_in.c, linked with this file and a CUDA of
 * the host's, tries its kernel.
 */
#include <cuda_runtime_api.h>

#include "gpu/cuda_stand_in.h"
#include "tests/fake_cuda.h"
#include "tests/stand_in_trial.h"
#include "tests/tap.h"

static void run(const struct stand_in *in)
{
    static cudaStream_t stream;
    struct err err;

    if (!stream) {
        fake_cuda_init(&(struct fake_setup){.n_device = 1, .driver = 13000});
        if (cudaStreamCreateWithPriority(&stream, 0, 0) != cudaSuccess)
            tap_bail("no fake device");
    }
    if (cuda_stand_in(in, stream, &err) != STATUS_OK)
        tap_bail(err.text);
}

__attribute__((constructor)) static void take_over(void)
{
    stand_in_trial = run;
}
