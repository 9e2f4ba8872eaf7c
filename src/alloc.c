/*
 * The caching allocator: requests, frees, and the order of what is tried.
 *
 * What is taken from and given to the driver is src/alloc_segments.c; the order of free blocks is
 * src/alloc_bins.c. Invariant between calls: of two neighbours that are both free, or both
 * unmapped, one has absorbed the other; statistics are sums over blocks and segments, never
 * re-counted.
 */
#include "src/alloc.h"

#include <assert.h>
#include <string.h>

#include "src/alloc_inner.h"
#include "src/hash.h"

struct alloc_config alloc_config_default(void)
{
    return (struct alloc_config){
        .capacity_bytes = ALLOC_UNLIMITED,
        .max_split_bytes = ALLOC_UNLIMITED,
        .allowed_bytes = ALLOC_UNLIMITED,
    };
}

struct alloc *alloc_new(const struct alloc_config *config, struct arena *arena)
{
    struct alloc *alloc = arena_array(arena, struct alloc, 1);
    uint64_t limit = config->capacity_bytes;

    if (limit > config->allowed_bytes)
        limit = config->allowed_bytes;
    if (limit > RESERVED_MAX_BYTES)
        limit = RESERVED_MAX_BYTES;
    alloc->config = *config;
    alloc->arena = arena;
    alloc->limit_bytes = limit;
    alloc->collect_bytes = UINT64_MAX;
    if (config->garbage_threshold > 0 && config->allowed_bytes != ALLOC_UNLIMITED)
        alloc->collect_bytes =
            (uint64_t)(config->garbage_threshold * (double)config->allowed_bytes);
    block_more(alloc); /* that is NO_BLOCK */
    return alloc;
}

/* Spec MEMORY 1.3, step 3. Sizes that nobody has become one that is never found. */
static uint64_t round_request(const struct alloc *alloc, uint64_t bytes)
{
    const uint32_t divisions = alloc->config.roundup_power2_divisions;
    uint64_t step = MIN_BYTES;

    if (bytes > REQUEST_MAX_BYTES)
        return IMPOSSIBLE_BYTES;
    if (divisions > 1 && bytes > MIN_BYTES * divisions) {
        unsigned power = 63 - (unsigned)__builtin_clzll(bytes);
        step = UINT64_C(1) << (power - (31 - (unsigned)__builtin_clz(divisions)));
    }
    return (bytes + step - 1) & ~(step - 1);
}

/* What a free block could serve: in an expandable segment also what may be mapped behind it. */
static uint64_t reach_of(const struct alloc *alloc, uint32_t block)
{
    const struct block *at = &alloc->blocks[block];
    if (!block_is(alloc, at->next, BLOCK_UNMAPPED))
        return at->bytes;
    return at->bytes + alloc->blocks[at->next].bytes;
}

/* From the best fit on to larger blocks, as long as each next one reaches less far (MEMORY 1.9). */
static void prefer_short_reach(const struct alloc *alloc, const struct bins *free,
                               struct bin_cursor *cursor)
{
    struct bin_cursor next = *cursor;
    uint64_t reach = reach_of(alloc, bins_at(free, next)->block);
    while (reach > bins_at(free, next)->bytes && bins_next(free, &next)) {
        uint64_t next_reach = reach_of(alloc, bins_at(free, next)->block);
        if (next_reach >= reach)
            return;
        reach = next_reach;
        *cursor = next;
    }
}

static bool is_oversize_for(const struct alloc *alloc, uint64_t block_bytes, uint64_t bytes)
{
    const uint64_t max_split = alloc->config.max_split_bytes;
    return bytes < max_split ? block_bytes >= max_split
                             : block_bytes >= bytes + OVERSIZE_SLACK_BYTES;
}

static bool find_free(const struct alloc *alloc, const struct bins *free, uint64_t bytes,
                      struct bin_cursor *out)
{
    if (!bins_first(free, bytes, out))
        return false;
    if (alloc->config.expandable)
        prefer_short_reach(alloc, free, out);
    return !is_oversize_for(alloc, bins_at(free, *out)->bytes, bytes);
}

/* The real free: join the neighbours, become findable. */
static void release_block(struct alloc *alloc, uint32_t block)
{
    const struct block *blocks = alloc->blocks, *at = &blocks[block];
    struct alloc_stats *stats = &alloc->stats;
    uint64_t inactive = stats->inactive_split;

    stats->active -= at->bytes;
    stats->requested -= at->requested;
    if (block_is(alloc, at->next, BLOCK_FREE)) {
        inactive -= blocks[at->next].bytes;
        block_unlist(alloc, at->next);
        block_join_next(alloc, block);
    }
    if (block_is(alloc, at->prev, BLOCK_FREE)) {
        block = at->prev;
        at = &blocks[block];
        inactive -= at->bytes;
        block_unlist(alloc, block);
        block_join_next(alloc, block);
    }
    if (!alloc->config.expandable)
        stats->inactive_split = inactive + (block_is_split(at) ? at->bytes : 0);
    block_list(alloc, block);
}

static void release_ready(struct alloc *alloc)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < alloc->n_pending; i++) {
        if (alloc->blocks[alloc->pending[i]].events == 0)
            release_block(alloc, alloc->pending[i]);
        else
            alloc->pending[kept++] = alloc->pending[i];
    }
    alloc->n_pending = kept;
    alloc->n_ready = 0;
}

/* The first pending block from i on that waits for an event of the stream; it does no longer. */
static uint32_t end_event(struct alloc *alloc, uint32_t i, uint8_t stream)
{
    const uint16_t bit = (uint16_t)(1u << stream);

    for (; i < alloc->n_pending; i++) {
        struct block *block = &alloc->blocks[alloc->pending[i]];
        if ((block->events & bit) == 0)
            continue;
        block->events ^= bit;
        alloc->n_ready += block->events == 0;
        return i + 1;
    }
    return i;
}

void alloc_event_done(struct alloc *alloc, uint8_t stream)
{
    end_event(alloc, 0, stream);
}

void alloc_events_done(struct alloc *alloc, uint8_t stream)
{
    for (uint32_t i = 0; i < alloc->n_pending;)
        i = end_event(alloc, i, stream);
}

/* All events waited for, all that is free given back: the last resort, and empty_cache. */
void alloc_empty_cache(struct alloc *alloc)
{
    for (uint8_t stream = 0; stream < ALLOC_MAX_POOLS; stream++)
        alloc_events_done(alloc, stream);
    release_ready(alloc);
    segments_release_free(alloc);
}

/* Nothing cached serves the request: spec MEMORY 1.5 to 1.8 in their order. */
__attribute__((cold, noinline)) static uint32_t take_new(struct alloc *alloc, uint8_t list,
                                                         uint64_t bytes)
{
    if (alloc->stats.reserved > alloc->collect_bytes)
        segments_collect_garbage(alloc);
    uint32_t block = segments_grow(alloc, list, bytes);
    if (block == NO_BLOCK && segments_release_oversize(alloc, list, bytes))
        block = segments_grow(alloc, list, bytes);
    if (block == NO_BLOCK) {
        alloc_empty_cache(alloc);
        alloc->stats.retries++;
        block = segments_grow(alloc, list, bytes);
    }
    return block;
}

static bool is_worth_a_split(const struct alloc *alloc, uint8_t list, uint64_t rest, uint64_t bytes)
{
    if (!list_is_large(list) || alloc->config.expandable)
        return rest >= MIN_BYTES;
    return rest > SMALL_MAX_BYTES && bytes < alloc->config.max_split_bytes;
}

/* Take a free block: its low part, where the rest is worth a split and stays free. */
static uint32_t take_entry(struct alloc *alloc, uint8_t list, struct bin_cursor entry,
                           uint64_t bytes)
{
    struct bins *free = &alloc->lists[list].free;
    const uint32_t block = bins_at(free, entry)->block;
    bool was_split = block_is_split(&alloc->blocks[block]);
    uint64_t taken = bins_at(free, entry)->bytes, left = 0;

    bins_remove(free, entry);
    if (is_worth_a_split(alloc, list, taken - bytes, bytes)) {
        left = taken - bytes;
        taken = bytes;
        block_list(alloc, block_cut(alloc, block, bytes));
    }
    if (alloc->config.expandable)
        return block;
    if (was_split)
        alloc->stats.inactive_split -= taken;
    else
        alloc->stats.inactive_split += left;
    return block;
}

static uint32_t take_block(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    struct bins *free = &alloc->lists[list].free;
    struct bin_cursor entry;

    alloc->large_searches += list_is_large(list);
    if (!find_free(alloc, free, bytes, &entry)) {
        uint32_t block = take_new(alloc, list, bytes);
        if (block == NO_BLOCK)
            return NO_BLOCK;
        block_list(alloc, block);
        entry = block_find(alloc, block);
    }
    return take_entry(alloc, list, entry, bytes);
}

static void raise_peaks(struct alloc_stats *stats)
{
    if (stats->allocated > stats->peak_allocated) {
        stats->peak_allocated = stats->allocated;
        memcpy(stats->peak_by_class, stats->by_class, sizeof(stats->by_class));
    }
    if (stats->active > stats->peak_active)
        stats->peak_active = stats->active;
    if (stats->requested > stats->peak_requested)
        stats->peak_requested = stats->requested;
}

static void count_live(struct alloc_stats *stats, const struct block *block)
{
    stats->allocated += block->bytes;
    stats->active += block->bytes;
    stats->requested += block->requested;
    stats->by_class[block->memory_class] += block->bytes;
    raise_peaks(stats);
}

bool alloc_malloc(struct alloc *alloc, uint8_t pool, uint64_t bytes, enum memory_class memory_class,
                  alloc_block *out)
{
    assert(pool < ALLOC_MAX_POOLS);
    if (bytes == 0) {
        *out = ALLOC_NO_BLOCK;
        return true;
    }
    if (alloc->n_ready > 0)
        release_ready(alloc);

    uint64_t size = round_request(alloc, bytes);
    uint8_t list = (uint8_t)(2 * pool + (size > SMALL_MAX_BYTES));
    uint32_t block = take_block(alloc, list, size);
    if (block == NO_BLOCK) {
        alloc->stats.ooms++;
        return false;
    }

    struct block *at = &alloc->blocks[block];
    at->state = BLOCK_LIVE;
    at->requested = bytes;
    at->memory_class = (uint8_t)memory_class;
    at->uses = 0;
    count_live(&alloc->stats, at);
    *out = block;
    return true;
}

uint32_t alloc_free(struct alloc *alloc, alloc_block block)
{
    if (block == ALLOC_NO_BLOCK)
        return 0;
    struct block *at = &alloc->blocks[block];
    assert(at->state == BLOCK_LIVE);
    alloc->stats.allocated -= at->bytes;
    alloc->stats.by_class[at->memory_class] -= at->bytes;
    if (at->uses == 0) {
        release_block(alloc, block);
        return 0;
    }
    at->state = BLOCK_PENDING;
    at->events = at->uses;
    alloc->pending = arena_grow(alloc->arena, alloc->pending, &alloc->cap_pending,
                                alloc->n_pending + 1, sizeof(*alloc->pending));
    alloc->pending[alloc->n_pending++] = block;
    return alloc->blocks[block].events;
}

void alloc_record_stream(struct alloc *alloc, alloc_block block, uint8_t stream)
{
    assert(stream < ALLOC_MAX_POOLS);
    if (block != ALLOC_NO_BLOCK && stream != alloc->blocks[block].list / 2)
        alloc->blocks[block].uses |= (uint16_t)(1u << stream);
}

struct alloc_address alloc_block_address(const struct alloc *alloc, alloc_block block)
{
    const struct block *at = &alloc->blocks[block];
    return (struct alloc_address){.segment = block_segment(at), .offset = block_offset(at)};
}

const struct alloc_stats *alloc_stats(const struct alloc *alloc)
{
    return &alloc->stats;
}

void alloc_reset_peak(struct alloc *alloc)
{
    struct alloc_stats *stats = &alloc->stats;
    stats->peak_allocated = stats->allocated;
    stats->peak_active = stats->active;
    stats->peak_requested = stats->requested;
    stats->peak_reserved = stats->reserved;
    memcpy(stats->peak_by_class, stats->by_class, sizeof(stats->by_class));
    memcpy(stats->peak_reserved_by_pool, stats->reserved_by_pool, sizeof(stats->reserved_by_pool));
}

const struct segment_op *alloc_ops(const struct alloc *alloc, uint32_t *n)
{
    *n = alloc->n_op;
    return alloc->ops;
}

void alloc_clear_ops(struct alloc *alloc)
{
    alloc->n_op = 0;
}

/* What decides the future of a block; the age only where garbage is collected. */
static uint64_t mix_block(const struct alloc *alloc, uint64_t hash, const struct block *block)
{
    hash = hash_add(hash, block->bytes);
    hash = hash_add(hash, block->state);
    if (block->state == BLOCK_LIVE || block->state == BLOCK_PENDING) {
        hash = hash_add(hash, block->requested);
        hash = hash_add(hash, (uint64_t)block->memory_class << 32 | (uint64_t)block->uses << 16 |
                                  (block->state == BLOCK_PENDING ? block->events : 0));
    } else if (alloc->collect_bytes != UINT64_MAX && !block_is_split(block)) {
        hash = hash_add(hash, alloc->large_searches - block->born);
    }
    return hash;
}

uint64_t alloc_state_hash(const struct alloc *alloc)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < alloc->n_segment; i++) {
        uint32_t at = alloc->segments[i].first;
        if (at == NO_BLOCK)
            continue;
        hash = hash_add(hash, i);
        hash = hash_add(hash, alloc->segments[i].list);
        for (; at != NO_BLOCK; at = alloc->blocks[at].next)
            hash = mix_block(alloc, hash, &alloc->blocks[at]);
    }
    return hash;
}
