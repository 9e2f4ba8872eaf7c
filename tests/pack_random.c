/*
 * Hundreds of random units, packed as a warp packs them and as the host does, against a reference
 * that goes element by element and shares no code with the body.
 *
 * As a warp: each access of each lane is looked at, for what a device would fault on or race about.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/pack_rig.h"
#include "tests/tap.h"

static void look(const char *at, uint32_t bytes, bool writes);
#define PACK_TRACE(at, bytes, writes) look((at), (bytes), (writes))
#include "gpu/pack_body.h"

/* What the traced body is at, and what was wrong so far. */
static struct {
    const struct packed_param *param; /* the tile's source */
    char *to;
    uint64_t to_bytes;
    uint8_t *written; /* how often, by destination byte */
    bool warp;        /* vectors have to be aligned */
    uint64_t outside, unaligned, stray;
} seen;

static void look(const char *at, uint32_t bytes, bool writes)
{
    if (bytes == 0)
        return;
    seen.unaligned += seen.warp && bytes >= 8 && (uintptr_t)at % bytes != 0;
    if (!writes) {
        const struct packed_param *param = seen.param;
        seen.outside += !param || at < param->at || at + bytes > param->at + param->n_bytes;
    } else if (at < seen.to || at + bytes > seen.to + seen.to_bytes) {
        seen.stray++;
    } else {
        for (uint32_t i = 0; i < bytes; i++)
            seen.written[at - seen.to + i]++;
    }
}

static uint64_t count_not_once(const struct packed_unit *unit)
{
    uint64_t bad = 0, done = 0;
    for (uint32_t i = 0; i < unit->n_segment; i++) {
        const struct pack_segment *segment = &unit->segments[i];
        uint64_t end = segment->to + segment->n * dtype_bytes(segment->to_dtype) + segment->n_zero;
        for (; done < segment->to; done++)
            bad += seen.written[done] != 0;
        for (; done < end; done++)
            bad += seen.written[done] != 1;
    }
    return bad;
}

/* One packing by so many lanes. Returns the number of faults of any kind. */
static uint64_t faults_of_warp(const struct packed_unit *unit, const struct pack_table *table,
                               uint32_t lanes, bool backwards)
{
    char *block, *to = packed_unit_destination(unit, &block);
    memset(&seen, 0, sizeof seen);
    seen.to = to;
    seen.to_bytes = unit->to_bytes;
    seen.written = calloc(unit->to_bytes + 1, 1);
    seen.warp = lanes > 1;
    for (uint32_t i = 0; i < table->n_tile; i++) {
        const struct pack_tile *tile = &table->tiles[backwards ? table->n_tile - 1 - i : i];
        seen.param = tile->n ? packed_unit_param(unit, unit->from + tile->from) : NULL;
        for (uint32_t lane = 0; lane < lanes; lane++)
            pack_tile_run(tile, table->rows, unit->from, to, backwards ? lanes - 1 - lane : lane,
                          lanes);
    }
    uint64_t wrong = packed_unit_faults(unit, to), twice = count_not_once(unit);
    uint64_t faults = wrong + twice + seen.outside + seen.unaligned + seen.stray;
    if (faults)
        tap_note("%llu wrong, %llu not written once, %llu read outside, %llu unaligned, %llu stray",
                 (unsigned long long)wrong, (unsigned long long)twice,
                 (unsigned long long)seen.outside, (unsigned long long)seen.unaligned,
                 (unsigned long long)seen.stray);
    free(seen.written);
    free(block);
    return faults;
}

static uint64_t faults_of_host(const struct packed_unit *unit, const struct pack_table *table)
{
    char *block, *to = packed_unit_destination(unit, &block);
    host_pack(table, unit->from, to);
    uint64_t faults = packed_unit_faults(unit, to);
    free(block);
    return faults;
}

static uint64_t faults_of(struct packed_unit *unit, uint64_t *state)
{
    struct arena arena;
    struct pack_table table;
    arena_init(&arena);
    packed_unit_fill(unit, state);
    pack_table_build(unit->segments, unit->n_segment, (uint64_t)2048 << tap_below(state, 6), &arena,
                     &table);
    uint32_t lanes = tap_below(state, 3) ? 32 : 1 + (uint32_t)tap_below(state, 31);
    uint64_t faults = faults_of_warp(unit, &table, lanes, tap_below(state, 2));
    faults += faults_of_host(unit, &table);
    packed_unit_release(unit);
    arena_release(&arena);
    return faults;
}

static enum dtype random_number(uint64_t *state)
{
    return (enum dtype)tap_below(state, DTYPE_U8);
}

static struct packed_param random_param(uint64_t *state)
{
    struct packed_param param = {
        .rows = tap_below(state, 8) ? tap_below(state, 40) : tap_below(state, 3),
        .columns = 1 + tap_below(state, tap_below(state, 5) ? 60 : 1500),
        .from_dtype = random_number(state),
        .to_dtype = random_number(state),
    };
    if (tap_below(state, 8) == 0)
        param.from_dtype = param.to_dtype = DTYPE_U8;
    if (tap_below(state, 2))
        param.skew = (uint32_t)(tap_below(state, 16) * dtype_bytes(param.from_dtype));
    else if (tap_below(state, 4) == 0)
        param.skew = (uint32_t)tap_below(state, 33);
    return param;
}

static void test_random(void)
{
    uint64_t state = tap_seed(61), faults = 0;
    for (int round = 0; round < 600; round++) {
        uint64_t before = state;
        struct packed_unit unit = {
            .ranks = tap_below(&state, 20) ? 1 + (uint32_t)tap_below(&state, 9) : 128,
            .n_param = (uint32_t)tap_below(&state, 9),
            .slot_align = tap_below(&state, 2) ? 16 : 1,
            .to_skew = tap_below(&state, 3) ? 0 : (uint32_t)tap_below(&state, 33),
        };
        for (uint32_t i = 0; i < unit.n_param; i++)
            unit.params[i] = random_param(&state);
        uint64_t bad = faults_of(&unit, &state);
        if (bad && !faults)
            tap_note("unit %d, state %llu", round, (unsigned long long)before);
        faults += bad;
    }
    is_int(faults, 0, "600 random units are packed right, by each lane and by the host");
}

/* The first parameter's dtype must not decide for those that follow. */
static void test_first_unlike_rest(void)
{
    uint64_t state = 7, faults = 0;
    for (int i = 0; i < 27; i++) {
        struct packed_unit unit = {.ranks = 2, .n_param = 3, .slot_align = 16};
        for (uint32_t p = 0; p < unit.n_param; p++) {
            unit.params[p] = (struct packed_param){
                .rows = 10,
                .columns = 100,
                .from_dtype = (enum dtype)(p == 0 ? i % 3 : i / 3 % 3),
                .to_dtype = (enum dtype)(i / 9),
            };
        }
        faults += faults_of(&unit, &state);
    }
    is_int(faults, 0, "a first parameter unlike the rest, each dtype to each");
}

/* Fewer rows than ranks, none, one; what has no elements is zeros, or nothing. */
static void test_few_rows(void)
{
    static const uint32_t ranks[] = {1, 2, 7, 128};
    uint64_t state = 8, faults = 0;
    for (int i = 0; i < 4 * 3 * 4; i++) {
        struct packed_unit unit = {.ranks = ranks[i % 4], .n_param = 2, .slot_align = 1};
        for (uint32_t p = 0; p < unit.n_param; p++) {
            unit.params[p] = (struct packed_param){
                .rows = (uint64_t)(i / 4 % 3) * (p + 1),
                .columns = i / 12 % 2 ? 3000 : 5,
                .from_dtype = i / 24 ? DTYPE_BF16 : DTYPE_FP32,
                .to_dtype = DTYPE_FP32,
            };
        }
        faults += faults_of(&unit, &state);
    }
    is_int(faults, 0, "no rows, one and two over 1 to 128 ranks");
}

int main(void)
{
    test_random();
    test_first_unlike_rest();
    test_few_rows();
    return tap_done();
}
