/*
 * The two kernels of packing, and their launches; see cuda_pack.h. Bodies: gpu/pack_body.h.
 *
 * The grid is as large as what fits on the device at once: a warp walks over tiles, and has read the
 * next one's record before it starts with the one it has. Neighbouring warps take neighbouring
 * tiles, which lie on the same pages of memory.
 */
extern "C" {
#include "gpu/cuda_pack.h"
}
#include "gpu/pack_body.h"

enum { WARP = 32, BLOCK_THREADS = 256, BLOCK_WARPS = BLOCK_THREADS / WARP };

/* Blocks on a processor: 64 registers a thread, none of them spilled (spec GPU 2.3). */
enum { RESIDENT_BLOCKS = 4 };

struct tile_walk {
    const struct pack_tile *tiles;
    uint32_t n_tile;
};

/* Calls body(tile, lane) for each tile of the warp. */
template <class Body> static __device__ __forceinline__ void walk(struct tile_walk of, Body body)
{
    const uint32_t step = gridDim.x * BLOCK_WARPS;
    uint32_t i = blockIdx.x * BLOCK_WARPS + threadIdx.x / WARP;
    if (i >= of.n_tile)
        return;
    struct pack_tile next = of.tiles[i];
    for (; i < of.n_tile; i += step) {
        const struct pack_tile tile = next;
        if (i + step < of.n_tile)
            next = of.tiles[i + step];
        body(&tile, threadIdx.x % WARP);
    }
}

static __global__ void __launch_bounds__(BLOCK_THREADS, RESIDENT_BLOCKS)
    pack_kernel(struct tile_walk of, const struct pack_rows *rows, const void *from, void *to)
{
    walk(of, [=](const struct pack_tile *tile, uint32_t lane) {
        pack_tile_run(tile, rows, from, to, lane, WARP);
    });
}

static __global__ void __launch_bounds__(BLOCK_THREADS, RESIDENT_BLOCKS)
    post_kernel(struct tile_walk of, struct pack_after after, const void *from, void *to)
{
    walk(of, [=](const struct pack_tile *tile, uint32_t lane) {
        pack_post_run(tile, after, from, to, lane, WARP);
    });
}

static enum status failed(cudaError_t error, const char *what, struct err *err)
{
    if (error == cudaSuccess)
        return STATUS_OK;
    return err_set(err, STATUS_RUN, "cannot %s: %s", what, cudaGetErrorString(error));
}

template <class... Args>
static enum status blocks_of(void (*kernel)(Args...), int processors, uint32_t *out,
                             struct err *err)
{
    int resident = 0;
    cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, BLOCK_THREADS, 0);
    if (error == cudaSuccess)
        *out = (uint32_t)processors * (uint32_t)resident;
    return failed(error, "size a packing kernel", err);
}

enum status cuda_pack_grid_init(uint32_t most_processors, struct cuda_pack_grid *out,
                                struct err *err)
{
    struct cuda_pack_grid grid = {0, 0};
    int device = 0, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    enum status status = failed(error, "count a device's processors", err);
    if (most_processors > 0 && most_processors < (uint32_t)processors)
        processors = (int)most_processors;
    if (!status)
        status = blocks_of(pack_kernel, processors, &grid.pack_blocks, err);
    if (!status)
        status = blocks_of(post_kernel, processors, &grid.post_blocks, err);
    if (!status)
        *out = grid;
    return status;
}

/* Nothing for a table without tiles, which is no launch at all. */
template <class... Args, class... Given>
static enum status launch(void (*kernel)(struct tile_walk, Args...), uint32_t most_blocks,
                          const struct pack_table *table, struct CUstream_st *stream,
                          struct err *err, Given... given)
{
    const uint32_t blocks = (table->n_tile + BLOCK_WARPS - 1) / BLOCK_WARPS;
    cudaLaunchConfig_t config = {};
    if (table->n_tile == 0)
        return STATUS_OK;
    config.gridDim = dim3(blocks < most_blocks ? blocks : most_blocks);
    config.blockDim = dim3(BLOCK_THREADS);
    config.stream = stream;
    struct tile_walk of = {table->tiles, table->n_tile};
    return failed(cudaLaunchKernelEx(&config, kernel, of, given...), "launch a packing kernel",
                  err);
}

enum status cuda_pack(const struct pack_table *table, const void *from, void *to,
                      const struct cuda_pack_grid *grid, struct CUstream_st *stream,
                      struct err *err)
{
    return launch(pack_kernel, grid->pack_blocks, table, stream, err,
                  (const struct pack_rows *)table->rows, from, to);
}

enum status cuda_post_reduce(const struct pack_posts *posts, const struct cuda_pack_grid *grid,
                             struct CUstream_st *stream, struct err *err)
{
    const struct pack_after after = {posts->scale, posts->accumulates};
    return launch(post_kernel, grid->post_blocks, &posts->table, stream, err, after, posts->from,
                  posts->to);
}
