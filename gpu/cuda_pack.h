/*
 * Packing and post-reduce on a CUDA device: kernels over a table's tiles, which lie on the device.
 *
 * A launch takes no memory, copies nothing and has the same arguments each time, so that it can be
 * part of a graph. Not here: tables (gpu/pack.h), what they are put on the device with, streams.
 *
 * A table here is one whose tiles and rows are device addresses. Errors: STATUS_RUN, with what CUDA
 * says. Source of the design: spec GPU 2.2.
 */
#ifndef GPU_CUDA_PACK_H
#define GPU_CUDA_PACK_H

#include "gpu/pack.h"
#include "src/err.h"

struct CUstream_st; /* a cudaStream_t points to it */

/* Blocks that are on the device at once. */
struct cuda_pack_grid {
    uint32_t pack_blocks, post_blocks;
};

/* Of the current device. most_processors: how many of its multiprocessors a launch may take, so that
   a matrix product beside it keeps the others; 0: all. */
enum status cuda_pack_grid_init(uint32_t most_processors, struct cuda_pack_grid *out,
                                struct err *err);

/* K1, K2, K3: as host_pack(). */
enum status cuda_pack(const struct pack_table *table, const void *from, void *to,
                      const struct cuda_pack_grid *grid, struct CUstream_st *stream,
                      struct err *err);

/* K4: as host_post_reduce() of each segment of the table, which pack_posts_build() made. */
enum status cuda_post_reduce(const struct pack_posts *posts, const struct cuda_pack_grid *grid,
                             struct CUstream_st *stream, struct err *err);

#endif
