/*
 * The operators of gpu/ops.h on a CUDA device, as launches; C calls this.
 *
 * An operator is one launch or a few, in stream order, each of so many items (gpu/cuda_item.h).
 * Arguments are the same each time, and nothing is allocated: what a launch leaves for the next lies
 * in scratch that the caller gives. Correct before fast: one thread an item.
 */
#ifndef GPU_CUDA_OPS_H
#define GPU_CUDA_OPS_H

#include "gpu/ops.h"
#include "src/err.h"

struct CUstream_st; /* a cudaStream_t points to it */

/* A key or a query lies in a thread's own memory. */
enum { CUDA_MAX_HEAD_DIM = 128 };

/* The call as a kernel is given it. Its shape is the host's, this one is not. */
struct cuda_op {
    struct op_call call;
    struct op_shape shape;
    float *scratch; /* of the device */
};

/* Starts every kernel once, with nothing to do, so that what code and threads take of the device's
   memory is taken. */
enum status cuda_ops_load(struct CUstream_st *stream, struct err *err);

uint64_t cuda_op_scratch_bytes(const struct op_call *call);

/* STATUS_RUN: there is no such operator, its heads are too wide, or CUDA says no. */
enum status cuda_op_run(const struct cuda_op *op, struct CUstream_st *stream, struct err *err);

#endif
