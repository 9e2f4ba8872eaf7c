/*
 * The slow allocator's memory: pieces in their array, the driver, growing and giving back.
 *
 * Rules by number are those of spec MEMORY section 1. Nothing here is clever, and nothing should
 * become so.
 */
#include <stdlib.h>

#include "tests/slow_alloc.h"
#include "tests/tap.h"

uint64_t slow_up_to(uint64_t bytes, uint64_t step)
{
    return bytes % step == 0 ? bytes : bytes - bytes % step + step;
}

static uint64_t page_of(const struct slow_segment *segment)
{
    return segment->large ? 20 * SLOW_MIB : 2 * SLOW_MIB;
}

static const struct slow_segment *segment_of(const struct slow_alloc *slow, uint32_t piece)
{
    return &slow->segments[slow->pieces[piece].segment];
}

static bool in_list(const struct slow_alloc *slow, uint32_t piece, uint8_t pool, bool large)
{
    const struct slow_segment *segment = segment_of(slow, piece);
    return segment->pool == pool && segment->large == large;
}

bool slow_is_alone(const struct slow_alloc *slow, uint32_t piece)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slow->n_piece; i++)
        n += slow->pieces[i].segment == slow->pieces[piece].segment;
    return n == 1;
}

/* True where the piece behind this one is of the same segment. */
bool slow_has_upper(const struct slow_alloc *slow, uint32_t piece)
{
    return piece + 1 < slow->n_piece &&
           slow->pieces[piece + 1].segment == slow->pieces[piece].segment;
}

/* Pieces in the array */

static void remove_piece(struct slow_alloc *slow, uint32_t piece)
{
    slow->n_piece--;
    for (uint32_t i = piece; i < slow->n_piece; i++)
        slow->pieces[i] = slow->pieces[i + 1];
}

static void insert_piece(struct slow_alloc *slow, uint32_t at, struct slow_piece piece)
{
    if (slow->n_piece == SLOW_MAX_PIECES)
        tap_bail("the slow allocator has too many pieces");
    for (uint32_t i = slow->n_piece; i > at; i--)
        slow->pieces[i] = slow->pieces[i - 1];
    slow->pieces[at] = piece;
    slow->n_piece++;
}

void slow_cut(struct slow_alloc *slow, uint32_t piece, uint64_t bytes)
{
    struct slow_piece upper = slow->pieces[piece];
    if (bytes == 0 || bytes == upper.bytes)
        return;
    upper.offset += bytes;
    upper.bytes -= bytes;
    slow->pieces[piece].bytes = bytes;
    insert_piece(slow, piece + 1, upper);
}

void slow_tidy(struct slow_alloc *slow)
{
    for (uint32_t i = 0; i + 1 < slow->n_piece;) {
        struct slow_piece *low = &slow->pieces[i], *high = &slow->pieces[i + 1];
        bool joins = low->segment == high->segment && low->state == high->state &&
                     (low->state == SLOW_FREE || low->state == SLOW_UNMAPPED);
        if (!joins) {
            i++;
            continue;
        }
        low->bytes += high->bytes;
        if (low->freed_at < high->freed_at)
            low->freed_at = high->freed_at;
        remove_piece(slow, i + 1);
    }
}

/* The driver */

static void note(struct slow_alloc *slow, enum segment_act act, uint32_t segment, uint64_t offset,
                 uint64_t bytes)
{
    if (slow->n_op == SLOW_MAX_OPS)
        tap_bail("the slow allocator has too many driver operations");
    slow->stats.driver_calls++;
    slow->ops[slow->n_op++] = (struct segment_op){
        .act = (uint8_t)act,
        .pool = slow->segments[segment].pool,
        .expandable = slow->config.expandable,
        .segment = segment,
        .offset = offset,
        .bytes = bytes,
    };
}

static bool driver_has(struct slow_alloc *slow, uint64_t bytes)
{
    slow_count(slow);
    uint64_t total = slow->stats.reserved + bytes;
    return total <= slow->config.capacity_bytes && total <= slow->config.allowed_bytes;
}

/* Returns the index of the new segment's only piece. */
static uint32_t reserve(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes,
                        enum slow_state state)
{
    uint32_t number = 0, at = 0;
    while (number < SLOW_MAX_SEGMENTS && slow->segments[number].exists)
        number++;
    if (number == SLOW_MAX_SEGMENTS)
        tap_bail("the slow allocator has too many segments");
    slow->segments[number] = (struct slow_segment){.exists = true, .large = large, .pool = pool};
    while (at < slow->n_piece && slow->pieces[at].segment < number)
        at++;
    insert_piece(slow, at, (struct slow_piece){.segment = number, .bytes = bytes, .state = state});
    note(slow, SEGMENT_RESERVE, number, 0, bytes);
    return at;
}

static void release(struct slow_alloc *slow, uint32_t piece)
{
    uint32_t segment = slow->pieces[piece].segment;
    note(slow, SEGMENT_RELEASE, segment, 0, slow->pieces[piece].bytes);
    slow->segments[segment].exists = false;
    remove_piece(slow, piece);
}

/* Free pieces of one list by size, then address: what 1.2 calls the ordering key. */

static int compare_pieces(const void *a, const void *b)
{
    const struct slow_piece *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void slow_sort_free(const struct slow_alloc *slow, uint8_t pool, bool large,
                    struct slow_sorted *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < slow->n_piece; i++)
        if (slow->pieces[i].state == SLOW_FREE && in_list(slow, i, pool, large))
            out->pieces[out->n++] = slow->pieces[i];
    qsort(out->pieces, out->n, sizeof(out->pieces[0]), compare_pieces);
}

uint32_t slow_index_of(const struct slow_alloc *slow, const struct slow_piece *piece)
{
    uint32_t i = 0;
    while (slow->pieces[i].segment != piece->segment || slow->pieces[i].offset != piece->offset)
        i++;
    return i;
}

/* Growing, 1.5 and 1.9. Each returns a free piece that is large enough, or false. */

static bool grow_caching(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes,
                         uint32_t *out)
{
    uint64_t segment = !large                  ? 2 * SLOW_MIB
                       : bytes < 10 * SLOW_MIB ? 20 * SLOW_MIB
                                               : slow_up_to(bytes, 2 * SLOW_MIB);
    if (!driver_has(slow, segment))
        return false;
    *out = reserve(slow, pool, large, segment, SLOW_FREE);
    return true;
}

/* Room from this piece on through free and unmapped ones; map it if asked to. */
static bool walk_room(struct slow_alloc *slow, uint32_t first, uint64_t bytes, bool map,
                      uint64_t *pages)
{
    uint64_t room = 0;
    *pages = 0;
    for (uint32_t i = first; room < bytes; i++) {
        bool same = i < slow->n_piece && slow->pieces[i].segment == slow->pieces[first].segment;
        if (!same || slow->pieces[i].state < SLOW_FREE)
            return false;
        if (slow->pieces[i].state == SLOW_UNMAPPED) {
            uint64_t part = slow_up_to(bytes - room, page_of(segment_of(slow, i)));
            if (part > slow->pieces[i].bytes)
                part = slow->pieces[i].bytes;
            *pages += part;
            if (map) {
                slow_cut(slow, i, part);
                slow->pieces[i].state = SLOW_FREE;
                note(slow, SEGMENT_MAP, slow->pieces[i].segment, slow->pieces[i].offset, part);
            }
        }
        room += slow->pieces[i].bytes;
    }
    return true;
}

static bool grow_expandable(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes,
                            uint32_t *out)
{
    uint64_t pages, page = large ? 20 * SLOW_MIB : 2 * SLOW_MIB;
    for (uint32_t i = 0; i < slow->n_piece; i++) {
        if (slow->pieces[i].state != SLOW_UNMAPPED || !in_list(slow, i, pool, large))
            continue;
        bool free_below =
            i > 0 && slow_has_upper(slow, i - 1) && slow->pieces[i - 1].state == SLOW_FREE;
        *out = i - free_below;
        if (!walk_room(slow, *out, bytes, false, &pages))
            continue;
        return driver_has(slow, pages) && walk_room(slow, *out, bytes, true, &pages);
    }
    if (!driver_has(slow, slow_up_to(bytes, page)))
        return false;
    uint64_t capacity = slow->config.capacity_bytes;
    uint64_t range = capacity == ALLOC_UNLIMITED ? UINT64_C(1) << 47 : capacity / 8 * 9;
    *out = reserve(slow, pool, large, slow_up_to(range, page), SLOW_UNMAPPED);
    return walk_room(slow, *out, bytes, true, &pages);
}

bool slow_grow(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes, uint32_t *out)
{
    if (!slow->config.expandable)
        return grow_caching(slow, pool, large, bytes, out);
    if (!grow_expandable(slow, pool, large, bytes, out))
        return false;
    struct slow_piece start = slow->pieces[*out];
    slow_tidy(slow);
    *out = slow_index_of(slow, &start);
    return true;
}

/* Giving back, 1.7 and 1.8 */

static void unmap(struct slow_alloc *slow, const struct slow_piece *piece)
{
    uint32_t i = slow_index_of(slow, piece);
    uint64_t page = page_of(segment_of(slow, i));
    uint64_t first = slow_up_to(piece->offset, page);
    uint64_t last = (piece->offset + piece->bytes) / page * page;
    if (first >= last)
        return;
    slow_cut(slow, i, last - piece->offset);
    slow_cut(slow, i, first - piece->offset);
    i += first > piece->offset;
    slow->pieces[i].state = SLOW_UNMAPPED;
    note(slow, SEGMENT_UNMAP, piece->segment, first, last - first);

    slow_tidy(slow);
    for (i = 0; i < slow->n_piece; i++)
        if (slow->pieces[i].segment == piece->segment && slow_is_alone(slow, i) &&
            slow->pieces[i].state == SLOW_UNMAPPED)
            release(slow, i);
}

static void give_back_list(struct slow_alloc *slow, uint8_t pool, bool large)
{
    static struct slow_sorted sorted;
    slow_sort_free(slow, pool, large, &sorted);
    for (uint32_t i = 0; i < sorted.n; i++) {
        if (slow->config.expandable)
            unmap(slow, &sorted.pieces[i]);
        else if (slow_is_alone(slow, slow_index_of(slow, &sorted.pieces[i])))
            release(slow, slow_index_of(slow, &sorted.pieces[i]));
    }
}

void slow_free_done(struct slow_alloc *slow)
{
    for (uint32_t i = 0; i < slow->n_piece; i++) {
        struct slow_piece *piece = &slow->pieces[i];
        if (piece->state == SLOW_PENDING && piece->events == 0) {
            piece->state = SLOW_FREE;
            piece->freed_at = slow->large_searches;
        }
    }
    slow_tidy(slow);
}

void slow_give_back_all(struct slow_alloc *slow)
{
    for (uint32_t i = 0; i < slow->n_piece; i++)
        slow->pieces[i].events = 0;
    slow_free_done(slow);
    for (uint8_t pool = 0; pool < ALLOC_MAX_POOLS; pool++)
        give_back_list(slow, pool, true);
    for (uint8_t pool = 0; pool < ALLOC_MAX_POOLS; pool++)
        give_back_list(slow, pool, false);
}

bool slow_give_back_oversize(struct slow_alloc *slow, uint8_t pool, bool large, uint64_t bytes)
{
    static struct slow_sorted sorted;
    const uint64_t max_split = slow->config.max_split_bytes;
    const uint64_t want = slow_larger(bytes, max_split);
    if (max_split == ALLOC_UNLIMITED || slow->config.expandable)
        return false;
    slow_sort_free(slow, pool, large, &sorted);

    for (uint32_t i = 0; i < sorted.n; i++) {
        uint32_t piece = slow_index_of(slow, &sorted.pieces[i]);
        if (sorted.pieces[i].bytes >= want && slow_is_alone(slow, piece)) {
            release(slow, piece);
            return true;
        }
    }
    uint64_t released = 0;
    for (uint32_t i = sorted.n; i-- > 0 && released < want;) {
        uint32_t piece = slow_index_of(slow, &sorted.pieces[i]);
        if (sorted.pieces[i].bytes >= max_split && slow_is_alone(slow, piece)) {
            released += sorted.pieces[i].bytes;
            release(slow, piece);
        }
    }
    return released >= want;
}

static bool is_garbage(const struct slow_alloc *slow, uint32_t piece)
{
    return slow->pieces[piece].state == SLOW_FREE && segment_of(slow, piece)->large &&
           slow_is_alone(slow, piece);
}

/* One round: everything whose age is at least the mean. Returns how many went. */
static uint32_t collect_round(struct slow_alloc *slow)
{
    static struct slow_sorted sorted;
    uint64_t ages = 0, n = 0;
    uint32_t gone = 0;
    for (uint32_t i = 0; i < slow->n_piece; i++) {
        if (is_garbage(slow, i)) {
            ages += slow->large_searches - slow->pieces[i].freed_at;
            n++;
        }
    }
    for (uint8_t pool = 0; pool < ALLOC_MAX_POOLS; pool++) {
        slow_sort_free(slow, pool, true, &sorted);
        for (uint32_t i = 0; i < sorted.n; i++) {
            uint32_t piece = slow_index_of(slow, &sorted.pieces[i]);
            uint64_t age = slow->large_searches - sorted.pieces[i].freed_at;
            if (is_garbage(slow, piece) && age * n >= ages) {
                release(slow, piece);
                gone++;
            }
        }
    }
    return gone;
}

void slow_collect(struct slow_alloc *slow)
{
    const struct alloc_config *config = &slow->config;
    if (config->garbage_threshold <= 0 || config->allowed_bytes == ALLOC_UNLIMITED ||
        config->expandable)
        return;
    uint64_t most = (uint64_t)(config->garbage_threshold * (double)config->allowed_bytes);
    slow_count(slow);
    while (slow->stats.reserved > most && collect_round(slow) > 0)
        slow_count(slow);
}
