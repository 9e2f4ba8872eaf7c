/*
 * The arena: memory that is zeroed, aligned and apart, kept by a reset, and grown in place.
 */
#include "src/arena.h"

#include <stdbool.h>
#include <string.h>

#include "tests/tap.h"

static bool all_zero(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i])
            return false;
    }
    return true;
}

/* Each piece is filled with its own letter; an overlap would show in an earlier piece. */
static int count_bad_pieces(struct arena *arena, uint64_t *state)
{
    enum { PIECES = 400 };
    static unsigned char *at[PIECES];
    static size_t bytes[PIECES];
    int bad = 0;
    for (int i = 0; i < PIECES; i++) {
        bytes[i] = tap_below(state, 50) ? tap_below(state, 2000) : tap_below(state, 3000000);
        at[i] = arena_alloc(arena, bytes[i]);
        bad += !at[i] || (uintptr_t)at[i] % 16 != 0 || !all_zero(at[i], bytes[i]);
        memset(at[i], 'a' + i % 26, bytes[i]);
    }
    for (int i = 0; i < PIECES; i++) {
        for (size_t k = 0; k < bytes[i]; k++) {
            if (at[i][k] != 'a' + i % 26) {
                bad++;
                break;
            }
        }
    }
    return bad;
}

static void test_arena(void)
{
    uint64_t state = tap_seed(2);
    struct arena arena;
    arena_init(&arena);
    arena_reset(&arena);
    int bad = 0;
    for (int round = 0; round < 3; round++) {
        bad += count_bad_pieces(&arena, &state);
        arena_reset(&arena);
    }
    is_int(bad, 0, "pieces are zeroed, aligned and apart, before and after a reset");

    is_str(arena_printf(&arena, "%s.%d", "layers", 3), "layers.3", "arena_printf formats");
    is_int(strlen(arena_printf(&arena, "%0500d", 1)), 500, "long text as well");
    is_str(arena_strdup(&arena, ""), "", "arena_strdup copies even nothing");
    arena_release(&arena);
    ok(!arena.first && !arena.current, "a released arena is a new one");
}

static void test_arena_reset(void)
{
    struct arena arena;
    arena_init(&arena);
    void *small = arena_alloc(&arena, 100);
    void *large = arena_alloc(&arena, 5000000);
    arena_reset(&arena);
    ok(arena_alloc(&arena, 100) == small && arena_alloc(&arena, 5000000) == large,
       "the same requests after a reset get the same memory");

    /* The large block waits behind blocks that are too small and is found there. */
    arena_reset(&arena);
    for (int i = 0; i < 5; i++)
        arena_alloc(&arena, 60000);
    arena_reset(&arena);
    arena_alloc(&arena, 100);
    ok(arena_alloc(&arena, 5000000) == large, "a block is used again wherever it stands");
    arena_release(&arena);
}

static void test_arena_grow(void)
{
    struct arena arena;
    arena_init(&arena);
    uint32_t cap = 0;
    uint32_t *array = arena_grow(&arena, NULL, &cap, 1, sizeof(*array));
    ok(array && cap >= 1, "an array starts from nothing");
    uint32_t *first = array, first_cap = cap;
    array[cap - 1] = 77;
    array = arena_grow(&arena, array, &cap, cap + 1, sizeof(*array));
    ok(array == first && cap == 2 * first_cap, "the last piece doubles in place");
    ok(array[first_cap - 1] == 77 && all_zero((unsigned char *)(array + first_cap), first_cap * 4),
       "what was there stays, the rest is zero");
    is_str(arena_strdup(&arena, "next"), "next", "another piece follows");
    array = arena_grow(&arena, array, &cap, cap + 1, sizeof(*array));
    ok(array != first && array[first_cap - 1] == 77, "an array that is not the last piece moves");
    ok(arena_grow(&arena, array, &cap, cap, sizeof(*array)) == array, "enough is enough");

    for (uint32_t n = 1; n <= 1000000; n++) {
        array = arena_grow(&arena, array, &cap, n, sizeof(*array));
        array[n - 1] = n;
    }
    uint64_t sum = 0;
    for (uint32_t n = 0; n < 1000000; n++)
        sum += array[n];
    is_int(sum, 500000500000, "a million elements survive the moves from block to block");
    arena_release(&arena);
}

int main(void)
{
    test_arena();
    test_arena_reset();
    test_arena_grow();
    return tap_done();
}
