/*
 * The slow allocator: requests, frees and statistics; see slow_alloc.h, and slow_memory.c for what
 * lies below. After every change slow_tidy() joins what can be joined and all sums are made anew.
 */
#include <string.h>

#include "tests/slow_alloc.h"

void slow_init(struct slow_alloc *slow, const struct alloc_config *config)
{
    memset(slow, 0, sizeof(*slow));
    slow->config = *config;
}

/* Statistics, 1.10 */

void slow_count(struct slow_alloc *slow)
{
    struct alloc_stats *stats = &slow->stats;
    stats->allocated = stats->active = stats->requested = 0;
    stats->reserved = stats->inactive_split = 0;
    memset(stats->by_class, 0, sizeof(stats->by_class));
    memset(stats->reserved_by_pool, 0, sizeof(stats->reserved_by_pool));

    for (uint32_t i = 0; i < slow->n_piece; i++) {
        const struct slow_piece *piece = &slow->pieces[i];
        bool live = piece->state == SLOW_LIVE, held = live || piece->state == SLOW_PENDING;
        stats->allocated += live ? piece->bytes : 0;
        stats->by_class[piece->memory_class] += live ? piece->bytes : 0;
        stats->active += held ? piece->bytes : 0;
        stats->requested += held ? piece->requested : 0;
        uint64_t reserved = piece->state != SLOW_UNMAPPED ? piece->bytes : 0;
        stats->reserved += reserved;
        stats->reserved_by_pool[slow->segments[piece->segment].pool] += reserved;
        if (piece->state == SLOW_FREE && !slow->config.expandable && !slow_is_alone(slow, i))
            stats->inactive_split += piece->bytes;
    }
    stats->segments = 0;
    for (uint32_t i = 0; i < SLOW_MAX_SEGMENTS; i++)
        stats->segments += slow->segments[i].exists;
}

uint64_t slow_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void slow_settle(struct slow_alloc *slow)
{
    struct alloc_stats *stats = &slow->stats;
    slow_tidy(slow);
    slow_count(slow);
    if (stats->allocated > stats->peak_allocated)
        memcpy(stats->peak_by_class, stats->by_class, sizeof(stats->by_class));
    if (stats->reserved > stats->peak_reserved)
        memcpy(stats->peak_reserved_by_pool, stats->reserved_by_pool,
               sizeof(stats->reserved_by_pool));
    stats->peak_allocated = slow_larger(stats->peak_allocated, stats->allocated);
    stats->peak_active = slow_larger(stats->peak_active, stats->active);
    stats->peak_requested = slow_larger(stats->peak_requested, stats->requested);
    stats->peak_reserved = slow_larger(stats->peak_reserved, stats->reserved);
}

void slow_reset_peak(struct slow_alloc *slow)
{
    struct alloc_stats *stats = &slow->stats;
    stats->peak_allocated = stats->peak_active = 0;
    stats->peak_requested = stats->peak_reserved = 0;
    memcpy(stats->peak_by_class, stats->by_class, sizeof(stats->by_class));
    memcpy(stats->peak_reserved_by_pool, stats->reserved_by_pool, sizeof(stats->reserved_by_pool));
    slow_settle(slow);
}

/* Requests, 1.3 */

static uint64_t round_request(const struct slow_alloc *slow, uint64_t bytes)
{
    const uint64_t divisions = slow->config.roundup_power2_divisions;
    uint64_t floor = 512;
    if (divisions <= 1 || bytes <= 512 * divisions)
        return slow_up_to(bytes, 512);
    while (floor * 2 <= bytes)
        floor *= 2;
    return slow_up_to(bytes, floor / divisions);
}

static uint64_t reach(const struct slow_alloc *slow, const struct slow_piece *piece)
{
    uint32_t i = slow_index_of(slow, piece);
    bool at_tail = slow_has_upper(slow, i) && slow->pieces[i + 1].state == SLOW_UNMAPPED;
    return piece->bytes + (at_tail ? slow->pieces[i + 1].bytes : 0);
}

static bool search(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes, uint32_t *out)
{
    static struct slow_sorted sorted;
    const uint64_t max_split = slow->config.max_split_bytes;
    uint32_t i = 0;

    slow->large_searches += large;
    slow_sort_free(slow, pool, large, &sorted);
    while (i < sorted.n && sorted.pieces[i].bytes < bytes)
        i++;
    if (i == sorted.n)
        return false;
    while (i + 1 < sorted.n && reach(slow, &sorted.pieces[i + 1]) < reach(slow, &sorted.pieces[i]))
        i++;
    if (bytes < max_split && sorted.pieces[i].bytes >= max_split)
        return false;
    if (bytes >= max_split && sorted.pieces[i].bytes >= bytes + 20 * SLOW_MIB)
        return false;
    *out = slow_index_of(slow, &sorted.pieces[i]);
    return true;
}

static bool search_or_grow(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes,
                           uint32_t *out)
{
    if (search(slow, pool, large, bytes, out))
        return true;
    slow_collect(slow);
    if (slow_grow(slow, pool, large, bytes, out))
        return true;
    if (slow_give_back_oversize(slow, pool, large, bytes) &&
        slow_grow(slow, pool, large, bytes, out))
        return true;
    slow_give_back_all(slow);
    slow->stats.retries++;
    return slow_grow(slow, pool, large, bytes, out);
}

static bool may_split(const struct slow_alloc *slow, bool large, uint64_t whole, uint64_t bytes)
{
    if (!large || slow->config.expandable)
        return whole - bytes >= 512;
    return whole - bytes > SLOW_MIB && bytes < slow->config.max_split_bytes;
}

bool slow_malloc(struct slow_alloc *slow, uint8_t pool, uint64_t bytes, uint8_t memory_class,
                 uint64_t tag)
{
    if (bytes == 0)
        return true;
    slow_free_done(slow);
    uint64_t size = round_request(slow, bytes);
    bool large = size > SLOW_MIB;
    uint32_t i;
    if (!search_or_grow(slow, pool, large, size, &i)) {
        slow->stats.ooms++;
        slow_settle(slow);
        return false;
    }
    if (may_split(slow, large, slow->pieces[i].bytes, size)) {
        slow->pieces[i].freed_at = slow->large_searches;
        slow_cut(slow, i, size);
    }
    struct slow_piece *piece = &slow->pieces[i];
    piece->state = SLOW_LIVE;
    piece->requested = bytes;
    piece->memory_class = memory_class;
    piece->uses = piece->events = 0;
    piece->tag = tag;
    slow_settle(slow);
    return true;
}

/* Index of a live piece, or n_piece. */
static uint32_t find(const struct slow_alloc *slow, uint64_t tag)
{
    uint32_t i = 0;
    while (i < slow->n_piece && (slow->pieces[i].state != SLOW_LIVE || slow->pieces[i].tag != tag))
        i++;
    return i;
}

const struct slow_piece *slow_find(const struct slow_alloc *slow, uint64_t tag)
{
    uint32_t i = find(slow, tag);
    return i < slow->n_piece ? &slow->pieces[i] : NULL;
}

void slow_free(struct slow_alloc *slow, uint64_t tag)
{
    uint32_t i = find(slow, tag);
    if (i == slow->n_piece)
        return;
    struct slow_piece *piece = &slow->pieces[i];
    piece->state = piece->uses ? SLOW_PENDING : SLOW_FREE;
    piece->events = piece->uses;
    piece->freed_at = slow->large_searches;
    slow_settle(slow);
}

void slow_record_stream(struct slow_alloc *slow, uint64_t tag, uint8_t stream)
{
    uint32_t i = find(slow, tag);
    if (i < slow->n_piece && slow->segments[slow->pieces[i].segment].pool != stream)
        slow->pieces[i].uses |= (uint16_t)(1 << stream);
}

void slow_events_done(struct slow_alloc *slow, uint8_t stream)
{
    for (uint32_t i = 0; i < slow->n_piece; i++)
        if (slow->pieces[i].state == SLOW_PENDING)
            slow->pieces[i].events &= (uint16_t) ~(1 << stream);
}

void slow_empty_cache(struct slow_alloc *slow)
{
    slow_give_back_all(slow);
    slow_settle(slow);
}
