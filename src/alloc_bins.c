/*
 * Ordered free blocks, the rarer half: growing, places inside a bin, the way to the next bin.
 */
#include "src/alloc_bins.h"

#include <string.h>

enum { FIRST_CAP = 8 };

uint32_t bin_count_from(const struct bin *bin, uint64_t bytes, uint64_t address)
{
    uint32_t low = 0, high = bin->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (bin_is_below(&bin->entries[middle], bytes, address))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void bin_insert_inside(struct bin *bin, struct arena *arena, uint64_t bytes, uint64_t address,
                       uint32_t block)
{
    const uint32_t index = bin_count_from(bin, bytes, address);
    if (bin->n == bin->cap)
        bin->entries = arena_grow(arena, bin->entries, &bin->cap,
                                  bin->n == 0 ? FIRST_CAP : bin->n + 1, sizeof(*bin->entries));
    struct bin_entry *at = &bin->entries[index];
    memmove(at + 1, at, (bin->n - index) * sizeof(*at));
    *at = (struct bin_entry){.bytes = bytes, .address = address, .block = block};
    bin->n++;
}

void bin_remove_at(struct bin *bin, uint32_t index)
{
    struct bin_entry *at = &bin->entries[index];
    bin->n--;
    memmove(at, at + 1, (bin->n - index) * sizeof(*at));
}

bool bins_smallest_from(const struct bins *bins, uint32_t bin, struct bin_cursor *out)
{
    uint64_t mask = ~UINT64_C(0) << bin % 64;
    for (uint32_t word = bin / 64; word < BIN_WORDS; word++, mask = ~UINT64_C(0)) {
        uint64_t used = bins->used[word] & mask;
        if (used != 0) {
            out->bin = word * 64 + (uint32_t)__builtin_ctzll(used);
            out->index = bins->bins[out->bin].n - 1;
            return true;
        }
    }
    return false;
}

bool bins_next(const struct bins *bins, struct bin_cursor *cursor)
{
    if (cursor->index == 0)
        return bins_smallest_from(bins, cursor->bin + 1, cursor);
    cursor->index--;
    return true;
}
