/*
 * Expandable segments: one stretch of addresses per list, mapped page by page.
 *
 * A list has one such range, and a second only when the first has run out of addresses. Pages go to
 * the lowest unmapped addresses that, with the free blocks between them, have room; they come back
 * where a free block covers them whole. Invariant: mapped and unmapped blocks tile the range,
 * unmapped ones begin and end on pages, and no two of them are neighbours.
 */
#include "src/alloc_inner.h"

static uint64_t page_bytes(uint8_t list)
{
    return list_is_large(list) ? LARGE_SEGMENT_BYTES : SMALL_SEGMENT_BYTES;
}

/* Addresses for one pool: an eighth more than the device has, so that holes do not end it. */
static uint64_t range_bytes(const struct alloc *alloc, uint8_t list)
{
    uint64_t capacity = alloc->config.capacity_bytes;
    uint64_t bytes = capacity < REQUEST_MAX_BYTES ? capacity + capacity / 8 : REQUEST_MAX_BYTES;
    if (bytes > REQUEST_MAX_BYTES)
        bytes = REQUEST_MAX_BYTES;
    return round_up_bytes(bytes, page_bytes(list));
}

static void list_unmapped(struct alloc *alloc, uint32_t block)
{
    struct block *at = &alloc->blocks[block];
    at->state = BLOCK_UNMAPPED;
    bin_insert(&alloc->lists[at->list].unmapped, alloc->arena, 0, at->address, block);
}

static void unlist_unmapped(struct alloc *alloc, uint32_t block)
{
    const struct block *at = &alloc->blocks[block];
    struct bin *unmapped = &alloc->lists[at->list].unmapped;
    bin_remove_at(unmapped, bin_find(unmapped, 0, at->address));
}

/* True where free and unmapped blocks from this one on have room; *missing: what must be mapped. */
static bool has_room(const struct alloc *alloc, uint32_t start, uint64_t bytes, uint64_t *missing)
{
    uint64_t room = 0;
    *missing = 0;
    for (uint32_t at = start; room < bytes; at = alloc->blocks[at].next) {
        if (block_is(alloc, at, BLOCK_UNMAPPED)) {
            uint64_t rest = round_up_bytes(bytes - room, page_bytes(alloc->blocks[at].list));
            *missing += rest < alloc->blocks[at].bytes ? rest : alloc->blocks[at].bytes;
        } else if (!block_is(alloc, at, BLOCK_FREE)) {
            return false;
        }
        room += alloc->blocks[at].bytes;
    }
    return true;
}

/* The lowest unmapped block with room, or the free block before it. */
static uint32_t find_room(const struct alloc *alloc, uint8_t list, uint64_t bytes,
                          uint64_t *missing)
{
    const struct bin *unmapped = &alloc->lists[list].unmapped;
    for (uint32_t i = unmapped->n; i-- > 0;) {
        uint32_t start = unmapped->entries[i].block;
        if (block_is(alloc, alloc->blocks[start].prev, BLOCK_FREE))
            start = alloc->blocks[start].prev;
        if (has_room(alloc, start, bytes, missing))
            return start;
    }
    return NO_BLOCK;
}

/* Map the front of an unmapped block: the pages that bytes need, or all of it. */
static void map_front(struct alloc *alloc, uint32_t block, uint64_t bytes)
{
    uint64_t pages = round_up_bytes(bytes, page_bytes(alloc->blocks[block].list));
    unlist_unmapped(alloc, block);
    if (pages < alloc->blocks[block].bytes)
        list_unmapped(alloc, block_cut(alloc, block, pages));
    else
        pages = alloc->blocks[block].bytes;
    segments_reserved(alloc, alloc->blocks[block].list, pages);
    segment_op(alloc, SEGMENT_MAP, &alloc->blocks[block], pages);
}

/* One block, in no list, out of a run that has room, and of what is free right above it. */
static void map_run(struct alloc *alloc, uint32_t start, uint64_t bytes)
{
    if (block_is(alloc, start, BLOCK_FREE))
        block_unlist(alloc, start);
    else
        map_front(alloc, start, bytes);

    for (;;) {
        uint32_t next = alloc->blocks[start].next;
        if (block_is(alloc, next, BLOCK_FREE))
            block_unlist(alloc, next);
        else if (alloc->blocks[start].bytes < bytes)
            map_front(alloc, next, bytes - alloc->blocks[start].bytes);
        else
            return;
        block_join_next(alloc, start);
    }
}

uint32_t expandable_grow(struct alloc *alloc, uint8_t list, uint64_t bytes)
{
    uint64_t missing;
    uint32_t start = find_room(alloc, list, bytes, &missing);
    if (start == NO_BLOCK)
        missing = round_up_bytes(bytes, page_bytes(list));
    if (!segments_fit(alloc, missing))
        return NO_BLOCK;
    if (start == NO_BLOCK) {
        start = segment_new(alloc, list, range_bytes(alloc, list));
        list_unmapped(alloc, start);
    }
    map_run(alloc, start, bytes);
    return start;
}

void expandable_unmap(struct alloc *alloc, uint32_t block)
{
    uint64_t page = page_bytes(alloc->blocks[block].list);
    uint64_t begin = block_offset(&alloc->blocks[block]), end = begin + alloc->blocks[block].bytes;
    uint64_t first = round_up_bytes(begin, page), last = end / page * page;
    if (first >= last)
        return;

    block_unlist(alloc, block);
    if (last < end)
        block_list(alloc, block_cut(alloc, block, last - begin));
    if (begin < first) {
        uint32_t pages = block_cut(alloc, block, first - begin);
        block_list(alloc, block);
        block = pages;
    }
    segment_op(alloc, SEGMENT_UNMAP, &alloc->blocks[block], last - first);
    segments_returned(alloc, alloc->blocks[block].list, last - first);

    if (block_is(alloc, alloc->blocks[block].next, BLOCK_UNMAPPED)) {
        unlist_unmapped(alloc, alloc->blocks[block].next);
        block_join_next(alloc, block);
    }
    if (block_is(alloc, alloc->blocks[block].prev, BLOCK_UNMAPPED)) {
        block = alloc->blocks[block].prev;
        unlist_unmapped(alloc, block);
        block_join_next(alloc, block);
    }
    if (block_is_split(&alloc->blocks[block]))
        list_unmapped(alloc, block);
    else
        segment_release(alloc, block);
}
