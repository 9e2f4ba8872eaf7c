/*
 * Segments cut into tiles: the table of one packing.
 *
 * Host only; reads no element. All offsets are 64 bits wide, only a tile's own counts are 32.
 *
 * Invariants: the tiles of a segment follow one another without a gap; a border within a segment
 * falls on a line of the destination where elements can end there, or between two narrow rows.
 */
#include "gpu/pack.h"

#include <assert.h>

#define LEAST_TILE_BYTES ((uint64_t)8 << 10)
#define MOST_TILE_BYTES ((uint64_t)64 << 10)
#define LINE_BYTES ((uint64_t)128)

/* Tiles that keep an H200 busy to the end: 132 processors of 32 warps, about six turns for each. */
#define ENOUGH_TILES ((uint64_t)132 * 32 * 6)

uint64_t pack_pick_tile(uint64_t bytes)
{
    uint64_t tile_bytes = LEAST_TILE_BYTES;
    while (tile_bytes < MOST_TILE_BYTES && bytes / tile_bytes > ENOUGH_TILES)
        tile_bytes *= 2;
    return tile_bytes;
}

static uint64_t from_bytes(const struct pack_segment *segment)
{
    return dtype_bytes((enum dtype)segment->from_dtype);
}

static uint64_t to_bytes(const struct pack_segment *segment)
{
    return dtype_bytes((enum dtype)segment->to_dtype);
}

static uint64_t wider_bytes(const struct pack_segment *segment)
{
    return from_bytes(segment) > to_bytes(segment) ? from_bytes(segment) : to_bytes(segment);
}

static uint64_t row_bytes(const struct pack_segment *segment)
{
    return segment->n * wider_bytes(segment) + segment->n_zero;
}

static uint64_t rows_of(const struct pack_segment *segment)
{
    return segment->n_row > 1 ? segment->n_row : 1;
}

uint64_t pack_segment_bytes(const struct pack_segment *segment)
{
    return rows_of(segment) * row_bytes(segment);
}

/* Of n elements that go to a place, how many the next tile takes when full would be per: ends on a
   line, and does not leave a crumb behind. */
static uint64_t cut(uint64_t to, uint64_t n, uint64_t per, uint64_t element_bytes)
{
    uint64_t take = per;
    if (to % element_bytes == 0)
        take -= (to + per * element_bytes) % LINE_BYTES / element_bytes;
    return n < take || n - take < per / 8 ? n : take;
}

/* Where the records of a table are put, one by one; without tiles they are only counted. */
struct cursor {
    struct pack_tile *tiles;
    struct pack_rows *rows;
    uint64_t n_tile;
    uint32_t n_rows;
};

static void put(struct cursor *cursor, struct pack_tile tile)
{
    if (cursor->tiles)
        cursor->tiles[cursor->n_tile] = tile;
    cursor->n_tile++;
}

/* Neighbours of a tile within its segment are an eighth of a tile at least: more than a guard. */
static uint32_t guards(const struct pack_segment *segment, uint64_t done, uint64_t take)
{
    uint32_t low = done > 0 ? PACK_LO_OK : 0;
    return low | (done + take < segment->n ? PACK_HI_OK : 0);
}

/* The tiles of the elements; few zeros join the last one. Returns how many zero bytes did. */
static uint64_t put_elements(struct cursor *cursor, const struct pack_segment *segment,
                             uint64_t tile_bytes)
{
    uint64_t per = tile_bytes / wider_bytes(segment);
    uint64_t n_zero = segment->n_zero <= tile_bytes / 8 ? segment->n_zero : 0;
    uint64_t take;
    for (uint64_t done = 0; done < segment->n; done += take) {
        uint64_t to = segment->to + done * to_bytes(segment);
        take = cut(to, segment->n - done, per, to_bytes(segment));
        put(cursor, (struct pack_tile){
                        .from = segment->from + done * from_bytes(segment),
                        .to = to,
                        .n = (uint32_t)take,
                        .n_zero = done + take == segment->n ? (uint32_t)n_zero : 0,
                        .kind = PACK_KIND(segment->from_dtype, segment->to_dtype),
                        .arg = guards(segment, done, take),
                    });
    }
    return segment->n ? n_zero : 0;
}

static void put_zeros(struct cursor *cursor, const struct pack_segment *segment, uint64_t done,
                      uint64_t tile_bytes)
{
    uint64_t start = segment->to + segment->n * to_bytes(segment);
    uint64_t take;
    for (; done < segment->n_zero; done += take) {
        take = cut(start + done, segment->n_zero - done, tile_bytes, 1);
        put(cursor, (struct pack_tile){
                        .from = segment->from,
                        .to = start + done,
                        .n_zero = (uint32_t)take,
                        .kind = PACK_KIND(segment->from_dtype, segment->to_dtype),
                    });
    }
}

static void put_row(struct cursor *cursor, const struct pack_segment *row, uint64_t tile_bytes)
{
    uint64_t n_zero = put_elements(cursor, row, tile_bytes);
    put_zeros(cursor, row, n_zero, tile_bytes);
}

/* Many narrow rows, as many of them in a tile as make its bytes. */
static void put_narrow(struct cursor *cursor, const struct pack_segment *segment,
                       uint64_t tile_bytes)
{
    uint64_t per = tile_bytes / row_bytes(segment), take;
    assert(segment->n_zero % to_bytes(segment) == 0);
    if (cursor->tiles)
        cursor->rows[cursor->n_rows] = (struct pack_rows){
            .from_pitch = segment->from_pitch,
            .to_pitch = segment->to_pitch,
            .n = (uint32_t)segment->n,
            .n_zero = (uint32_t)(segment->n_zero / to_bytes(segment)),
        };
    for (uint64_t done = 0; done < segment->n_row; done += take) {
        take = segment->n_row - done < per + per / 8 ? segment->n_row - done : per;
        put(cursor, (struct pack_tile){
                        .from = segment->from + done * segment->from_pitch,
                        .to = segment->to + done * segment->to_pitch,
                        .n = (uint32_t)take,
                        .kind = PACK_KIND(segment->from_dtype, segment->to_dtype) | PACK_ROWS,
                        .arg = cursor->n_rows,
                    });
    }
    cursor->n_rows++;
}

/* Rows that follow one another without a gap on both sides are one. */
static struct pack_segment joined(struct pack_segment segment)
{
    bool from_together = segment.n == 0 || segment.from_pitch == segment.n * from_bytes(&segment);
    bool is_pure = segment.n == 0 || segment.n_zero == 0;
    bool to_together = segment.to_pitch == segment.n * to_bytes(&segment) + segment.n_zero;
    if (from_together && to_together && is_pure) {
        segment.n *= segment.n_row;
        segment.n_zero *= segment.n_row;
        segment.n_row = 1;
    }
    return segment;
}

static void put_segment(struct cursor *cursor, const struct pack_segment *segment,
                        uint64_t tile_bytes)
{
    struct pack_segment rows = segment->n_row > 1 ? joined(*segment) : *segment;
    if (rows.n_row > 1 && rows.n > 0 && row_bytes(&rows) < PACK_NARROW_BYTES) {
        put_narrow(cursor, &rows, tile_bytes);
        return;
    }
    for (uint64_t i = 0; i < rows_of(&rows); i++) {
        struct pack_segment row = rows;
        row.from += i * rows.from_pitch;
        row.to += i * rows.to_pitch;
        put_row(cursor, &row, tile_bytes);
    }
}

static struct cursor put_all(struct cursor cursor, const struct pack_segment *segments,
                             uint32_t n_segment, uint64_t tile_bytes)
{
    for (uint32_t i = 0; i < n_segment; i++)
        put_segment(&cursor, &segments[i], tile_bytes);
    return cursor;
}

/* What a segment reads and writes, in bytes. */
static void count(const struct pack_segment *segment, struct pack_table *table)
{
    const uint64_t n = rows_of(segment) * segment->n;
    assert(segment->from_dtype == segment->to_dtype ||
           (segment->from_dtype != DTYPE_U8 && segment->to_dtype != DTYPE_U8));
    table->bytes_read += n * from_bytes(segment);
    table->bytes_written += n * to_bytes(segment) + rows_of(segment) * segment->n_zero;
}

void pack_table_build(const struct pack_segment *segments, uint32_t n_segment, uint64_t tile_bytes,
                      struct arena *arena, struct pack_table *out)
{
    assert(tile_bytes >= 1024 && tile_bytes <= UINT32_MAX / 2);
    struct cursor size = put_all((struct cursor){0}, segments, n_segment, tile_bytes);
    assert(size.n_tile <= INT32_MAX);
    struct pack_table table = {
        .tiles = arena_take(arena, size.n_tile * sizeof *table.tiles),
        .rows = arena_take(arena, size.n_rows * sizeof *table.rows),
        .n_tile = (uint32_t)size.n_tile,
        .n_rows = size.n_rows,
    };
    put_all((struct cursor){.tiles = table.tiles, .rows = table.rows}, segments, n_segment,
            tile_bytes);
    for (uint32_t i = 0; i < n_segment; i++)
        count(&segments[i], &table);
    *out = table;
}

/* The lowest address of all pieces, on a line: what offsets count from. */
static uint64_t lowest(const struct post_reduce *posts, uint32_t n_post, bool of_source)
{
    uint64_t low = UINT64_MAX;
    for (uint32_t i = 0; i < n_post; i++) {
        const uint64_t at = (uintptr_t)(of_source ? posts[i].from : posts[i].to);
        low = at < low ? at : low;
    }
    return low - low % LINE_BYTES;
}

void pack_posts_build(const struct post_reduce *posts, uint32_t n_post, struct arena *arena,
                      struct pack_posts *out)
{
    struct pack_segment *segments = arena_array(arena, struct pack_segment, n_post);
    const uint64_t from = lowest(posts, n_post, true), to = lowest(posts, n_post, false);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_post; i++) {
        assert(posts[i].scale == posts[0].scale && posts[i].accumulates == posts[0].accumulates);
        segments[i] = (struct pack_segment){
            .from = (uintptr_t)posts[i].from - from,
            .to = (uintptr_t)posts[i].to - to,
            .n = posts[i].n,
            .from_dtype = posts[i].from_dtype,
            .to_dtype = posts[i].to_dtype,
        };
        bytes += pack_segment_bytes(&segments[i]);
    }
    *out = (struct pack_posts){
        .from = (const void *)(uintptr_t)from,
        .to = (void *)(uintptr_t)to,
        .accumulates = posts[0].accumulates,
        .scale = posts[0].scale,
    };
    pack_table_build(segments, n_post, pack_pick_tile(bytes), arena, &out->table);
}
