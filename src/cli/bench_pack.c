/*
 * Packing on the host as a share of memcpy: bytes read and written in a second, divided by those of
 * memcpy of as many.
 *
 * Segments are what a unit has: several aligned tensors, which come to lie one behind the other. By
 * CPU time, and memcpy is measured right beside, since other programs disturb both.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/pack.h"
#include "src/cli/bench_host.h"

enum { SEGMENTS = 16, RUNS = 11, WARM_UP_RUNS = 2, ALIGNMENT = 4096, GOAL_PERCENT = 70 };
#define LEAST_BYTES ((uint64_t)16 << 20) /* that a measured run moves */

struct pack_case {
    const char *key, *covers;
    uint64_t bytes; /* of the wider side */
    uint8_t from, to;
    double goal;
};

/* X(name, bytes, where they fit) */
#define SIZES(X)                            \
    X("l2", (uint64_t)256 << 10, "256 KiB") \
    X("l3", (uint64_t)4 << 20, "4 MiB")     \
    X("ram", (uint64_t)64 << 20, "64 MiB")

static const struct pack_case cases[] = {
#define X(name, bytes, words)                                                                      \
    {"pack_same_" name "_percent",                                                                 \
     words " as they are, of memcpy",                                                              \
     bytes,                                                                                        \
     DTYPE_FP32,                                                                                   \
     DTYPE_FP32,                                                                                   \
     GOAL_PERCENT},                                                                                \
        {"pack_narrow_" name "_percent", words " FP32 to BF16", bytes, DTYPE_FP32, DTYPE_BF16, 0}, \
        {"pack_widen_" name "_percent", "BF16 to " words " FP32", bytes, DTYPE_BF16, DTYPE_FP32, 0},
    SIZES(X)
#undef X
};

/* Bytes read and written in a second of CPU time: packing of 16 aligned tensors, and memcpy of as
   many. */
struct bench_packing {
    double pack_bytes_per_s, copy_bytes_per_s;
};

struct copying {
    const struct pack_table *table; /* NULL: memcpy of as many */
    uint64_t moved_bytes;           /* read and written */
    uint64_t repeats;
    const char *from;
    char *to;
};

static enum status copy(void *self, struct err *err)
{
    const struct copying *copying = self;

    (void)err;
    for (uint64_t i = 0; i < copying->repeats; i++)
        if (copying->table)
            host_pack(copying->table, copying->from, copying->to);
        else
            memcpy(copying->to, copying->from, copying->moved_bytes / 2);
    return STATUS_OK;
}

static void build(enum dtype from, enum dtype to, uint64_t bytes, struct arena *arena,
                  struct pack_table *out)
{
    const uint64_t n = bytes / dtype_bytes(DTYPE_FP32) / SEGMENTS;
    struct pack_segment segments[SEGMENTS];

    for (uint64_t i = 0; i < SEGMENTS; i++)
        segments[i] = (struct pack_segment){.from = i * n * dtype_bytes(from),
                                            .to = i * n * dtype_bytes(to),
                                            .n = n,
                                            .from_dtype = (uint8_t)from,
                                            .to_dtype = (uint8_t)to};
    pack_table_build(segments, SEGMENTS, pack_pick_tile(bytes), arena, out);
}

static enum status measure(struct copying *copying, const struct pack_table *table,
                           struct bench_packing *out, struct err *err)
{
    const struct bench_stage stage = {.warm_up = WARM_UP_RUNS, .runs = RUNS, .run = copy};
    struct bench_time packing, plain;
    enum status status = bench_measure(&stage, copying, &plain, err);

    copying->table = table;
    if (status == STATUS_OK)
        status = bench_measure(&stage, copying, &packing, err);
    if (status != STATUS_OK)
        return status;
    const double moved_bytes = (double)copying->moved_bytes * (double)copying->repeats;
    *out = (struct bench_packing){.pack_bytes_per_s = moved_bytes / packing.cpu_s,
                                  .copy_bytes_per_s = moved_bytes / plain.cpu_s};
    return STATUS_OK;
}

/* bytes: of an FP32 side; a multiple of 4096. */
static enum status measure_packing(enum dtype from_dtype, enum dtype to_dtype, uint64_t bytes,
                                   struct bench_packing *out, struct err *err)
{
    char *from = aligned_alloc(ALIGNMENT, bytes), *to = aligned_alloc(ALIGNMENT, bytes);
    struct pack_table table;
    struct arena arena;

    if (!from || !to)
        err_out_of_memory(bytes);
    arena_init(&arena);
    memset(from, 1, bytes);
    memset(to, 1, bytes);
    build(from_dtype, to_dtype, bytes, &arena, &table);
    const uint64_t moved_bytes = table.bytes_read + table.bytes_written;
    struct copying copying = {.moved_bytes = moved_bytes,
                              .repeats = 1 + LEAST_BYTES / moved_bytes,
                              .from = from,
                              .to = to};
    const enum status status = measure(&copying, &table, out, err);
    arena_release(&arena);
    free(from);
    free(to);
    return status;
}

enum status bench_pack(struct bench_lines *lines, struct err *err)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pack_case *of = &cases[i];
        struct bench_packing packing;
        const enum status status =
            measure_packing((enum dtype)of->from, (enum dtype)of->to, of->bytes, &packing, err);
        if (status != STATUS_OK)
            return status;
        const double percent = 100 * packing.pack_bytes_per_s / packing.copy_bytes_per_s;
        bench_lines_add(lines,
                        (struct bench_line){of->key, BENCH_PERCENT, percent, of->goal, of->covers});
    }
    return STATUS_OK;
}
