/*
 * Memory over the third step: a sample for each task in order of issue, equal to what the cursor
 * over the expanded program and an allocator of its own find, and with the step's peak in it.
 */
#include <stdlib.h>
#include <string.h>

#include "src/place.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { PROGRAMS = 60, THIRD = 3 };

/* One pass of the plain way; in the third step each sample is compared. */
struct plain {
    const struct program *program;
    struct alloc *alloc;
    alloc_block *blocks;
    const struct memory_curve *curve;
    uint32_t n;    /* samples seen */
    uint64_t high; /* since the last */
    bool good;
};

static void plain_sample(struct plain *plain, uint32_t task)
{
    const struct memory_sample *sample = &plain->curve->samples[plain->n];
    uint64_t sum = 0;

    if (plain->n++ >= plain->curve->n) {
        plain->good = false;
        return;
    }
    for (int c = 0; c < CLASS_N; c++)
        sum += sample->by_class[c];
    plain->good &= sample->task == task && sample->allocated == plain->high &&
                   sum == sample->allocated &&
                   sample->reserved <= alloc_stats(plain->alloc)->peak_reserved;
    plain->high = alloc_stats(plain->alloc)->allocated;
}

/* A body's tape belongs to its task: the sample is due when the next instruction begins. */
static void plain_pass(struct plain *plain, enum section_id section, bool compared)
{
    struct expand walk;
    struct expanded at;
    uint32_t open = UINT32_MAX, instr = UINT32_MAX;

    plain->high = alloc_stats(plain->alloc)->allocated;
    expand_begin(&walk, plain->program, section);
    while (expand_next(&walk, &at)) {
        if (compared && open != UINT32_MAX && at.instr != instr) {
            plain_sample(plain, open);
            open = UINT32_MAX;
        }
        const struct instr *in = &plain->program->instrs[at.instr];
        if (in->op == INSTR_LAUNCH)
            open = in->id;
        instr = at.instr;
        if (at.op == INSTR_ALLOC)
            plain->good &= alloc_malloc(plain->alloc, at.stream, at.bytes, at.memory_class,
                                        &plain->blocks[at.id]);
        else if (at.op == INSTR_FREE)
            alloc_free(plain->alloc, plain->blocks[at.id]);
        if (alloc_stats(plain->alloc)->allocated > plain->high)
            plain->high = alloc_stats(plain->alloc)->allocated;
    }
    if (compared && open != UINT32_MAX)
        plain_sample(plain, open);
}

static bool is_plain(const struct program *program, const struct alloc_config *config,
                     const struct memory_curve *curve, struct arena *arena)
{
    struct plain plain = {
        .program = program,
        .alloc = alloc_new(config, arena),
        .blocks = calloc(program->n_expanded + 1, sizeof(alloc_block)),
        .curve = curve,
        .good = true,
    };
    for (uint32_t step = 0; step <= THIRD; step++)
        plain_pass(&plain, step < SECTION_STEADY ? step : SECTION_STEADY, step == THIRD);
    free(plain.blocks);
    return plain.good && plain.n == curve->n;
}

static bool holds_peak(const struct memory_curve *curve, const struct alloc_stats *stats)
{
    const struct memory_sample *highest = NULL;
    for (uint32_t i = 0; i < curve->n; i++)
        if (highest == NULL || curve->samples[i].allocated > highest->allocated)
            highest = &curve->samples[i];
    return highest != NULL && highest->allocated == stats->peak_allocated &&
           memcmp(highest->by_class, stats->peak_by_class, sizeof highest->by_class) == 0;
}

int main(void)
{
    uint64_t state = tap_seed(20261130);
    int plain = 0, peaks = 0;

    for (int i = 0; i < PROGRAMS; i++) {
        const struct dims dims = make_random_dims(&state);
        struct plan_options options = make_random_options(&state, &dims);
        struct alloc_config config = alloc_config_default();
        struct memory_curve curve = {0};
        struct placement placement;
        struct made made;
        options.seq = UINT64_C(64) << tap_below(&state, 7);
        config.expandable = tap_below(&state, 2) == 1;
        make_init_dims(&made, &dims, &options);
        place_with_curve(&made.program, &config, &made.arena, &placement, &curve);
        plain += is_plain(&made.program, &config, &curve, &made.arena);
        peaks += holds_peak(&curve, &placement_step(&placement, THIRD)->stats);
        make_release(&made);
    }
    is_int(plain, PROGRAMS, "each sample is what a plain walk finds");
    is_int(peaks, PROGRAMS, "the step's peak and its classes are in the curve");
    return tap_done();
}
