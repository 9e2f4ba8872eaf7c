/*
 * The CUDA kernels of packing and their launches, run through tests/cuda_shim.cuh against the host's.
 *
 * Built by tests/cuda_shim.sh, with sanitizers. What a device alone can show, its own loads, stores
 * and conversions among it, is not here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_pack.h"
#include "tests/pack_rig.h"
#include "tests/tap.h"

/* ---- the other side of the shim ------------------------------------------------------------ */

void shim_look(const void *at, uint32_t bytes, bool writes);
void shim_launch(uint32_t blocks, uint32_t threads);
bool shim_fails(void);
uint32_t shim_processors(void);

static struct {
    struct pack_watch *watch; /* NULL: only whether vectors are aligned */
    uint32_t processors, launches, blocks;
    uint64_t unaligned;
    int fail_in; /* calls from here; 0: never */
} shim = {.processors = 2};

void shim_look(const void *at, uint32_t bytes, bool writes)
{
    shim.unaligned += bytes >= 8 && (uintptr_t)at % bytes != 0;
    if (shim.watch)
        pack_watch_look(shim.watch, at, bytes, writes);
}

void shim_launch(uint32_t blocks, uint32_t threads)
{
    (void)threads;
    shim.launches++;
    shim.blocks = blocks;
}

bool shim_fails(void)
{
    return shim.fail_in > 0 && --shim.fail_in == 0;
}

uint32_t shim_processors(void)
{
    return shim.processors;
}

static struct cuda_pack_grid grid_of(uint32_t processors)
{
    struct cuda_pack_grid grid = {0};
    shim.processors = processors;
    if (cuda_pack_grid_init(0, &grid, NULL))
        tap_bail("no grid");
    return grid;
}

/* ---- packing ------------------------------------------------------------------------------- */

static uint64_t faults_of(struct packed_unit *unit, uint64_t *state)
{
    const struct cuda_pack_grid grid = grid_of(1 + (uint32_t)tap_below(state, 3));
    const uint64_t tile_bytes = (uint64_t)1024 << tap_below(state, 7);
    struct arena arena;
    struct pack_table table;
    char *block, *to;
    arena_init(&arena);
    packed_unit_fill(unit, state);
    to = packed_unit_destination(unit, &block);
    pack_table_build(unit->segments, unit->n_segment, tile_bytes, &arena, &table);
    struct pack_watch watch = pack_watch_of(unit, to, true);
    shim.watch = &watch;
    uint64_t faults = cuda_pack(&table, unit->from, to, &grid, NULL, NULL) != STATUS_OK;
    faults += pack_watch_faults(&watch);
    shim.watch = NULL;
    free(watch.written);
    free(block);
    packed_unit_release(unit);
    arena_release(&arena);
    return faults;
}

static void test_units(void)
{
    uint64_t state = tap_seed(71), faults = 0;
    for (int round = 0; round < 800; round++) {
        uint64_t before = state;
        struct packed_unit unit;
        packed_unit_choose(&unit, &state);
        uint64_t bad = faults_of(&unit, &state);
        if (bad && !faults)
            tap_note("unit %d, state %llu", round, (unsigned long long)before);
        faults += bad;
    }
    is_int(faults, 0, "800 random units: each byte once, nothing outside, vectors aligned");
}

/* ---- post-reduce --------------------------------------------------------------------------- */

enum { MOST_POSTS = 5, POST_ELEMENTS = 3000, POST_BYTES = 4 * POST_ELEMENTS + 64 };

/* One memory for all sources and destinations: the host's and the kernel's are compared whole. */
struct posts {
    uint32_t n;
    struct post_reduce list[MOST_POSTS];
    char from[MOST_POSTS * POST_BYTES], to[MOST_POSTS * POST_BYTES];
};

static void choose_posts(struct posts *posts, uint64_t *state)
{
    static const float scales[] = {1, 0.125f, 1.0f / 7, 1.0f / 300, 3};
    const float scale = scales[tap_below(state, 5)];
    const bool accumulates = tap_below(state, 2);
    posts->n = 1 + (uint32_t)tap_below(state, MOST_POSTS);
    for (size_t i = 0; i < sizeof posts->from; i++) {
        posts->from[i] = (char)tap_random(state);
        posts->to[i] = (char)tap_random(state);
    }
    for (uint32_t i = 0; i < posts->n; i++) {
        struct post_reduce *post = &posts->list[i];
        const bool in_place = tap_below(state, 4) == 0;
        post->from_dtype = (uint8_t)tap_below(state, DTYPE_U8);
        post->to_dtype = in_place ? post->from_dtype : (uint8_t)tap_below(state, DTYPE_U8);
        post->n = tap_below(state, POST_ELEMENTS + 1);
        const uint64_t skew = tap_below(state, 2) ? 0 : tap_below(state, 33);
        const uint64_t other = tap_below(state, 2) ? skew : tap_below(state, 33);
        post->to = posts->to + i * POST_BYTES + skew;
        post->from = in_place ? post->to : posts->from + i * POST_BYTES + other;
        post->scale = scale;
        post->accumulates = accumulates;
    }
}

/* Numbers of the dtype are the same; an FP32 NaN is any. */
static uint64_t post_differs(const struct post_reduce *post, const char *got, const char *want)
{
    uint64_t faults = 0;
    if (post->to_dtype != DTYPE_FP32)
        return memcmp(got, want, post->n * 2) != 0;
    for (uint64_t i = 0; i < post->n; i++) {
        float a, b;
        memcpy(&a, got + 4 * i, sizeof a);
        memcpy(&b, want + 4 * i, sizeof b);
        faults += memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b));
    }
    return faults;
}

static uint64_t posts_differ(struct posts *posts, char *got, const char *before)
{
    uint64_t faults = 0;
    for (uint32_t i = 0; i < posts->n; i++) {
        const struct post_reduce *post = &posts->list[i];
        const size_t at = (size_t)((char *)post->to - posts->to);
        const size_t bytes = post->n * dtype_bytes((enum dtype)post->to_dtype);
        host_post_reduce(post);
        faults += post_differs(post, got + at, posts->to + at);
        memcpy(got + at, before + at, bytes); /* so that all that is left has to be as before */
    }
    return faults + (memcmp(got, before, sizeof posts->to) != 0);
}

static uint64_t post_faults(struct posts *posts, uint64_t *state)
{
    static char before[MOST_POSTS * POST_BYTES], got[MOST_POSTS * POST_BYTES];
    const struct cuda_pack_grid grid = grid_of(1 + (uint32_t)tap_below(state, 3));
    struct arena arena;
    struct pack_posts table;
    arena_init(&arena);
    pack_posts_build(posts->list, posts->n, &arena, &table);
    memcpy(before, posts->to, sizeof before);
    uint64_t faults = cuda_post_reduce(&table, &grid, NULL, NULL) != STATUS_OK;
    memcpy(got, posts->to, sizeof got);
    memcpy(posts->to, before, sizeof before);
    faults += posts_differ(posts, got, before);
    arena_release(&arena);
    return faults;
}

static void test_posts(void)
{
    uint64_t state = tap_seed(72), faults = 0;
    struct posts *posts = malloc(sizeof *posts);
    shim.unaligned = 0;
    for (int round = 0; round < 200; round++) {
        choose_posts(posts, &state);
        faults += post_faults(posts, &state);
    }
    is_int(faults, 0, "200 random post-reduces are the host's, bit for bit, also in place");
    is_int(shim.unaligned, 0, "their vectors are aligned");
    free(posts);
}

/* ---- launches ------------------------------------------------------------------------------ */

/* A table of so many tiles that move nothing but a byte of zeros each. */
static uint32_t blocks_for(uint32_t n_tile, const struct cuda_pack_grid *grid)
{
    static struct pack_tile tiles[64];
    static char to[64];
    for (uint32_t i = 0; i < n_tile; i++)
        tiles[i] = (struct pack_tile){.to = i, .n_zero = 1};
    memset(to, 1, sizeof to);
    shim.launches = shim.blocks = 0;
    struct pack_table table = {.tiles = tiles, .n_tile = n_tile};
    if (cuda_pack(&table, NULL, to, grid, NULL, NULL) || shim.launches != (n_tile > 0))
        return UINT32_MAX;
    return memchr(to, 1, n_tile) ? UINT32_MAX : shim.blocks;
}

static void test_grid(void)
{
    struct cuda_pack_grid grid;
    shim.processors = 5;
    cuda_pack_grid_init(0, &grid, NULL);
    is_int(grid.pack_blocks, 5, "a grid is as large as the device");
    cuda_pack_grid_init(3, &grid, NULL);
    is_int(grid.pack_blocks, 3, "or as large as it may be");
    is_int(grid.post_blocks, 3, "for both kernels");
    is_int(blocks_for(0, &grid), 0, "nothing is launched for no tiles");
    is_int(blocks_for(1, &grid), 1, "a block for one");
    is_int(blocks_for(9, &grid), 2, "as many as there are warps to fill");
    is_int(blocks_for(64, &grid), 3, "and not more than the grid, which walks over the rest");
}

static void test_failures(void)
{
    const struct cuda_pack_grid none = {7, 7};
    struct pack_tile tile = {.n_zero = 1};
    struct pack_table table = {.tiles = &tile, .n_tile = 1};
    struct err err = {0};
    char to = 0;
    for (int n = 1; n <= 4; n++) {
        struct cuda_pack_grid grid = none;
        shim.fail_in = n;
        enum status status = cuda_pack_grid_init(0, &grid, &err);
        ok(status == STATUS_RUN && strstr(err.text, "told to fail"), "call %d fails: %s", n,
           err.text);
        is_int(grid.pack_blocks, none.pack_blocks, "and no grid is written");
    }
    shim.fail_in = 1;
    is_int(cuda_pack(&table, NULL, &to, &none, NULL, &err), STATUS_RUN, "a launch that fails");
    is_str(err.text, "cannot launch a packing kernel: the shim was told to fail", "says so");
    shim.fail_in = 0;
}

int main(void)
{
    test_units();
    test_posts();
    test_grid();
    test_failures();
    return tap_done();
}
