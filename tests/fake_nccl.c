/*
 * NCCL between forked processes, see fake_cuda.h: memory that all share, and all ranks of a
 * communicator meet at each piece of a message.
 *
 * An average is each input times 1 / n in the data type, then a sum, as NCCL has it (spec GPU 1.4);
 * sums are FP32 and rounded once. Whoever waits for a rank too long fails all.
 */
#include <nccl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "gpu/pack_element.h"
#include "src/dtype.h"
#include "tests/fake_cuda.h"
#include "tests/tap.h"

enum { MAX_COMMS = 16, MAX_RANKS = 8, PIECE_BYTES = 1 << 16, PATIENCE_S = 20 };

/* A communicator's place in the shared memory. */
struct meeting {
    _Atomic uint64_t arrived;
    char pieces[MAX_RANKS][PIECE_BYTES];
};

struct share {
    _Atomic uint32_t n_comm;
    _Atomic bool broken;
    struct meeting meetings[MAX_COMMS];
};

static struct share *share;

struct ncclComm {
    struct meeting *meeting;
    uint32_t n, me;
    uint64_t met;
    float factor; /* of the one reduction that can be made */
    ncclResult_t result;
};

void fake_nccl_share(uint32_t ranks)
{
    if (ranks > MAX_RANKS)
        tap_bail("too many ranks for the fake NCCL");
    share = mmap(NULL, sizeof *share, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (share == MAP_FAILED)
        tap_bail("no memory for the fake NCCL");
}

void fake_nccl_unshare(void)
{
    munmap(share, sizeof *share);
}

#define FAIL_POINT()                   \
    do {                               \
        if (fake_cuda_fails(__func__)) \
            return ncclSystemError;    \
    } while (0)

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote error" : "unhandled system error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclGetVersion(int *out)
{
    *out = 22809;
    return ncclSuccess;
}

/* ---- communicators ------------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    const uint32_t number = share->n_comm++;
    FAIL_POINT();
    memset(out, 0, sizeof *out);
    memcpy(out->internal, &number, sizeof number);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int me,
                                    ncclConfig_t *config)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    uint32_t number;

    if (!comm || config->blocking != 0)
        tap_bail("a communicator that blocks");
    if (fake_cuda_fails(__func__)) {
        free(comm);
        return ncclSystemError;
    }
    memcpy(&number, id.internal, sizeof number);
    *comm = (struct ncclComm){
        .meeting = &share->meetings[number % MAX_COMMS], .n = (uint32_t)n, .me = (uint32_t)me};
    fake_cuda_count(1);
    *out = comm;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    FAIL_POINT();
    *out = comm->result;
    return ncclSuccess;
}

static void drop(ncclComm_t comm)
{
    free(comm);
    fake_cuda_count(-1);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    FAIL_POINT();
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    drop(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    share->broken = true;
    drop(comm);
    return ncclSuccess;
}

enum { PREMUL = ncclNumOps };

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *out, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    uint32_t bits = 0;
    FAIL_POINT();
    if (residence != ncclScalarHostImmediate)
        return ncclInvalidArgument;
    memcpy(&bits, scalar, type == ncclFloat32 ? 4 : 2);
    comm->factor = pack_widen(bits, type == ncclFloat32    ? DTYPE_FP32
                                    : type == ncclBfloat16 ? DTYPE_BF16
                                                           : DTYPE_FP16);
    *out = (ncclRedOp_t)PREMUL;
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    (void)comm;
    FAIL_POINT();
    return (int)op == PREMUL ? ncclSuccess : ncclInvalidArgument;
}

/* ---- collectives --------------------------------------------------------------------------- */

enum kind { GATHER, SCATTER, ALL };

struct collective {
    ncclComm_t comm;
    enum kind kind;
    const char *send;
    char *recv;
    uint64_t n, el_bytes;
    uint8_t dtype;
    float factor;
};

static bool meet(ncclComm_t comm)
{
    const time_t end = time(NULL) + PATIENCE_S;
    const uint64_t all = ++comm->met * comm->n;

    comm->meeting->arrived++;
    while (comm->meeting->arrived < all && !share->broken) {
        sched_yield();
        if (time(NULL) > end)
            share->broken = true;
    }
    if (share->broken)
        comm->result = ncclRemoteError;
    return !share->broken;
}

static void reduce_piece(const struct collective *of, uint64_t n, char *out)
{
    for (uint32_t i = 0; i < n; i++) {
        float sum = -0.0f;
        for (uint32_t r = 0; r < of->comm->n; r++)
            sum += pack_widen(pack_get(of->comm->meeting->pieces[r], i, of->dtype), of->dtype) *
                   of->factor;
        pack_put(out, i, of->dtype, pack_narrow(sum, of->dtype));
    }
}

/* bytes at this place of everybody's message, to everybody or to one. */
static bool exchange(const struct collective *of, const char *from, uint64_t bytes)
{
    memcpy(of->comm->meeting->pieces[of->comm->me], from, bytes);
    return meet(of->comm);
}

static bool gather_piece(const struct collective *of, uint64_t at, uint64_t bytes)
{
    if (!exchange(of, of->send + at, bytes))
        return false;
    for (uint32_t r = 0; r < of->comm->n; r++)
        memcpy(of->recv + r * of->n * of->el_bytes + at, of->comm->meeting->pieces[r], bytes);
    return meet(of->comm);
}

static bool scatter_piece(const struct collective *of, uint64_t at, uint64_t bytes)
{
    for (uint32_t r = 0; r < of->comm->n; r++) {
        if (!exchange(of, of->send + r * of->n * of->el_bytes + at, bytes))
            return false;
        if (r == of->comm->me)
            reduce_piece(of, bytes / of->el_bytes, of->recv + at);
        if (!meet(of->comm))
            return false;
    }
    return true;
}

static bool all_piece(const struct collective *of, uint64_t at, uint64_t bytes)
{
    if (!exchange(of, of->send + at, bytes))
        return false;
    reduce_piece(of, bytes / of->el_bytes, of->recv + at);
    return meet(of->comm);
}

static void run(void *context)
{
    const struct collective *of = context;
    const uint64_t bytes = of->n * of->el_bytes;
    bool goes_on = true;

    for (uint64_t at = 0, part; at < bytes && goes_on; at += part) {
        part = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        goes_on = of->kind == GATHER    ? gather_piece(of, at, part)
                  : of->kind == SCATTER ? scatter_piece(of, at, part)
                                        : all_piece(of, at, part);
    }
}

static uint8_t dtype_of(ncclDataType_t type)
{
    return type == ncclFloat32    ? DTYPE_FP32
           : type == ncclBfloat16 ? DTYPE_BF16
           : type == ncclFloat16  ? DTYPE_FP16
                                  : DTYPE_U8;
}

static float factor_of(ncclRedOp_t op, ncclComm_t comm, uint8_t dtype)
{
    if ((int)op == PREMUL)
        return comm->factor;
    return op == ncclAvg ? pack_widen(pack_narrow(1.0f / (float)comm->n, dtype), dtype) : 1;
}

static ncclResult_t enqueue(struct collective collective, cudaStream_t stream)
{
    struct collective *kept = malloc(sizeof *kept);

    if (!kept)
        tap_bail("no memory for the fake NCCL");
    collective.el_bytes = pack_bytes(collective.dtype);
    *kept = collective;
    fake_cuda_note_collective();
    fake_cuda_order_collective();
    fake_cuda_enqueue(stream, run, free, kept);
    return collective.comm->result;
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t n, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    FAIL_POINT();
    return enqueue((struct collective){.comm = comm,
                                       .kind = GATHER,
                                       .send = send,
                                       .recv = recv,
                                       .n = n,
                                       .dtype = dtype_of(type)},
                   stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t n, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    FAIL_POINT();
    return enqueue((struct collective){.comm = comm,
                                       .kind = SCATTER,
                                       .send = send,
                                       .recv = recv,
                                       .n = n,
                                       .dtype = dtype_of(type),
                                       .factor = factor_of(op, comm, dtype_of(type))},
                   stream);
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    FAIL_POINT();
    return enqueue((struct collective){.comm = comm,
                                       .kind = ALL,
                                       .send = send,
                                       .recv = recv,
                                       .n = n,
                                       .dtype = dtype_of(type),
                                       .factor = factor_of(op, comm, dtype_of(type))},
                   stream);
}
