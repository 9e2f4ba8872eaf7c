/*
 * Stand-ins for collectives on a CUDA device: one kernel, which takes as many processors as NCCL takes
 * channels, moves the bytes piece by piece and lasts as long as it is told (gpu/stand_in.h).
 */
#ifndef GPU_CUDA_STAND_IN_H
#define GPU_CUDA_STAND_IN_H

#include "gpu/stand_in.h"
#include "src/err.h"

struct CUstream_st; /* a cudaStream_t points to it */

/* What NCCL takes on NVLink for messages of FSDP's size (spec GPU 4: 8 to 16). */
enum { STAND_IN_BLOCKS = 16, STAND_IN_THREADS = 512 };

/* STATUS_RUN, with what CUDA says. */
enum status cuda_stand_in(const struct stand_in *in, struct CUstream_st *stream, struct err *err);

#endif
