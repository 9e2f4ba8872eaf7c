/*
 * What a stand-in for a collective moves: each byte where it has to go, in any order of copies that
 * matters, and nothing else; and when each of its pieces is over.
 */
#include "tests/stand_in_trial.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum { MAX_RANKS = 7, MAX_ELEMENTS = 3000, GUARD = 64 };

void (*stand_in_trial)(const struct stand_in *in);

static void move(const struct stand_in *in)
{
    if (stand_in_trial) {
        stand_in_trial(in);
        return;
    }
    for (uint32_t piece = 0; piece < STAND_IN_PIECES; piece++)
        stand_in_move(in, piece);
}

/* Memory of both sides, and what it should be afterwards. */
struct trial {
    struct work_collective collective;
    uint64_t slice, bytes, skew; /* bytes: of all slices */
    char *memory, *want;
};

static void choose(struct trial *trial, uint64_t *state)
{
    static const uint8_t kinds[] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
    static const uint8_t dtypes[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_U8};
    struct work_collective *collective = &trial->collective;
    const uint64_t rounded = tap_below(state, 2) ? 16 : 1;

    *collective = (struct work_collective){.kind = kinds[tap_below(state, 3)],
                                           .dtype = dtypes[tap_below(state, 3)],
                                           .elements = tap_below(state, MAX_ELEMENTS) * rounded,
                                           .emulated_ranks = 2 + (uint32_t)tap_below(state, 6)};
    trial->slice = collective->elements * dtype_bytes((enum dtype)collective->dtype);
    trial->bytes = trial->slice * collective->emulated_ranks;
    trial->skew = tap_below(state, 2) ? 0 : tap_below(state, 16);
}

/* The whole at one place, a slice behind it. */
static void lay_out(struct trial *trial, uint64_t *state)
{
    const uint64_t room = GUARD + 16 + trial->bytes + GUARD + trial->slice + GUARD;
    struct work_collective *collective = &trial->collective;

    trial->memory = aligned_alloc(16, (room + 15) / 16 * 16);
    trial->want = malloc(room);
    if (!trial->memory || !trial->want)
        tap_bail("no memory");
    for (uint64_t i = 0; i < room; i++)
        trial->memory[i] = trial->want[i] = (char)tap_random(state);
    const uint64_t whole = GUARD + trial->skew, one = whole + trial->bytes + GUARD;
    if (collective->kind == TASK_ALL_GATHER) {
        collective->send = collective->recv = trial->memory + whole;
        for (uint32_t r = 1; r < collective->emulated_ranks; r++)
            memcpy(trial->want + whole + r * trial->slice, trial->want + whole, trial->slice);
    } else if (collective->kind == TASK_REDUCE_SCATTER) {
        collective->send = trial->memory + whole;
        collective->recv = trial->memory + one;
        memcpy(trial->want + one, trial->want + whole, trial->slice);
    } else {
        collective->send = collective->recv = trial->memory + whole;
    }
}

static bool fails(struct trial *trial)
{
    const uint64_t room = GUARD + 16 + trial->bytes + GUARD + trial->slice + GUARD;
    const struct stand_in in = stand_in_of(&trial->collective);

    move(&in);
    const bool differs = memcmp(trial->memory, trial->want, room) != 0;
    free(trial->memory);
    free(trial->want);
    return differs;
}

static void test_bytes(void)
{
    uint64_t state = tap_seed(91);
    uint32_t n_bad = 0;

    for (int round = 0; round < 300; round++) {
        struct trial trial;
        choose(&trial, &state);
        lay_out(&trial, &state);
        n_bad += fails(&trial);
    }
    is_int(n_bad, 0, "300 random stand-ins leave their own bytes where they should, and no others");
}

/* Ever later, the last one at the end. */
static void test_times(void)
{
    const struct stand_in in = {.ns = 1000003, .bytes = 1000};
    uint32_t n_bad = 0;

    for (uint32_t piece = 1; piece < STAND_IN_PIECES; piece++)
        n_bad += stand_in_due_ns(&in, piece) <= stand_in_due_ns(&in, piece - 1) ||
                 stand_in_cut(&in, piece) < stand_in_cut(&in, piece - 1) ||
                 stand_in_cut(&in, piece) % STAND_IN_ALIGN != 0;
    is_int(n_bad, 0, "pieces follow one another");
    is_int(stand_in_due_ns(&in, STAND_IN_PIECES - 1), in.ns, "the last one ends it");
    is_int(stand_in_cut(&in, STAND_IN_PIECES), 1000, "with its last byte");
}

int main(void)
{
    test_bytes();
    test_times();
    return tap_done();
}
