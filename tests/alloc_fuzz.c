/*
 * The allocator against a slow, plain model (slow_alloc.h), on random requests.
 *
 * Each run draws a configuration and a few hundred acts on several pools, with sizes around all
 * borders of the rules, and compares after every act: addresses, all statistics, the driver
 * operations of that act, and the inner invariants. A run that fails names its seed; UNSHARD_SEED
 * repeats all runs from another start.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/alloc.h"
#include "src/alloc_inner.h"
#include "tests/slow_alloc.h"
#include "tests/tap.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

enum { N_RUN = 400, N_ACT = 400, MAX_LIVE = 120 };

struct live {
    alloc_block block;
    uint64_t tag, bytes;
};

struct fuzz {
    uint64_t random;
    struct alloc_config config;
    struct arena arena;
    struct alloc *alloc;
    struct live live[MAX_LIVE];
    uint32_t n_live, n_pool;
    uint64_t next_tag;
    uint64_t usual[4]; /* sizes that come often in this run */
    char what[200];    /* the first difference, or empty */
};

static struct slow_alloc slow;

/* What the runs have met, all together: a test that meets nothing holds nothing. */
static struct {
    uint64_t mallocs, ooms, retries, deferred, unmaps, releases, splits;
} met;

static void differ(struct fuzz *fuzz, const char *what, uint64_t got, uint64_t want)
{
    if (!fuzz->what[0])
        snprintf(fuzz->what, sizeof(fuzz->what), "%s: %" PRIu64 ", slowly %" PRIu64, what, got,
                 want);
}

static void same(struct fuzz *fuzz, const char *what, uint64_t got, uint64_t want)
{
    if (got != want)
        differ(fuzz, what, got, want);
}

/* Drawing */

static struct alloc_config draw_config(uint64_t *random)
{
    static const uint64_t splits[] = {24 * MIB, 40 * MIB, 33 * MIB + 512 * KIB};
    struct alloc_config config = alloc_config_default();

    config.expandable = tap_below(random, 2);
    if (tap_below(random, 4) > 0)
        config.capacity_bytes = (40 + tap_below(random, 400)) * MIB;
    if (tap_below(random, 3) == 0)
        config.max_split_bytes = splits[tap_below(random, 3)];
    if (tap_below(random, 4) == 0)
        config.roundup_power2_divisions = 1u << tap_below(random, 5);
    if (tap_below(random, 3) == 0) {
        config.allowed_bytes = (40 + tap_below(random, 300)) * MIB;
        if (tap_below(random, 3) > 0)
            config.garbage_threshold = 0.1 + 0.1 * (double)tap_below(random, 9);
    }
    return config;
}

static uint64_t draw_bytes(struct fuzz *fuzz)
{
    static const uint64_t borders[] = {
        512,      1024,     2048,     8 * KIB,  MIB,      2 * MIB,
        4 * MIB,  10 * MIB, 18 * MIB, 20 * MIB, 24 * MIB, 33 * MIB + 512 * KIB,
        40 * MIB, 44 * MIB, 60 * MIB, 64 * MIB,
    };
    static const int64_t sides[] = {0, 0, 0, 1, -1, 512, -512, 513, (int64_t)MIB, -(int64_t)MIB};
    uint64_t *random = &fuzz->random;

    switch (tap_below(random, 6)) {
    case 0:
        return tap_below(random, 4 * KIB);
    case 1:
        return tap_below(random, 3 * MIB);
    case 2:
        return tap_below(random, 50 * MIB);
    case 3: {
        uint64_t border = borders[tap_below(random, sizeof(borders) / sizeof(borders[0]))];
        int64_t side = sides[tap_below(random, sizeof(sides) / sizeof(sides[0]))];
        return side < 0 && (uint64_t)-side > border ? border : border + (uint64_t)side;
    }
    default:
        return fuzz->usual[tap_below(random, 4)];
    }
}

/* Comparing */

static void compare_stats(struct fuzz *fuzz)
{
    const struct alloc_stats *got = alloc_stats(fuzz->alloc), *want = &slow.stats;
    same(fuzz, "allocated", got->allocated, want->allocated);
    same(fuzz, "active", got->active, want->active);
    same(fuzz, "requested", got->requested, want->requested);
    same(fuzz, "reserved", got->reserved, want->reserved);
    same(fuzz, "inactive_split", got->inactive_split, want->inactive_split);
    same(fuzz, "peak_allocated", got->peak_allocated, want->peak_allocated);
    same(fuzz, "peak_active", got->peak_active, want->peak_active);
    same(fuzz, "peak_requested", got->peak_requested, want->peak_requested);
    same(fuzz, "peak_reserved", got->peak_reserved, want->peak_reserved);
    same(fuzz, "segments", got->segments, want->segments);
    same(fuzz, "retries", got->retries, want->retries);
    same(fuzz, "ooms", got->ooms, want->ooms);
    same(fuzz, "driver_calls", got->driver_calls, want->driver_calls);
    for (int i = 0; i < CLASS_N; i++) {
        same(fuzz, "by_class", got->by_class[i], want->by_class[i]);
        same(fuzz, "peak_by_class", got->peak_by_class[i], want->peak_by_class[i]);
    }
    uint64_t at_peak = 0;
    for (int i = 0; i < ALLOC_MAX_POOLS; i++) {
        same(fuzz, "reserved_by_pool", got->reserved_by_pool[i], want->reserved_by_pool[i]);
        same(fuzz, "peak_reserved_by_pool", got->peak_reserved_by_pool[i],
             want->peak_reserved_by_pool[i]);
        at_peak += got->peak_reserved_by_pool[i];
    }
    same(fuzz, "the pools' sum at the peak", at_peak, got->peak_reserved);
    if (got->allocated > got->active || got->active > got->reserved)
        differ(fuzz, "allocated, active and reserved do not rise", got->active, got->reserved);
}

static void compare_ops(struct fuzz *fuzz)
{
    uint32_t n;
    const struct segment_op *ops = alloc_ops(fuzz->alloc, &n);
    same(fuzz, "driver operations", n, slow.n_op);
    for (uint32_t i = 0; i < n && i < slow.n_op; i++) {
        same(fuzz, "driver operation", ops[i].act, slow.ops[i].act);
        same(fuzz, "its pool", ops[i].pool, slow.ops[i].pool);
        same(fuzz, "its kind", ops[i].expandable, slow.ops[i].expandable);
        same(fuzz, "its segment", ops[i].segment, slow.ops[i].segment);
        same(fuzz, "its offset", ops[i].offset, slow.ops[i].offset);
        same(fuzz, "its bytes", ops[i].bytes, slow.ops[i].bytes);
        met.unmaps += ops[i].act == SEGMENT_UNMAP;
        met.releases += ops[i].act == SEGMENT_RELEASE;
    }
    alloc_clear_ops(fuzz->alloc);
    slow.n_op = 0;
}

static void compare_address(struct fuzz *fuzz, const struct live *live)
{
    const struct slow_piece *piece = slow_find(&slow, live->tag);
    if (!piece) {
        same(fuzz, "a block where there is none", live->block, ALLOC_NO_BLOCK);
        return;
    }
    if (live->block == ALLOC_NO_BLOCK) {
        differ(fuzz, "no block", 0, piece->bytes);
        return;
    }
    const struct alloc_address address = alloc_block_address(fuzz->alloc, live->block);
    same(fuzz, "segment", address.segment, piece->segment);
    same(fuzz, "offset", address.offset, piece->offset);
}

/* Blocks tile their segment, and no two neighbours could be one. Returns the free blocks. */
static uint32_t check_segment(struct fuzz *fuzz, uint32_t number)
{
    const struct alloc *alloc = fuzz->alloc;
    const struct segment *segment = &alloc->segments[number];
    uint64_t offset = 0;
    uint32_t prev = NO_BLOCK, n_free = 0;

    for (uint32_t at = segment->first; at != NO_BLOCK; prev = at, at = alloc->blocks[at].next) {
        const struct block *block = &alloc->blocks[at];
        same(fuzz, "a block's place", block_segment(block), number);
        same(fuzz, "a block's offset", block_offset(block), offset);
        same(fuzz, "the block below", block->prev, prev);
        if (prev != NO_BLOCK && block->state >= BLOCK_FREE &&
            block->state == alloc->blocks[prev].state)
            differ(fuzz, "two neighbours that could be one", at, prev);
        offset += block->bytes;
        n_free += block->state == BLOCK_FREE;
    }
    if (segment->first != NO_BLOCK)
        same(fuzz, "the blocks' sum", offset, segment->bytes);
    return n_free;
}

static void check_invariants(struct fuzz *fuzz)
{
    uint32_t n_free = 0, n_found = 0;
    for (uint32_t i = 0; i < fuzz->alloc->n_segment; i++)
        n_free += check_segment(fuzz, i);
    for (uint32_t list = 0; list < LIST_N; list++)
        for (uint32_t bin = 0; bin < BIN_N; bin++)
            n_found += fuzz->alloc->lists[list].free.bins[bin].n;
    same(fuzz, "free blocks that can be found", n_found, n_free);
}

/* Acting on both */

/* One of this run's streams, which are spread over all numbers; the last one allocates nothing. */
static uint8_t draw_stream(struct fuzz *fuzz, uint32_t n)
{
    static const uint8_t streams[] = {0, 9, 1, ALLOC_MAX_POOLS - 1, 8};
    return streams[tap_below(&fuzz->random, n)];
}

static void act_malloc(struct fuzz *fuzz)
{
    struct live live = {.tag = fuzz->next_tag++, .bytes = draw_bytes(fuzz)};
    uint8_t pool = draw_stream(fuzz, fuzz->n_pool);
    enum memory_class memory_class = (enum memory_class)tap_below(&fuzz->random, CLASS_N);

    bool got = alloc_malloc(fuzz->alloc, pool, live.bytes, memory_class, &live.block);
    bool want = slow_malloc(&slow, pool, live.bytes, (uint8_t)memory_class, live.tag);
    same(fuzz, "whether there is memory", got, want);
    if (got && want) {
        compare_address(fuzz, &live);
        fuzz->live[fuzz->n_live++] = live;
        met.mallocs++;
    }
}

static void act_free(struct fuzz *fuzz, uint32_t i)
{
    struct live live = fuzz->live[i];
    fuzz->live[i] = fuzz->live[--fuzz->n_live];
    compare_address(fuzz, &live); /* it has not moved meanwhile */
    alloc_free(fuzz->alloc, live.block);
    slow_free(&slow, live.tag);
}

static void act_record(struct fuzz *fuzz, uint32_t i)
{
    uint8_t stream = draw_stream(fuzz, fuzz->n_pool + 1);
    alloc_record_stream(fuzz->alloc, fuzz->live[i].block, stream);
    slow_record_stream(&slow, fuzz->live[i].tag, stream);
}

static void act_done(struct fuzz *fuzz)
{
    uint8_t stream = draw_stream(fuzz, fuzz->n_pool + 1);
    met.deferred += slow.stats.active > slow.stats.allocated;
    alloc_events_done(fuzz->alloc, stream);
    slow_events_done(&slow, stream);
}

static void act_on_all(struct fuzz *fuzz)
{
    if (tap_below(&fuzz->random, 3) > 0) {
        alloc_reset_peak(fuzz->alloc);
        slow_reset_peak(&slow);
    } else {
        alloc_empty_cache(fuzz->alloc);
        slow_empty_cache(&slow);
    }
}

static void act(struct fuzz *fuzz)
{
    uint64_t *random = &fuzz->random;
    uint64_t dice = tap_below(random, 100);
    uint32_t some = fuzz->n_live > 0 ? (uint32_t)tap_below(random, fuzz->n_live) : 0;

    if (dice < 2)
        act_on_all(fuzz);
    else if (dice < 8)
        act_done(fuzz);
    else if (dice < 54 && fuzz->n_live < MAX_LIVE)
        act_malloc(fuzz);
    else if (dice < 92 && fuzz->n_live > 0)
        act_free(fuzz, dice < 70 ? fuzz->n_live - 1 : some);
    else if (fuzz->n_live > 0)
        act_record(fuzz, some);
}

static void begin(struct fuzz *fuzz, uint64_t seed)
{
    *fuzz = (struct fuzz){.random = seed};
    arena_init(&fuzz->arena);
    fuzz->config = draw_config(&fuzz->random);
    fuzz->n_pool = 1 + (uint32_t)tap_below(&fuzz->random, 4);
    uint64_t step = tap_below(&fuzz->random, 2) ? MIB / 2 : 2 * MIB;
    for (int i = 0; i < 4; i++)
        fuzz->usual[i] = (1 + tap_below(&fuzz->random, 32)) * step;
    fuzz->alloc = alloc_new(&fuzz->config, &fuzz->arena);
    slow_init(&slow, &fuzz->config);
}

static bool run(struct fuzz *fuzz)
{
    uint32_t n = 0;
    while (n < N_ACT && !fuzz->what[0]) {
        act(fuzz);
        compare_stats(fuzz);
        compare_ops(fuzz);
        check_invariants(fuzz);
        n++;
    }
    if (fuzz->what[0])
        tap_note("act %" PRIu32 ", %s: %s", n, fuzz->config.expandable ? "expandable" : "caching",
                 fuzz->what);
    met.ooms += slow.stats.ooms;
    met.retries += slow.stats.retries;
    met.splits += slow.stats.inactive_split > 0;
    return !fuzz->what[0];
}

/* After a run: with all given back, the state is that of a new allocator, and so is its hash. */
static void check_empty(struct fuzz *fuzz)
{
    const struct alloc *fresh = alloc_new(&fuzz->config, &fuzz->arena);
    while (fuzz->n_live > 0)
        act_free(fuzz, 0);
    alloc_empty_cache(fuzz->alloc);
    same(fuzz, "reserved at the end", alloc_stats(fuzz->alloc)->reserved, 0);
    same(fuzz, "segments at the end", alloc_stats(fuzz->alloc)->segments, 0);
    same(fuzz, "hash at the end", alloc_state_hash(fuzz->alloc), alloc_state_hash(fresh));
}

static void test_against_model(uint64_t seed)
{
    static struct fuzz fuzz;
    uint32_t good = 0, empty = 0;
    for (uint32_t i = 0; i < N_RUN; i++) {
        begin(&fuzz, seed + i);
        bool same_as_model = run(&fuzz);
        good += same_as_model;
        if (!same_as_model)
            tap_note("that was UNSHARD_SEED=%" PRIu64, seed + i);
        check_empty(&fuzz);
        empty += !fuzz.what[0];
        arena_release(&fuzz.arena);
    }
    is_int(good, N_RUN, "addresses, statistics and driver operations equal the slow allocator's");
    is_int(empty, N_RUN,
           "when all is freed and emptied, nothing is left and the hash is a new one's");

    ok(met.mallocs > 10000, "the runs have allocated (%" PRIu64 ")", met.mallocs);
    ok(met.ooms > 100, "they ran out of memory (%" PRIu64 ")", met.ooms);
    ok(met.retries > met.ooms, "they were saved by a retry (%" PRIu64 ")", met.retries - met.ooms);
    ok(met.deferred > 100, "they waited for streams (%" PRIu64 ")", met.deferred);
    ok(met.unmaps > 100, "they unmapped pages (%" PRIu64 ")", met.unmaps);
    ok(met.releases > 100, "they gave segments back (%" PRIu64 ")", met.releases);
    ok(met.splits > 10, "they left segments split (%" PRIu64 ")", met.splits);
}

int main(void)
{
    test_against_model(tap_seed(20250607));
    return tap_done();
}
