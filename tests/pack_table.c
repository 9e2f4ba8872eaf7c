/*
 * The table builder: tiles of random segments cover them exactly, and offsets are 64 bits wide.
 */
#include "gpu/pack.h"

#include "tests/tap.h"

/* A tile against its segment, of which so many elements and zero bytes are done. */
static bool tile_is_right(const struct pack_tile *tile, const struct pack_segment *segment,
                          uint64_t done, uint64_t zeroed)
{
    uint64_t from_bytes = dtype_bytes(segment->from_dtype);
    uint64_t to_bytes = dtype_bytes(segment->to_dtype);
    uint64_t before = done * from_bytes, behind = (segment->n - done - tile->n) * from_bytes;
    if (tile->n == 0 && tile->n_zero == 0)
        return false;
    if (tile->kind != segment->from_dtype * 8u + segment->to_dtype)
        return false;
    if (tile->n && (tile->from != segment->from + before || zeroed))
        return false;
    if (tile->n && tile->arg != (before >= 16 ? 1u : 0u) + (behind >= 16 ? 2u : 0u))
        return false;
    if (tile->n_zero && done + tile->n != segment->n)
        return false;
    return tile->to == segment->to + done * to_bytes + zeroed;
}

/* Not longer than an eighth above what was asked for, and a border on a line. */
static bool tile_is_well_cut(const struct pack_tile *tile, const struct pack_segment *segment,
                             uint64_t tile_bytes)
{
    uint64_t from_bytes = dtype_bytes(segment->from_dtype);
    uint64_t to_bytes = dtype_bytes(segment->to_dtype);
    uint64_t wider = from_bytes > to_bytes ? from_bytes : to_bytes;
    uint64_t end = tile->to + tile->n * to_bytes + tile->n_zero;
    uint64_t segment_end = segment->to + segment->n * to_bytes + segment->n_zero;
    bool last_element = end - tile->n_zero == segment->to + segment->n * to_bytes;
    if (tile->n * wider > tile_bytes + tile_bytes / 8 || tile->n_zero > tile_bytes + tile_bytes / 8)
        return false;
    if (end == segment_end || (tile->n && last_element))
        return true;
    return end % 128 == 0 || (tile->n && segment->to % to_bytes != 0);
}

static uint64_t table_faults(const struct pack_segment *segments, uint32_t n, uint64_t tile_bytes,
                             const struct pack_table *table)
{
    const struct pack_tile *tile = table->tiles, *end = table->tiles + table->n_tile;
    uint64_t faults = 0, read = 0, written = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct pack_segment *segment = &segments[i];
        uint64_t done = 0, zeroed = 0;
        for (; tile < end && (done < segment->n || zeroed < segment->n_zero); tile++) {
            faults += !tile_is_right(tile, segment, done, zeroed);
            faults += !tile_is_well_cut(tile, segment, tile_bytes);
            done += tile->n;
            zeroed += tile->n_zero;
        }
        faults += done != segment->n || zeroed != segment->n_zero;
        read += done * dtype_bytes(segment->from_dtype);
        written += done * dtype_bytes(segment->to_dtype) + zeroed;
    }
    return faults + (tile != end) + (read != table->bytes_read) + (written != table->bytes_written);
}

static uint64_t random_count(uint64_t *state)
{
    static const uint64_t bounds[] = {1, 20, 3000, 100000};
    return tap_below(state, bounds[tap_below(state, 4)]);
}

static void test_random(void)
{
    uint64_t state = tap_seed(62), faults = 0;
    struct arena arena;
    arena_init(&arena);
    for (int round = 0; round < 2000; round++) {
        struct pack_segment segments[8];
        uint32_t n = (uint32_t)tap_below(&state, 9);
        for (uint32_t i = 0; i < n; i++) {
            segments[i] = (struct pack_segment){
                .from = tap_below(&state, 1000),
                .to = tap_below(&state, 3) ? tap_below(&state, 100) * 16 : tap_below(&state, 1000),
                .n = random_count(&state),
                .n_zero = tap_below(&state, 2) ? random_count(&state) : 0,
                .from_dtype = (uint8_t)tap_below(&state, DTYPE_U8),
                .to_dtype = (uint8_t)tap_below(&state, DTYPE_U8),
            };
        }
        uint64_t tile_bytes = (uint64_t)2048 << tap_below(&state, 6);
        tile_bytes += tap_below(&state, 2) ? tap_below(&state, 1000) : 0;
        struct pack_table table;
        pack_table_build(segments, n, tile_bytes, &arena, &table);
        faults += table_faults(segments, n, tile_bytes, &table);
        arena_reset(&arena);
    }
    is_int(faults, 0,
           "tiles cover random segments in order, well cut, with the flags they may have");
    arena_release(&arena);
}

/* 8.6 G elements: counts and byte offsets beyond 32 bits on both sides, nothing is touched. */
static void test_huge(void)
{
    struct pack_segment segments[] = {
        {.to = 48, .n = 3, .from_dtype = DTYPE_FP32, .to_dtype = DTYPE_FP32},
        {.from = 0x1234567890, .to = 64, .n = 8600000000, .from_dtype = DTYPE_BF16},
        {.from = 7, .to = 34400000064, .n = 0, .n_zero = 5000000000, .from_dtype = DTYPE_BF16},
    };
    struct arena arena;
    struct pack_table table;
    arena_init(&arena);
    uint64_t tile_bytes = pack_pick_tile(8600000000 * 4);
    pack_table_build(segments, 3, tile_bytes, &arena, &table);
    is_int(table_faults(segments, 3, tile_bytes, &table), 0, "a segment of 8.6 G elements");
    is_int(table.bytes_read, 8600000000 * 2 + 12, "bytes read do not wrap");
    is_int(table.bytes_written, 8600000000 * 4 + 5000000000 + 12, "nor bytes written");
    ok(table.n_tile < 650000, "in tiles of 64 KiB, of which there are %u", table.n_tile);
    arena_release(&arena);
}

static void test_pick(void)
{
    static const struct {
        uint64_t bytes, tile_bytes;
    } cases[] = {
        {0, 8192},
        {50331648 * (uint64_t)4, 8192},
        {300000000, 16384},
        {UINT64_MAX, 65536},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_int(pack_pick_tile(cases[i].bytes), cases[i].tile_bytes, "the tile of %llu bytes",
               (unsigned long long)cases[i].bytes);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Tiles of many narrow rows: one after the other, of whole rows, all saying what the segment says. */
static uint64_t narrow_faults(const struct pack_segment *segment, uint64_t tile_bytes,
                              const struct pack_table *table)
{
    const uint64_t to_bytes = dtype_bytes(segment->to_dtype), all = pack_segment_bytes(segment);
    const uint64_t row = all / segment->n_row;
    uint64_t faults = table->n_rows != 1, done = 0;
    for (uint32_t i = 0; i < table->n_tile; i++) {
        const struct pack_tile *tile = &table->tiles[i];
        faults += tile->from != segment->from + done * segment->from_pitch;
        faults += tile->to != segment->to + done * segment->to_pitch;
        faults += tile->kind != (segment->from_dtype * 8u + segment->to_dtype) + 64;
        faults += tile->arg != 0 || tile->n_zero != 0 || tile->n == 0;
        faults += tile->n * row > tile_bytes + tile_bytes / 8;
        faults += i + 1 < table->n_tile && (tile->n + 1) * row <= tile_bytes;
        done += tile->n;
    }
    faults += table->rows[0].n != segment->n || table->rows[0].n_zero * to_bytes != segment->n_zero;
    faults += table->rows[0].from_pitch != segment->from_pitch;
    faults += table->rows[0].to_pitch != segment->to_pitch;
    return faults + (done != segment->n_row);
}

static void test_narrow(void)
{
    uint64_t state = tap_seed(63), faults = 0;
    struct arena arena;
    arena_init(&arena);
    for (int round = 0; round < 500; round++) {
        struct pack_segment segment = {
            .from = tap_below(&state, 1000),
            .to = tap_below(&state, 1000),
            .n = 1 + tap_below(&state, 60),
            .n_zero = tap_below(&state, 30) * 4,
            .from_dtype = (uint8_t)tap_below(&state, DTYPE_U8),
            .to_dtype = (uint8_t)tap_below(&state, DTYPE_U8),
            .n_row = 2 + random_count(&state),
            .from_pitch = 241 + tap_below(&state, (uint64_t)1 << 33),
            .to_pitch = 361 + tap_below(&state, (uint64_t)1 << 33),
        };
        uint64_t tile_bytes = (uint64_t)2048 << tap_below(&state, 6);
        struct pack_table table;
        pack_table_build(&segment, 1, tile_bytes, &arena, &table);
        faults += narrow_faults(&segment, tile_bytes, &table);
        faults += table.bytes_read != segment.n_row * segment.n * dtype_bytes(segment.from_dtype);
        arena_reset(&arena);
    }
    is_int(faults, 0, "narrow rows share tiles, of which none is much longer than was asked for");
    arena_release(&arena);
}

/* Segments of three rows, and the tiles that they become. */
static void test_rows(void)
{
    static const struct {
        const char *what;
        struct pack_segment segment;
        uint32_t n_tile, n_rows;
        uint32_t n, n_zero; /* of the first tile */
    } cases[] = {
        {"511 bytes are narrow", {.n = 511, .from_pitch = 1000, .to_pitch = 1000}, 1, 1, 3, 0},
        {"512 bytes are not", {.n = 512, .from_pitch = 1000, .to_pitch = 1000}, 3, 0, 512, 0},
        {"zeros count, and go to each row's own tile",
         {.n = 300, .n_zero = 300, .from_pitch = 1000, .to_pitch = 1000},
         3,
         0,
         300,
         300},
        {"rows without gaps are one", {.n = 9, .from_pitch = 9, .to_pitch = 9}, 1, 0, 27, 0},
        {"a gap in the source parts them", {.n = 9, .from_pitch = 10, .to_pitch = 9}, 1, 1, 3, 0},
        {"and one in the destination", {.n = 9, .from_pitch = 9, .to_pitch = 10}, 1, 1, 3, 0},
        {"and zeros do", {.n = 9, .n_zero = 1, .from_pitch = 9, .to_pitch = 10}, 1, 1, 3, 0},
        {"rows of zeros without gaps are one", {.n_zero = 9, .to_pitch = 9}, 1, 0, 0, 27},
        {"with gaps they are three", {.n_zero = 9, .to_pitch = 10}, 3, 0, 0, 9},
    };
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pack_segment segment = cases[i].segment;
        struct pack_table table;
        segment.n_row = 3;
        segment.from_dtype = segment.to_dtype = DTYPE_U8;
        pack_table_build(&segment, 1, 8192, &arena, &table);
        ok(table.n_tile == cases[i].n_tile && table.n_rows == cases[i].n_rows &&
               table.tiles[0].n == cases[i].n && table.tiles[0].n_zero == cases[i].n_zero,
           "%s", cases[i].what);
        is_int(table.bytes_written, 3 * (segment.n + segment.n_zero), "all bytes are counted");
    }
    arena_release(&arena);
}

/* ---- post-reduce --------------------------------------------------------------------------- */

static void test_posts(void)
{
    static const char memory[1024] __attribute__((aligned(128)));
    const struct post_reduce posts[] = {
        {.from = memory + 644,
         .to = (void *)(uintptr_t)(memory + 136),
         .n = 7,
         .from_dtype = DTYPE_FP32,
         .to_dtype = DTYPE_BF16,
         .accumulates = true,
         .scale = 0.5f},
        {.from = memory + 520,
         .to = (void *)(uintptr_t)(memory + 264),
         .n = 9,
         .from_dtype = DTYPE_FP32,
         .to_dtype = DTYPE_FP32,
         .accumulates = true,
         .scale = 0.5f},
        {.from = memory, .to = (void *)(uintptr_t)memory, .n = 1}, /* not of them */
    };
    struct arena arena;
    struct pack_posts built;
    arena_init(&arena);
    pack_posts_build(posts, 2, &arena, &built);
    const struct pack_tile *tiles = built.table.tiles;
    ok(built.from == memory + 512 && built.to == memory + 128, "offsets count from a line");
    ok(built.accumulates && built.scale == 0.5f, "what all have in common");
    is_int(built.table.n_tile, 2, "a tile for each of two pieces");
    ok(tiles[0].from == 132 && tiles[0].to == 8 && tiles[0].n == 7, "the first");
    ok(tiles[1].from == 8 && tiles[1].to == 136 && tiles[1].n == 9, "and the second");
    is_int(tiles[0].kind, PACK_KIND(DTYPE_FP32, DTYPE_BF16), "of its dtypes");
    arena_release(&arena);
}

static void test_nothing(void)
{
    struct pack_segment nothing[2] = {{.from = 5, .to = 9, .from_dtype = DTYPE_U8}, {.to = 3}};
    nothing[0].to_dtype = DTYPE_U8;
    struct arena arena;
    struct pack_table table;
    arena_init(&arena);
    pack_table_build(nothing, 2, 8192, &arena, &table);
    is_int(table.n_tile, 0, "segments of nothing make no tiles");
    host_pack(&table, NULL, NULL);
    arena_release(&arena);
}

int main(void)
{
    test_random();
    test_huge();
    test_pick();
    test_narrow();
    test_rows();
    test_posts();
    test_nothing();
    return tap_done();
}
