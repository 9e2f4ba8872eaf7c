/*
 * The allocator against the test vectors of spec MEMORY 1.12: every statistic after every step.
 *
 * Steps are ["a", name, bytes, stream], ["r", name, stream], ["f", name], ["done", stream] and
 * ["empty"]. Names are single letters; the stream is C where none is named.
 */
#include <string.h>

#include "src/alloc.h"
#include "src/json.h"
#include "tests/tap.h"

enum { MAX_WORDS = 4, N_NAME = 26, N_VECTOR = 30 };

static void must(enum status status, const struct err *err)
{
    if (status != STATUS_OK)
        tap_bail(err->text);
}

static struct json_at child_of(const struct json_at *at, const char *key)
{
    struct json_at child;
    struct err err;
    must(json_get(at, key, &child, &err), &err);
    return child;
}

static uint64_t u64_of(const struct json_at *at, const char *key, uint64_t missing)
{
    uint64_t value = missing;
    struct err err;
    if (json_has(at, key))
        must(json_get_u64(at, key, UINT64_C(1) << 53, &value, &err), &err);
    return value;
}

static double double_of(const struct json_at *at, const char *key)
{
    double value = 0;
    struct err err;
    if (json_has(at, key))
        must(json_get_double(at, key, &value, &err), &err);
    return value;
}

static bool bool_of(const struct json_at *at, const char *key)
{
    bool value;
    struct err err;
    must(json_get_bool(at, key, &value, &err), &err);
    return value;
}

static const char *text_of(const struct json_at *at, const char *key)
{
    const char *value;
    struct err err;
    must(json_get_string(at, key, &value, &err), &err);
    return value;
}

static struct alloc_config read_config(const struct json_at *at)
{
    struct alloc_config config = alloc_config_default();
    config.capacity_bytes = u64_of(at, "capacity", ALLOC_UNLIMITED);
    config.max_split_bytes = u64_of(at, "max_split", ALLOC_UNLIMITED);
    config.roundup_power2_divisions = (uint32_t)u64_of(at, "pow2div", 0);
    config.garbage_threshold = double_of(at, "gc_threshold");
    if (json_has(at, "expandable"))
        config.expandable = bool_of(at, "expandable");
    if (json_has(at, "fraction"))
        config.allowed_bytes =
            (uint64_t)(double_of(at, "fraction") * (double)config.capacity_bytes);
    return config;
}

/* A number that is no object's member, by way of its text. */
static uint64_t number_of(const struct json_at *at)
{
    struct text text;
    uint64_t value;

    text_init(&text);
    json_print(at->node, &text);
    text.at[strcspn(text.at, "\n")] = '\0';
    if (!text_to_u64(text.at, &value))
        tap_bail("a size that is no whole number");
    text_release(&text);
    return value;
}

/* The words of a step; numbers are NULL here and are left in *bytes. */
static int read_words(const struct json_at *op, const char *words[MAX_WORDS], uint64_t *bytes)
{
    int n = 0;
    for (struct json_at it = json_first(op); it.node && n < MAX_WORDS; it = json_next(&it)) {
        struct err err;
        words[n] = NULL;
        if (json_is_number(&it))
            *bytes = number_of(&it);
        else
            must(json_string(&it, &words[n], &err), &err);
        n++;
    }
    return n;
}

static uint8_t stream_of(const char *name)
{
    static const char streams[] = "CRN";
    const char *found = strchr(streams, *name);
    if (!found)
        tap_bail("a stream that is none of C, R and N");
    return (uint8_t)(found - streams);
}

static alloc_block *block_of(alloc_block blocks[N_NAME], const char *name)
{
    if (*name < 'a' || *name > 'z')
        tap_bail("a block's name is no small letter");
    return &blocks[*name - 'a'];
}

/* Returns what the step's "result" should be. */
static const char *run_step(struct alloc *alloc, alloc_block blocks[N_NAME],
                            const struct json_at *op)
{
    const char *words[MAX_WORDS] = {""};
    uint64_t bytes = 0;
    int n = read_words(op, words, &bytes);
    const char *act = words[0];

    if (strcmp(act, "a") == 0) {
        uint8_t pool = stream_of(n == 4 ? words[3] : "C");
        return alloc_malloc(alloc, pool, bytes, CLASS_ACTIVATION, block_of(blocks, words[1]))
                   ? "ok"
                   : "OOM";
    }
    if (strcmp(act, "f") == 0)
        alloc_free(alloc, *block_of(blocks, words[1]));
    else if (strcmp(act, "r") == 0)
        alloc_record_stream(alloc, *block_of(blocks, words[1]), stream_of(words[2]));
    else if (strcmp(act, "done") == 0)
        alloc_events_done(alloc, stream_of(words[1]));
    else if (strcmp(act, "empty") == 0)
        alloc_empty_cache(alloc);
    else
        tap_bail("a step that is not known");
    return "ok";
}

static void check_step(const struct alloc_stats *stats, const struct json_at *step,
                       const char *name, int number)
{
    const struct {
        const char *key;
        uint64_t got;
    } checks[] = {
        {"allocated", stats->allocated},
        {"active", stats->active},
        {"requested", stats->requested},
        {"reserved", stats->reserved},
        {"inactive_split", stats->inactive_split},
        {"segments", stats->segments},
        {"retries", stats->retries},
    };
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        is_int(checks[i].got, u64_of(step, checks[i].key, UINT64_MAX), "%s, step %d: %s", name,
               number, checks[i].key);
}

static void run_vector(const struct json_at *vector)
{
    struct json_at config_at = child_of(vector, "config"), steps = child_of(vector, "steps");
    struct alloc_config config = read_config(&config_at);
    const char *name = text_of(vector, "name");
    alloc_block blocks[N_NAME];
    uint32_t ooms = 0;
    struct arena arena;

    arena_init(&arena);
    struct alloc *alloc = alloc_new(&config, &arena);
    int number = 1;
    for (struct json_at step = json_first(&steps); step.node; step = json_next(&step)) {
        struct json_at op = child_of(&step, "op");
        const char *want = text_of(&step, "result");
        is_str(run_step(alloc, blocks, &op), want, "%s, step %d: result", name, number);
        check_step(alloc_stats(alloc), &step, name, number++);
        ooms += strcmp(want, "OOM") == 0;
    }
    is_int(alloc_stats(alloc)->ooms, ooms, "%s: out-of-memory is counted", name);
    arena_release(&arena);
}

/* Events of a stream complete one by one, in the order of the frees; a block of two waits for both. */
static void test_events_in_order(void)
{
    const struct alloc_config config = alloc_config_default();
    const uint64_t mib = 1 << 20;
    alloc_block block[3];
    struct arena arena;

    arena_init(&arena);
    struct alloc *alloc = alloc_new(&config, &arena);
    for (int i = 0; i < 3; i++) {
        alloc_malloc(alloc, 0, 32 * mib, CLASS_TEMPORARY, &block[i]);
        alloc_record_stream(alloc, block[i], 1);
    }
    alloc_record_stream(alloc, block[1], 2);
    alloc_record_stream(alloc, block[1], 0);
    is_int(alloc_free(alloc, block[0]), 1 << 1, "a FREE tells of the stream it waits for");
    is_int(alloc_free(alloc, block[1]), 1 << 1 | 1 << 2, "of each, but not of its own");
    is_int(alloc_free(alloc, block[2]), 1 << 1, "and again");
    alloc_event_done(alloc, 1);
    alloc_event_done(alloc, 1);
    alloc_malloc(alloc, 0, 32 * mib, CLASS_TEMPORARY, &block[0]);
    is_int(alloc_stats(alloc)->active, 96 * mib, "the first event frees the first block");
    alloc_malloc(alloc, 0, 32 * mib, CLASS_TEMPORARY, &block[0]);
    is_int(alloc_stats(alloc)->reserved, 128 * mib, "the second one not yet the second block");
    alloc_event_done(alloc, 2);
    alloc_malloc(alloc, 0, 32 * mib, CLASS_TEMPORARY, &block[0]);
    is_int(alloc_stats(alloc)->reserved, 128 * mib, "which waits for that of the other stream too");
    arena_release(&arena);
}

int main(void)
{
    test_events_in_order();

    const char *path = tap_shared("data/memory/vectors.json");
    if (!path) {
        tap_note("no shared data here: no vectors");
        return tap_done();
    }

    struct json_doc doc;
    struct err err;
    must(json_read_file(path, &doc, &err), &err);
    struct json_at root = json_root(&doc);
    int n = 0;
    for (struct json_at vector = json_first(&root); vector.node; vector = json_next(&vector), n++)
        run_vector(&vector);
    is_int(n, N_VECTOR, "all vectors have run");
    json_release(&doc);
    return tap_done();
}
