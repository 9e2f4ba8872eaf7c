/*
 * Whether there is a CUDA device for this rank, and what is missing if not.
 *
 * Not to be called before ranks are forked: CUDA does not live through it. Source of the distinctions:
 * spec GPU 4, "Failing without a GPU".
 */
#include <stdlib.h>

#include "gpu/cuda_inner.h"

enum status cuda_status(cudaError_t error, const char *call, struct err *err)
{
    if (error == cudaSuccess)
        return STATUS_OK;
    return err_set(err, STATUS_RUN, "%s: %s", call, cudaGetErrorString(error));
}

/* CUDA counts versions as 1000 major + 10 minor. */
static enum status no_driver(struct err *err)
{
    int driver = 0, runtime = 0;

    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return err_set(err, STATUS_DEVICE,
                       "no NVIDIA driver is installed here; take --device host");
    cudaRuntimeGetVersion(&runtime);
    return err_set(err, STATUS_DEVICE,
                   "the NVIDIA driver is too old: it knows CUDA %d.%d, this build needs %d.%d",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

enum status cuda_probe(int *n_device, struct err *err)
{
    int n = 0;
    const cudaError_t error = cudaGetDeviceCount(&n);

    if (error == cudaErrorInsufficientDriver)
        return no_driver(err);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && n == 0))
        return err_set(err, STATUS_DEVICE,
                       "there is an NVIDIA driver, but no CUDA device; take --device host");
    if (error != cudaSuccess)
        return err_set(err, STATUS_DEVICE, "cudaGetDeviceCount: %s", cudaGetErrorString(error));
    *n_device = n;
    return STATUS_OK;
}

/* As a launcher numbers the ranks of this machine; without one all are on it. */
static uint32_t local_rank(uint32_t rank)
{
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "SLURM_LOCALID"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && *text)
            return (uint32_t)strtoul(text, NULL, 10);
    }
    return rank;
}

enum status cuda_choose(const struct device_setup *setup, int n_device, int *out, struct err *err)
{
    const uint32_t local = local_rank(setup->rank);

    if (setup->ranks > 1 && local >= (uint32_t)n_device)
        return err_set(
            err, STATUS_DEVICE,
            "rank %u has no CUDA device of its own: there %s %d; NCCL takes one for each "
            "rank",
            setup->rank, n_device == 1 ? "is" : "are", n_device);
    *out = (int)(local % (uint32_t)n_device);
    return STATUS_OK;
}
