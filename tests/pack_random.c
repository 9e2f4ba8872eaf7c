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

static struct pack_watch watch;

static void look(const char *at, uint32_t bytes, bool writes)
{
    pack_watch_look(&watch, at, bytes, writes);
}

/* One packing by so many lanes. Returns the number of faults of any kind. */
static uint64_t faults_of_warp(const struct packed_unit *unit, const struct pack_table *table,
                               uint32_t lanes, bool backwards)
{
    char *block, *to = packed_unit_destination(unit, &block);
    watch = pack_watch_of(unit, to, lanes > 1);
    for (uint32_t i = 0; i < table->n_tile; i++) {
        const struct pack_tile *tile = &table->tiles[backwards ? table->n_tile - 1 - i : i];
        for (uint32_t lane = 0; lane < lanes; lane++)
            pack_tile_run(tile, table->rows, unit->from, to, backwards ? lanes - 1 - lane : lane,
                          lanes);
    }
    uint64_t faults = pack_watch_faults(&watch);
    free(watch.written);
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

static void test_random(void)
{
    uint64_t state = tap_seed(61), faults = 0;
    for (int round = 0; round < 600; round++) {
        uint64_t before = state;
        struct packed_unit unit;
        packed_unit_choose(&unit, &state);
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
                .before = 1,
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
                .before = 1,
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
