/*
 * Whether there is a CUDA device for this rank, and what is missing if not.
 *
 * CUDA does not live through a fork, so that whoever wants to fork later asks in another process.
 * Source of the distinctions: spec GPU 4, "Failing without a GPU".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/cuda_inner.h"
#include "gpu/cuda_library.h"
#include "gpu/launcher.h"

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

enum status cuda_count(int *n_device, struct err *err)
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

/* The other process: says what it found, and is gone with the CUDA that it started. */
static void answer(int to)
{
    struct err why = {0};
    int n_device;

    why.status = cuda_count(&n_device, &why);
    if (why.status == STATUS_OK)
        why.status = cuda_libraries_load(&why);
    _exit(write(to, &why, sizeof why) == (ssize_t)sizeof why ? 0 : 1);
}

static enum status ask(int ends[2], struct err *err)
{
    struct err why;
    const pid_t pid = fork();

    if (pid == 0)
        answer(ends[1]);
    close(ends[1]);
    const bool has_answered = pid > 0 && read(ends[0], &why, sizeof why) == (ssize_t)sizeof why;
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (!has_answered)
        return err_set(err, STATUS_DEVICE, "the CUDA driver does not answer");
    return why.status == STATUS_OK ? STATUS_OK : err_set(err, why.status, "%s", why.text);
}

enum status cuda_probe(struct err *err)
{
    int ends[2];

    if (pipe(ends) != 0)
        return err_set(err, STATUS_DEVICE, "cannot ask for a CUDA device: %s", strerror(errno));
    fflush(NULL);
    const enum status status = ask(ends, err);
    close(ends[0]);
    return status;
}

enum status cuda_choose(const struct device_setup *setup, int n_device, int *out, struct err *err)
{
    const uint32_t local = launcher_local_rank(setup->rank);

    if (setup->ranks > 1 && local >= (uint32_t)n_device)
        return err_set(
            err, STATUS_DEVICE,
            "rank %u has no CUDA device of its own: there %s %d; NCCL takes one for each "
            "rank",
            setup->rank, n_device == 1 ? "is" : "are", n_device);
    *out = (int)(local % (uint32_t)n_device);
    return STATUS_OK;
}

enum status cuda_describe(int number, struct device_facts *out, struct err *err)
{
    const int collectives = cuda_nccl_version(), products = cuda_product_version();
    struct cudaDeviceProp properties;
    int driver = 0, runtime = 0, n_device = 0;
    enum status status = cuda_count(&n_device, err);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaGetDeviceProperties, &properties, number);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaDriverGetVersion, &driver);
    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaRuntimeGetVersion, &runtime);
    if (status != STATUS_OK)
        return status;
    *out = (struct device_facts){.memory_bytes = properties.totalGlobalMem,
                                 .processors = (uint32_t)properties.multiProcessorCount,
                                 .devices = (uint32_t)n_device};
    snprintf(out->name, sizeof out->name, "%.79s", properties.name);
    snprintf(out->software, sizeof out->software,
             "driver for CUDA %d.%d, runtime %d.%d, NCCL %d.%d.%d, cuBLASLt %d.%d.%d",
             driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
             collectives / 10000, collectives % 10000 / 100, collectives % 100, products / 10000,
             products % 10000 / 100, products % 100);
    return STATUS_OK;
}
