/*
 * Collectives of the CUDA device by NCCL: a communicator for each group of more than one rank.
 *
 * Their ids go from the first rank of each group to the others over the transport's control group.
 * All calls are non-blocking, so that a rank that never comes is late and not a hang. Gathers are of
 * bytes; averages and factors are NCCL's own, rounding as spec GPU 1.4 says. A group of one rank has
 * nothing to exchange: a copy, scaled where NCCL would scale.
 *
 * Invariant: communicators are separate, so that they run side by side (spec GPU 4).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/bell.h"
#include "gpu/convert.h"
#include "gpu/cuda_inner.h"
#include "gpu/cuda_library.h"

enum { NAP_NS = 100000 };

struct cuda_comms {
    const struct comm_group *groups; /* [COMM_N] */
    int64_t timeout_ns;
    ncclComm_t comms[COMM_N]; /* NULL: of one rank, or none */
};

static enum status said(ncclResult_t result, const char *call, ncclComm_t comm, struct err *err)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return STATUS_OK;
    const char *more = nccl.ncclGetLastError(comm);
    return err_set(err, STATUS_RUN, "%s: %s%s%s", call, nccl.ncclGetErrorString(result),
                   more && *more ? ": " : "", more ? more : "");
}

/* Until the communicator has done what it was asked for last. */
static enum status settle(const struct cuda_comms *comms, int number, const char *call,
                          struct err *err)
{
    const ncclComm_t comm = comms->comms[number];
    const int64_t until_ns = bell_after(comms->timeout_ns);
    ncclResult_t result = ncclInProgress;

    while (result == ncclInProgress) {
        const ncclResult_t asked = nccl.ncclCommGetAsyncError(comm, &result);
        if (asked != ncclSuccess)
            return said(asked, "ncclCommGetAsyncError", comm, err);
        if (result != ncclInProgress)
            break;
        if (bell_now_ns() >= until_ns)
            return err_set(err, STATUS_RUN, "%s: communicator '%s' waited %g s for its ranks", call,
                           comm_name((enum comm)number), (double)comms->timeout_ns / 1e9);
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    return said(result, call, comm, err);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Of all communicators, as each rank made or did not make them. */
struct ids {
    ncclUniqueId of[COMM_N];
};

static enum status exchange_ids(const struct device_setup *setup, const struct ids *mine,
                                struct ids *all, struct err *err)
{
    const void **send = calloc(setup->ranks, sizeof(*send));
    void **recv = calloc(setup->ranks, sizeof(*recv));

    if (!send || !recv)
        err_out_of_memory(setup->ranks * sizeof(*recv));
    for (uint32_t r = 0; r < setup->ranks; r++) {
        send[r] = mine;
        recv[r] = &all[r];
    }
    enum status status = setup->transport->exchange(setup->transport_self, GROUP_CONTROL, send,
                                                    recv, sizeof(*mine), err);
    if (status == STATUS_OK)
        status = setup->transport->wait(setup->transport_self, GROUP_CONTROL, err);
    all[setup->rank] = *mine;
    free(send);
    free(recv);
    return status;
}

/* The first rank of each group makes its id. */
static enum status make_ids(const struct device_setup *setup, struct ids *out, struct err *err)
{
    enum status status = STATUS_OK;

    memset(out, 0, sizeof(*out));
    for (int c = 0; c < COMM_N && status == STATUS_OK; c++)
        if (setup->groups[c].n > 1 && setup->groups[c].me == 0)
            status = said(nccl.ncclGetUniqueId(&out->of[c]), "ncclGetUniqueId", NULL, err);
    return status;
}

static enum status open_comm(struct cuda_comms *comms, int number, ncclUniqueId id, struct err *err)
{
    const struct comm_group *group = &comms->groups[number];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;

    const ncclResult_t result = nccl.ncclCommInitRankConfig(&comms->comms[number], (int)group->n,
                                                            id, (int)group->me, &config);
    const enum status status = said(result, "ncclCommInitRankConfig", NULL, err);
    return status != STATUS_OK ? status : settle(comms, number, "ncclCommInitRankConfig", err);
}

static enum status open_all(struct cuda_comms *comms, const struct device_setup *setup,
                            struct err *err)
{
    struct ids mine, *all = calloc(setup->ranks, sizeof(*all));
    enum status status = make_ids(setup, &mine, err);

    if (!all)
        err_out_of_memory(setup->ranks * sizeof(*all));
    if (status == STATUS_OK)
        status = exchange_ids(setup, &mine, all, err);
    for (int c = 0; c < COMM_N && status == STATUS_OK; c++)
        if (setup->groups[c].n > 1)
            status = open_comm(comms, c, all[setup->groups[c].ranks[0]].of[c], err);
    free(all);
    return status;
}

enum status cuda_comms_open(const struct device_setup *setup, struct cuda_comms **out,
                            struct err *err)
{
    struct cuda_comms *comms = calloc(1, sizeof(*comms));
    bool is_needed = false;

    if (!comms)
        err_out_of_memory(sizeof(*comms));
    comms->groups = setup->groups;
    comms->timeout_ns = setup->timeout_ns;
    for (int c = 0; c < COMM_N; c++)
        is_needed |= setup->groups[c].n > 1;
    *out = comms; /* closed by its owner, failed or not */
    return is_needed ? open_all(comms, setup, err) : STATUS_OK;
}

enum status cuda_comms_check(struct cuda_comms *comms, struct err *err)
{
    for (int c = 0; c < COMM_N; c++) {
        ncclResult_t result = ncclSuccess;
        if (!comms->comms[c])
            continue;
        enum status status = said(nccl.ncclCommGetAsyncError(comms->comms[c], &result),
                                  "ncclCommGetAsyncError", comms->comms[c], err);
        if (status == STATUS_OK)
            status = said(result, comm_name((enum comm)c), comms->comms[c], err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static void close_comm(const struct cuda_comms *comms, int number, bool aborts)
{
    const ncclComm_t comm = comms->comms[number];
    struct err err;

    if (!aborts)
        aborts = said(nccl.ncclCommFinalize(comm), "ncclCommFinalize", comm, &err) != STATUS_OK ||
                 settle(comms, number, "ncclCommFinalize", &err) != STATUS_OK;
    if (aborts)
        nccl.ncclCommAbort(comm);
    else
        nccl.ncclCommDestroy(comm);
}

void cuda_comms_close(struct cuda_comms *comms, bool aborts)
{
    for (int c = 0; comms && c < COMM_N; c++)
        if (comms->comms[c])
            close_comm(comms, c, aborts);
    free(comms);
}

/* ---- running ------------------------------------------------------------------------------- */

static ncclDataType_t type_of(uint8_t dtype)
{
    static const ncclDataType_t types[DTYPE_N] = {[DTYPE_FP32] = ncclFloat32,
                                                  [DTYPE_BF16] = ncclBfloat16,
                                                  [DTYPE_FP16] = ncclFloat16,
                                                  [DTYPE_U8] = ncclUint8};
    return types[dtype];
}

/* 1 / divisor in the dtype, as NCCL takes it. */
static void factor_of(const struct work_collective *collective, void *out)
{
    const float factor = (float)(1 / collective->divisor);
    const uint16_t half =
        collective->dtype == DTYPE_BF16 ? f32_to_bf16(factor) : f32_to_fp16(factor);

    if (collective->dtype == DTYPE_FP32)
        memcpy(out, &factor, sizeof(factor));
    else
        memcpy(out, &half, sizeof(half));
}

static enum status reduction_of(const struct work_collective *collective, ncclComm_t comm,
                                ncclRedOp_t *out, struct err *err)
{
    float factor = 0;

    if (collective->reduction != REDUCE_PREMUL) {
        *out = collective->reduction == REDUCE_AVG ? ncclAvg : ncclSum;
        return STATUS_OK;
    }
    factor_of(collective, &factor);
    return said(nccl.ncclRedOpCreatePreMulSum(out, &factor, type_of(collective->dtype),
                                              ncclScalarHostImmediate, comm),
                "ncclRedOpCreatePreMulSum", comm, err);
}

static enum status reduce(const struct work_collective *collective, ncclComm_t comm,
                          cudaStream_t stream, struct err *err)
{
    const ncclDataType_t type = type_of(collective->dtype);
    const bool scatters = collective->kind == TASK_REDUCE_SCATTER;
    ncclRedOp_t reduction;
    enum status status = reduction_of(collective, comm, &reduction, err);

    if (status != STATUS_OK)
        return status;
    if (scatters)
        status = said(nccl.ncclReduceScatter(collective->send, collective->recv,
                                             collective->elements, type, reduction, comm, stream),
                      "ncclReduceScatter", comm, err);
    else
        status = said(nccl.ncclAllReduce(collective->send, collective->recv, collective->elements,
                                         type, reduction, comm, stream),
                      "ncclAllReduce", comm, err);
    if (status == STATUS_OK && collective->reduction == REDUCE_PREMUL)
        status = said(nccl.ncclRedOpDestroy(reduction, comm), "ncclRedOpDestroy", comm, err);
    return status;
}

/* Alone: what NCCL does of one rank, without NCCL. */
static enum status run_alone(const struct work_collective *collective, cudaStream_t stream,
                             struct err *err)
{
    const uint64_t bytes = collective->elements * dtype_bytes((enum dtype)collective->dtype);

    if (collective->reduction == REDUCE_PREMUL && collective->divisor != 1)
        return err_set(err, STATUS_RUN, "device cuda does not scale in a group of one rank");
    if (collective->send == collective->recv)
        return STATUS_OK;
    return CUDA_CALL(err, cudaMemcpyAsync, collective->recv, collective->send, bytes,
                     cudaMemcpyDeviceToDevice, stream);
}

enum status cuda_comms_run(struct cuda_comms *comms, const struct work_collective *collective,
                           cudaStream_t stream, struct err *err)
{
    const ncclComm_t comm = comms->comms[collective->comm];
    enum status status;

    if (collective->elements == 0)
        return STATUS_OK;
    if (!comm)
        return run_alone(collective, stream, err);
    if (collective->kind == TASK_ALL_GATHER)
        status = said(nccl.ncclAllGather(collective->send, collective->recv, collective->elements,
                                         type_of(collective->dtype), comm, stream),
                      "ncclAllGather", comm, err);
    else
        status = reduce(collective, comm, stream, err);
    return status != STATUS_OK ? status : settle(comms, collective->comm, "collective", err);
}

int cuda_nccl_version(void)
{
    int version = 0;
    return nccl.ncclGetVersion(&version) == ncclSuccess ? version : 0;
}
