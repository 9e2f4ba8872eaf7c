/*
 * A step that repeats, on the allocator alone: from a state that was seen before, all follows.
 *
 * Random scripts of requests on four pools are run over and over, with and without a capacity that
 * makes every step give memory back and take it again. Also here: sizes that cannot be.
 */
#include <inttypes.h>

#include "src/alloc.h"
#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)

enum { N_SCRIPT = 100, N_ACT = 240, N_SLOT = 24, N_CARRIED = 4, N_POOL = 4, MAX_STEP = 20 };

struct script_act {
    uint64_t bytes;
    uint8_t pool, slot;
    bool frees;
};

/*
 * Mallocs and frees of slots. At the end all are free again, but for the carried ones: those are
 * freed early in the next pass.
 */
struct script {
    struct script_act acts[N_ACT + N_SLOT];
    alloc_block blocks[N_SLOT];
    uint32_t n;
};

static struct alloc_config draw_config(uint64_t *random)
{
    struct alloc_config config = alloc_config_default();
    config.expandable = tap_below(random, 2);
    if (tap_below(random, 2) > 0)
        config.capacity_bytes = (100 + tap_below(random, 300)) * MIB;
    return config;
}

/* Small, middle and large requests, so that all kinds of segments are in play. */
static uint64_t draw_bytes(uint64_t *random)
{
    static const uint64_t below[] = {2048, 2 * MIB, 16 * MIB, 64 * MIB};
    return tap_below(random, below[tap_below(random, 4)]);
}

static void add_act(uint64_t *random, struct script *script, uint32_t slot, bool frees)
{
    script->acts[script->n++] = (struct script_act){
        .bytes = draw_bytes(random),
        .pool = (uint8_t)tap_below(random, N_POOL),
        .slot = (uint8_t)slot,
        .frees = frees,
    };
}

static void draw_script(uint64_t *random, struct script *script)
{
    bool held[N_SLOT] = {false};
    script->n = 0;
    for (uint32_t i = 0; i < N_ACT; i++) {
        uint32_t slot = N_CARRIED + (uint32_t)tap_below(random, N_SLOT - N_CARRIED);
        if (i % (N_ACT / 2) < N_CARRIED) {
            add_act(random, script, i % (N_ACT / 2), i < N_ACT / 2);
            continue;
        }
        add_act(random, script, slot, held[slot]);
        held[slot] = !held[slot];
    }
    for (uint32_t slot = 0; slot < N_SLOT; slot++) {
        if (held[slot])
            add_act(random, script, slot, true);
        script->blocks[slot] = ALLOC_NO_BLOCK;
    }
}

static void digest_add(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * UINT64_C(0x100000001b3);
}

/* One pass of the script; returns a digest of all addresses and driver operations. */
static uint64_t run_script(struct alloc *alloc, struct script *script)
{
    uint64_t digest = 1;
    uint32_t n;

    for (uint32_t i = 0; i < script->n; i++) {
        alloc_block *block = &script->blocks[script->acts[i].slot];
        if (script->acts[i].frees) {
            alloc_free(alloc, *block);
        } else if (!alloc_malloc(alloc, script->acts[i].pool, script->acts[i].bytes,
                                 CLASS_ACTIVATION, block)) {
            *block = ALLOC_NO_BLOCK;
        } else if (*block != ALLOC_NO_BLOCK) {
            const struct alloc_address address = alloc_block_address(alloc, *block);
            digest_add(&digest, address.segment);
            digest_add(&digest, address.offset);
        }
    }
    const struct segment_op *ops = alloc_ops(alloc, &n);
    for (uint32_t i = 0; i < n; i++) {
        digest_add(&digest, ops[i].act);
        digest_add(&digest, ops[i].segment);
        digest_add(&digest, ops[i].offset);
    }
    alloc_clear_ops(alloc);
    return digest;
}

/* Repeats a script until its state was seen before, and once more; true where that was foreseen. */
static bool is_foreseen(struct alloc *alloc, struct script *script, bool *has_period)
{
    uint64_t states[MAX_STEP], digests[MAX_STEP];
    uint32_t first = 0, n = 0;

    do {
        digests[n] = run_script(alloc, script);
        states[n] = alloc_state_hash(alloc);
        for (first = 0; states[first] != states[n];)
            first++;
        n++;
    } while (first == n - 1 && n < MAX_STEP);
    *has_period = first < n - 1;
    return !*has_period || run_script(alloc, script) == digests[first + 1];
}

static void test_period(uint64_t seed)
{
    static struct script script;
    uint32_t foreseen = 0, periods = 0, with_retries = 0;
    for (uint32_t i = 0; i < N_SCRIPT; i++) {
        uint64_t random = seed + i;
        struct alloc_config config = draw_config(&random);
        struct arena arena;
        bool has_period;

        arena_init(&arena);
        struct alloc *alloc = alloc_new(&config, &arena);
        draw_script(&random, &script);
        foreseen += is_foreseen(alloc, &script, &has_period);
        periods += has_period;
        with_retries += has_period && alloc_stats(alloc)->retries > MAX_STEP;
        arena_release(&arena);
    }
    is_int(foreseen, N_SCRIPT, "after an equal state a step's addresses and operations are equal");
    ok(periods > N_SCRIPT / 2, "most steps come to repeat themselves (%" PRIu32 ")", periods);
    ok(with_retries > 0, "also such as give back and take again in each (%" PRIu32 ")",
       with_retries);
}

/* Two segments of equal size, of which one, the other, both or none are in use. */
static void test_hash_tells_states(void)
{
    enum { N_STATE = 5 };
    uint64_t hashes[N_STATE];
    for (uint32_t state = 0; state < N_STATE; state++) {
        const struct alloc_config config = alloc_config_default();
        struct arena arena;
        alloc_block blocks[2];

        arena_init(&arena);
        struct alloc *alloc = alloc_new(&config, &arena);
        for (uint32_t i = 0; i < 2; i++)
            alloc_malloc(alloc, 0, 64 * MIB, CLASS_ACTIVATION, &blocks[i]);
        if (state == 4)
            alloc_record_stream(alloc, blocks[0], 1);
        for (uint32_t i = 0; i < 2; i++)
            if (state >> i & 1 || (state == 4 && i == 0))
                alloc_free(alloc, blocks[i]);
        hashes[state] = alloc_state_hash(alloc);
        for (uint32_t other = 0; other < state; other++)
            ok(hashes[state] != hashes[other], "states %" PRIu32 " and %" PRIu32 " differ", state,
               other);
        arena_release(&arena);
    }
}

static void test_impossible_sizes(void)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 511, UINT64_C(1) << 63,
                                     (UINT64_C(1) << 47) + 1};
    for (uint32_t i = 0; i < 8; i++) {
        struct alloc_config config = alloc_config_default();
        struct arena arena;
        alloc_block block;

        arena_init(&arena);
        config.expandable = i % 2;
        config.roundup_power2_divisions = i < 4 ? 0 : 4;
        struct alloc *alloc = alloc_new(&config, &arena);
        bool got = alloc_malloc(alloc, 0, sizes[i / 2], CLASS_LOGITS, &block);
        ok(!got && alloc_stats(alloc)->ooms == 1 && alloc_stats(alloc)->reserved == 0,
           "%" PRIu64 " bytes are more than there can be, %s", sizes[i / 2],
           config.expandable ? "expandable" : "caching");
        ok(alloc_malloc(alloc, 0, UINT64_C(1) << 40, CLASS_LOGITS, &block),
           "and a tebibyte is not, where nothing limits it");
        arena_release(&arena);
    }
}

int main(void)
{
    test_period(tap_seed(20250608));
    test_hash_tells_states();
    test_impossible_sizes();
    return tap_done();
}
