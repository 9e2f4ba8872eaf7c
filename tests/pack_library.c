/*
 * The packing kernel behind plain C calls, as a shared library: so that a process of Python times it
 * beside PyTorch's own, on the same memory and the same stream (tests/device_torch.py).
 *
 * The caller has the memory: of both sides, and of the table, whose bytes it copies to the device itself.
 * Knows no PyTorch. Errors: NULL or a number that is not 0, and pack_library_error().
 */
#include <stdlib.h>

#include "gpu/cuda_pack.h"
#include "src/cli/device_part.h"

struct pack_library;

struct pack_library *pack_library_new(uint64_t shrink, uint32_t ranks, int is_mixed);
void pack_library_free(struct pack_library *library);
const char *pack_library_error(const struct pack_library *library);
uint64_t pack_library_from_bytes(const struct pack_library *library);
uint64_t pack_library_to_bytes(const struct pack_library *library);
uint64_t pack_library_moved_bytes(const struct pack_library *library);
uint32_t pack_library_params(const struct pack_library *library);
void pack_library_param(const struct pack_library *library, uint32_t i, uint64_t *offset,
                        uint64_t *rows, uint64_t *columns, int *is_fp32);
const void *pack_library_table(const struct pack_library *library, uint64_t *bytes);
int pack_library_run(struct pack_library *library, const void *table, const void *from, void *to,
                     void *stream);

struct pack_library {
    struct device_unit unit;
    struct device_packing packing; /* gradients to FP32 */
    struct cuda_pack_grid grid;
    struct err err;
    struct arena arena;
};

struct pack_library *pack_library_new(uint64_t shrink, uint32_t ranks, int is_mixed)
{
    struct pack_library *library = calloc(1, sizeof *library);

    if (!library)
        err_out_of_memory(sizeof *library);
    arena_init(&library->arena);
    library->unit = device_unit_block(shrink, ranks, is_mixed != 0, &library->arena);
    device_unit_pack(&library->unit, MOVE_PACK, DTYPE_FP32, &library->arena, &library->packing);
    cuda_pack_grid_init(0, &library->grid, &library->err);
    return library;
}

void pack_library_free(struct pack_library *library)
{
    arena_release(&library->arena);
    free(library);
}

const char *pack_library_error(const struct pack_library *library)
{
    return library->err.text;
}

uint64_t pack_library_from_bytes(const struct pack_library *library)
{
    return library->packing.from_bytes;
}

uint64_t pack_library_to_bytes(const struct pack_library *library)
{
    return library->packing.to_bytes;
}

uint64_t pack_library_moved_bytes(const struct pack_library *library)
{
    return library->packing.table.bytes_read + library->packing.table.bytes_written;
}

uint32_t pack_library_params(const struct pack_library *library)
{
    return library->unit.n_param;
}

/* offset: of its gradient in the source, where each begins on a slot's border. */
void pack_library_param(const struct pack_library *library, uint32_t i, uint64_t *offset,
                        uint64_t *rows, uint64_t *columns, int *is_fp32)
{
    const struct device_param *param = &library->unit.params[i];

    *offset = device_unit_offset(&library->unit, i);
    *rows = param->rows;
    *columns = param->columns;
    *is_fp32 = param->dtype == DTYPE_FP32;
}

const void *pack_library_table(const struct pack_library *library, uint64_t *bytes)
{
    const struct pack_table *table = &library->packing.table;

    *bytes = table->n_tile * sizeof *table->tiles;
    return table->tiles;
}

/* table: its bytes on the device. Rows are whole, so that there is no table of narrow ones. */
int pack_library_run(struct pack_library *library, const void *table, const void *from, void *to,
                     void *stream)
{
    struct pack_table there = library->packing.table;

    there.tiles = (struct pack_tile *)(uintptr_t)table;
    return cuda_pack(&there, from, to, &library->grid, stream, &library->err);
}
