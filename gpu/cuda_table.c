/*
 * Memory of the device beside segments, and what most of it is for: copies of the host's tables and
 * lists, put one behind the other, dropped all at once.
 *
 * Invariant: what was put is not moved, so that work may point to it.
 */
#include <stdlib.h>

#include "gpu/cuda_inner.h"

#define CHUNK_BYTES ((uint64_t)4 << 20)
#define ALIGN_BYTES ((uint64_t)256)

enum status cuda_free_bytes(uint64_t *out, struct err *err)
{
    size_t available = 0, all = 0;
    const enum status status = CUDA_CALL(err, cudaMemGetInfo, &available, &all);

    if (status == STATUS_OK)
        *out = available;
    return status;
}

enum status cuda_outside_take(struct cuda_outside *outside, uint64_t bytes, void **out,
                              struct err *err)
{
    uint64_t before = 0, after = 0;
    enum status status = cuda_free_bytes(&before, err);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaMalloc, out, bytes);
    if (status == STATUS_OK)
        status = cuda_free_bytes(&after, err);
    outside->bytes += status == STATUS_OK ? before - after : 0;
    return status;
}

enum status cuda_outside_give(struct cuda_outside *outside, void *at, struct err *err)
{
    uint64_t before = 0, after = 0;
    enum status status = cuda_free_bytes(&before, err);

    if (status == STATUS_OK)
        status = CUDA_CALL(err, cudaFree, at);
    if (status == STATUS_OK)
        status = cuda_free_bytes(&after, err);
    outside->bytes -= status == STATUS_OK ? after - before : 0;
    return status;
}

/* A new chunk, which is the last. */
static enum status add_chunk(struct cuda_tables *tables, uint64_t bytes, struct err *err)
{
    struct cuda_chunk chunk = {.bytes = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES};

    if (tables->n == tables->cap) {
        tables->cap = tables->cap ? 2 * tables->cap : 8;
        tables->chunks = realloc(tables->chunks, tables->cap * sizeof(*tables->chunks));
        if (!tables->chunks)
            err_out_of_memory(tables->cap * sizeof(*tables->chunks));
    }
    tables->chunks[tables->n] = chunk;
    const enum status status = cuda_outside_take(tables->outside, chunk.bytes,
                                                 (void **)&tables->chunks[tables->n].base, err);
    tables->n += tables->chunks[tables->n].base != NULL;
    return status;
}

static struct cuda_chunk *find_chunk(const struct cuda_tables *tables, uint64_t bytes)
{
    for (uint32_t i = 0; i < tables->n; i++)
        if (tables->chunks[i].bytes - tables->chunks[i].used >= bytes)
            return &tables->chunks[i];
    return NULL;
}

enum status cuda_tables_put(struct cuda_tables *tables, const void *from, uint64_t bytes,
                            void **out, struct err *err)
{
    const uint64_t room = (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    enum status status = STATUS_OK;

    if (!find_chunk(tables, room))
        status = add_chunk(tables, room, err);
    if (status != STATUS_OK)
        return status;
    struct cuda_chunk *chunk = find_chunk(tables, room);
    void *to = chunk->base + chunk->used;
    status = CUDA_CALL(err, cudaMemcpy, to, from, bytes, cudaMemcpyHostToDevice);
    if (status != STATUS_OK)
        return status;
    chunk->used += room;
    *out = to;
    return STATUS_OK;
}

void cuda_tables_reset(struct cuda_tables *tables)
{
    for (uint32_t i = 0; i < tables->n; i++)
        tables->chunks[i].used = 0;
}

uint64_t cuda_tables_bytes(const struct cuda_tables *tables)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tables->n; i++)
        bytes += tables->chunks[i].bytes;
    return bytes;
}

void cuda_tables_release(struct cuda_tables *tables)
{
    for (uint32_t i = 0; i < tables->n; i++)
        cudaFree(tables->chunks[i].base);
    free(tables->chunks);
    *tables = (struct cuda_tables){0};
}
