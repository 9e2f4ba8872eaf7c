/*
 * The two levels of a program agree: peaks of requested bytes from body summaries are those of the
 * expansion, and the allocator counts the bytes that an independent recount counts.
 */
#include <stdlib.h>

#include "src/alloc.h"
#include "src/expand.h"
#include "src/summary.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { RANDOM_PLANS = 500 };

/* Bytes of what is alive, kept by id alone. */
struct recount {
    uint64_t *bytes;
    alloc_block *blocks;
    uint64_t live, peak;
    bool sound; /* nothing was born twice or freed twice */
};

static void recount_event(struct recount *count, const struct expanded *event)
{
    if (event->op == INSTR_ALLOC) {
        count->sound &= count->bytes[event->id] == 0;
        count->bytes[event->id] = event->bytes;
        count->live += event->bytes;
        if (count->live > count->peak)
            count->peak = count->live;
    } else if (event->op == INSTR_FREE) {
        count->sound &= count->bytes[event->id] == event->bytes;
        count->bytes[event->id] = 0;
        count->live -= event->bytes;
    }
}

static bool alloc_event(struct alloc *alloc, struct recount *count, const struct expanded *event)
{
    if (event->op == INSTR_ALLOC)
        return alloc_malloc(alloc, event->stream, event->bytes, event->memory_class,
                            &count->blocks[event->id]);
    if (event->op == INSTR_FREE)
        alloc_free(alloc, count->blocks[event->id]);
    return true;
}

/* Every event of every section; false at the first at which the two counts differ. */
static bool allocator_counts_the_same(const struct program *program, struct recount *count,
                                      struct alloc *alloc, uint64_t peaks[SECTION_N])
{
    for (int s = 0; s < SECTION_N; s++) {
        struct expand walk;
        struct expanded event;
        count->peak = count->live;
        expand_begin(&walk, program, s);
        while (expand_next(&walk, &event)) {
            recount_event(count, &event);
            if (!alloc_event(alloc, count, &event) || alloc_stats(alloc)->requested != count->live)
                return false;
        }
        peaks[s] = count->peak;
    }
    return count->sound;
}

/* Returns whether all holds for this program; says what did not. */
static bool levels_agree(struct made *made)
{
    const struct program *program = &made->program;
    const struct alloc_config config = alloc_config_default();
    struct recount count = {
        .bytes = calloc(program->n_expanded + 1, sizeof(uint64_t)),
        .blocks = calloc(program->n_expanded + 1, sizeof(alloc_block)),
        .sound = true,
    };
    struct summary summary;
    uint64_t peaks[SECTION_N];
    bool good = allocator_counts_the_same(program, &count, alloc_new(&config, &made->arena), peaks);

    if (!good)
        tap_note("the allocator's requested bytes are not those of the recount");
    summary_of(program, &summary);
    for (int s = 0; s < SECTION_N; s++)
        if (summary.peak_bytes[s] != peaks[s]) {
            tap_note("section %s: summary %llu, expansion %llu", section_name(s),
                     (unsigned long long)summary.peak_bytes[s], (unsigned long long)peaks[s]);
            good = false;
        }
    if (summary.end_bytes[SECTION_FIRST] != summary.end_bytes[SECTION_STEADY]) {
        tap_note("a steady step does not end with the bytes it began with");
        good = false;
    }
    free(count.bytes);
    free(count.blocks);
    return good;
}

static void random_plans_agree(uint64_t *state)
{
    int failed = 0;

    for (int i = 0; i < RANDOM_PLANS; i++) {
        struct made made;
        const uint64_t seed = *state;
        const struct dims dims = make_random_dims(state);
        const struct plan_options options = make_random_options(state, &dims);
        make_init_dims(&made, &dims, &options);
        if (!levels_agree(&made)) {
            tap_note("plan %d (state 0x%llx): units %s, gpus %llu", i, (unsigned long long)seed,
                     options.units, (unsigned long long)options.gpus);
            failed++;
        }
        make_release(&made);
    }
    is_int(failed, 0, "summaries equal expansions and recounts on %d random plans", RANDOM_PLANS);
}

/* Gradients that are born in one body and added to in another. */
static void tied_plans_agree(uint64_t *state)
{
    int failed = 0;

    for (int i = 0; i < RANDOM_PLANS; i++) {
        struct made made;
        struct dims dims;
        struct plan_options options;
        const char *family = make_random_tied(state, &dims, &options);
        make_init_family(&made, family, &dims, &options);
        failed += !levels_agree(&made);
        make_release(&made);
    }
    is_int(failed, 0, "and on %d plans of tied models and other families", RANDOM_PLANS);
}

static void real_model_agrees(void)
{
    struct plan_options options = plan_options_default();
    struct made made;

    make_init(&made, "llama3-8b", 0, &options);
    ok(levels_agree(&made), "summaries equal expansions and recounts on llama3-8b");
    make_release(&made);
}

int main(void)
{
    uint64_t state = tap_seed(20261129);

    real_model_agrees();
    random_plans_agree(&state);
    tied_plans_agree(&state);
    return tap_done();
}
