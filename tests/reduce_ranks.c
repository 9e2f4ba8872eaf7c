/*
 * Reductions over ranks, bit by bit against one in double that rounds at each operation.
 */
#include "gpu/reduce_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "tests/slow_cast.h"
#include "tests/tap.h"

enum { MOST_RANKS = 9, MOST_BYTES = 5000 * 4 };

static const enum reduction REDUCTIONS_OF_RANKS[] = {REDUCE_SUM, REDUCE_AVG, REDUCE_PREMUL};

static void slow_reduce(enum dtype dtype, enum reduction reduction, double divisor,
                        char *const *parts, uint32_t n, uint64_t i, void *out)
{
    uint64_t at = i * dtype_bytes(dtype);
    double factor = reduction == REDUCE_PREMUL ? slow_fp32(1 / divisor) : 1;
    double sum = slow_fp32(slow_read(dtype, parts[0] + at) * factor);
    for (uint32_t rank = 1; rank < n; rank++)
        sum = slow_fp32(sum + slow_fp32(slow_read(dtype, parts[rank] + at) * factor));
    if (reduction == REDUCE_AVG)
        sum = slow_fp32(sum / n);
    slow_write(dtype, sum, out);
}

/* Any bits, or numbers of like size, whose sums round at each addition. */
static void fill(char *part, enum dtype dtype, bool any_bits, uint64_t *state)
{
    uint64_t bytes = dtype_bytes(dtype);
    for (uint64_t i = 0; i < MOST_BYTES / bytes; i++) {
        uint64_t bits = tap_random(state);
        if (any_bits)
            memcpy(part + i * bytes, &bits, bytes);
        else
            slow_write(dtype, (double)(bits >> 40) / (1 << 20) - 8, part + i * bytes);
    }
}

static uint64_t faults_of(enum dtype dtype, enum reduction reduction, char *const *parts,
                          uint64_t *state)
{
    uint32_t n = 1 + (uint32_t)tap_below(state, MOST_RANKS);
    uint64_t elements = tap_below(state, 5000), faults = 0, bytes = dtype_bytes(dtype);
    double divisor = (double)(1 + tap_below(state, 300));
    uint32_t place = (uint32_t)tap_below(state, MOST_RANKS + 1); /* the last: one that is no part */
    const void *in[MOST_RANKS];
    for (uint32_t rank = 0; rank < n; rank++)
        in[rank] = parts[rank];
    char *want = malloc(MOST_BYTES), *out = place < n ? parts[place] : parts[MOST_RANKS];
    for (uint64_t i = 0; i < elements; i++)
        slow_reduce(dtype, reduction, divisor, parts, n, i, want + i * bytes);
    memcpy(want + elements * bytes, out + elements * bytes, MOST_BYTES - elements * bytes);
    reduce_ranks(dtype, reduction, divisor, in, n, elements, out);
    for (uint64_t i = 0; i < MOST_BYTES / bytes; i++)
        faults += !slow_same(dtype, out + i * bytes, want + i * bytes);
    free(want);
    return faults;
}

static void test_dtype(enum dtype dtype, enum reduction reduction, uint64_t *state)
{
    char *parts[MOST_RANKS + 1];
    uint64_t faults = 0;
    for (int i = 0; i <= MOST_RANKS; i++)
        parts[i] = malloc(MOST_BYTES);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i <= MOST_RANKS; i++)
            fill(parts[i], dtype, round % 3 == 0, state);
        faults += faults_of(dtype, reduction, parts, state);
    }
    for (int i = 0; i <= MOST_RANKS; i++)
        free(parts[i]);
    is_int(faults, 0, "%s of %s: in order, rounded once, out apart and in place",
           reduction_name(reduction), dtype_name(dtype));
}

static float sum_of_four(float a, float b, float c, float d)
{
    const float numbers[] = {a, b, c, d};
    const void *parts[] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3]};
    float out = 0;
    reduce_ranks(DTYPE_FP32, REDUCE_SUM, 0, parts, 4, 1, &out);
    return out;
}

static uint16_t average_of_thirds(void)
{
    const uint16_t numbers[] = {0x3f81, 0x3f81, 0x3f81}; /* 1 + 2^-7 */
    const void *parts[] = {&numbers[0], &numbers[1], &numbers[2]};
    uint16_t out = 0;
    reduce_ranks(DTYPE_BF16, REDUCE_AVG, 0, parts, 3, 1, &out);
    return out;
}

static void test_known(void)
{
    ok(sum_of_four(0x1p24f, 1, 1, -0x1p24f) == 0, "ranks are added from the first on");
    ok(sum_of_four(1, 1, 0x1p24f, -0x1p24f) == 2, "and not in any other order");
    ok(1 / sum_of_four(-0.0f, -0.0f, -0.0f, -0.0f) < 0, "a sum of -0 is -0");
    is_int(average_of_thirds(), 0x3f81, "the average of three equal BF16 numbers is that number");
}

int main(void)
{
    uint64_t state = tap_seed(63);
    for (int dtype = 0; dtype < DTYPE_U8; dtype++) {
        for (int i = 0; i < 3; i++)
            test_dtype((enum dtype)dtype, REDUCTIONS_OF_RANKS[i], &state);
    }
    test_known();
    return tap_done();
}
