/*
 * The free blocks of one pool, ordered by size and then by address.
 *
 * Answers exactly what an ordered tree would (best fit, lowest address among equals), faster for
 * the few distinct sizes of a training step: sizes fall into bins, four to each doubling, a bitmap
 * tells which bins hold something, and a bin is a sorted array. It knows neither segments nor
 * neighbours.
 *
 * Invariant: a bin is sorted downwards. The best entry is its last, and frees, which come mostly in
 * the reverse order of their allocations, append: both ends of that are a few instructions here in
 * the header. What is rarer is in the .c file.
 */
#ifndef SRC_ALLOC_BINS_H
#define SRC_ALLOC_BINS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"

struct bin_entry {
    uint64_t bytes, address; /* the order */
    uint32_t block;
};

/* Usable alone where all sizes count as equal: then the order is that of addresses. */
struct bin {
    struct bin_entry *entries;
    uint32_t n, cap;
};

enum { BIN_N = 39 * 4, BIN_WORDS = (BIN_N + 63) / 64 }; /* from 512 bytes to below 2^48 */

struct bins {
    struct bin bins[BIN_N];
    uint64_t used[BIN_WORDS]; /* bit i: bin i is not empty */
};

/* A position in the order; good until the next change. */
struct bin_cursor {
    uint32_t bin, index;
};

/* How many entries are at or above (bytes, address); they are the first ones. */
uint32_t bin_count_from(const struct bin *bin, uint64_t bytes, uint64_t address);
/* Anywhere in the bin, which grows where it is full. */
void bin_insert_inside(struct bin *bin, struct arena *arena, uint64_t bytes, uint64_t address,
                       uint32_t block);
void bin_remove_at(struct bin *bin, uint32_t index);

bool bins_smallest_from(const struct bins *bins, uint32_t bin, struct bin_cursor *out);
bool bins_next(const struct bins *bins, struct bin_cursor *cursor); /* towards larger; false: end */

static inline bool bin_is_below(const struct bin_entry *entry, uint64_t bytes, uint64_t address)
{
    return entry->bytes != bytes ? entry->bytes < bytes : entry->address < address;
}

static inline uint32_t bin_of(uint64_t bytes)
{
    uint64_t units = bytes >> 9 << 2;
    uint32_t doubling = 61 - (uint32_t)__builtin_clzll(units);
    return doubling * 4 + (uint32_t)(units >> doubling & 3);
}

static inline void bin_insert(struct bin *bin, struct arena *arena, uint64_t bytes,
                              uint64_t address, uint32_t block)
{
    const uint32_t n = bin->n;
    if (n == bin->cap || (n > 0 && bin_is_below(&bin->entries[n - 1], bytes, address))) {
        bin_insert_inside(bin, arena, bytes, address, block);
        return;
    }
    bin->entries[n] = (struct bin_entry){.bytes = bytes, .address = address, .block = block};
    bin->n = n + 1;
}

/* Where an entry is that must be there. */
static inline uint32_t bin_find(const struct bin *bin, uint64_t bytes, uint64_t address)
{
    uint32_t last = bin->n - 1;
    if (bin->entries[last].address == address)
        return last;
    return bin_count_from(bin, bytes, address) - 1;
}

static inline void bins_insert(struct bins *bins, struct arena *arena, uint64_t bytes,
                               uint64_t address, uint32_t block)
{
    uint32_t bin = bin_of(bytes);
    bins->used[bin / 64] |= UINT64_C(1) << bin % 64;
    bin_insert(&bins->bins[bin], arena, bytes, address, block);
}

static inline struct bin_cursor bins_find(const struct bins *bins, uint64_t bytes, uint64_t address)
{
    uint32_t bin = bin_of(bytes);
    return (struct bin_cursor){.bin = bin, .index = bin_find(&bins->bins[bin], bytes, address)};
}

static inline void bins_remove(struct bins *bins, struct bin_cursor cursor)
{
    struct bin *bin = &bins->bins[cursor.bin];
    if (cursor.index + 1 == bin->n)
        bin->n = cursor.index;
    else
        bin_remove_at(bin, cursor.index);
    if (bin->n == 0)
        bins->used[cursor.bin / 64] &= ~(UINT64_C(1) << cursor.bin % 64);
}

/* The smallest entry of at least these bytes. */
static inline bool bins_first(const struct bins *bins, uint64_t bytes, struct bin_cursor *out)
{
    uint32_t bin = bin_of(bytes), n = bins->bins[bin].n;
    if (n > 0 && bins->bins[bin].entries[n - 1].bytes < bytes)
        n = bin_count_from(&bins->bins[bin], bytes, 0);
    if (n == 0)
        return bins_smallest_from(bins, bin + 1, out);
    *out = (struct bin_cursor){.bin = bin, .index = n - 1};
    return true;
}

static inline const struct bin_entry *bins_at(const struct bins *bins, struct bin_cursor cursor)
{
    return &bins->bins[cursor.bin].entries[cursor.index];
}

#endif
