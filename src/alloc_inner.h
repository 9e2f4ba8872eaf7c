/*
 * Inside the caching allocator: what src/alloc.c (requests), src/alloc_segments.c (driver memory)
 * and src/alloc_expandable.c share. Nobody else includes this.
 *
 *   segment   a stretch of addresses from the driver; blocks tile it, linked by address
 *   block     live, pending (freed, but a stream may still use it), free, or unmapped (expandable)
 *   list      the free blocks of one (pool, small or large), whose segments serve nobody else
 *
 * Of two neighbours that join, the lower keeps its index, so a segment's first block never changes.
 */
#ifndef SRC_ALLOC_INNER_H
#define SRC_ALLOC_INNER_H

#include "src/alloc.h"
#include "src/alloc_bins.h"

/* Spec MEMORY 1.1. */
#define MIN_BYTES UINT64_C(512)                   /* rounding, smallest block */
#define SMALL_MAX_BYTES (UINT64_C(1) << 20)       /* past this a request is large */
#define OWN_SEGMENT_BYTES (UINT64_C(10) << 20)    /* from this on a request gets its own segment */
#define SEGMENT_STEP_BYTES (UINT64_C(2) << 20)    /* which is rounded up to this */
#define SMALL_SEGMENT_BYTES (UINT64_C(2) << 20)   /* also the page of an expandable small segment */
#define LARGE_SEGMENT_BYTES (UINT64_C(20) << 20)  /* also the page of an expandable large one */
#define OVERSIZE_SLACK_BYTES (UINT64_C(20) << 20) /* max_split: how much larger a block may be */

#define REQUEST_MAX_BYTES (UINT64_C(1) << 47) /* no driver has as much; keeps sums in 64 bits */
#define IMPOSSIBLE_BYTES ((UINT64_C(1) << 48) - MIN_BYTES) /* no segment is as large */
#define RESERVED_MAX_BYTES (UINT64_C(1) << 62)

enum { UNIT_BITS_OF_ADDRESS = 40, UNIT_SHIFT = 9 };
#define NO_BLOCK 0 /* an index that stands at both ends of every segment, as if live for ever */

enum block_state { BLOCK_LIVE, BLOCK_PENDING, BLOCK_FREE, BLOCK_UNMAPPED };

struct block {
    uint64_t bytes;
    uint64_t address;    /* segment << 40 | offset in units of 512 bytes */
    uint64_t requested;  /* live and pending: what was asked for */
    uint64_t born;       /* free: the count of large searches when it became so */
    uint32_t prev, next; /* neighbours in the segment, or NO_BLOCK */
    uint8_t list, state, memory_class;
    uint16_t uses;   /* live: bit s: recorded on stream s */
    uint16_t events; /* pending: bit s: stream s is not done */
};

struct segment {
    uint64_t bytes;
    uint32_t first; /* block, or NO_BLOCK: given back, the number is free */
    uint8_t list;
};

struct list {
    struct bins free;
    struct bin unmapped; /* expandable; by address */
};

_Static_assert(ALLOC_MAX_POOLS <= 16, "a stream is a bit of uses and events");
enum { LIST_N = 2 * ALLOC_MAX_POOLS }; /* list = 2 × pool + (large ? 1 : 0) */

struct alloc {
    struct alloc_config config;
    struct arena *arena;
    uint64_t limit_bytes;   /* of reserved: the smaller of capacity and what the process may have */
    uint64_t collect_bytes; /* garbage is collected past this; UINT64_MAX: never */
    uint64_t large_searches;
    struct alloc_stats stats;
    struct list lists[LIST_N];

    struct block *blocks;
    uint32_t n_block, cap_block, spare_block; /* spare: recycled indices, linked by next */
    struct segment *segments;
    uint32_t n_segment, cap_segment, lowest_spare_segment;
    uint32_t *pending; /* blocks that wait for events, in the order of their frees */
    uint32_t n_pending, cap_pending, n_ready; /* ready: those whose events are all done */
    uint32_t *scratch;
    uint32_t cap_scratch;
    struct segment_op *ops;
    uint32_t n_op, cap_op;
};

static inline bool list_is_large(uint8_t list)
{
    return list & 1;
}

static inline uint32_t block_segment(const struct block *block)
{
    return (uint32_t)(block->address >> UNIT_BITS_OF_ADDRESS);
}

static inline uint64_t block_offset(const struct block *block)
{
    return (block->address & ((UINT64_C(1) << UNIT_BITS_OF_ADDRESS) - 1)) << UNIT_SHIFT;
}

static inline bool block_is_split(const struct block *block)
{
    return (block->prev | block->next) != NO_BLOCK;
}

static inline bool block_is(const struct alloc *alloc, uint32_t block, enum block_state state)
{
    return alloc->blocks[block].state == state;
}

static inline uint64_t round_up_bytes(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

uint32_t block_more(struct alloc *alloc); /* a new index; block_new() where one may be spare */

static inline uint32_t block_new(struct alloc *alloc)
{
    uint32_t block = alloc->spare_block;
    if (block == NO_BLOCK)
        return block_more(alloc);
    alloc->spare_block = alloc->blocks[block].next;
    return block;
}

static inline void block_recycle(struct alloc *alloc, uint32_t block)
{
    alloc->blocks[block].next = alloc->spare_block;
    alloc->spare_block = block;
}

/* Cut a block: the index keeps the first bytes, the rest is returned, same state, in no list. */
static inline uint32_t block_cut(struct alloc *alloc, uint32_t block, uint64_t bytes)
{
    uint32_t rest = block_new(alloc);
    struct block *low = &alloc->blocks[block], *high = &alloc->blocks[rest];

    high->bytes = low->bytes - bytes;
    high->address = low->address + (bytes >> UNIT_SHIFT);
    high->prev = block;
    high->next = low->next;
    high->list = low->list;
    high->state = low->state;
    alloc->blocks[high->next].prev = rest;
    low->next = rest;
    low->bytes = bytes;
    return rest;
}

/* Join a block with the one above it, whose index is recycled. Lists are the caller's. */
static inline void block_join_next(struct alloc *alloc, uint32_t block)
{
    struct block *low = &alloc->blocks[block];
    uint32_t upper = low->next;

    low->bytes += alloc->blocks[upper].bytes;
    low->next = alloc->blocks[upper].next;
    alloc->blocks[low->next].prev = block;
    block_recycle(alloc, upper);
}

static inline struct bin_cursor block_find(const struct alloc *alloc, uint32_t block)
{
    const struct block *at = &alloc->blocks[block];
    return bins_find(&alloc->lists[at->list].free, at->bytes, at->address);
}

/* Make a block free and findable. */
static inline void block_list(struct alloc *alloc, uint32_t block)
{
    struct block *at = &alloc->blocks[block];
    at->state = BLOCK_FREE;
    at->born = alloc->large_searches;
    bins_insert(&alloc->lists[at->list].free, alloc->arena, at->bytes, at->address, block);
}

/* Take it out of its list; the state is the caller's. */
static inline void block_unlist(struct alloc *alloc, uint32_t block)
{
    bins_remove(&alloc->lists[alloc->blocks[block].list].free, block_find(alloc, block));
}

/*
 * Memory from the driver for a request of this size: a block in no list, or NO_BLOCK where the
 * limit is in the way. Takes all that it needs or nothing.
 */
uint32_t segments_grow(struct alloc *alloc, uint8_t list, uint64_t bytes);
uint32_t expandable_grow(struct alloc *alloc, uint8_t list, uint64_t bytes);

/* Back to the driver: all that is free as a whole (segments; pages of expandable ones). */
void segments_release_free(struct alloc *alloc);
/* The pages that lie in a free block as a whole; what is left at its ends stays free. */
void expandable_unmap(struct alloc *alloc, uint32_t block);
/* Oversize blocks of one list, as many as the request needs; false: they were not enough. */
bool segments_release_oversize(struct alloc *alloc, uint8_t list, uint64_t bytes);
/* Large segments that have been free for longer than the others, while too much is reserved. */
void segments_collect_garbage(struct alloc *alloc);

/* The steps of growing and releasing, for both kinds of segments. */
bool segments_fit(const struct alloc *alloc, uint64_t bytes);
/* Count what the driver gave to a list, and what it got back. */
void segments_reserved(struct alloc *alloc, uint8_t list, uint64_t bytes);
void segments_returned(struct alloc *alloc, uint8_t list, uint64_t bytes);
/* A segment of one block, which is in no list and has no state yet. */
uint32_t segment_new(struct alloc *alloc, uint8_t list, uint64_t bytes);
/* The segment of a block that is all of it and is in no list. */
void segment_release(struct alloc *alloc, uint32_t block);
/* Note an operation on the first bytes of a block. */
void segment_op(struct alloc *alloc, enum segment_act act, const struct block *block,
                uint64_t bytes);

#endif
