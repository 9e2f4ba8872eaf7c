/*
 * The caching allocator once more, slow and plain: what the fast one is held against.
 *
 * One flat array of pieces, sorted by address, and loops over all of it; every statistic is summed
 * anew. Written from spec MEMORY section 1; of src/alloc.h it takes the types that are compared.
 */
#ifndef TESTS_SLOW_ALLOC_H
#define TESTS_SLOW_ALLOC_H

#include "src/alloc.h"

enum { SLOW_MAX_PIECES = 4096, SLOW_MAX_SEGMENTS = 1024, SLOW_MAX_OPS = 4096 };

enum slow_state { SLOW_LIVE, SLOW_PENDING, SLOW_FREE, SLOW_UNMAPPED };

struct slow_piece {
    uint32_t segment;
    uint64_t offset, bytes, requested, freed_at;
    enum slow_state state;
    uint8_t memory_class;
    uint16_t uses, events; /* bit s: stream s */
    uint64_t tag;          /* live: what the caller names it by */
};

struct slow_segment {
    bool exists, large;
    uint8_t pool;
};

struct slow_alloc {
    struct alloc_config config;
    struct slow_piece pieces[SLOW_MAX_PIECES];
    uint32_t n_piece;
    struct slow_segment segments[SLOW_MAX_SEGMENTS];
    uint64_t large_searches;
    struct alloc_stats stats;
    struct segment_op ops[SLOW_MAX_OPS];
    uint32_t n_op;
};

void slow_init(struct slow_alloc *slow, const struct alloc_config *config);
/* tag: a new one; slow_find() then tells the address. */
bool slow_malloc(struct slow_alloc *slow, uint8_t pool, uint64_t bytes, uint8_t memory_class,
                 uint64_t tag);
/* NULL where it is not live. */
const struct slow_piece *slow_find(const struct slow_alloc *slow, uint64_t tag);
void slow_free(struct slow_alloc *slow, uint64_t tag);
void slow_record_stream(struct slow_alloc *slow, uint64_t tag, uint8_t stream);
void slow_events_done(struct slow_alloc *slow, uint8_t stream);
void slow_empty_cache(struct slow_alloc *slow);
void slow_reset_peak(struct slow_alloc *slow);

/* Between slow_alloc.c and slow_memory.c. */

#define SLOW_MIB (UINT64_C(1) << 20)

/* Free pieces of one list by size, then address: what 1.2 calls the ordering key. */
struct slow_sorted {
    struct slow_piece pieces[SLOW_MAX_PIECES];
    uint32_t n;
};

uint64_t slow_up_to(uint64_t bytes, uint64_t step); /* the next multiple */
uint64_t slow_larger(uint64_t a, uint64_t b);
void slow_count(struct slow_alloc *slow); /* all statistics but peaks and counters */

bool slow_is_alone(const struct slow_alloc *slow, uint32_t piece); /* the whole of its segment */
bool slow_has_upper(const struct slow_alloc *slow, uint32_t piece);
void slow_cut(struct slow_alloc *slow, uint32_t piece, uint64_t bytes);
void slow_tidy(struct slow_alloc *slow);
void slow_sort_free(const struct slow_alloc *slow, uint8_t pool, bool large,
                    struct slow_sorted *out);
uint32_t slow_index_of(const struct slow_alloc *slow, const struct slow_piece *piece);

/* A free piece that is large enough, or false. */
bool slow_grow(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes, uint32_t *out);
void slow_free_done(struct slow_alloc *slow); /* pending pieces without events */
void slow_give_back_all(struct slow_alloc *slow);
bool slow_give_back_oversize(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes);
void slow_collect(struct slow_alloc *slow);

#endif
