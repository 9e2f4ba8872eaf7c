/*
 * Segments cut into tiles: the table of one packing.
 *
 * Host only; reads no element. All offsets are 64 bits wide, only a tile's own counts are 32.
 *
 * Invariants: the tiles of a segment follow one another without a gap; a border within a segment
 * falls on a line of the destination where elements can end there.
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

/* Of n elements that go to a place, how many the next tile takes when full would be per: ends on a
   line, and does not leave a crumb behind. */
static uint64_t cut(uint64_t to, uint64_t n, uint64_t per, uint64_t element_bytes)
{
    uint64_t take = per;
    if (to % element_bytes == 0)
        take -= (to + per * element_bytes) % LINE_BYTES / element_bytes;
    return n < take || n - take < per / 8 ? n : take;
}

/* Where the tiles of a table are put, one by one; without tiles they are only counted. */
struct cursor {
    struct pack_tile *tiles;
    uint64_t n;
};

static void put(struct cursor *cursor, struct pack_tile tile)
{
    if (cursor->tiles)
        cursor->tiles[cursor->n] = tile;
    cursor->n++;
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
    uint64_t from_bytes = dtype_bytes(segment->from_dtype);
    uint64_t to_bytes = dtype_bytes(segment->to_dtype);
    uint64_t per = tile_bytes / (from_bytes > to_bytes ? from_bytes : to_bytes);
    uint64_t n_zero = segment->n_zero <= tile_bytes / 8 ? segment->n_zero : 0;
    uint64_t take;
    for (uint64_t done = 0; done < segment->n; done += take) {
        uint64_t to = segment->to + done * to_bytes;
        take = cut(to, segment->n - done, per, to_bytes);
        put(cursor, (struct pack_tile){
                        .from = segment->from + done * from_bytes,
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
    uint64_t start = segment->to + segment->n * dtype_bytes(segment->to_dtype);
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

static uint64_t put_all(struct pack_tile *tiles, const struct pack_segment *segments,
                        uint32_t n_segment, uint64_t tile_bytes)
{
    struct cursor cursor = {tiles, 0};
    for (uint32_t i = 0; i < n_segment; i++) {
        uint64_t n_zero = put_elements(&cursor, &segments[i], tile_bytes);
        put_zeros(&cursor, &segments[i], n_zero, tile_bytes);
    }
    return cursor.n;
}

void pack_table_build(const struct pack_segment *segments, uint32_t n_segment, uint64_t tile_bytes,
                      struct arena *arena, struct pack_table *out)
{
    assert(tile_bytes >= 1024 && tile_bytes <= UINT32_MAX / 2);
    uint64_t n_tile = put_all(NULL, segments, n_segment, tile_bytes);
    assert(n_tile <= UINT32_MAX);
    struct pack_table table = {
        .tiles = arena_take(arena, n_tile * sizeof *table.tiles),
        .n_tile = (uint32_t)n_tile,
    };
    put_all(table.tiles, segments, n_segment, tile_bytes);
    for (uint32_t i = 0; i < n_segment; i++) {
        const struct pack_segment *segment = &segments[i];
        assert(segment->from_dtype == segment->to_dtype ||
               (segment->from_dtype != DTYPE_U8 && segment->to_dtype != DTYPE_U8));
        table.bytes_read += segment->n * dtype_bytes(segment->from_dtype);
        table.bytes_written += segment->n * dtype_bytes(segment->to_dtype) + segment->n_zero;
    }
    *out = table;
}
