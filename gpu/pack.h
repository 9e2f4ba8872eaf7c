/*
 * Packing by table: copy-in, copy-out, packing of gradients, casts and post-reduce are all lists of
 * "take n elements, cast, put them there, then write z zero bytes".
 *
 * A table is made once for a placed step and used at each launch; it holds offsets, which are added
 * to two addresses at launch. One tile is one warp's job on a GPU, one turn of a loop on the host.
 * The body of both is gpu/pack_body.h. Not here: which bytes go where (gpu/bind_pack.c).
 *
 * Invariants: each destination byte of a table is written exactly once; a tile's source lies in one
 * tensor; a tile without elements has zero bytes to write. Source of the format: spec GPU 2.1.
 */
#ifndef GPU_PACK_H
#define GPU_PACK_H

#include "src/arena.h"
#include "src/dtype.h"

/* Flags of pack_tile.arg. */
enum { PACK_LO_OK = 1, PACK_HI_OK = 2 /* 16 bytes before, after are of the same tensor */ };

#define PACK_KIND(from_dtype, to_dtype) ((uint32_t)(from_dtype)*8 + (uint32_t)(to_dtype))

/* Joined to the kind of a tile of many narrow rows: n counts rows, arg is an index of
   pack_table.rows, and n_zero is 0. */
enum { PACK_ROWS = 64 };

/* Rows below this many bytes share a tile; a wider one has tiles of its own. */
enum { PACK_NARROW_BYTES = 512 };

struct pack_tile {
    uint64_t from, to; /* byte offsets */
    uint32_t n;        /* elements */
    uint32_t n_zero;   /* bytes of zeros behind them */
    uint32_t kind;     /* PACK_KIND; equal dtypes move raw bytes */
    uint32_t arg;
};

/* What the rows of a tile have in common. */
struct pack_rows {
    uint64_t from_pitch, to_pitch; /* bytes from the start of a row to the next one's */
    uint32_t n;                    /* elements of a row */
    uint32_t n_zero;               /* elements of zeros behind each row */
};

/* n elements that lie together in the source and in the destination, and zero bytes behind them. */
struct pack_segment {
    uint64_t from, to;
    uint64_t n;
    uint64_t n_zero;
    uint8_t from_dtype, to_dtype; /* enum dtype */
    /* Of more than one row: how many of them, as long as the first and so many bytes apart. n_zero
       is then a number of whole elements. */
    uint64_t n_row;
    uint64_t from_pitch, to_pitch;
};

struct pack_table {
    struct pack_tile *tiles;
    struct pack_rows *rows;
    uint32_t n_tile, n_rows;
    uint64_t bytes_read, bytes_written;
};

/* Bytes of the wider side that a tile covers, of a table that moves so many in all: 8 to 64 KiB. */
uint64_t pack_pick_tile(uint64_t bytes);

/* Bytes of the wider side, and of zeros. */
uint64_t pack_segment_bytes(const struct pack_segment *segment);

/* Appends nothing for a segment of nothing. Everything is in the arena. tile_bytes: from 1 KiB to
   1 GiB. DTYPE_U8 goes to itself alone. */
void pack_table_build(const struct pack_segment *segments, uint32_t n_segment, uint64_t tile_bytes,
                      struct arena *arena, struct pack_table *out);

/* The loop over tiles that is the host's kernel. Source and destination do not overlap. */
void host_pack(const struct pack_table *table, const void *from, void *to);

/*
 * What follows a reduce-scatter (K4): each element is scaled in from's dtype, cast to to's and, where
 * it accumulates, added there: a rounding after each. scale 1: not scaled. from and to may be the
 * same address where the dtypes are equal. torch's div_ multiplies by the reciprocal, in FP32: so
 * does the caller (spec GPU 1.4).
 */
struct post_reduce {
    const void *from;
    void *to;
    uint64_t n;
    uint8_t from_dtype, to_dtype;
    bool accumulates;
    float scale;
};
void host_post_reduce(const struct post_reduce *post);

/* Pieces of post-reduce that are one launch, as a table without zeros and rows. */
struct pack_posts {
    struct pack_table table;
    const void *from;
    void *to;
    bool accumulates;
    float scale;
};

/* n_post: one at least, which scale and accumulate alike. Everything is in the arena. */
void pack_posts_build(const struct post_reduce *posts, uint32_t n_post, struct arena *arena,
                      struct pack_posts *out);

#endif
