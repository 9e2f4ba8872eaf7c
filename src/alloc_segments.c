/*
 * Segments: what the caching allocator takes from the driver and gives back.
 *
 * Growing, releasing, mapping and unmapping, and the blocks that tile a segment. It decides nothing
 * about when: the failure order is in src/alloc.c. A number of a segment that was given back is
 * used again, lowest first, so that a step that always gives back and takes again repeats itself.
 */
#include <string.h>

#include "src/alloc_inner.h"

uint32_t block_more(struct alloc *alloc)
{
    alloc->blocks = arena_grow(alloc->arena, alloc->blocks, &alloc->cap_block, alloc->n_block + 1,
                               sizeof(*alloc->blocks));
    return alloc->n_block++;
}

void segment_op(struct alloc *alloc, enum segment_act act, const struct block *block,
                uint64_t bytes)
{
    alloc->ops =
        arena_grow(alloc->arena, alloc->ops, &alloc->cap_op, alloc->n_op + 1, sizeof(*alloc->ops));
    alloc->ops[alloc->n_op++] = (struct segment_op){
        .act = (uint8_t)act,
        .pool = block->list / 2,
        .expandable = alloc->config.expandable,
        .segment = block_segment(block),
        .offset = block_offset(block),
        .bytes = bytes,
    };
    alloc->stats.driver_calls++;
}

bool segments_fit(const struct alloc *alloc, uint64_t bytes)
{
    return bytes <= alloc->limit_bytes && alloc->stats.reserved <= alloc->limit_bytes - bytes;
}

void segments_reserved(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    struct alloc_stats *stats = &alloc->stats;
    stats->reserved += bytes;
    stats->reserved_by_pool[list / 2] += bytes;
    if (stats->reserved <= stats->peak_reserved)
        return;
    stats->peak_reserved = stats->reserved;
    memcpy(stats->peak_reserved_by_pool, stats->reserved_by_pool, sizeof(stats->reserved_by_pool));
}

void segments_returned(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    alloc->stats.reserved -= bytes;
    alloc->stats.reserved_by_pool[list / 2] -= bytes;
}

uint32_t segment_new(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    uint32_t number = alloc->lowest_spare_segment;
    while (number < alloc->n_segment && alloc->segments[number].first != NO_BLOCK)
        number++;
    if (number == alloc->n_segment) {
        alloc->segments = arena_grow(alloc->arena, alloc->segments, &alloc->cap_segment, number + 1,
                                     sizeof(*alloc->segments));
        alloc->n_segment++;
    }
    alloc->lowest_spare_segment = number + 1;

    uint32_t block = block_new(alloc);
    alloc->blocks[block] = (struct block){
        .bytes = bytes,
        .address = (uint64_t)number << UNIT_BITS_OF_ADDRESS,
        .prev = NO_BLOCK,
        .next = NO_BLOCK,
        .list = list,
    };
    alloc->segments[number] = (struct segment){.bytes = bytes, .first = block, .list = list};
    alloc->stats.segments++;
    segment_op(alloc, SEGMENT_RESERVE, &alloc->blocks[block], bytes);
    return block;
}

void segment_release(struct alloc *alloc, uint32_t block)
{
    const struct block *whole = &alloc->blocks[block];
    uint32_t number = block_segment(whole);

    segment_op(alloc, SEGMENT_RELEASE, whole, whole->bytes);
    alloc->segments[number].first = NO_BLOCK;
    if (number < alloc->lowest_spare_segment)
        alloc->lowest_spare_segment = number;
    alloc->stats.segments--;
    block_recycle(alloc, block);
}

static void release_whole(struct alloc *alloc, uint32_t block)
{
    segments_returned(alloc, alloc->blocks[block].list, alloc->blocks[block].bytes);
    block_unlist(alloc, block);
    segment_release(alloc, block);
}

static uint32_t grow_caching(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    uint64_t segment = !list_is_large(list)        ? SMALL_SEGMENT_BYTES
                       : bytes < OWN_SEGMENT_BYTES ? LARGE_SEGMENT_BYTES
                                                   : round_up_bytes(bytes, SEGMENT_STEP_BYTES);
    if (!segments_fit(alloc, segment))
        return NO_BLOCK;
    segments_reserved(alloc, list, segment);
    return segment_new(alloc, list, segment);
}

uint32_t segments_grow(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    if (bytes > REQUEST_MAX_BYTES)
        return NO_BLOCK;
    return alloc->config.expandable ? expandable_grow(alloc, list, bytes)
                                    : grow_caching(alloc, list, bytes);
}

/* Giving back */

/* All free blocks of a list in order, into scratch. */
static uint32_t collect_free(struct alloc *alloc, uint8_t list)
{
    const struct bins *bins = &alloc->lists[list].free;
    struct bin_cursor cursor;
    uint32_t n = 0;
    for (bool more = bins_first(bins, MIN_BYTES, &cursor); more; more = bins_next(bins, &cursor)) {
        alloc->scratch = arena_grow(alloc->arena, alloc->scratch, &alloc->cap_scratch, n + 1,
                                    sizeof(*alloc->scratch));
        alloc->scratch[n++] = bins_at(bins, cursor)->block;
    }
    return n;
}

static void release_list(struct alloc *alloc, uint8_t list)
{
    uint32_t n = collect_free(alloc, list);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t block = alloc->scratch[i];
        if (alloc->config.expandable)
            expandable_unmap(alloc, block);
        else if (!block_is_split(&alloc->blocks[block]))
            release_whole(alloc, block);
    }
}

void segments_release_free(struct alloc *alloc)
{
    for (uint8_t list = 1; list < LIST_N; list += 2)
        release_list(alloc, list);
    for (uint8_t list = 0; list < LIST_N; list += 2)
        release_list(alloc, list);
}

/*
 * A block of max_split bytes is its whole segment: requests of that size never split one, and a
 * smaller request's segment is less than a step larger, which is split once at most.
 */
bool segments_release_oversize(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    uint64_t max_split = alloc->config.max_split_bytes;
    uint64_t want = bytes > max_split ? bytes : max_split, released = 0;
    if (max_split == ALLOC_UNLIMITED || alloc->config.expandable)
        return false;

    uint32_t n = 0, n_free = collect_free(alloc, list);
    for (uint32_t i = 0; i < n_free; i++) {
        const struct block *block = &alloc->blocks[alloc->scratch[i]];
        if (block->bytes < max_split)
            continue;
        if (block->bytes >= want) {
            release_whole(alloc, alloc->scratch[i]);
            return true;
        }
        alloc->scratch[n++] = alloc->scratch[i];
    }
    while (n > 0 && released < want) {
        released += alloc->blocks[alloc->scratch[--n]].bytes;
        release_whole(alloc, alloc->scratch[n]);
    }
    return released >= want;
}

struct garbage {
    uint64_t total_age, n;   /* over the blocks that could go */
    uint64_t released_bytes; /* in this pass */
};

static void weigh_garbage(struct alloc *alloc, struct garbage *garbage)
{
    for (uint8_t list = 1; list < LIST_N; list += 2) {
        uint32_t n = collect_free(alloc, list);
        for (uint32_t i = 0; i < n; i++) {
            const struct block *block = &alloc->blocks[alloc->scratch[i]];
            if (!block_is_split(block)) {
                garbage->total_age += alloc->large_searches - block->born;
                garbage->n++;
            }
        }
    }
}

/* Release the blocks whose age is at least the mean that was found before this pass. */
static void release_old(struct alloc *alloc, struct garbage *garbage)
{
    const struct garbage mean = *garbage;
    garbage->released_bytes = 0;
    for (uint8_t list = 1; list < LIST_N; list += 2) {
        uint32_t n = collect_free(alloc, list);
        for (uint32_t i = 0; i < n; i++) {
            const struct block *block = &alloc->blocks[alloc->scratch[i]];
            uint64_t age = alloc->large_searches - block->born;
            if (block_is_split(block) || age * mean.n < mean.total_age)
                continue;
            garbage->total_age -= age;
            garbage->n--;
            garbage->released_bytes += block->bytes;
            release_whole(alloc, alloc->scratch[i]);
        }
    }
}

void segments_collect_garbage(struct alloc *alloc)
{
    if (alloc->config.expandable)
        return;
    struct garbage garbage = {0};
    weigh_garbage(alloc, &garbage);
    while (garbage.n > 0 && alloc->stats.reserved > alloc->collect_bytes) {
        release_old(alloc, &garbage);
        if (garbage.released_bytes == 0)
            return;
    }
}
